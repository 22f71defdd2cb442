"""A SELECT as questions: its rows, and one figure or several for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from reconpriv.answers.figure import COUNT, QUANTILE, SHARE
from reconpriv.ask.bins import answer_test, mirrored, misused
from reconpriv.ask.comparisons import check_distinct
from reconpriv.ask.conditions import Selectable
from reconpriv.ask.question import Question
from reconpriv.ask.selections import EVERYTHING, Condition, Selected, both, public_part
from reconpriv.ask.sql.aggregates import Aggregate, lowered, read_aggregate
from reconpriv.ask.sql.checks import settle_comparisons
from reconpriv.ask.sql.parse import QUERY_CLAUSES, check_shape, quote_column, split_condition
from reconpriv.ask.sql.text import written_condition
from reconpriv.ask.sql.trees import (
    NO_LITERAL,
    OPERATORS,
    conjuncts,
    exp,
    literal,
    may_be_unknown,
    not_too_deep,
    parse_statement,
    present,
    refused,
    shown_condition,
    sql_of,
)
from reconpriv.columns.schema import Kind, Schema, Value
from reconpriv.errors import InputError, ReleaseError
from reconpriv.estimate.measures import ExpressionNumber, Measure, Scores, measure_of

_DIGITS = 18
_NO_NUMBER = "HAVING compares an answer with a number, such as count(*) > 100; got {!r}"


@dataclass(frozen=True)
class Grouping:
    """A column that rows are grouped by, or an expression over public columns in SQL."""

    label: str
    column: str | None
    expression: str


@dataclass(frozen=True)
class OrderBy:
    """Sort by an aggregate (its place), or by the grouping of a label, in which direction."""

    aggregate: int | None
    label: str
    descending: bool
    missing_first: bool


@dataclass(frozen=True)
class Having:
    """A row is kept if its aggregate compares with a value like this.

    An aggregate whose answer is a bin is one of ``labels`` instead.
    """

    aggregate: int
    operator: str
    value: Value
    text: str
    labels: tuple[str, ...] | None = None
    remark: str | None = None


@dataclass(frozen=True)
class SelectQuery:
    """A SELECT: its rows, and one figure or several for each of them.

    The first ``shown`` figures are shown; the others are only compared or sorted by.
    """

    rows: Selected
    by: tuple[Grouping, ...]
    figures: tuple[Question, ...]
    shown: int
    having: tuple[Having, ...]
    order: tuple[OrderBy, ...]
    limit: int | None
    offset: int

    @property
    def counts(self) -> bool:
        """True if it asks for nothing but the number of records in each row."""
        one = self.figures[0]
        return len(self.figures) == 1 and one.counts and one.selected is self.rows

    @property
    def single(self) -> Question:
        """The one figure of the one row, as a batch may ask for it."""
        if self.by or len(self.figures) > 1:
            wrong = "a GROUP BY query" if self.by else "a query for several"
            raise ReleaseError(f"A batch is for single figures; ask {wrong} by itself.")
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
    check_shape(tree, QUERY_CLAUSES)
    return _SelectReader(tree, records, scores, whole_bins).read(text, base)


@dataclass(frozen=True)
class _Item:
    """Something selected or grouped by: as written, and with its columns checked and quoted."""

    text: str
    sql: str
    column: str | None
    alias: str = ""


@dataclass
class _SelectReader:
    """Reads one SELECT; ``selected`` is what it selects, ``figures`` also what it compares."""

    tree: Any
    records: Selectable
    scores: Scores | None
    whole_bins: bool
    selected: list[Aggregate | _Item] = field(default_factory=list)
    figures: list[Aggregate] = field(default_factory=list)

    @property
    def schema(self) -> Schema:
        """The columns of the release."""
        return self.records.cells.schema

    def read(self, text: str, base: Selected | None) -> SelectQuery:
        """The whole query, about some records or all."""
        for node in self.tree.expressions:
            inner = node.unalias()
            found = read_aggregate(inner, node.alias)
            self.selected.append(found or self._item(inner, node.alias))
        self.figures += [one for one in self.selected if isinstance(one, Aggregate)]
        names = [one.name for one in self.figures]
        repeated = [name for i, name in enumerate(names) if name in names[:i]]
        if not names:
            raise refused("A query asks for a figure, such as count(*)")
        if repeated:
            raise refused(f"{repeated[0]!r} is selected twice")
        by = self._groupings()
        kept = self.tree.args.get("having")
        having = [] if kept is None else [self._kept(node) for node in conjuncts(kept.this)]
        order = tuple(self._ordered(node, by) for node in self._clause("order"))
        limit, offset = self._whole("limit"), self._whole("offset")
        if not by and (having or order or limit is not None or offset is not None):
            raise refused("HAVING, ORDER BY, LIMIT and OFFSET need GROUP BY")
        where = self.tree.args.get("where")
        condition = Condition() if where is None else self._condition(where.this)
        (one, *others), count = self.figures, (COUNT, None, None)
        plain = not others and (one.kind, one.condition, one.filtered) == count
        words = text.strip().rstrip(";") if plain else shown_parts(condition) or EVERYTHING
        rows = self.records.resolve(words, condition)
        rows = rows if base is None else both(base, rows)
        figures = tuple(self._question(one, rows, by) for one in self.figures)
        settled = tuple(self._in_bins(one, figures[one.aggregate].ranked) for one in having)
        return SelectQuery(rows, by, figures, len(names), settled, order, limit, offset or 0)

    # --- rows -------------------------------------------------------------------------------------

    def _clause(self, name: str) -> Sequence[Any]:
        """The parts of GROUP BY or ORDER BY, if it is there."""
        clause = self.tree.args.get(name)
        return () if clause is None else clause.expressions

    def _groupings(self) -> tuple[Grouping, ...]:
        """What rows are grouped by; whatever is selected has to be among it."""
        items = [item for item in self.selected if isinstance(item, _Item)]
        clause, groups = self.tree.args.get("group"), items
        if clause is None or not clause.args.get("all"):
            if clause is not None and any(
                content for name, content in clause.args.items() if name != "expressions"
            ):
                raise refused("Only a plain GROUP BY can be answered")
            groups = [self._grouped(node) for node in self._clause("group")]
        for item in items:
            if all(item.sql != group.sql for group in groups):
                what = f"Column {item.column!r}" if item.column else repr(item.text)
                raise refused(f"{what} is selected but not in GROUP BY")
        # A grouping is called by its alias, its column, or the expression as written.
        aliases = {item.sql: item.alias for item in reversed(items) if item.alias}
        labels = [aliases.get(one.sql) or one.column or one.text for one in groups]
        check_distinct(labels)
        return tuple(
            Grouping(label, one.column, one.sql) for label, one in zip(labels, groups, strict=True)
        )

    def _grouped(self, node: Any) -> _Item:
        found = self._named(node, "GROUP BY") or self._item(node)
        if isinstance(found, Aggregate):
            raise refused(f"GROUP BY {node.sql()} is not the position of a column")
        return found

    def _named(self, node: Any, clause: str) -> Aggregate | _Item | None:
        """What is selected at a position, or the column with an alias."""
        inner = node.unnest()
        if isinstance(inner, exp.Literal):
            place = int(inner.this) if not inner.is_string and inner.this.isdigit() else 0
            if not 1 <= place <= len(self.selected):
                raise refused(f"{clause} {inner.sql()} is not the position of a column")
            return self.selected[place - 1]
        if isinstance(inner, exp.Column) and not inner.args.get("table"):
            wanted = inner.name.lower()
            if wanted not in [column.name.lower() for column in self.schema.columns]:
                items = (item for item in self.selected if isinstance(item, _Item))
                return next((item for item in items if item.alias.lower() == wanted), None)
        return None

    def _item(self, node: Any, alias: str = "") -> _Item:
        node = node.unnest()
        text = sql_of(node)
        if isinstance(node, exp.Star | exp.Rollup | exp.Cube | exp.GroupingSets):
            raise refused(f"{text!r} cannot be estimated from a release")
        column, sql, sensitive = self._expression(node)
        if sensitive:
            raise refused(
                f"The expression {text!r} is about the sensitive column, which can only be grouped"
                " by as it is"
            )
        return _Item(text, sql, column, alias)

    def _expression(self, node: Any) -> tuple[str | None, str, bool]:
        """The column that an expression is, its SQL, and whether it computes a sensitive value."""
        shown = shown_condition(node)
        # A bare column would lose its place in the tree when it is rewritten.
        holder = exp.Paren(this=node.copy())
        names = {quote_column(column, self.schema) for column in holder.find_all(exp.Column)}
        if isinstance(node, exp.Column):
            return names.pop(), sql_of(holder.this), False
        if not names:
            raise refused(f"{shown!r} names no column")
        # Bins and groups can be grouped by and averaged only as they are.
        for recoding in filter(None, map(self.schema.recoding, sorted(names))):
            raise misused(recoding, shown)
        settle_comparisons(holder, self.schema, self.records.known)
        return None, sql_of(holder.this), self.schema.sensitive.name in names

    def _kept(self, node: Any) -> Having:
        """What HAVING compares with what."""
        operator = OPERATORS.get(type(node).__name__)
        text = lowered(shown_condition(node))
        if operator is not None:
            left, value = node.left.unnest(), literal(node.right)
            if value is NO_LITERAL:
                left, operator = node.right.unnest(), mirrored(operator)
                value = literal(node.left)
            if value is not NO_LITERAL:
                return Having(self._place(left, "HAVING"), operator, value, text)
        raise refused(_NO_NUMBER.format(text))

    def _place(self, node: Any, clause: str) -> int:
        """The figure that an expression or an alias means; a new one is added, not shown."""
        found = read_aggregate(node)
        if found is not None:
            same = (i for i, other in enumerate(self.figures) if other.sql == found.sql)
            place = next(same, len(self.figures))
            self.figures += [found] if place == len(self.figures) else []
            return place
        if isinstance(node, exp.Column) and not node.args.get("table"):
            for i, other in enumerate(self.figures):
                if other.name.lower() == node.name.lower():
                    return i
        text = shown_condition(node)
        raise refused(f"{clause} {text} names no answer; conditions on columns go into WHERE")

    def _ordered(self, ordered: Any, by: Sequence[Grouping]) -> OrderBy:
        """What rows are sorted by; missing values come last unless it says otherwise."""
        node = ordered.this.unnest()
        how = bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first"))
        names = [one.name.lower() for one in self.figures]
        if isinstance(node, exp.Column) and node.name.lower() in names:
            return OrderBy(names.index(node.name.lower()), "", *how)
        if read_aggregate(node) is not None:
            return OrderBy(self._place(node, "ORDER BY"), "", *how)
        for grouping in by:
            if isinstance(node, exp.Column) and grouping.label.lower() == node.name.lower():
                return OrderBy(None, grouping.label, *how)
        item = None if isinstance(node, exp.Var) else self._named(node, "ORDER BY")
        if isinstance(item, Aggregate):
            return OrderBy(self.figures.index(item), "", *how)
        if item is None and not isinstance(node, exp.Var):
            item = self._item(node)
        for grouping in by:
            if item is not None and grouping.expression == item.sql:
                return OrderBy(None, grouping.label, *how)
        raise refused(f"ORDER BY {sql_of(node)} is neither count(*) nor in GROUP BY")

    def _whole(self, clause: str) -> int | None:
        """The number of LIMIT or OFFSET."""
        node = self.tree.args.get(clause)
        if node is None:
            return None
        number = node.args.get("expression")
        plain = isinstance(number, exp.Literal) and not number.is_string
        if node.args.get("limit_options") or not plain or not number.this.isdigit():
            raise refused(f"{clause.upper()} takes a whole number")
        # No table has as many rows, and Python refuses to read thousands of digits.
        return int(number.this[:_DIGITS])

    def _in_bins(self, one: Having, quantile_of: str | None) -> Having:
        """What a quantile of bins is compared with are the bins on that side of the value."""
        recoding = None if quantile_of is None else self.schema.recoding(quantile_of)
        if recoding is None:
            if not isinstance(one.value, Decimal) and quantile_of != self.schema.sensitive.name:
                raise refused(_NO_NUMBER.format(one.text))
            return one
        found = answer_test(
            recoding, one.operator, [one.value], one.text, whole_bins=self.whole_bins
        )
        labels = tuple(
            label for label in recoding.labels if (label in found.labels) is not found.negated
        )
        remark = None if found.remark is None else f"{one.text} is taken as {found.taken_as}"
        return replace(one, labels=labels, remark=remark)

    # --- figures ----------------------------------------------------------------------------------

    def _condition(self, node: Any) -> Condition:
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
        return self._condition(node)

    def _filtered(self, one: Aggregate) -> Condition | None:
        """The condition of FILTER, and that the figure's own condition is true or false."""
        every = [one.filtered] if one.filtered is not None else []
        own = one.condition if one.decided else None
        if own is not None and one.summed and self._test(own).sensitive:
            own = None  # whether there is anything to add up is not known anyway
        if own is not None and may_be_unknown(own, self.records.known):
            every.append(present(own))
        return self._test(exp.and_(*every, wrap=True)) if every else None

    def _question(self, one: Aggregate, rows: Selected, by: Sequence[Grouping]) -> Question:
        """The question that a figure is, about the records of a row."""
        return replace(self._of_kind(one, rows, by), name=one.name, alias=one.alias)

    def _of_kind(self, one: Aggregate, rows: Selected, by: Sequence[Grouping]) -> Question:
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
        split = any(grouping.column == sensitive for grouping in by)
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
        node = one.argument.unnest()
        column, sql, sensitive = self._expression(node)
        if sensitive:
            raise InputError(
                f"{shown_condition(node)!r} computes with the sensitive column, which can only be"
                " averaged as it is.",
                hint="Give scores for its values instead.",
            )
        if column is None:
            return Measure(shown_condition(node), ExpressionNumber(f"({sql})"), None)
        scores = self.scores if column == self.schema.sensitive.name else None
        return measure_of(self.records, column, scores, ranked=one.kind == QUANTILE)


def shown_parts(condition: Condition) -> str:
    """A condition as a person writes it; empty if it has no part."""
    return " AND ".join(map(written_condition, (*condition.public, *condition.sensitive)))
