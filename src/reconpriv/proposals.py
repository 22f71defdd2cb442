"""A role for every column, proposed from what the column holds; the steward decides."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from reconpriv.auditing.giveaways import Giveaway, JointCounts, count_pairs, told_alone
from reconpriv.columns.kinds import DATES, NUMBERS
from reconpriv.columns.schema import (
    MAX_UNDECLARED_DOMAIN,
    Column,
    Kind,
    Schema,
    Value,
    looks_like_identifier,
    sort_domain,
)
from reconpriv.messages.one_line import shortened
from reconpriv.messages.readable import Readable
from reconpriv.protect.group_by import GroupBy
from reconpriv.tuning.hints import MANY_VALUES, NUMBER_TEXT

if TYPE_CHECKING:
    from reconpriv.engines.base import Engine

PUBLIC, DROP, PERSON, SENSITIVE = "public", "drop", "person", "sensitive"
Decision = tuple[str, str, str]  # a role, the reason, and bins

_SAMPLE = 1_000  # values of a column that are looked at
_ROWS_PER_VALUE = 10  # a text that fewer people share singles them out
_ONE_ROW = 0.95  # with more values than this share of the records, each is one row's
_WEIGHT_REASON = "looks like a survey weight, which tells records apart"
_PERSON_REASON = "looks like the number of a person who has several rows"
_SHARED_BY_CHANCE = 5  # so many pairs of records would share a number, and none does
_LONG_CODE = 7  # digits; a measure has rarely as many, and everywhere the same number of them
_HOUSEHOLDS = 200  # numbers of households are many; how many people are in one is a small number
_WORDS = 3  # texts with as many words, most of them different, are sentences

_ID_NAME = re.compile(
    r"(^|_|\b)(id|ids|pid|uid|uuid|guid|nr|no|number|person|patient|subject|member|respondent"
    r"|idauniq|mrn|ssn|case|household|hhid|serial|key)(_|\b|$)"
)
_PERSON_NAME = re.compile(
    r"(^|_)(id|ids|pid|uid|uuid|guid|person|patient|subject|member|respondent|participant|client"
    r"|employee|student|idauniq|mrn|ssn)(_|$)|[a-z]id$"
)
_HOUSEHOLD_NAME = re.compile(r"household|haushalt|(^|_)(hh|hhid|hid|family)(_|$)")
_NAME_NAME = re.compile(
    r"(^|_)(name|surname|forename|firstname|lastname|fullname|first_name|last_name|email|mail"
    r"|phone|mobile|telephone|address|street|iban)(_|$)"
)
_AREA_NAME = re.compile(r"(^|_)(post_?code|zip(_?code)?|postal(_?code)?|plz)(_|$)", re.IGNORECASE)
_WEIGHT_NAME = re.compile(
    r"wgt|weight|(^|_)p?wt([a-z0-9]*yr)?(_|$)|(^|_)(survey|sample|sampling|design)_?w",
    re.IGNORECASE,
)
_PLAIN_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")
_DATE_TEXT = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T]\d{1,2}:\d{2}.*)?")


@dataclass(frozen=True)
class ColumnFacts:
    """What is known about a column: how many values it has, and some of them with their counts."""

    column: Column
    records: int
    distinct: int
    missing: int
    some: Mapping[Value, int]

    @property
    def texts(self) -> list[str]:
        """Some values, if the column holds texts."""
        return [value for value in self.some if isinstance(value, str)]

    @property
    def nearly_unique(self) -> bool:
        """True if there is nearly one value per record."""
        return looks_like_identifier(self.distinct, self.records)

    @property
    def rows(self) -> float:
        """How many rows a value has on average."""
        return self.records / max(self.distinct, 1)

    def even(self, factor: float) -> bool:
        """True if all values occur about equally often, as those of a person's number do."""
        return max(self.some.values(), default=0) <= factor * self.rows + 1


@dataclass(frozen=True)
class Proposal:
    """A role for a column, with the reason; ``bins`` says how to bin a public one."""

    column: str
    kind: str
    distinct: int
    missing: int
    role: str
    reason: str
    bins: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The role of a column as JSON has it."""
        return dict(vars(self))


@dataclass(frozen=True, repr=False)
class Proposals(Readable):
    """A proposal for each column of a table, in its order."""

    records: int
    sensitive: str | None
    columns: tuple[Proposal, ...]

    def named(self, role: str) -> list[str]:
        """The columns that this role is proposed for."""
        return [one.column for one in self.columns if one.role == role]

    @property
    def bins(self) -> dict[str, str]:
        """The published columns that are better binned, with their bins."""
        return {one.column: one.bins for one in self.columns if one.bins}

    def lines(self) -> list[str]:
        """A line for each column: its name, the role and the reason."""
        width = min(max((len(one.column) for one in self.columns), default=0), 40)
        return [
            f"{shortened(one.column, 40):<{width}}  {one.role:<6}  {one.reason}"
            + (f" ({one.bins})" if one.bins else "")
            for one in self.columns
            if one.role != SENSITIVE
        ]

    def arguments(self) -> str:
        """The proposal as arguments of ``read``."""
        said = [f"public={self.named(PUBLIC)!r}"]
        said += [f"drop={names!r}" for names in [self.named(DROP)] if names]
        said += [f"person={name!r}" for name in self.named(PERSON)]
        said += [f"bin={self.bins!r}"] if self.bins else []
        return ", ".join(said)

    def as_dict(self) -> dict[str, Any]:
        """The proposal as JSON has it."""
        return {
            "records": self.records,
            "sensitive": self.sensitive,
            "columns": [one.as_dict() for one in self.columns],
        }


def propose(
    engine: Engine,
    sensitive: Column | None,
    *,
    drop_missing: bool = False,
    only: Sequence[str] | None = None,
) -> Proposals:
    """Look at every column, or at those in ``only``; the engine has been told to expect them."""
    columns = [one for one in engine.columns() if only is None or one.name in only]
    plain = [one for one in columns if one.kind is not Kind.OTHER]
    records = engine.records()
    distincts = engine.distinct_in_time(plain, records) if plain else []
    rough = dict(zip(plain, distincts, strict=True))
    found = []
    for column in columns:
        some = engine.value_counts(column, _SAMPLE) if column in rough else {}
        missing = some.pop(None, 0)
        distinct = len(some)
        if distinct + bool(missing) >= _SAMPLE:
            distinct = min(max(rough[column], distinct), records)
        found.append(ColumnFacts(column, records, distinct, missing, some))
    given = _giveaways(engine, sensitive, found, drop_missing)
    decided = {
        one.column: _sensitive(one, engine, drop_missing=drop_missing)
        if one.column == sensitive
        else _role(one, given.get(one.column.name), engine)
        for one in found
    }
    # Of several numbers of people, one that is called so; otherwise the first.
    people = [column.name for column, (role, *_) in decided.items() if role == PERSON]
    person = person_by_name(people) or next(iter(people), None)
    proposed: list[Proposal] = []
    for one in found:
        name, (role, reason, bins) = one.column.name, decided[one.column]
        if role == PERSON and name != person:
            role, reason = DROP, f"{reason}; another column is proposed as the person's number"
        kind = one.column.kind.value
        proposed.append(Proposal(name, kind, one.distinct, one.missing, role, reason, bins))
    return Proposals(records, None if sensitive is None else sensitive.name, tuple(proposed))


def person_by_name(names: Sequence[str]) -> str | None:
    """A column that is called like a person's number, if there is one."""
    return next((name for name in names if _is_person_name(name.lower())), None)


def _is_person_name(name: str) -> bool:
    """True if a column is called like a person's number, and not like that of a household."""
    return bool(_PERSON_NAME.search(name)) and not _HOUSEHOLD_NAME.search(name)


def _giveaways(
    engine: Engine, sensitive: Column | None, found: Sequence[ColumnFacts], drop_missing: bool
) -> dict[str, Giveaway]:
    """The columns that tell the sensitive value, if that can be measured yet."""
    if sensitive is None or sensitive.kind in (Kind.NUMBER, Kind.DECIMAL, Kind.DATETIME, Kind.TIME):
        return {}
    counts = engine.value_counts(sensitive, MAX_UNDECLARED_DOMAIN + 2)
    if drop_missing:
        counts.pop(None, None)
    if not 2 <= len(counts) <= MAX_UNDECLARED_DOMAIN:
        return {}
    domain = sort_domain(counts)
    likely = tuple(
        one.column
        for one in found
        if one.column.kind is not Kind.OTHER
        and one.column != sensitive
        and (one.column.kind is not Kind.STRING or not one.nearly_unique)
    )
    told: list[Giveaway] = []
    for column in likely:
        alone = Schema((column,), sensitive, domain, sum(counts.values()))
        parts = engine.map_groups(GroupBy(alone, drop_missing), partial(count_pairs, schema=alone))
        told += told_alone(JointCounts(alone).join(parts), ())
    return {one.columns[0]: one for one in told}


def _role(facts: ColumnFacts, giveaway: Giveaway | None, engine: Engine) -> Decision:
    """The role of a column that is not sensitive, the reason, and bins: the first rule decides."""
    kind = facts.column.kind
    useless = {
        "holds values of a type that cannot be published": kind is Kind.OTHER,
        "has no values": facts.distinct == 0,
        "has the same value in every record": facts.distinct == 1 and not facts.missing,
    }
    for reason, true in useless.items():
        if true:
            return DROP, reason, ""
    who = _who(facts)
    if who is not None:
        return who
    if giveaway is not None:
        return DROP, f"tells the sensitive value of {giveaway.share:.0%} of {giveaway.who}", ""
    area = _AREA_NAME.search(facts.column.name)  # digits, but no number
    if kind in DATES and not area:
        return PUBLIC, "dates single people out: bin them", _date_bins(facts.column, engine)
    return _number_role(facts, engine) if kind in NUMBERS and not area else _text_role(facts)


def _sensitive(facts: ColumnFacts, engine: Engine, *, drop_missing: bool) -> Decision:
    """The sensitive column: what has to be said about its values before it can be published."""
    reasons, bins = [], ""
    if facts.distinct > MAX_UNDECLARED_DOMAIN:
        if facts.column.kind in DATES:
            bins = _date_bins(facts.column, engine)
        elif facts.column.kind in NUMBERS:
            bins = _number_bins(facts.column, engine)
        many = f"too many values to randomise over ({facts.distinct:,})"
        text = _text_of_measures(facts.texts)
        reasons.append(f"{many}: {'bin it' if bins else text or 'group them'}")
    if facts.missing and not drop_missing:
        missing = f"missing in {facts.missing:,} of {facts.records:,} records"
        reasons.append(f"{missing}: leave these out, or count them as a value of their own")
    if facts.distinct <= MAX_UNDECLARED_DOMAIN:
        reasons += _alike(facts.texts)
    return SENSITIVE, "; ".join(reasons), bins


def _who(facts: ColumnFacts) -> Decision | None:
    """The role of a column that says who a row is about: a name, an identifier, a number."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", facts.column.name).lower()
    many = f"{facts.distinct:,} values in {facts.records:,} records"
    texts = facts.texts
    called = {
        "names or contact details": _NAME_NAME.search(name) and facts.distinct > MANY_VALUES,
        "the number of a household": _HOUSEHOLD_NAME.search(name) and facts.distinct >= _HOUSEHOLDS,
    }
    for what, true in called.items():
        if true:
            return DROP, f"looks like {what} ({many})", ""
    measures = (NUMBER_TEXT.fullmatch(text) or _DATE_TEXT.fullmatch(text) for text in texts)
    if texts and all(measures) and not _is_code(facts):
        return None
    if _is_person(facts, name):
        return PERSON, f"{_PERSON_REASON} ({many})", ""
    if facts.nearly_unique and facts.column.kind is Kind.STRING:
        sentences = _words(texts) >= _WORDS
        return DROP, f"{'free text' if sentences else 'nearly unique'} ({many})", ""
    number = facts.column.kind is Kind.INTEGER
    code = number and (_is_code(facts) or _ID_NAME.search(name) or _numbers_each(facts))
    if facts.nearly_unique and code:
        return DROP, f"an identifier: nearly unique ({many})", ""
    return None


def _is_person(facts: ColumnFacts, name: str) -> bool:
    """True if the values number people who have several rows each, about as many as others."""
    if facts.column.kind not in (Kind.INTEGER, Kind.STRING) or _AREA_NAME.search(name):
        return False
    if facts.distinct > _ONE_ROW * facts.records:
        return False
    if _is_person_name(name):
        return facts.rows <= 50 and facts.distinct >= 20 and facts.even(3.0)
    # A column that is not called a number needs more proof.
    few = facts.rows <= 10 and facts.distinct >= 200 and facts.even(1.5)
    return few and _is_code(facts)


def _is_code(facts: ColumnFacts) -> bool:
    """True if the values are numbered through, or are short words with digits."""
    if facts.column.kind is Kind.INTEGER:
        numbers = [int(value) for value in facts.some]
        # Of many numbers, only some are known: there must be few gaps.
        size = 2 * max(facts.distinct, len(numbers))
        return facts.distinct > MANY_VALUES and max(numbers) - min(numbers) + 1 <= size
    lengths = [len(text) for text in facts.texts]
    return bool(lengths) and all(
        max(lengths) - min(lengths) <= 4
        and any(map(str.isdigit, text))
        and " " not in text
        and not _DATE_TEXT.fullmatch(text)
        and not re.search(r"[.,]", text)
        for text in facts.texts
    )


def _numbers_each(facts: ColumnFacts) -> bool:
    """True if whole numbers differ in all records, as those of a measure would not by chance."""
    numbers = [int(value) for value in facts.some]
    if facts.distinct < facts.records or not numbers:
        return False
    pairs = facts.records**2 / 2
    by_chance = pairs / (max(numbers) - min(numbers) + 1)
    lengths = {len(str(abs(number))) for number in numbers}
    return by_chance > _SHARED_BY_CHANCE or (len(lengths) == 1 and min(lengths) >= _LONG_CODE)


def _words(texts: Sequence[str]) -> float:
    return sum(len(text.split()) for text in texts) / max(len(texts), 1)


def _number_role(facts: ColumnFacts, engine: Engine) -> Decision:
    values = f"{facts.distinct:,} values"
    if _is_weight(facts):
        return DROP, f"{_WEIGHT_REASON} ({values})", ""
    if facts.distinct <= MANY_VALUES:
        return PUBLIC, values, ""
    bins = _number_bins(facts.column, engine)
    return PUBLIC, f"a number with many values ({values}): bin it", bins


def _number_bins(column: Column, engine: Engine) -> str:
    tenths = [float(value) for value in engine.quantiles(column, 10, None)]
    high = float((engine.value_range(column, None) or (0, 0))[1])
    return _bins(tenths[0], tenths[-1], high)


def _is_weight(facts: ColumnFacts) -> bool:
    """True if the column is called a survey weight, and tells records apart as one does."""
    named = _WEIGHT_NAME.search(facts.column.name) is not None
    return named and facts.rows < _ROWS_PER_VALUE


def _text_role(facts: ColumnFacts) -> Decision:
    """The role of texts, truth values and times of day."""
    texts, values = facts.texts, f"{facts.distinct:,} values"
    if facts.distinct <= MANY_VALUES:
        return PUBLIC, "; ".join([values, *_alike(texts)]), ""
    shared = facts.records / facts.distinct >= _ROWS_PER_VALUE
    area = _AREA_NAME.search(facts.column.name)
    plain = bool(texts) and not area and all(map(_PLAIN_NUMBER.fullmatch, texts))
    if plain and _is_weight(facts):
        return DROP, f"{_WEIGHT_REASON} ({values})", ""
    if plain:
        found = sorted(map(float, texts))
        bins = _bins(found[0], found[9 * len(found) // 10], found[-1])
        return PUBLIC, f"a number with many values ({values}): bin it", bins
    measures = _text_of_measures([] if area else texts)
    if measures:
        why = measures
    elif shared:
        return PUBLIC, f"many values ({values}): consider groups", ""
    elif _words(texts) >= _WORDS:
        why = f"free text ({values})"
    else:
        why = f"few people share a value ({values}): group them, or leave it out"
    return DROP, why, ""


def _text_of_measures(texts: Sequence[str]) -> str:
    """What to do with texts that are all numbers, or all dates; empty for others."""
    if texts and all(map(NUMBER_TEXT.fullmatch, texts)):
        return f"numbers written as text ({texts[0]!r}): turn them into numbers and bin them"
    if texts and all(map(_DATE_TEXT.fullmatch, texts)):
        return f"dates written as text ({texts[0]!r}): turn them into dates and bin them"
    return ""


def _alike(texts: Sequence[str]) -> list[str]:
    """Two values that may well be one, if there are such: they differ only in case or blanks."""
    seen: dict[str, str] = {}
    for text in sorted(texts):
        other = seen.setdefault(" ".join(text.casefold().split()), text)
        if other != text:
            both = " and ".join(repr(shortened(one, 40)) for one in (other, text))
            return [f"{both} differ only in case or blanks"]
    return []


def _date_bins(column: Column, engine: Engine) -> str:
    span = engine.value_range(column, None)
    days = 0 if span is None else (span[1] - span[0]).days
    return "month" if days <= 3 * 366 else "quarter" if days <= 8 * 366 else "year"


def _bins(low: float, most: float, high: float) -> str:
    """About ten bins: a width, or borders if some values lie far above most of them."""
    if most - low <= (high - low) / 20 or high - low <= 3 * (most - low):
        return _written(_round((high - low) / 10))
    width = _round(max(most - low, (high - low) / 100) / 8)
    first = math.floor(low / width) * width
    borders = [first + i * width for i in range(10) if first + (i - 1) * width < most]
    return ",".join(_written(border) for border in borders)


def _round(width: float) -> float:
    """The next of 1, 2, 5, 10, 20, …"""
    if width <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(width))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= width * 0.999)


def _written(number: float) -> str:
    return f"{number:.10g}"
