"""A SELECT as questions: its rows, and one figure or several for each of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from reconpriv.answers.figure import COUNT, QUANTILE, SHARE
from reconpriv.ask.bins import misused
from reconpriv.ask.conditions import Selectable
from reconpriv.ask.question import Question
from reconpriv.ask.selections import EVERYTHING, Condition, Selected, both, public_part
from reconpriv.ask.sql.aggregates import (
    Aggregate,
    FigureReader,
    Having,
    OrderBy,
    settled_having,
    settled_order,
)
from reconpriv.ask.sql.checks import settle_comparisons
from reconpriv.ask.sql.grouping import Shape, ShapeReader
from reconpriv.ask.sql.parse import (
    QUERY_CLAUSES,
    check_nodes,
    check_shape,
    quote_column,
    split_condition,
)
from reconpriv.ask.sql.text import written_condition
from reconpriv.ask.sql.trees import (
    exp,
    may_be_unknown,
    not_too_deep,
    parse_statement,
    present,
    refused,
    shown_condition,
    sql_of,
)
from reconpriv.columns.schema import Kind, Schema
from reconpriv.errors import InputError, ReleaseError
from reconpriv.estimate.measures import ExpressionNumber, Measure, Scores, measure_of


@dataclass(frozen=True)
class SelectQuery:
    """A SELECT: its rows, and one figure or several for each of them.

    The first ``shown`` figures are shown; the others are only compared or sorted by.
    """

    rows: Selected
    shape: Shape
    figures: tuple[Question, ...]
    shown: int
    having: tuple[Having, ...]
    order: tuple[OrderBy, ...]

    @property
    def counts(self) -> bool:
        """Whether it asks for nothing but the number of records in each row."""
        one = self.figures[0]
        return len(self.figures) == 1 and one.counts and one.selected is self.rows

    @property
    def single(self) -> Question:
        """The one figure of the one row, as a batch may ask for it."""
        if self.shape.by:
            raise ReleaseError("A batch is for single figures; ask a GROUP BY query on its own.")
        if len(self.figures) > 1:
            raise ReleaseError("A batch is for single figures; ask for several on their own.")
        return self.figures[0]


@not_too_deep
def parse_select(
    text: str,
    records: Selectable,
    *,
    scores: Scores | None = None,
    whole_bins: bool = False,
    base: Selected | None = None,
) -> SelectQuery:
    """Parse a whole SELECT, from some records or all; refuse what is outside the supported form."""
    if not text.strip():
        raise refused("The query is empty")
    tree = parse_statement(text)
    if not isinstance(tree, exp.Select):
        raise refused("Only a SELECT can be answered")
    check_nodes(tree, shares=True)
    read = FigureReader(tree).read()
    check_shape(tree, QUERY_CLAUSES)
    reader = _SelectReader(records, scores, whole_bins)
    shape = ShapeReader(tree, reader.schema, reader.columns).read()
    where = tree.args.get("where")
    condition = Condition() if where is None else reader.condition(where.this)
    one, *others = read.aggregates
    counts = not others and one.kind == COUNT and one.condition is None and one.filtered is None
    words = text.strip().rstrip(";") if counts else shown_parts(condition) or EVERYTHING
    rows = records.resolve(words, condition)
    if base is not None:
        rows = both(base, rows)
    figures = tuple(
        replace(reader.question(one, rows, shape), name=one.name, alias=one.alias)
        for one in read.aggregates
    )
    having = tuple(
        settled_having(one, figures[one.aggregate].ranked, reader.schema, whole_bins=whole_bins)
        for one in read.having
    )
    return SelectQuery(rows, shape, figures, read.shown, having, settled_order(read, shape))


@dataclass(frozen=True)
class _SelectReader:
    """Makes questions of the figures of a SELECT."""

    records: Selectable
    scores: Scores | None
    whole_bins: bool

    @property
    def schema(self) -> Schema:
        """The columns of the release."""
        return self.records.cells.schema

    def columns(self, node: Any) -> set[str]:
        """Check and quote the columns of an expression; return their names."""
        names = {quote_column(one, self.schema) for one in node.find_all(exp.Column)}
        # Bins and groups can be grouped by only as they are.
        if not any(map(self.schema.recoding, names)):
            settle_comparisons(node, self.schema, self.records.known)
        return names

    def condition(self, node: Any) -> Condition:
        """A condition, split into its parts."""
        return split_condition(node, self.schema, self.records.known, self.whole_bins)

    def _test(self, node: Any) -> Condition:
        """A condition that is counted or filtered by; a column of truth values is one."""
        inner = node.unnest()
        kinds = {column.name.lower(): column.kind for column in self.schema.columns}
        if (
            isinstance(inner, exp.Column)
            and kinds.get(inner.name.lower(), Kind.BOOLEAN) is not Kind.BOOLEAN
        ):
            raise refused(f"{shown_condition(inner)!r} is a column, not a condition")
        return self.condition(node)

    def _argument(self, node: Any) -> tuple[str, str | None, str]:
        """What is averaged, as written: the column, or the expression over public columns."""
        inner = node.unnest()
        shown = shown_condition(inner)
        holder = exp.Paren(this=inner.copy())
        names = {quote_column(column, self.schema) for column in holder.find_all(exp.Column)}
        if isinstance(inner, exp.Column):
            return shown, next(iter(names)), ""
        if not names:
            raise refused(f"{shown!r} names no column")
        if self.schema.sensitive.name in names:
            raise InputError(
                f"{shown!r} computes with the sensitive column, which can only be averaged as it"
                " is.",
                hint="Give scores for its values instead.",
            )
        for recoding in filter(None, map(self.schema.recoding, sorted(names))):
            raise misused(recoding, shown)
        settle_comparisons(holder, self.schema, self.records.known)
        return shown, None, sql_of(holder)

    def _filtered(self, one: Aggregate) -> Condition | None:
        """The condition of FILTER, and that the figure's own condition is true or false."""
        every = [one.filtered] if one.filtered is not None else []
        own = one.condition if one.decided else None
        if own is not None and one.summed and self._test(own).sensitive:
            own = None  # whether there is anything to add up is not known anyway
        if own is not None and may_be_unknown(own, self.records.known):
            every.append(present(own))
        return self._test(exp.and_(*every, wrap=True)) if every else None

    def question(self, one: Aggregate, rows: Selected, shape: Shape) -> Question:
        """The question that a figure is, about the records of a row."""
        if one.argument is not None:
            measure = self._measure(one)
            selected = self._within(rows, self._filtered(one))
            return Question(one.kind, selected, measure=measure, share=one.share)
        condition = None if one.condition is None else self._test(one.condition)
        selected = self._within(rows, self._filtered(one))
        counted = self._within(selected, condition)
        if one.kind == COUNT:
            return Question(COUNT, counted, selected if one.summed else None)
        if condition is not None:
            return Question(SHARE, counted, selected, within=True)
        sensitive = self.schema.sensitive.name
        split = any(grouping.column == sensitive for grouping in shape.by)
        if not split and selected.values is None:
            raise InputError(
                "share(*) needs a condition on the sensitive column.",
                hint="Write share(condition) for the share of the records that satisfy one.",
            )
        return Question(SHARE, counted, public_part(selected))

    def _within(self, selected: Selected, condition: Condition | None) -> Selected:
        if condition is None:
            return selected
        return both(selected, self.records.resolve(shown_parts(condition), condition))

    def _measure(self, one: Aggregate) -> Measure:
        """What a figure is an average, a sum or a quantile of."""
        shown, column, expression = self._argument(one.argument)
        if column is None:
            return Measure(shown, ExpressionNumber(expression), None)
        scores = self.scores if column == self.schema.sensitive.name else None
        return measure_of(self.records, column, scores, ranked=one.kind == QUANTILE)


def shown_parts(condition: Condition) -> str:
    """A condition as a person writes it; empty if it has no part."""
    return " AND ".join(map(written_condition, (*condition.public, *condition.sensitive)))
