"""Answers: counts, shares and other figures with their intervals, alone, in tables and compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reconpriv.answers.figure import Answer
from reconpriv.answers.tables import FigureTable, distinct_remarks, table_of
from reconpriv.estimate.counts import WHOLE_BINS, Estimate
from reconpriv.messages.numbers import label
from reconpriv.show.document import (
    Card,
    Cards,
    Document,
    Field,
    Grid,
    Headline,
    OnPage,
    OnTerminal,
    Paragraph,
    Part,
    Whisker,
    figure,
    noted,
)

if TYPE_CHECKING:
    from reconpriv.answers.crosstab import Crosstab, CrosstabCell, TwoWay
    from reconpriv.answers.tables import EstimateTable
    from reconpriv.estimate.compare import Comparison

_FROM_MARGINS, _FROM = "from margins", " from margins"
_ERROR = "root mean squared error"
_WIDE = "*"
_ABSENT = "-"


def answer_cells(one: Answer) -> tuple[str, str]:
    """An answer and its interval, or its root mean squared error if it leans on a model."""
    error = f"{_ERROR} {one.standard_error:,.1f}" if one.leans else ""
    return one.value_words, error or one.interval


def answer_document(one: Answer) -> Document:
    """A single answer: in a row on a terminal, in large on a page."""
    row = FigureTable(("query",), (one.name,), (({"query": one.query}, (one,)),))
    grid = _counts(row) if isinstance(one, Estimate) else _figures(table_of(one))
    return [OnTerminal([grid]), OnPage(_in_large(one))]


def table_document(table: EstimateTable | FigureTable) -> Document:
    """A row per combination, every answer with its interval."""
    return [_figures(table) if isinstance(table, FigureTable) else _counts(table_of(table))]


def comparison_document(found: Comparison) -> Document:
    """The verdict, then both sides, their difference and their ratio."""
    table = table_of(found)
    more = _from_margins([found.a, found.b])
    grid = _figures(table, more=more, note=noted(found.remarks))
    return [Headline(found.verdict), grid]


def _from_margins(answers: Sequence[Answer]) -> list[Field]:
    """The column that says what answers owe to margins, if any of them owes something."""
    return [figure(_FROM_MARGINS)] if any(one.from_margins > 0 for one in answers) else []


def _figures(table: FigureTable, *, more: Sequence[Field] = (), note: str | None = None) -> Grid:
    """Every answer beside its interval."""
    names = [field for name in table.names for field in (figure(name), figure("interval"), *more)]
    rows = [
        (
            *map(label, labels.values()),
            *(x for one in answers for x in (*answer_cells(one), *(_share(one) for _ in more))),
        )
        for labels, answers in table
    ]
    return Grid([*map(Field, table.by), *names], rows, note=note or noted(table.remarks))


def _share(one: Answer) -> str:
    """What it owes to margins."""
    return one.margins_words.removesuffix(_FROM)


def _counts(table: FigureTable) -> Grid:
    """Counts with what they rest on; margins and a model's error, if any of them rests on some."""
    counts = table.answers
    more, leaning = _from_margins(counts), any(x.leans for x in counts)
    error = leaning and table.by != ("query",)
    top = max([1.0, *((one.number if one.leans else _end(one.high)) or 0.0 for one in counts)])
    fields = [
        *map(Field, table.by), figure(table.names[0]), figure("interval"),
        Field("", picture=True), figure("groups"), figure("trials"),
        *more, *([figure(_ERROR)] if error else []),
    ]  # fmt: skip
    rows = [
        (
            *map(label, labels.values()), one.value_words,
            one.interval if error else answer_cells(one)[1], _whisker(one, top),
            f"{one.groups:,}", f"{one.trials:,.0f}",
            *(_share(one) or "0 %" for _ in more),
            *([f"{one.standard_error:,.1f}" if one.leans else "-"] if error else []),
        )
        for labels, (one,) in table
    ]  # fmt: skip
    return Grid(fields, rows, note=noted(table.remarks))


def _end(limit: object) -> float:
    return float(limit) if isinstance(limit, int | float) else 0.0


def _whisker(one: Answer, top: float) -> Whisker:
    """The interval on a line; of a count that leans on a model, its root mean squared error."""
    at, error = one.number or 0.0, one.standard_error or 0.0
    low, high = (at - error, at + error) if one.leans else (_end(one.low), _end(one.high))
    return Whisker(max(low, 0.0), at, high, max(top, 1.0))


def _in_large(one: Answer) -> list[Part]:
    """The number, its interval on a line from 0 to the records it is among, and the remarks."""
    value, interval = answer_cells(one)
    count = isinstance(one, Estimate)
    parts: list[Part] = []
    if one.exact:
        words = "exact: it asks about public attributes alone"
    elif interval == WHOLE_BINS:
        words = "counted for whole bins, not for what was asked"
    else:
        level = f"{100 * one.confidence:g}% interval for the {one.kind} in the original table: "
        words = f"{'' if one.leans else level}{interval}"
        among = f"among {one.records:,} records, " if count else ""
        trials = f"{one.groups:,} groups and {one.trials:,.0f} independent trials"
        basis = "; ".join(filter(None, (trials, one.margins_words)))
        parts = [_whisker(one, one.records)] if count else []
        parts.append(Paragraph(f"{among}from {basis}"))
    notes = [Paragraph(line, "note") for line in noted(one.remarks).splitlines()]
    return [Cards([Card(one.query, value, words)]), *parts, *notes]


def crosstab_document(found: Crosstab) -> Document:
    """Counts alone, or nothing, as a list; with shares, totals or a limit, rows and columns."""
    listed = found.plain or not found.cells
    return table_document(found) if listed else two_way_document(found.two_way())


def two_way_document(found: TwoWay) -> Document:
    """Each answer with its interval below it; what the flag means, what is not there, remarks."""
    blank = [""] * (len(found.rows) - 1)
    rows = [
        (
            *(("total", *blank) if row is None else map(label, row)),
            *(_cell(found.grid.get((row, key))) for key in found.column_keys),
        )
        for row in found.row_keys
    ]
    lines = []
    if found.limit:
        wide = f"{sum(cell.wide for cell in found.cells):,} of {len(found.cells):,}"
        lines.append(f"{_WIDE} the interval is wider than {found.limit[0]} ({wide}).")
    if len(found.grid) < len(found.row_keys) * len(found.column_keys):
        lines.append(f"{_ABSENT} no record.")
    lines.append(noted(distinct_remarks([cell.shown for cell in found.cells])))
    fields = [*map(Field, found.rows), *map(figure, found.column_names())]
    return [Grid(fields, rows, note="\n".join(line for line in lines if line))]


def _cell(cell: CrosstabCell | None) -> str:
    if cell is None:
        return _ABSENT
    value, interval = answer_cells(cell.shown)
    return f"{value}{f' {_WIDE}' if cell.wide else ''}\n{interval}"
