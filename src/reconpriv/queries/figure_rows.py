"""The rows of a SELECT that asks for several figures, or for others than counts."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from reconpriv.errors import InputError
from reconpriv.queries.aggregates import COUNT, OrderBy
from reconpriv.queries.answer import Answerer, Selected, Settings
from reconpriv.queries.averages import Asked, average_rows
from reconpriv.queries.computed import PICKED, sort_rows, with_groupings
from reconpriv.queries.estimate import Estimate
from reconpriv.queries.figure import QUANTILE, SHARE, Figure
from reconpriv.queries.figure_table import FigureTable, number_of
from reconpriv.queries.measures import ExpressionNumber, Measure, Scores, measure_of
from reconpriv.queries.quantiles import check_share, quantile_rows
from reconpriv.queries.selections import both, public_part
from reconpriv.queries.shares import Labels, ShareOf, empty_figure, share_rows, shares_within
from reconpriv.queries.sql import FigureAsked, FigureQuery
from reconpriv.queries.sql_text import written_condition

Answer = Estimate | Figure

_KEPT: dict[str, Callable[[float, float], bool]] = {
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
    whole = answerer.settle(query.count.text, query.count.condition)
    whole = replace(whole, text=_text(query))
    found = []
    for one in query.figures:
        rows = _rows(answerer, one, whole, by, settings, scores, simultaneous=simultaneous)
        found.append({tuple(labels[name] for name in by): answer for labels, answer in rows})
    labels = [grouping.label for grouping in shape.by]
    keys = dict.fromkeys(key for rows in found for key in rows)
    if not by and not keys:
        keys = dict.fromkeys([()])
    table: list[tuple[Labels, tuple[Answer, ...]]] = [
        (
            dict(zip(by, key, strict=True)),
            tuple(
                rows[key] if key in rows else _nothing(one, whole, settings)
                for one, rows in zip(query.figures, found, strict=True)
            ),
        )
        for key in keys
    ]
    table = answerer.for_display(table, by)
    table = [(dict(zip(labels, key.values(), strict=True)), row) for key, row in table]
    schema = answerer.cells.schema
    recodings = {label: schema.recoding(name) for label, name in zip(labels, by, strict=True)}
    for order in reversed(query.order):
        table = _sorted(table, order, recodings)
    every = len(table)
    kept = [row for row in table if _keeps(query, row[1])]
    end = None if shape.limit is None else shape.offset + shape.limit
    cut = kept[shape.offset : end]
    by_answer = bool(query.having) or any(one.aggregate is not None for one in query.order)
    if len(cut) < every and by_answer and not simultaneous:
        cut = [(key, tuple(_picked(one, every) for one in row)) for key, row in cut]
    names = tuple(one.name for one in query.figures[: query.shown])
    return FigureTable(tuple(labels), names, tuple((key, row[: query.shown]) for key, row in cut))


def _text(query: FigureQuery) -> str:
    """The condition of a query, for the words of its answers."""
    parts = [*query.count.condition.public, *query.count.condition.sensitive]
    return " AND ".join(map(written_condition, parts)) or "all records"


def _rows(
    answerer: Answerer,
    one: FigureAsked,
    whole: Selected,
    by: list[str],
    settings: Settings,
    scores: Scores | None,
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
        return list(answerer.table(chosen, by, settings, simultaneous=simultaneous))
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
    assert one.argument is not None
    ranked = one.kind == QUANTILE
    if one.argument.column is None:
        assert one.argument.expression is not None
        number = ExpressionNumber(one.argument.expression)
        measure = Measure(one.argument.text, number, None)
    else:
        own = one.argument.column == answerer.cells.schema.sensitive.name
        measure = measure_of(answerer, one.argument.column, scores if own else None, ranked=ranked)
    if ranked:
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
    if one.kind == COUNT:
        return Estimate(
            whole.text, 0.0, 0.0, 0.0, settings.confidence, 0.0, True, "exact", 0, 0, 0.0
        )
    return empty_figure(one.name, one.kind, one.name, settings.confidence)


def _keeps(query: FigureQuery, row: Sequence[Answer]) -> bool:
    for one in query.having:
        value = number_of(row[one.aggregate])
        if value is None or not _KEPT[one.operator](value, one.number):
            return False
    return True


def _sorted(
    rows: list[tuple[Labels, tuple[Answer, ...]]], order: OrderBy, recodings: dict[str, Any]
) -> list[tuple[Labels, tuple[Answer, ...]]]:
    """A stable sort; rows without a value come last."""
    if order.aggregate is None:
        assert order.order is not None and order.order.label is not None
        return sort_rows(rows, order.order, recodings.get(order.order.label))
    place = order.aggregate

    def key(row: tuple[Labels, tuple[Answer, ...]]) -> tuple[bool, float]:
        value = number_of(row[1][place])
        sign = -1.0 if order.descending else 1.0
        return value is None, sign * (value if value is not None else math.inf)

    return sorted(rows, key=key)


def _picked(one: Answer, rows: int) -> Answer:
    if one.exact:
        return one
    return replace(one, remarks=(*one.remarks, PICKED.format(rows=rows)))
