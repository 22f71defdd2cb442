"""What a chart of an answer shows: a mark for every estimate, with its interval and its words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from reconpriv.errors import InputError
from reconpriv.messages.numbers import label
from reconpriv.messages.phrases import listed

if TYPE_CHECKING:
    from reconpriv.answers.crosstab import Crosstab
    from reconpriv.answers.figure import Answer
    from reconpriv.answers.tables import FigureTable
    from reconpriv.columns.schema import Value
    from reconpriv.learning.regression import Regression

SERIES = 6  # as many as there are colours that everybody can tell apart
_EVERYTHING = "all records"  # what an answer without a condition is about
_MISSING = label(None)
# What the numbers of a scale are compared with: no difference, and an equal size.
_REFERENCES = {"points": 0.0, "difference": 0.0, "ratio": 1.0}
_FROM_ZERO = ("records", "share", *_REFERENCES)
_AXES = {
    "points": "difference of the shares, in percentage points",
    "difference": "difference of the {}s",
    "ratio": "ratio of the {}s",
}


@dataclass(frozen=True)
class Mark:
    """One estimate: where it is drawn, its limits (infinite where there is none), its words.

    ``truth`` is the true value, where somebody who has the original table draws it.
    """

    label: str
    value: float | None
    low: float
    high: float
    shown: str
    interval: str
    series: str = ""
    exact: bool = False
    wide: bool = False
    truth: float | None = None


@dataclass(frozen=True)
class Scale:
    """Marks on one scale, in one unit; ``reference`` is a value that they are compared with."""

    marks: tuple[Mark, ...]
    axis: str
    unit: str
    reference: float | None = None

    @property
    def from_zero(self) -> bool:
        """True if the scale holds 0, since a length from there means something."""
        return self.unit in _FROM_ZERO and self.reference != 1.0


@dataclass(frozen=True)
class Drawing:
    """Everything that a chart says."""

    title: str
    about: str
    scales: tuple[Scale, ...]
    confidence: float
    series: str = ""
    notes: tuple[str, ...] = ()
    limit: str = ""
    sortable: bool = True


def drawing_of(answer: Any, truths: Sequence[Value] = ()) -> Drawing:
    """What is drawn of an answer, perhaps beside the true values of its rows."""
    from reconpriv.answers.figure import Answer  # noqa: PLC0415 - loaded by now
    from reconpriv.answers.tables import FigureTable, table_of  # noqa: PLC0415

    kind = type(answer).__name__
    if kind == "Regression":
        return _regression(answer)
    if kind == "Crosstab":
        return _crosstab(answer)
    if kind == "Comparison":
        found = _of_table(table_of(answer), "", named=answer.of, truths=truths)
        return replace(found, title=answer.verdict, about="", sortable=False)
    if isinstance(answer, Answer):
        title = answer.name[:1].upper() + answer.name[1:]
        return _of_table(table_of(answer), title, named=answer.kind, truths=truths)
    if isinstance(answer, FigureTable):
        return _of_table(answer, listed(answer.names), truths=truths)
    if kind == "EstimateTable":
        return _of_table(table_of(answer), "Count", named="records", truths=truths)
    raise InputError(
        f"There is no chart of {kind!r}.",
        hint="Draw an estimate, a figure, a table of them, a comparison or a regression.",
    )


def _mark(one: Answer, row: str, series: str, *, wide: bool, truth: Any) -> Mark | None:
    """The mark of an answer; None if it is no number."""
    from reconpriv.show.results.answers import answer_cells  # noqa: PLC0415 - imports queries late, too

    low, high = (one.number, one.number) if one.leans else (one.low, one.high)
    if one.unit == "ratio":  # it may have no limit
        low, high = 0.0 if low is None else low, math.inf if high is None else high
    ends = _number(low), _number(high)
    if ends[0] is None or ends[1] is None:
        return None
    return Mark(
        row, one.number, ends[0], ends[1], *answer_cells(one), series,
        exact=one.exact, wide=wide, truth=_number(truth),
    )  # fmt: skip


def _number(value: object) -> float | None:
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if numeric else None  # type: ignore[arg-type]


def _of_table(
    table: FigureTable,
    title: str,
    *,
    named: str = "",
    wide: Sequence[bool] = (),
    truths: Sequence[Value] = (),
) -> Drawing:
    """A scale for every figure and unit, with a mark for every row; ``named`` names the axis."""
    if not table.rows:
        raise _nothing()
    column, rows = named_rows(table.by, [labels for labels, _ in table.rows])
    scales, notes = [], []
    for i, name in enumerate(table.names):
        units: dict[str, list[Mark]] = {}
        gone = 0
        for place, ((row, series), (_, answers)) in enumerate(zip(rows, table.rows, strict=True)):
            one, truth = answers[i], truths[place] if truths else None
            mark = _mark(one, row, series, wide=bool(wide) and wide[place], truth=truth)
            gone += mark is None
            units.setdefault(one.unit, []).extend([] if mark is None else [mark])
        if gone:
            notes.append(
                f"{gone:,} {'row has' if gone == 1 else 'rows have'} no number to draw as {name}"
            )
        for unit, marks in units.items():
            axis = _AXES.get(unit, named or name).format(named or name)
            axis = "records" if unit == "records" and named else axis
            if marks:
                scales.append(Scale(tuple(marks), axis, unit, _REFERENCES.get(unit)))
    if not scales:
        raise _nothing()
    questions = {one.query for one in table.answers}
    about = _about(questions.pop()) if len(questions) == 1 else ""
    words = f"{title} by {listed(table.by)}" if table.by else title
    return Drawing(words, about, tuple(scales), table.answers[0].confidence, column, tuple(notes))


def _about(question: str) -> str:
    """What a chart says of its question; nothing if it is about all records."""
    return "" if question == _EVERYTHING else question


def _crosstab(table: Crosstab) -> Drawing:
    """The cells without their totals, which are on another scale."""
    from reconpriv.answers.tables import FigureTable  # noqa: PLC0415 - loaded by now

    cells = table.cells[: len(table.rows)]
    rows = tuple((cell.labels, (cell.shown,)) for cell in cells)
    named = "records" if table.shares is None else "share"
    wide = [cell.wide for cell in cells]
    found = _of_table(FigureTable(table.by, (named,), rows), "Count", named=named, wide=wide)
    title = found.title if table.shares is None else _shares_title(table)
    limit = "" if table.widest is None else table.widest.words
    return replace(found, title=title, about=_about(table.condition), limit=limit)


def _shares_title(table: Crosstab) -> str:
    *rows, column = table.by
    if table.shares == "row":
        return f"Share of each {column} within {listed(rows)}"
    if table.shares == "column" and rows:
        return f"Share of each {listed(rows)} within {column}"
    return f"Share by {listed(table.by)}"


def named_rows(
    by: Sequence[str], rows: Sequence[dict[str, Any]]
) -> tuple[str, list[tuple[str, str]]]:
    """The column that colours tell apart ('' if none), and the (label, series) of every row.

    With two columns or more, that is the one with the fewest values, if they are few enough.
    """
    values = {name: {label(row[name]) for row in rows} for name in by}
    column = ""
    if len(by) > 1:
        fewest = min(reversed(by), key=lambda name: len(values[name]))
        column = fewest if 1 < len(values[fewest]) <= SERIES else ""
    found = []
    for row in rows:
        words = [label(row[name]) for name in by if not column or name != column]
        found.append((" · ".join(words), label(row[column]) if column else ""))
    return column, found


def _regression(found: Regression) -> Drawing:
    """The coefficients without the intercept, which is on another scale; 0 means no effect."""
    several = found.kind == "multinomial"
    chosen = [one for one in found.coefficients if one.term != "Intercept"]
    notes: tuple[str, ...] = ("the intercept is not drawn",)
    if not chosen or len(chosen) == len(found.coefficients):
        chosen, notes = list(found.coefficients), ()
    outcomes = {label(one.outcome) for one in chosen}
    coloured = several and len(outcomes) <= SERIES
    marks = []
    for one in chosen:
        words = f"{label(one.outcome)} · {one.term}" if several and not coloured else one.term
        exact = one.statistic is None
        interval = "exact" if exact else f"{one.low:.3f} to {one.high:.3f}"
        marks.append(
            Mark(
                words, one.estimate, one.low, one.high, f"{one.estimate:.3f}", interval,
                label(one.outcome) if coloured else "", exact=exact,
            )
        )  # fmt: skip
    scale = Scale(tuple(marks), "coefficient", "number", reference=0.0)
    column = found.outcome if coloured else ""
    if found.reference:
        parts = [f"{name} = {label(value)}" for name, value in found.reference.items()]
        notes = (f"compared with {listed(parts)}", *notes)
    about = _about(found.condition)
    return Drawing(found.title, about, (scale,), found.confidence, column, notes, sortable=False)


def _nothing() -> InputError:
    return InputError("There is no number to draw.", hint="Ask for one, or look at the condition.")


def row_order(marks: Iterable[Mark], order: str) -> list[str]:
    """The labels of the rows in the order of the table, or the largest first.

    In the order "auto" names are sorted by value; numbers, ranges and what else has an order of
    its own stay as they are, as do rows that are not in the order of their names: somebody chose
    it. Missing values stay last.
    """
    sizes: dict[str, float] = {}  # by the first series
    for one in marks:
        sizes.setdefault(one.label, -math.inf if one.value is None else one.value)
    rows = list(sizes)
    named = [row for row in rows if row != _MISSING]
    if order == "auto":
        plain = not any(re.search(r"\d", row) for row in named)
        order = "value" if plain and named == sorted(named) else "table"
    if order == "table":
        return rows
    return sorted(rows, key=lambda row: (row == _MISSING, -sizes[row]))


def in_rows(marks: Iterable[Mark], rows: Sequence[str]) -> list[Mark]:
    """The marks of these rows, in their order, with labels that differ where rows do.

    A missing value and the text "(missing)" would look alike.
    """
    places = {row: i for i, row in enumerate(rows)}
    found = sorted((one for one in marks if one.label in places), key=lambda x: places[x.label])
    seen: set[tuple[str, str]] = set()
    for place, one in enumerate(found):
        name = one.label
        while (name, one.series) in seen:
            name += "\N{ZERO WIDTH SPACE}"
        seen.add((name, one.series))
        found[place] = replace(one, label=name)
    return found
