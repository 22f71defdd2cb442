"""Conditions on recoded columns: which bins or groups they cover, and which they cut.

A release knows bins, not numbers. A condition on numbers is answered if it covers whole bins;
one that cuts a bin is refused, or, on request, answered for the whole bin, and the answer then
says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from reconpriv.ask.sql.text import written_name, written_text
from reconpriv.columns.recoding import Recoding, plain
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.messages.remedies import WHOLE_BINS, either

# No border is this large, so any larger number compares with all of them as this one does.
_BEYOND = Decimal("1e40")
_ENDLESS = Decimal("Infinity")
_OPPOSITE = {
    "<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "=", "BETWEEN": "NOT BETWEEN",
}  # fmt: skip
_NEGATED = ("<>", "NOT BETWEEN")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


@dataclass(frozen=True)
class NumberRange:
    """Numbers from low to high; each end may be infinite, and may be included or not."""

    low: Decimal = -_ENDLESS
    high: Decimal = _ENDLESS
    low_in: bool = True
    high_in: bool = True

    def whole(self) -> NumberRange:
        """The same whole numbers, with both ends included."""
        low, high = (
            self.low.to_integral_value(ROUND_CEILING),
            self.high.to_integral_value(ROUND_FLOOR),
        )
        low += not self.low_in and low == self.low
        high -= not self.high_in and high == self.high
        return NumberRange(low, high)

    @property
    def first(self) -> tuple[Decimal, int]:
        """Where it begins: at a number, or just after it."""
        return self.low, not self.low_in

    @property
    def last(self) -> tuple[Decimal, int]:
        """Where it ends: at a number, or just before it."""
        return self.high, -(not self.high_in)

    def holds(self, other: NumberRange) -> bool:
        """True if every number of the other interval is in this one."""
        return self.first <= other.first and other.last <= self.last

    def misses(self, other: NumberRange) -> bool:
        """True if the two have no number in common."""
        return self.last < self.first or self.last < other.first or other.last < self.first


@dataclass(frozen=True)
class Covered:
    """The labels that a condition covers, in order, and those of them that it cuts."""

    labels: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()

    def __or__(self, other: Covered) -> Covered:
        """What either covers; a label that one of them covers whole is not cut."""
        whole = {*self.labels} - {*self.cut} | ({*other.labels} - {*other.cut})
        cut = tuple(dict.fromkeys(x for x in (*self.cut, *other.cut) if x not in whole))
        return Covered(tuple(dict.fromkeys((*self.labels, *other.labels))), cut)


@dataclass(frozen=True)
class LabelTest:
    """The labels that stand for a condition, and the remark for the answer.

    If a bin is cut, ``taken_as`` is the condition on whole bins that is answered instead.
    """

    labels: tuple[str, ...]
    negated: bool = False
    remark: str | None = None
    taken_as: str | None = None


def in_interval(recoding: Recoding, asked: NumberRange) -> Covered:
    """The bins that contain a number of an interval."""
    if recoding.whole:
        asked = asked.whole()
    labels, cut = [], []
    for i, label in enumerate(recoding.labels):
        low, high = recoding.interval(i)
        own = NumberRange(low, _ENDLESS if high is None else high, high_in=recoding.holds_end(i))
        own = own.whole() if recoding.whole else own
        if not asked.misses(own):
            labels.append(label)
            if not asked.holds(own):
                cut.append(label)
    return Covered(tuple(labels), tuple(cut))


def answer_test(
    recoding: Recoding, operator: str, values: Sequence[Value], text: str, *, whole_bins: bool
) -> LabelTest:
    """A test of a recoded column; ``text`` is how the user wrote it.

    The operator is that of a comparison, or BETWEEN or NOT BETWEEN with both ends; with several
    values, = means any of them, and <> none.
    """
    if operator in ("=", "<>"):
        covered = Covered()
        for value in values:
            covered |= _equal(recoding, value)
        ordered = tuple(label for label in recoding.labels if label in set(covered.labels))
        covered = _filled(recoding, values, Covered(ordered, covered.cut))
    else:
        numbers = [_clamped(_number(recoding, value, text)) for value in values]
        covered = in_interval(recoding, _RANGES[operator](*numbers))
    negated = operator in _NEGATED
    if not covered.cut:
        return LabelTest(covered.labels, negated)
    if not whole_bins:
        raise _cuts(recoding, operator, covered, values, text)
    taken_as = _taken_as(recoding, operator, covered.labels)
    remark = f"answered for {taken_as}: {_fate(recoding, covered.cut, negated)}"
    return LabelTest(covered.labels, negated, remark, taken_as)


_RANGES: dict[str, Callable[..., NumberRange]] = {
    "<": lambda high: NumberRange(high=high, high_in=False),
    "<=": lambda high: NumberRange(high=high),
    ">": lambda low: NumberRange(low=low, low_in=False),
    ">=": lambda low: NumberRange(low=low),
    "BETWEEN": NumberRange,
    "NOT BETWEEN": NumberRange,
}


def mirrored(operator: str) -> str:
    """The operator with its sides swapped: 65 > age is age < 65."""
    return _MIRRORED[operator]


def opposite(operator: str) -> str:
    """The operator that holds where this one does not: NOT age < 65 is age >= 65."""
    return _OPPOSITE[operator]


def misused(recoding: Recoding, text: str) -> InputError:
    """The refusal of any other use of a recoded column."""
    name = recoding.column
    how = "(=, IN) with its groups"
    if recoding.binned:
        how = f"with {'dates' if recoding.dated else 'numbers'} or with its bins"
    return InputError(
        f"Column {name!r} holds {'bins' if recoding.binned else 'groups'}, so {text!r} has no"
        " meaning.",
        hint=f"Compare it {how}, for example {written_name(name)} ="
        f" {written_text(recoding.labels[0])}.",
    )


def _equal(recoding: Recoding, value: Value) -> Covered:
    """The label itself; otherwise the bin that holds a number, or the group that lists a text."""
    if isinstance(value, str) and value in recoding.labels:
        return Covered((value,))
    if recoding.binned:
        number = recoding.place(value)
        if number is None:
            raise _unknown(recoding, value)
        number = _clamped(number)
        return in_interval(recoding, NumberRange(number, number))
    text = _text(value)
    for label, values in zip(recoding.labels, recoding.members, strict=True):
        if text in values:
            alone = len(values) == 1 and label != recoding.rest
            return Covered((label,), () if alone else (label,))
    raise _unknown(recoding, value)


def _text(value: Value) -> str:
    """A value as it is listed in a group."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return plain(value) if isinstance(value, Decimal) else str(value)


def _filled(recoding: Recoding, values: Sequence[Value], covered: Covered) -> Covered:
    """A group, or a bin of whole numbers, is not cut if all of its values are listed."""
    if recoding.binned and not recoding.whole:
        return covered
    cut = []
    for label in covered.cut:
        i = recoding.labels.index(label)
        if recoding.binned:
            low, high = recoding.interval(i)
            listed = {recoding.place(value) for value in values}
            inside = sum(low <= n < high for n in listed if n is not None and high is not None)
            every = high is not None and inside == high - low
        else:
            every = label != recoding.rest and set(recoding.members[i]) <= set(map(_text, values))
        if not every:
            cut.append(label)
    return Covered(covered.labels, tuple(cut))


def _cuts(
    recoding: Recoding, operator: str, covered: Covered, values: Sequence[Value], text: str
) -> InputError:
    name, cut = recoding.column, covered.cut
    whole = f"{written_name(name)} {operator} {written_text(cut[0])}"
    if not recoding.binned:
        return InputError(
            f"The condition {text} asks for part of the group {cut[0]!r} of {name!r}.",
            hint=either(f"ask for the whole group ({whole})", WHOLE_BINS),
        )
    what = f"the bin {written_text(cut[0])}" if len(cut) == 1 else f"the bins {_listed(cut)}"
    if operator in ("=", "<>"):
        hint = either(f"ask for the whole bin ({whole})", WHOLE_BINS)
    elif before := _before_the_bin(recoding, operator, cut, values, text):
        hint = either(f"ask for {before}", WHOLE_BINS)
    else:
        *some, last = dict.fromkeys(end for label in cut for end in _borders(recoding, label))
        listed = f"{', '.join(some)} or {last}" if some else last
        hint = either(f"use a border ({listed})", WHOLE_BINS)
    return InputError(f"The condition {text} cuts {what} of {name!r}.", hint=hint)


def _before_the_bin(
    recoding: Recoding, operator: str, cut: Sequence[str], values: Sequence[Value], text: str
) -> str:
    """The condition that was meant, if only the first number of a bin is cut off."""
    numbers = [_clamped(_number(recoding, value, text)) for value in values]
    first = recoding.interval(recoding.labels.index(cut[0]))[0]
    if len(cut) > 1 or numbers[-1] != first or operator not in ("<=", ">", "BETWEEN"):
        return ""
    name, border = written_name(recoding.column), recoding.shown(first)
    if operator == "BETWEEN":
        return f"{name} >= {recoding.shown(numbers[0])} AND {name} < {border}"
    return f"{name} {'<' if operator == '<=' else '>='} {border}"


def _taken_as(recoding: Recoding, operator: str, labels: Sequence[str]) -> str:
    """The condition on whole bins or groups that is answered instead."""
    name, negated = written_name(recoding.column), operator in _NEGATED
    if recoding.binned and operator in ("<", "<="):
        end = _borders(recoding, labels[-1])[1:]
        return f"{name} < {end[0]}" if end else f"any {name}"
    if recoding.binned and operator in (">", ">="):
        return f"{name} >= {_borders(recoding, labels[0])[0]}"
    if len(labels) == 1:
        return f"{name} {'<>' if negated else '='} {written_text(labels[0])}"
    return f"{name} {'not in' if negated else 'in'} {_listed(labels)}"


def _borders(recoding: Recoding, label: str) -> list[str]:
    """The borders of a bin at which a condition may begin or end: not the top of the last one."""
    place = recoding.labels.index(label)
    low, high = recoding.interval(place)
    ends = [low] if high is None or recoding.holds_end(place) else [low, high]
    return [recoding.shown(end) for end in ends]


def _fate(recoding: Recoding, cut: Sequence[str], negated: bool) -> str:
    """What happens to the bins that are cut."""
    several = len(cut) > 1
    return (
        f"the {'bin' if recoding.binned else 'group'}{'s' if several else ''} {_listed(cut)}"
        f" {'are' if several else 'is'} {'left out' if negated else 'counted'} whole"
    )


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(map(written_text, labels))


def _number(recoding: Recoding, value: Value, text: str) -> Decimal:
    number = recoding.place(value) if recoding.binned else None
    if number is None:
        raise misused(recoding, text)
    return number


def _clamped(number: Decimal) -> Decimal:
    return max(-_BEYOND, min(_BEYOND, number))


def _unknown(recoding: Recoding, value: Value) -> InputError:
    said = plain(value) if isinstance(value, Decimal) else repr(value)
    if recoding.rest is not None:
        rest = f"{written_name(recoding.column)} = {written_text(recoding.rest)}"
        return InputError(
            f"The groups of {recoding.column!r} do not list {said}: if it occurs, it is in the"
            f" group {recoding.rest!r}.",
            hint=f"Ask for the whole group ({rest}).",
        )
    shown = ", ".join(recoding.labels[:8]) + (", …" if len(recoding.labels) > 8 else "")
    return InputError(f"Column {recoding.column!r} has no value {said}.", hint=f"Known: {shown}.")
