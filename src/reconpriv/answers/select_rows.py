"""The rows of a SELECT: every figure for each of them, and which of them are shown."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from reconpriv.answers.answerer import Answerer
from reconpriv.answers.ask import answer_rows, no_answer
from reconpriv.answers.figure import COUNT, Answer, Figure, answered
from reconpriv.answers.tables import EstimateTable, FigureTable
from reconpriv.ask.ordering import sorted_for_display
from reconpriv.ask.sql.computed import with_groupings
from reconpriv.columns.recoding import Recoding
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.estimate.counts import Estimate, Settings
from reconpriv.estimate.measures import Measure
from reconpriv.estimate.shares import Labels

if TYPE_CHECKING:
    from reconpriv.ask.sql.select import Having, OrderBy, SelectQuery

Row = tuple[Labels, tuple[Answer, ...]]
Ranks = Mapping[Value, int]

PICKED = (
    "picked by its estimate out of {rows:,} rows, so its interval misses more often than it says;"
    " simultaneous intervals hold for all rows at once"
)
_SAME = ("=", "<>")
_DIGITS = 12  # to which sums of floating-point numbers are right
_KEPT: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def answer_select(
    answerer: Answerer, query: SelectQuery, settings: Settings
) -> Answer | EstimateTable | FigureTable:
    """A single answer by itself, nothing but one count as a table of counts, or a table."""
    table = select_table(answerer, query, settings)
    first = query.figures[0]
    if len(table.names) != 1:
        return table
    name = first.alias or COUNT
    if not table.by:
        ((_, (one,)),) = table.rows
        return replace(one, name=name) if isinstance(one, Estimate) else answered(one)
    counts = [
        (labels, replace(one, name=name))
        for labels, (one,) in table.rows
        if isinstance(one, Estimate)
    ]
    if first.kind != COUNT or len(counts) < len(table):
        return table
    return EstimateTable(table.by, tuple(counts), name)


def select_table(answerer: Answerer, query: SelectQuery, settings: Settings) -> FigureTable:
    """Answer every figure for every row, then choose and sort the rows."""
    answerer, by = with_groupings(answerer, query.by)
    found = []
    for one in query.figures:
        rows = answer_rows(answerer, one, by, settings)
        found.append({tuple(labels[name] for name in by): answer for labels, answer in rows})
    if query.counts:
        every = list(found[0])
    else:  # a row is shown even if nothing in it is counted
        listed = answerer.table(query.rows, by, Settings())
        every = [tuple(key[name] for name in by) for key, _ in listed]
    labels = [grouping.label for grouping in query.by]
    table: list[Row] = [
        (
            dict(zip(by, key, strict=True)),
            tuple(
                rows[key] if key in rows else no_answer(one, query.rows, settings)
                for one, rows in zip(query.figures, found, strict=True)
            ),
        )
        for key in every
    ]
    table = answerer.for_display(table, by)
    table = [(dict(zip(labels, key.values(), strict=True)), row) for key, row in table]
    schema = answerer.cells.schema
    recodings = {label: schema.recoding(name) for label, name in zip(labels, by, strict=True)}
    ranks = [_ranks(one.measure) for one in query.figures]
    for order in reversed(query.order):
        table = _sorted(table, order, recodings, ranks)
    kept = [row for row in table if _keeps(query.having, row[1], ranks)]
    end = None if query.limit is None else query.offset + query.limit
    cut = kept[query.offset : end]
    by_answer = bool(query.having) or any(one.aggregate is not None for one in query.order)
    picked = len(cut) < len(table) and by_answer and not settings.simultaneous
    whole_bins = [one.remark for one in query.having if one.remark is not None]
    if picked or whole_bins:
        told = (PICKED.format(rows=len(table)),) if picked else ()
        cut = [(key, tuple(_remarked(one, whole_bins, told) for one in row)) for key, row in cut]
    names = tuple(one.name for one in query.figures[: query.shown])
    return FigureTable(tuple(labels), names, tuple((key, row[: query.shown]) for key, row in cut))


def _ranks(measure: Measure | None) -> Ranks | None:
    """The place of every bin or class that a quantile can be; None for numbers."""
    if measure is None or measure.steps is None:
        return None
    return {value: i for i, value in enumerate(measure.steps.shown)}


def _keeps(having: Sequence[Having], row: Sequence[Answer], ranks: Sequence[Ranks | None]) -> bool:
    """True if a row satisfies HAVING; one without a value does not."""
    for one in having:
        classes, value = ranks[one.aggregate], row[one.aggregate].value
        wanted = one.value
        if one.labels is None and classes is None and isinstance(wanted, Decimal):
            wanted = float(wanted)
        elif one.labels is None and (wanted not in (classes or ()) or one.operator not in _SAME):
            raise InputError(
                f"HAVING {one.text} has no meaning.",
                hint="Compare an answer with a number, and one of several classes (=, <>) with a"
                " class.",
            )
        if value is None:
            return False
        if not (
            value in one.labels
            if one.labels is not None
            else _KEPT[one.operator](_comparable(value), _comparable(wanted))
        ):
            return False
    return True


def _comparable(value: Value) -> Value:
    """A value to compare: averages that differ only by rounding are equal."""
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def _sorted(
    rows: list[Row],
    order: OrderBy,
    recodings: Mapping[str, Recoding | None],
    ranks: Sequence[Ranks | None],
) -> list[Row]:
    """A stable sort: bins and classes in their order, a missing value last or first."""
    place = order.aggregate
    found = [row[0][order.label] if place is None else row[1][place].value for row in rows]
    rank = None if place is None else ranks[place]
    if place is None:
        shown = sorted_for_display(set(found) - {None}, recodings.get(order.label))
        rank = {value: i for i, value in enumerate(shown)}
    pairs = list(zip(found, rows, strict=True))
    missing = [row for value, row in pairs if value is None]
    present = [(_comparable(value) if rank is None else rank[value], row) for value, row in pairs
               if value is not None]  # fmt: skip
    present.sort(key=lambda pair: pair[0], reverse=order.descending)
    sorted_rows = [row for _, row in present]
    return [*missing, *sorted_rows] if order.missing_first else [*sorted_rows, *missing]


def _remarked(one: Answer, always: Sequence[str], estimated: Sequence[str]) -> Answer:
    """With remarks on how its row was chosen; some are about estimates only."""
    assert isinstance(one, Estimate | Figure)
    return replace(one, remarks=(*one.remarks, *always, *(() if one.exact else estimated)))
