"""Figures other than counts, each with an interval for its value in the original table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reconpriv.errors import InputError
from reconpriv.messages.readable import Plottable
from reconpriv.queries.estimate import margins_words
from reconpriv.schema import Value, json_value

SHARE, AVERAGE, SUM, QUANTILE = "share", "average", "sum", "quantile"


@dataclass(frozen=True, repr=False)
class Figure(Plottable):
    """A share, average, sum or quantile in the original table: the estimate and its interval.

    ``kind`` says which of them, ``name`` how it is headed in a table. ``records`` is the number of
    records it is among, ``groups`` and ``trials`` what it rests on. The value and its limits are
    numbers, or the classes of an ordered column; they are None where there is nothing to describe.
    A sum or a share has a ``standard_error``, and so has an average; a quantile has none, so there
    is no saying how much of it comes ``from_margins``; ``margins`` says whether it used any.
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
    margins: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "query": self.query,
            "kind": self.kind,
            "name": self.name,
            "value": json_value(self.value),
            "low": json_value(self.low),
            "high": json_value(self.high),
            "confidence": self.confidence,
            "standard_error": self.standard_error,
            "exact": self.exact,
            "estimator": self.estimator,
            "records": self.records,
            "groups": self.groups,
            "trials": self.trials,
            "from_margins": self.from_margins,
            "margins": self.margins or self.from_margins > 0,
            "remarks": list(self.remarks),
        }

    def shown(self, value: Value) -> str:
        """A value or limit of this figure for reading."""
        if value is None:
            return "-"
        if not isinstance(value, int | float):
            return str(value)
        if self.kind == SHARE:
            return f"{100 * value:z,.2f} %"
        return shown_number(value)

    @property
    def interval(self) -> str:
        """The interval in words."""
        if self.exact:
            return "exact"
        return f"{self.shown(self.low)} to {self.shown(self.high)}"

    @property
    def margins_words(self) -> str:
        """What it owes to margins; empty if that is nothing."""
        if self.from_margins > 0:
            return f"{margins_words(self.from_margins)} from margins"
        return "with margins" if self.margins else ""

    def __str__(self) -> str:
        """The value, its interval and what to know about it."""
        margins = f"; {self.margins_words}" if self.margins_words else ""
        text = f"{self.shown(self.value)} (exact)"
        if not self.exact:
            text = (
                f"{self.shown(self.value)} ({100 * self.confidence:g} % interval for the"
                f" {self.kind} in the original table: {self.interval}; {self.groups:,} groups,"
                f" {self.trials:,.0f} trials{margins})"
            )
        return "".join([text, *(f"\n  note: {remark}" for remark in self.remarks)])


def shown_number(value: float) -> str:
    """A number with about four significant digits, and whole where it is large."""
    size = abs(value)
    if size >= 1000 or value == int(value):
        return f"{value:,.1f}" if value != int(value) else f"{value:z,.0f}"
    return f"{value:,.2f}" if size >= 10 else f"{value:,.4g}"


def answered(figure: Figure) -> Figure:
    """A single figure, unless there is nothing to describe: an empty selection is refused."""
    if figure.low is None and figure.value is None:
        raise InputError(
            f"No record is in this selection, so it has no {figure.kind}.",
            hint="Look at the condition.",
        )
    return figure


def only(rows: Sequence[tuple[object, Figure]], query: str, kind: str) -> Figure:
    """The figure of an answer without groupings; an empty selection has no row."""
    if rows:
        return rows[0][1]
    return Figure(query, kind, kind, None, None, None, 0.95, None, False, "none", 0, 0, 0.0)
