"""The rows of a SELECT: every figure for each of them, and which of them are shown."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from reconpriv.errors import InputError
from reconpriv.queries.aggregates import Having, OrderBy
from reconpriv.queries.answer import Answerer, Selected, Settings
from reconpriv.queries.averages import Asked, average_rows
from reconpriv.queries.computed import with_groupings
from reconpriv.queries.estimate import COUNT, Estimate
from reconpriv.queries.figure import QUANTILE, SHARE, SUM, Figure
from reconpriv.queries.figure_table import FigureTable, value_of
from reconpriv.queries.measures import ExpressionNumber, Measure, Scores, measure_of
from reconpriv.queries.ordering import sorted_for_display
from reconpriv.queries.quantiles import check_share, quantile_rows
from reconpriv.queries.selections import both, public_part
from reconpriv.queries.shares import Labels, ShareOf, empty_figure, share_rows, shares_within
from reconpriv.queries.sql import FigureAsked, FigureQuery
from reconpriv.queries.sql_text import written_condition
from reconpriv.recoding import Recoding
from reconpriv.schema import Value

Answer = Estimate | Figure
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


def figure_table(
    answerer: Answerer,
    query: FigureQuery,
    settings: Settings,
    *,
    scores: Scores | None = None,
    simultaneous: bool = False,
) -> FigureTable:
    """Answer every figure for every row, then choose and sort the rows."""
    shape = query.count.shape
    answerer, by = with_groupings(answerer, shape)
    text = query.count.text if query.counts else _text(query)
    whole = answerer.settle(text, query.count.condition)
    measures = [_measure(answerer, one, scores) for one in query.figures]
    found = []
    for one, measure in zip(query.figures, measures, strict=True):
        rows = _rows(answerer, one, measure, whole, by, settings, simultaneous=simultaneous)
        found.append({tuple(labels[name] for name in by): answer for labels, answer in rows})
    if query.counts:
        every = list(found[0])
    else:  # a row is shown even if nothing in it is counted
        listed = answerer.table(whole, by, Settings())
        every = [tuple(key[name] for name in by) for key, _ in listed]
    labels = [grouping.label for grouping in shape.by]
    table: list[Row] = [
        (
            dict(zip(by, key, strict=True)),
            tuple(
                rows[key] if key in rows else _nothing(one, whole, settings)
                for one, rows in zip(query.figures, found, strict=True)
            ),
        )
        for key in every
    ]
    table = answerer.for_display(table, by)
    table = [(dict(zip(labels, key.values(), strict=True)), row) for key, row in table]
    schema = answerer.cells.schema
    recodings = {label: schema.recoding(name) for label, name in zip(labels, by, strict=True)}
    ranks = [_ranks(measure) for measure in measures]
    for order in reversed(query.order):
        table = _sorted(table, order, recodings, ranks)
    kept = [row for row in table if _keeps(query.having, row[1], ranks)]
    end = None if shape.limit is None else shape.offset + shape.limit
    cut = kept[shape.offset : end]
    by_answer = bool(query.having) or any(one.aggregate is not None for one in query.order)
    picked = len(cut) < len(table) and by_answer and not simultaneous
    whole_bins = [one.remark for one in query.having if one.remark is not None]
    if picked or whole_bins:
        told = (PICKED.format(rows=len(table)),) if picked else ()
        cut = [(key, tuple(_remarked(one, whole_bins, told) for one in row)) for key, row in cut]
    names = tuple(one.name for one in query.figures[: query.shown])
    return FigureTable(tuple(labels), names, tuple((key, row[: query.shown]) for key, row in cut))


def _text(query: FigureQuery) -> str:
    """The condition of a query, for the words of its answers."""
    parts = [*query.count.condition.public, *query.count.condition.sensitive]
    return " AND ".join(map(written_condition, parts)) or "all records"


def _measure(answerer: Answerer, one: FigureAsked, scores: Scores | None) -> Measure | None:
    """What a figure is an average, a sum or a quantile of."""
    asked = one.argument
    if asked is None:
        return None
    if asked.column is None:
        assert asked.expression is not None
        return Measure(asked.text, ExpressionNumber(asked.expression), None)
    own = asked.column == answerer.cells.schema.sensitive.name
    return measure_of(answerer, asked.column, scores if own else None, ranked=one.kind == QUANTILE)


def _rows(
    answerer: Answerer,
    one: FigureAsked,
    measure: Measure | None,
    whole: Selected,
    by: list[str],
    settings: Settings,
    *,
    simultaneous: bool,
) -> list[tuple[Labels, Any]]:
    """One figure for every row."""
    selected = whole
    if one.filtered is not None:
        selected = both(whole, answerer.settle(_shown(one.filtered), one.filtered))
    counted = None
    if one.condition is not None:
        counted = both(selected, answerer.settle(_shown(one.condition), one.condition))
    if one.kind == COUNT:
        chosen = selected if counted is None else counted
        rows = answerer.table(chosen, by, settings, simultaneous=simultaneous)
        if not one.summed:
            return list(rows)
        found = {tuple(labels.values()): answer for labels, answer in rows}
        return [
            (labels, found.get(tuple(labels.values()), _zero(whole, settings)))
            for labels, among in answerer.table(selected, by, Settings())
            if not (among.exact and among.count == 0)
        ]
    if one.kind == SHARE:
        if counted is None:
            sensitive = answerer.cells.schema.sensitive.name
            if selected.values is None and sensitive not in by:
                raise InputError(
                    "share(*) needs a condition on the sensitive column.",
                    hint="Write share(condition) for the share of the records that satisfy one.",
                )
            asked, rows_of = ShareOf(selected, public_part(selected)), share_rows
        else:
            asked, rows_of = ShareOf(counted, selected), shares_within
        return list(
            rows_of(answerer, asked, by, settings, name=one.name, simultaneous=simultaneous)
        )
    assert measure is not None
    if one.kind == QUANTILE:
        share = check_share(one.share)
        return list(
            quantile_rows(
                answerer, measure, share, selected, by, settings,
                name=one.name, simultaneous=simultaneous,
            )
        )  # fmt: skip
    asked_of = Asked(one.kind, measure, selected, one.name)
    return list(average_rows(answerer, asked_of, by, settings, simultaneous=simultaneous))


def _shown(condition: Any) -> str:
    return " AND ".join(map(written_condition, (*condition.public, *condition.sensitive)))


def _nothing(one: FigureAsked, whole: Selected, settings: Settings) -> Answer:
    """The answer in a row that a figure has no record in."""
    if one.kind == COUNT and not one.summed:
        return _zero(whole, settings)
    kind = SUM if one.summed else one.kind
    return empty_figure(one.name, kind, one.name, settings.confidence)


def _zero(whole: Selected, settings: Settings) -> Estimate:
    """The count of records that cannot occur."""
    return Estimate(whole.text, 0.0, 0.0, 0.0, settings.confidence, 0.0, True, "exact", 0, 0, 0.0)


def _ranks(measure: Measure | None) -> Ranks | None:
    """The place of every bin or class that a quantile can be; None for numbers."""
    if measure is None or measure.steps is None:
        return None
    return {value: i for i, value in enumerate(measure.steps.shown)}


def _keeps(having: Sequence[Having], row: Sequence[Answer], ranks: Sequence[Ranks | None]) -> bool:
    """Whether a row satisfies HAVING; one without a value does not."""
    for one in having:
        classes, value = ranks[one.aggregate], value_of(row[one.aggregate])
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
    by, place = order.order, order.aggregate
    found = [row[0][by.label] if place is None else value_of(row[1][place]) for row in rows]
    rank = None if place is None else ranks[place]
    if place is None:
        shown = sorted_for_display(set(found) - {None}, recodings.get(by.label))
        rank = {value: i for i, value in enumerate(shown)}
    pairs = list(zip(found, rows, strict=True))
    missing = [row for value, row in pairs if value is None]
    present = [(_comparable(value) if rank is None else rank[value], row) for value, row in pairs
               if value is not None]  # fmt: skip
    present.sort(key=lambda pair: pair[0], reverse=by.descending)
    sorted_rows = [row for _, row in present]
    return [*missing, *sorted_rows] if by.missing_first else [*sorted_rows, *missing]


def _remarked(one: Answer, always: Sequence[str], estimated: Sequence[str]) -> Answer:
    """With remarks on how its row was chosen; some are about estimates only."""
    return replace(one, remarks=(*one.remarks, *always, *(() if one.exact else estimated)))
