"""What is averaged, added up or ranked: a number of public columns, or the sensitive attribute.

A column of numbers stands for itself. Bins stand for their middles in averages and sums, and for
their ends in the limits of those, which so hold wherever inside its bin a number lies. Other
sensitive values need scores.

A quantile is a place in a ladder: places are exact where numbers are not, so integers beyond 2^53
and long decimals keep their order and their value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconpriv.answers.answerer import Answerer
from reconpriv.answers.figure import AVERAGE, QUANTILE, SUM
from reconpriv.ask.comparisons import unknown_column
from reconpriv.ask.conditions import Selectable
from reconpriv.ask.question import Question
from reconpriv.ask.selections import Selected
from reconpriv.ask.sql.text import written_condition, written_name
from reconpriv.cells.cube import Cells, Cube
from reconpriv.columns.kinds import NUMBERS
from reconpriv.columns.recoding import Recoding, plain
from reconpriv.columns.schema import Column, Kind, Schema, Value, parse_value
from reconpriv.engines.local import Evaluator
from reconpriv.errors import InputError
from reconpriv.estimate.totals import Number
from reconpriv.theory.arrays import Floats, Ints

Scores = Mapping[Any, float]


@dataclass(frozen=True)
class ColumnNumber:
    """The number of a public column, from the numbers of its values."""

    index: int
    numbers: Floats

    def of(self, part: Cube) -> Floats:
        """The number of every group; NaN where it is missing."""
        return np.asarray(self.numbers[part.codes[self.index]])


@dataclass(frozen=True)
class ExpressionNumber:
    """The number that an expression over public columns gives."""

    expression: str

    def values(self, part: Cube) -> pa.Array:
        """What the expression gives for every group, as it is typed."""
        evaluator = Evaluator(part.group_table(), written_condition)
        found = evaluator.values(self.expression)
        evaluator.close()
        kind = found.type
        if not (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        ):
            raise InputError(
                f"The expression {written_condition(self.expression)} gives no number, so it"
                " cannot be averaged or added up."
            )
        return found

    def of(self, part: Cube) -> Floats:
        """The number of every group; NaN where it is missing."""
        numbers = self.values(part).cast(pa.float64(), safe=False)
        # NaN is how a missing number is marked, so what is not a number counts as infinite.
        known = numbers.is_valid().to_numpy(zero_copy_only=False)
        values = numbers.fill_null(0.0).to_numpy(zero_copy_only=False)
        return np.where(known, np.where(np.isnan(values), np.inf, values), np.nan)


@dataclass(frozen=True)
class Steps:
    """The values that a quantile can have, in order: numbers, bins or classes.

    ``places`` says where in that order each number (or, of the sensitive attribute, each value)
    stands. Bins have borders, from ``low`` up to ``high``, which may be open.
    """

    shown: tuple[Value, ...]
    low: tuple[Value, ...]
    high: tuple[Value, ...]


@dataclass(frozen=True)
class Measure:
    """A number of each record: ``number`` of public columns, or ``scores`` of sensitive values.

    A missing value is NaN, and does not count. ``steps`` are for quantiles; without them the
    values are the numbers themselves. Of bins, the numbers are the middles, and ``ends`` has the
    lowest and the highest number of every bin instead; those of an open bin are infinite.
    """

    name: str
    number: ColumnNumber | ExpressionNumber | None
    scores: Floats | None
    steps: Steps | None = None
    remarks: tuple[str, ...] = ()
    ends: tuple[Measure, Measure] | None = None


def measure_of(
    answerer: Selectable, asked: str, scores: Scores | None, *, ranked: bool = False
) -> Measure:
    """The measure that a column stands for; ``ranked`` if only its order is asked for."""
    schema = answerer.cells.schema
    names = [column.name for column in schema.columns]
    if asked not in names:
        folded = [name for name in names if name.lower() == asked.lower()]
        if len(folded) != 1:
            raise unknown_column(asked, names)
        asked = folded[0]
    column = next(one for one in schema.columns if one.name == asked)
    if column == schema.sensitive:
        return _sensitive(answerer, column, scores, ranked=ranked)
    if scores is not None:
        raise InputError(
            f"Scores are for the sensitive column {schema.sensitive.name!r}; {asked!r} is public."
        )
    index = names.index(asked)
    values, recoding = list(answerer.known[asked]), schema.recoding(asked)
    numbers, steps = _numbers(column, values, recoding, ranked=ranked)
    found = [Measure(asked, ColumnNumber(index, one), None, steps) for one in numbers]
    return _with_ends(*found)


_FUNCTIONS = {AVERAGE: "avg", SUM: "sum"}


def question_of_measure(
    records: Selectable,
    kind: str,
    column: str,
    selected: Selected,
    scores: Scores | None,
    share: float = 0.5,
) -> Question:
    """An average, a sum or a quantile of a column."""
    measure = measure_of(records, column, scores, ranked=kind == QUANTILE)
    if kind == QUANTILE:
        arguments = measure.name if share == 0.5 else f"{measure.name}, {share:g}"
        name = f"{'median' if share == 0.5 else 'quantile'}({arguments})"
    else:
        name = f"{_FUNCTIONS[kind]}({measure.name})"
    return Question(kind, selected, measure=measure, share=share, name=name)


def has_numbers(schema: Schema, name: str, *, ranked: bool = False) -> bool:
    """True if a column has an average (or, if ``ranked``, a median) without scores."""
    column = next(one for one in schema.columns if one.name == name)
    return _has_numbers(column, schema.recoding(name), ranked=ranked)


def _has_numbers(column: Column, recoding: Recoding | None, *, ranked: bool) -> bool:
    if recoding is not None:
        return recoding.numeric or ranked
    return column.kind in NUMBERS


def _sensitive(
    answerer: Selectable, column: Column, scores: Scores | None, *, ranked: bool
) -> Measure:
    schema = answerer.cells.schema
    domain, recoding = list(schema.domain), schema.recoding(column.name)
    if scores is None:
        every, steps = _numbers(column, domain, recoding, ranked=ranked, sensitive=True)
        return _with_ends(*(Measure(column.name, None, one, steps) for one in every))
    given = [parse_value(column, value) for value in scores]
    strangers = [value for value in given if value not in domain]
    if strangers:
        raise InputError(f"The scores name {strangers[0]!r}, which {column.name!r} does not have.")
    by_value = dict(zip(given, scores.values(), strict=True))
    if len(by_value) < len(given):
        twice = next(value for value in given if given.count(value) > 1)
        raise InputError(f"The scores name {twice!r} twice.")
    left = [value for value in domain if value is not None and value not in by_value]
    if left:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        raise InputError(
            f"The scores leave out {left[0]!r}{more}.",
            hint=f"Give a number for each of the {len(domain)} values of {column.name!r}.",
        )
    numbers = np.array([_score(value, by_value.get(value)) for value in domain])
    steps = None
    if ranked:
        steps = _classes(domain, numbers)
        numbers = _ranks(numbers)
    return Measure(column.name, None, numbers, steps)


@dataclass(frozen=True)
class Ladder:
    """Places of groups (``number``) or of sensitive values (``scores``); NaN where one is missing.

    ``at`` gives the value at a place, and the lower and the upper end of what it stands for, which
    differ for bins.
    """

    number: Number | None
    scores: Floats | None
    at: Callable[[int], tuple[Value, Value, Value]]


@dataclass(frozen=True)
class _Places:
    """Places of what an expression gives, among all that it gives; in memory they are kept."""

    cells: Cells
    expression: ExpressionNumber
    distinct: pa.Array

    def of(self, part: Cube) -> Floats:
        return self._kept if part is self.cells else self._found(part)

    @cached_property
    def _kept(self) -> Floats:
        assert isinstance(self.cells, Cube)
        return self._found(self.cells)

    def _found(self, part: Cube) -> Floats:
        found = pc.index_in(self.expression.values(part), value_set=self.distinct)
        return np.asarray(found.cast(pa.float64()).to_numpy(zero_copy_only=False))


def ladder_of(answerer: Answerer, measure: Measure) -> Ladder:
    """The ladder of a measure."""
    steps, number, cells = measure.steps, measure.number, answerer.cells
    if steps is not None:
        return Ladder(
            number, measure.scores, lambda at: (steps.shown[at], steps.low[at], steps.high[at])
        )
    if number is None:
        assert measure.scores is not None
        places, at = _placed(measure.scores, cells.schema.domain)
        return Ladder(None, places, at)
    if isinstance(number, ColumnNumber):
        places, at = _placed(number.numbers, cells.values[number.index])
        return Ladder(ColumnNumber(number.index, places), None, at)
    seen = [pc.unique(number.values(part)) for part in cells.parts()]
    distinct = pc.unique(pa.concat_arrays(seen)).drop_null()
    ordered = distinct.take(pc.array_sort_indices(distinct))
    shown = _bare(lambda place: ordered[place].as_py())
    return Ladder(_Places(cells, number, ordered), None, shown)


def _bare(value: Callable[[int], Value]) -> Callable[[int], tuple[Value, Value, Value]]:
    """Values without borders: each is its own lower and upper end."""
    return lambda place: (_plain(value(place)),) * 3


def _placed(
    numbers: Floats, values: Sequence[Value] | pa.Array
) -> tuple[Floats, Callable[[int], tuple[Value, Value, Value]]]:
    """The places of ascending values; those that are the same as floats keep their order."""
    order = np.argsort(numbers, kind="stable")
    order = order[~np.isnan(numbers[order])]
    places = np.full(numbers.size, np.nan)
    places[order] = np.arange(order.size)

    def value(place: int) -> Value:
        code = int(order[place])
        found = values[code].as_py() if isinstance(values, pa.Array) else values[code]
        own = isinstance(found, int | Decimal) and float(found) == numbers[code]
        return found if own else float(numbers[code])

    return places, _bare(value)


_LARGEST_SCORE = 1e15  # beyond it, numbers that differ by one are the same


def _score(value: Value, score: Any) -> float:
    if value is None and score is None:
        return float("nan")
    if isinstance(score, bool) or not isinstance(score, int | float | Decimal | np.number):
        raise InputError(f"The score of {value!r} must be a number; got {score!r}.")
    if not abs(number := float(score)) <= _LARGEST_SCORE:
        limits = f"-{_LARGEST_SCORE:g} and {_LARGEST_SCORE:g}"
        raise InputError(f"The score of {value!r} must lie between {limits}; got {score!r}.")
    return number


def _ranks(numbers: Floats) -> Floats:
    """The place of each number among the distinct ones; NaN stays."""
    distinct = np.unique(numbers[~np.isnan(numbers)])
    return np.where(np.isnan(numbers), np.nan, np.searchsorted(distinct, numbers).astype(float))


def _classes(values: Sequence[Value], numbers: Floats) -> Steps:
    """Classes in the order of their scores; those of the same score are one step."""
    distinct = np.unique(numbers[~np.isnan(numbers)])
    shown = []
    for number in distinct:
        same = [str(v) for v, n in zip(values, numbers, strict=True) if n == number]
        shown.append(" or ".join(same))
    return Steps(tuple(shown), tuple(shown), tuple(shown))


def _numbers(
    column: Column,
    values: Sequence[Value],
    recoding: Recoding | None,
    *,
    ranked: bool,
    sensitive: bool = False,
) -> tuple[list[Floats], Steps | None]:
    """The numbers of the values of a column, or refuse; of bins, also their two ends."""
    usable = _has_numbers(column, recoding, ranked=ranked)
    if usable and recoding is not None:
        place = {label: i for i, label in enumerate(recoding.labels)}
        where = np.array([place.get(value, -1) for value in values])
        if ranked:
            ranks = np.where(where < 0, np.nan, where.astype(np.float64))
            return [ranks], _bins(recoding)
        return [_inside(recoding, where, share) for share in (0.5, 0.0, 1.0)], None
    if not usable:
        what = "text" if column.kind is Kind.STRING else f"{column.kind.value} values"
        none, hint = "average, sum or quantile", "Average a column of numbers."
        if recoding is not None and recoding.dated:
            what, none, hint = f"{recoding.declared}s", "average or sum", "Ask for the median."
        elif sensitive:
            hint = "Give scores, a number for each value, for example scores={…}."
        raise InputError(f"Column {column.name!r} holds {what}, so it has no {none}.", hint=hint)
    return [np.array([_number(value) for value in values])], None


def _number(value: Value) -> float:
    """A value as a number: a missing one is NaN, so that NaN itself counts as infinite."""
    if value is None:
        return float("nan")
    return float("inf") if math.isnan(value) else float(value)


def refuse_infinite(answerer: Answerer, asked: Question) -> None:
    """Refuse records whose number is infinite or undefined, or may be in a bin without an end."""
    measure, selected, kind = asked.measured, asked.selected, asked.kind
    if measure.steps is not None:
        return
    if measure.number is None:
        assert measure.scores is not None
        chosen = selected.values
        found = [measure.scores if chosen is None else measure.scores[list(chosen)]]
    else:
        parts = answerer.cells.parts()
        found = [measure.number.of(part)[answerer.mask(selected, part)] for part in parts]
    if not any(np.isinf(one).any() for one in found):
        return
    if measure.ends is None:
        raise InputError(
            f"{measure.name!r} is infinite or not a number for some records, so there is no"
            f" {kind} of it.",
            hint="Leave them out with a condition.",
        )
    recoding = answerer.cells.schema.recoding(measure.name)
    assert recoding is not None
    raise InputError(
        f"The bin {recoding.labels[-1]!r} of {measure.name!r} has no end, so there is no"
        f" {kind} of its numbers.",
        hint="Leave it out with a condition"
        f" ({written_name(measure.name)} < {plain(recoding.borders[-1])}), or ask for the median.",
    )


MIDDLES = (
    "{column} is published in bins: the estimate takes every number as the middle of its bin, and"
    " the interval allows for any place inside it"
)


def _with_ends(measure: Measure, *ends: Measure) -> Measure:
    """A measure; of bins, with their ends and the remark on them."""
    if not ends:
        return measure
    remarks = (MIDDLES.format(column=measure.name),)
    low, high = (replace(one, remarks=remarks) for one in ends)
    return replace(measure, remarks=remarks, ends=(low, high))


def _bins(recoding: Recoding) -> Steps:
    if not recoding.numeric:  # periods, or groups in the order in which they were declared
        return Steps(recoding.labels, recoding.labels, recoding.labels)
    ends = [recoding.ends(i) for i in range(len(recoding.labels))]
    high = tuple(None if top is None else _plain(top) for _, top in ends)
    return Steps(recoding.labels, tuple(_plain(low) for low, _ in ends), high)


def _plain(value: Any) -> int | float:
    """Whole numbers as integers, others as floats; integers of any size as they are."""
    return int(value) if isinstance(value, int) or value == int(value) else float(value)


def _inside(recoding: Recoding, where: Ints, share: float) -> Floats:
    """The number at a share of the way through each bin; infinite where a bin has no end."""
    ends = [recoding.ends(i) for i in range(len(recoding.labels))]
    found = [
        np.inf if high is None else float(low + Decimal(share) * (high - low)) for low, high in ends
    ]
    return np.array([*found, np.nan])[where]  # -1, a missing value, is the last
