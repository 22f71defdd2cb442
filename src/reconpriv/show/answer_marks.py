"""What a chart of an answer shows: a mark for every estimate, with its interval and its words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from reconpriv.errors import InputError
from reconpriv.messages.numbers import label

if TYPE_CHECKING:
    from reconpriv.learning.regression import Regression
    from reconpriv.queries.compare import Comparison
    from reconpriv.queries.crosstab import Crosstab
    from reconpriv.queries.figure_table import Answer, FigureTable
    from reconpriv.queries.table import EstimateTable

SHARE, POINTS, COUNT, NUMBER = "share", "points", "count", "number"
SERIES = 6  # as many as there are colours that everybody can tell apart
EVERYTHING = "all records"
_INTERCEPT = "Intercept"
_MISSING = label(None)


@dataclass(frozen=True)
class Mark:
    """One estimate: where it is drawn, its limits (infinite where there is none), its words."""

    label: str
    value: float | None
    low: float
    high: float
    shown: str
    interval: str
    series: str = ""
    exact: bool = False
    wide: bool = False


@dataclass(frozen=True)
class Panel:
    """Marks on one scale; ``reference`` is a value that they are compared with."""

    marks: tuple[Mark, ...]
    axis: str
    kind: str
    reference: float | None = None
    from_zero: bool = True


@dataclass(frozen=True)
class Drawing:
    """Everything that a chart says."""

    title: str
    about: str
    panels: tuple[Panel, ...]
    confidence: float
    series: str = ""
    notes: tuple[str, ...] = ()
    limit: str = ""
    sortable: bool = True


def drawing_of(answer: Any) -> Drawing:
    """What is drawn of an answer."""
    name = type(answer).__name__
    if name in _KINDS:
        found: Drawing = _KINDS[name](answer)
        return found
    raise InputError(
        f"There is no chart of {name!r}.",
        hint="Draw an estimate, a figure, a table of them, a comparison or a regression.",
    )


def _mark(one: Answer, row: str, series: str = "", *, wide: bool = False) -> Mark | None:
    """The mark of a count or another figure; None if it is no number."""
    from reconpriv.queries.figure_table import number_of  # noqa: PLC0415 - loaded by now
    from reconpriv.show.figures import figure_cells  # noqa: PLC0415 - imports queries late, too

    limits = (one.low, one.high)
    if getattr(one, "leans", False):  # there is no interval to draw
        limits = (number_of(one), number_of(one))
    if not all(_is_number(limit) for limit in limits):
        return None
    shown, interval = figure_cells(one)
    return Mark(
        row, number_of(one), float(limits[0]), float(limits[1]), shown, interval, series,
        exact=one.exact, wide=wide,
    )  # fmt: skip


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(one: Answer) -> str:
    from reconpriv.queries.figure import SHARE as A_SHARE  # noqa: PLC0415 - loaded by now
    from reconpriv.queries.figure import Figure  # noqa: PLC0415

    if not isinstance(one, Figure):
        return COUNT
    return SHARE if one.kind == A_SHARE else NUMBER


def _single(one: Any) -> Drawing:
    """A count or another figure by itself."""
    kind = _kind(one)
    found = _mark(one, "")
    if found is None:
        raise _nothing()
    axis = "records" if kind == COUNT else one.kind
    panel = Panel((found,), axis, kind, from_zero=kind != NUMBER)
    title = "Count" if kind == COUNT else one.name[:1].upper() + one.name[1:]
    return Drawing(title, _about(one.query), (panel,), one.confidence)


def _about(question: str) -> str:
    """What a chart says of its question; nothing if it is about all records."""
    return "" if question == EVERYTHING else question


def _estimate_table(table: EstimateTable) -> Drawing:
    rows = [(labels, (one,)) for labels, one in table.rows]
    return _rows(table.by, ("records",), rows, "Count")


def _crosstab(table: Crosstab) -> Drawing:
    """The cells without their totals, which are on another scale."""
    cells = table.cells[: len(table.rows)]
    rows = [(cell.labels, (cell.shown,)) for cell in cells]
    wide = [cell.wide for cell in cells]
    found = _rows(table.by, ("records" if table.shares is None else "share",), rows, "Count", wide)
    title = found.title if table.shares is None else _shares_title(table)
    limit = "" if table.widest is None else table.widest.words
    return replace(found, title=title, about=_about(table.condition), limit=limit)


def _shares_title(table: Crosstab) -> str:
    *rows, column = table.by
    if table.shares == "row":
        return f"Share of each {column} within {_listed(rows)}"
    if table.shares == "column" and rows:
        return f"Share of each {_listed(rows)} within {column}"
    return f"Share by {_listed(table.by)}"


def _figure_table(table: FigureTable) -> Drawing:
    return _rows(table.by, table.names, table.rows, _listed(table.names))


def _rows(
    by: Sequence[str],
    names: Sequence[str],
    rows: Sequence[tuple[dict[str, Any], tuple[Answer, ...]]],
    title: str,
    wide: Sequence[bool] = (),
) -> Drawing:
    """A panel for every figure, with a mark for every row."""
    if not rows:
        raise _nothing()
    column, named = named_rows(by, [labels for labels, _ in rows])
    panels, notes = [], []
    for i, name in enumerate(names):
        answers = [answers[i] for _, answers in rows]
        marks = [
            _mark(one, *label, wide=bool(wide) and wide[place])
            for place, (label, one) in enumerate(zip(named, answers, strict=True))
        ]
        found = tuple(one for one in marks if one is not None)
        if len(found) < len(marks):
            gone = len(marks) - len(found)
            rows_words = "row has" if gone == 1 else "rows have"
            notes.append(f"{gone:,} {rows_words} no number to draw as {name}")
        if found:
            kinds = {_kind(one) for one in answers}
            kind = kinds.pop() if len(kinds) == 1 else NUMBER
            panels.append(Panel(found, name, kind, from_zero=kind != NUMBER))
    if not panels:
        raise _nothing()
    questions = {one.query for _, answers in rows for one in answers}
    about = _about(questions.pop()) if len(questions) == 1 else ""
    words = f"{title} by {_listed(by)}" if by else title
    return Drawing(words, about, tuple(panels), rows[0][1][0].confidence, column, tuple(notes))


def _listed(names: Sequence[str]) -> str:
    from reconpriv.messages.phrases import listed  # noqa: PLC0415 - small, but only here

    return listed(list(names), "and")


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
        words = [label(row[name]) for name in by if name != column]
        found.append((" · ".join(words), label(row[column]) if column else ""))
    return column, found


def _comparison(found: Comparison) -> Drawing:
    """Both sides, then their difference and their ratio with the value that means no difference."""
    from reconpriv.show.figures import difference_cells, ratio_cells  # noqa: PLC0415

    kind = _kind(found.a)
    sides = [_mark(one, f"{name}: {one.query}") for name, one in (("a", found.a), ("b", found.b))]
    marks = tuple(one for one in sides if one is not None)
    words = difference_cells(found)
    gap = Mark(
        "a - b", found.difference, found.difference_low, found.difference_high, *words,
        exact=found.exact,
    )  # fmt: skip
    axis = "records" if kind == COUNT else found.of
    panels = [
        Panel(marks, axis, kind),
        Panel((gap,), *_difference_axis(found.of), reference=0.0),
    ]
    if found.ratio is not None:
        low = 0.0 if found.ratio_low is None else found.ratio_low
        high = math.inf if found.ratio_high is None else found.ratio_high
        ratio = Mark("a / b", found.ratio, low, high, *ratio_cells(found), exact=found.exact)
        panels.append(Panel((ratio,), f"ratio of the {found.of}s", NUMBER, 1.0, from_zero=False))
    return Drawing(found.verdict, "", tuple(panels), found.confidence, sortable=False)


def _difference_axis(of: str) -> tuple[str, str]:
    if of == SHARE:
        return "difference of the shares, in percentage points", POINTS
    return f"difference of the {of}s", COUNT


def _regression(found: Regression) -> Drawing:
    """The coefficients without the intercept, which is on another scale; 0 means no effect."""
    several = found.kind == "multinomial"
    chosen = [one for one in found.coefficients if one.term != _INTERCEPT]
    notes: tuple[str, ...] = ("the intercept is not drawn",)
    if not chosen or len(chosen) == len(found.coefficients):
        chosen, notes = list(found.coefficients), ()
    outcomes = list(dict.fromkeys(label(one.outcome) for one in chosen))
    coloured = several and len(outcomes) <= SERIES
    marks = []
    for one in chosen:
        words = f"{label(one.outcome)} · {one.term}" if several and not coloured else one.term
        exact = one.statistic is None
        interval = "exact" if exact else f"{one.low:.3f} to {one.high:.3f}"
        marks.append(
            Mark(
                words,
                one.estimate,
                one.low,
                one.high,
                f"{one.estimate:.3f}",
                interval,
                label(one.outcome) if coloured else "",
                exact=exact,
            )
        )
    panel = Panel(tuple(marks), "coefficient", NUMBER, reference=0.0, from_zero=False)
    column = found.outcome if coloured else ""
    about = _about(found.condition)
    if found.reference:
        parts = [f"{name} = {label(value)}" for name, value in found.reference.items()]
        notes = (f"compared with {_listed(parts)}", *notes)
    return Drawing(found.title, about, (panel,), found.confidence, column, notes, sortable=False)


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
    """The marks of these rows, in their order."""
    places = {row: i for i, row in enumerate(rows)}
    return sorted((one for one in marks if one.label in places), key=lambda one: places[one.label])


def told_apart(marks: Sequence[Mark]) -> list[Mark]:
    """The same with labels that differ where rows do: a missing value and the text '(missing)'."""
    seen: set[tuple[str, str]] = set()
    found = []
    for one in marks:
        name = one.label
        while (name, one.series) in seen:
            name += "\N{ZERO WIDTH SPACE}"
        seen.add((name, one.series))
        found.append(replace(one, label=name))
    return found


_KINDS: dict[str, Any] = {
    "Estimate": _single,
    "Figure": _single,
    "EstimateTable": _estimate_table,
    "Crosstab": _crosstab,
    "FigureTable": _figure_table,
    "Comparison": _comparison,
    "Regression": _regression,
}
