"""Answers: figures of the original table, each estimated with an interval."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, ClassVar

from reconpriv.columns.schema import Value, json_value
from reconpriv.errors import InputError
from reconpriv.messages.readable import Plottable

COUNT, SHARE, AVERAGE, SUM, QUANTILE = "count", "share", "average", "sum", "quantile"
POINTS, DIFFERENCE, RATIO = "points", "difference", "ratio"
# What the numbers of an answer are; of any other kind, they are plain numbers or classes.
_UNITS = {COUNT: "records", **{kind: kind for kind in (SHARE, POINTS, DIFFERENCE, RATIO)}}
_WRITTEN = {
    "records": "{:z,.1f}", "share": "{:z,.2f} %", POINTS: "{:+z,.2f} points",
    DIFFERENCE: "{:+z,.1f}", RATIO: "{:,.3f}",
}  # fmt: skip
_WHOLE = {"records": "{:z,.0f}", DIFFERENCE: "{:+z,.0f}"}  # of exact answers
_PERCENT = (SHARE, POINTS)
# What every answer says in JSON of its interval and of what it rests on.
MEASURED = (
    "low", "high", "confidence", "standard_error", "exact", "estimator", "records", "groups",
    "trials", "from_margins",
)  # fmt: skip

# An unbiased estimate may be impossible, or lie outside its interval.
_ONLY = "by chance, as an unbiased one may be: read it as close to {}; the interval holds only what"
BELOW_ZERO = f"the estimate is below 0 {_ONLY.format(0)} is possible"
BELOW = f"the estimate is lower than possible {_ONLY.format('the lower limit')} is possible"
ABOVE = f"the estimate is higher than possible {_ONLY.format('the upper limit')} is possible"
OUTSIDE = (
    "the estimate lies outside its interval by chance, as an unbiased one may: trust the interval"
)
IMPOSSIBLE = (BELOW_ZERO, BELOW, ABOVE, OUTSIDE)
_ROUNDING = 1e-9


@dataclass(frozen=True, repr=False)
class Answer(Plottable):
    """An estimate of a figure of the original table, with its interval and what it rests on.

    ``kind`` says which figure it is, ``name`` how it is headed in a table. The value and its limits
    are numbers, or the classes of an ordered column; they are None where there is nothing to
    describe. ``low`` and ``high`` bound the figure among the people in the table, not in a
    population they may have been drawn from. ``records`` is the number of records it is among,
    ``groups`` and ``trials`` say how much data it rests on, and ``from_margins`` how much of its
    precision comes from margins: what they take off its variance.
    """

    query: str
    kind: str
    name: str
    value: Value
    low: Value
    high: Value
    confidence: float
    standard_error: float | None
    exact: bool
    estimator: str
    records: float
    groups: int
    trials: float
    remarks: tuple[str, ...] = ()
    from_margins: float = 0.0

    _IN_JSON: ClassVar[tuple[str, ...]]  # its fields in their order; remarks come last

    def as_dict(self) -> dict[str, Any]:
        """The answer for JSON; one that leans on a model has no limits there."""
        limits = {"low": None, "high": None} if self.leans else {}
        found = {name: json_value(getattr(self, name)) for name in self._IN_JSON}
        return found | limits | {"remarks": list(self.remarks)}

    @property
    def number(self) -> float | None:
        """The estimate as a number; None for a class or where there is nothing."""
        return float(self.value) if isinstance(self.value, int | float) else None

    @property
    def leans(self) -> bool:
        """True if it leans on a model, and so has no interval."""
        return False

    @property
    def unit(self) -> str:
        """What its value is: records, share, points, difference, ratio, number or class."""
        plain = "number" if self.number is not None else "class"
        return _UNITS.get(self.kind, plain)

    def shown(self, value: Value) -> str:
        """A value or limit of this answer for reading."""
        if value is None:
            return "no limit" if self.kind == RATIO else "-"
        if not isinstance(value, int | float) or abs(value) > sys.float_info.max:
            return str(value)
        written = (_WHOLE if self.exact else {}).get(self.unit) or _WRITTEN.get(self.unit)
        if written is None:
            return shown_number(value)
        return written.format(100 * value if self.unit in _PERCENT else value)

    @property
    def value_words(self) -> str:
        """The estimate for reading."""
        return self.shown(self.value)

    @property
    def interval(self) -> str:
        """The interval in words."""
        if self.exact:
            return "exact"
        if self.high is None and self.unit == "class":  # the last bin has no end
            return f"{self.shown(self.low)} or more"
        return "-" if self.leans else f"{self.shown(self.low)} to {self.shown(self.high)}"

    @property
    def margins_words(self) -> str:
        """What it owes to margins; empty if that is nothing."""
        return f"{margins_words(self.from_margins)} from margins" if self.from_margins > 0 else ""

    @property
    def _spread(self) -> str:
        """The interval, with what it is for."""
        return (
            f"{100 * self.confidence:g} % interval for the {self.kind} in the original table:"
            f" {self.interval}"
        )

    @property
    def _accuracy(self) -> str:
        """How sure the estimate is, and what it rests on."""
        if self.exact:
            return "exact"
        trials = f"{self.groups:,} groups, {self.trials:,.0f} trials"
        return "; ".join(filter(None, (self._spread, trials, self.margins_words)))

    def __str__(self) -> str:
        notes = (f"\n  note: {remark}" for remark in self.remarks)
        return "".join([f"{self.value_words} ({self._accuracy})", *notes])


def margins_words(share: float) -> str:
    """The share of an answer that rests on margins, never rounded to none or all of it."""
    if 0 < share < 0.01:
        return "under 1 %"
    return "over 99 %" if share > 0.99 else f"{100 * share:.0f} %"


@dataclass(frozen=True, repr=False)
class Figure(Answer):
    """A share, average, sum or quantile in the original table: the estimate and its interval.

    A sum or a share has a ``standard_error``, and so has an average; a quantile has none, so there
    is no saying how much of it comes ``from_margins``; ``margins`` says whether it used any.
    """

    margins: bool = False

    def __post_init__(self) -> None:
        """What comes from margins has used them."""
        object.__setattr__(self, "margins", self.margins or self.from_margins > 0)

    _IN_JSON = ("query", "kind", "name", "value", *MEASURED, "margins")

    @property
    def margins_words(self) -> str:
        """What it owes to margins; empty if that is nothing."""
        return super().margins_words or ("with margins" if self.margins else "")


def shown_number(value: float) -> str:
    """A number with about four significant digits, and whole where it is large."""
    size = abs(value)
    if size >= 1000 or value == int(value):
        return f"{value:,.1f}" if value != int(value) else f"{value:z,.0f}"
    return f"{value:,.2f}" if size >= 10 else f"{value:,.4g}"


def answered(answer: Answer) -> Answer:
    """A single answer, unless there is nothing to describe: an empty selection is refused."""
    if answer.low is None and answer.value is None:
        raise InputError(
            f"No record is in this selection, so it has no {answer.kind}.",
            hint="Look at the condition.",
        )
    return answer


def impossible(value: float | None, low: float | None, high: float | None) -> tuple[str, ...]:
    """The remark if a value is not between the lowest and the highest that is possible."""
    if value is None or low is None or high is None:
        return ()
    slack = _ROUNDING * max(abs(low), abs(high), 1.0)
    if value < low - slack:
        return (BELOW if low else BELOW_ZERO,)
    return (ABOVE,) if value > high + slack else ()


def misfit(value: float, low: float, high: float, possible: tuple[float, float]) -> tuple[str, ...]:
    """The remark on a value that is impossible, or else outside its interval."""
    found = impossible(value, *possible)
    return found or ((OUTSIDE,) if impossible(value, low, high) else ())
