"""GROUP BY, ORDER BY and LIMIT: what rows are grouped by, and which of them are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reconpriv.ask.bins import misused
from reconpriv.ask.comparisons import check_distinct
from reconpriv.ask.sql.trees import exp, refused, sql_of
from reconpriv.columns.schema import Schema

_DIGITS = 18


@dataclass(frozen=True)
class Grouping:
    """A column that rows are grouped by, or an expression over public columns in SQL."""

    label: str
    column: str | None
    expression: str


@dataclass(frozen=True)
class Order:
    """Sort by the grouping of a label, in which direction."""

    label: str
    descending: bool = False
    missing_first: bool = False


@dataclass(frozen=True)
class Shape:
    """How a table of counts is laid out: its groupings, their order, and how many rows."""

    by: tuple[Grouping, ...] = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class _Item:
    """Something selected or grouped by: as written, and with its columns resolved."""

    text: str
    sql: str
    column: str | None
    alias: str = ""


Settle = Callable[[Any], set[str]]


@dataclass(frozen=True)
class ShapeReader:
    """Reads the shape of one SELECT.

    ``settle`` quotes and checks the columns of an expression in place and names them; ``refuse``
    makes the error for what cannot be answered.
    """

    tree: Any
    schema: Schema
    settle: Settle

    def read(self) -> Shape:
        """The groupings of a SELECT, and the order and number of its rows."""
        selected = [self._selected(node) for node in self.tree.expressions]
        if sum(item is None for item in selected) != 1:
            raise refused("A query asks for a figure, such as count(*)")
        groups = self._groups(selected)
        for item in selected:
            if item is not None and all(item.sql != group.sql for group in groups):
                what = f"Column {item.column!r}" if item.column else repr(item.text)
                raise refused(f"{what} is selected but not in GROUP BY")
        by = tuple(Grouping(_label(group, selected), group.column, group.sql) for group in groups)
        check_distinct([grouping.label for grouping in by])
        order = self._order(selected, by)
        limit, offset = self._whole("limit"), self._whole("offset")
        if not by and (order or limit is not None or offset is not None):
            raise refused("ORDER BY, LIMIT and OFFSET need GROUP BY")
        return Shape(by, order, limit, offset or 0)

    def _counts(self, node: Any) -> bool:
        return isinstance(node, exp.Count) and isinstance(node.this, exp.Star)

    def _selected(self, projection: Any) -> _Item | None:
        """An item of the SELECT; None for its count(*)."""
        node = projection.unalias()
        return None if self._counts(node) else self._item(node, projection.alias)

    def _item(self, node: Any, alias: str = "") -> _Item:
        node = node.unnest()
        text = sql_of(node)
        if isinstance(node, exp.Star | exp.Rollup | exp.Cube | exp.GroupingSets):
            raise refused(f"{text!r} cannot be estimated from a release")
        settled = node.copy()
        # A bare column would lose its place in the tree when it is rewritten.
        names = self.settle(exp.Paren(this=settled))
        if isinstance(node, exp.Column):
            (name,) = names
            return _Item(text, sql_of(settled), name, alias)
        if not names:
            raise refused(f"{text!r} names no column, so it cannot be grouped by")
        if self.schema.sensitive.name in names:
            raise refused(
                f"The expression {text!r} is about the sensitive column, which can only be grouped"
                " by as it is"
            )
        for recoding in filter(None, map(self.schema.recoding, sorted(names))):
            raise misused(recoding, text)
        return _Item(text, sql_of(settled), None, alias)

    def _groups(self, selected: Sequence[_Item | None]) -> list[_Item]:
        clause = self.tree.args.get("group")
        if clause is None:
            return []
        if clause.args.get("all"):
            return [item for item in selected if item is not None]
        if any(content for name, content in clause.args.items() if name != "expressions"):
            raise refused("Only a plain GROUP BY can be answered")
        return [self._named(node, selected, "GROUP BY") or self._item(node)
                for node in clause.expressions]  # fmt: skip

    def _named(self, node: Any, selected: Sequence[_Item | None], clause: str) -> _Item | None:
        """The selected item that a position or an alias refers to."""
        inner = node.unnest()
        if isinstance(inner, exp.Literal):
            place = int(inner.this) if not inner.is_string and inner.this.isdigit() else 0
            if not 1 <= place <= len(selected) or selected[place - 1] is None:
                raise refused(f"{clause} {inner.sql()} is not the position of a column")
            return selected[place - 1]
        if isinstance(inner, exp.Column) and not inner.args.get("table"):
            wanted = inner.name.lower()
            columns = [column.name.lower() for column in self.schema.columns]
            if wanted not in columns:
                named = (item for item in selected if item and item.alias.lower() == wanted)
                return next(named, None)
        return None

    def _order(self, selected: Sequence[_Item | None], by: Sequence[Grouping]) -> tuple[Order, ...]:
        clause = self.tree.args.get("order")
        found = []
        for node in clause.expressions if clause is not None else ():
            found.append(direction(self._ordered(node.this.unnest(), selected, by), node))
        return tuple(found)

    def _ordered(self, node: Any, selected: Sequence[_Item | None], by: Sequence[Grouping]) -> str:
        """The label of the grouping to sort by."""
        text = sql_of(node)
        if isinstance(node, exp.Column):
            for grouping in by:
                if grouping.label.lower() == node.name.lower():
                    return grouping.label
        if not isinstance(node, exp.Var):
            item = self._named(node, selected, "ORDER BY") or self._item(node)
            for grouping in by:
                if grouping.expression == item.sql:
                    return grouping.label
        raise refused(f"ORDER BY {text} is neither count(*) nor in GROUP BY")

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


def direction(label: str, node: Any) -> Order:
    """Which way one item of ORDER BY sorts; missing values come last unless it says otherwise."""
    return Order(label, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def _label(group: _Item, selected: Sequence[_Item | None]) -> str:
    """The name of a grouping: its alias, its column, or the expression as written."""
    aliases = [item.alias for item in selected if item and item.sql == group.sql and item.alias]
    return aliases[0] if aliases else group.column or group.text
