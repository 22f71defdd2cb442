"""What a SELECT asks for besides counts: shares, averages, sums, medians and quantiles.

    count(*) [FILTER (WHERE …)]         also count(CASE WHEN … THEN 1 END), sum(CASE … 1 ELSE 0 END)
    share(*)                            of the sensitive values in WHERE, or of those grouped by
    share(condition), share(*) FILTER   also avg(CASE WHEN … THEN 1 ELSE 0 END), avg((…)::INT)
    avg(x), sum(x), median(x), quantile(x, 0.9), each with FILTER (WHERE …); the last one also as
    percentile_disc(0.9) WITHIN GROUP (ORDER BY x)

x is the sensitive column or an expression over public columns. The SELECT is read with its
aggregates taken out: what is left is a count, with its condition and its groupings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from reconpriv.answers.figure import AVERAGE, COUNT, QUANTILE, SHARE, SUM
from reconpriv.ask.bins import answer_test, mirrored
from reconpriv.ask.sql.grouping import Order, Shape, direction
from reconpriv.ask.sql.trees import (
    NO_LITERAL,
    OPERATORS,
    conjuncts,
    exp,
    is_share,
    literal,
    refused,
    shown_condition,
    sql_of,
)
from reconpriv.columns.schema import Schema, Value
from reconpriv.errors import InputError

_FUNCTION = re.compile(r"(COUNT|AVG|SUM|MEDIAN|QUANTILE(_DISC|_CONT)?|PERCENTILE_\w+|SHARE)\(")
NO_NUMBER = "HAVING compares an answer with a number, such as count(*) > 100; got {!r}"
ARITHMETIC = (
    "Use share(…) for a part of a whole, FILTER (WHERE …) for a part of the records, and"
    " release.compare in Python for a difference or a ratio: they come with intervals."
)


@dataclass(frozen=True)
class Aggregate:
    """One figure of a SELECT, its parts still in sqlglot's trees.

    ``condition`` is what is counted or shared, ``filtered`` restricts the records, ``argument`` is
    what is averaged, and ``share`` the share of a quantile. If ``decided``, records for which it is
    unknown whether they satisfy the condition do not count. A count that is ``summed`` is NULL
    where there is nothing to add up.
    """

    kind: str
    name: str
    sql: str
    argument: Any = None
    condition: Any = None
    filtered: Any = None
    share: float = 0.5
    decided: bool = False
    alias: str = ""
    summed: bool = False


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
class OrderBy:
    """Sort by an aggregate, or by a grouping: that of the shape's own next order."""

    aggregate: int | None
    order: Order


@dataclass(frozen=True)
class ReadFigures:
    """The aggregates of a SELECT, how many of them are shown, and what its rows depend on."""

    aggregates: tuple[Aggregate, ...]
    shown: int
    having: tuple[Having, ...]
    order: tuple[OrderBy, ...]


@dataclass(frozen=True)
class FigureReader:
    """Reads the aggregates of one SELECT, and takes them out of its tree."""

    tree: Any

    def read(self) -> ReadFigures:
        """The aggregates; afterwards the tree is that of a count with the same rows."""
        tree = self.tree
        found: list[Aggregate] = []
        places: dict[int, int] = {}
        for place, one in enumerate(tree.expressions):
            node = one.unalias()
            if self._mixes(node):
                raise self._arithmetic(node)
            if self._aggregate(node):
                places[place] = len(found)
                found.append(self._read(node, one.alias))
        shown = len(found)
        if not found:
            raise refused("A query asks for a figure, such as count(*)")
        names = [one.name for one in found]
        repeated = [name for i, name in enumerate(names) if name in names[:i]]
        if repeated:
            raise refused(f"{repeated[0]!r} is selected twice")
        having = self._having(found)
        self._write_out_positions(places)
        order = self._order(found, places)
        columns = [one for i, one in enumerate(tree.expressions) if i not in places]
        tree.set("expressions", [*columns, exp.Count(this=exp.Star(), big_int=True)])
        tree.set("having", None)
        return ReadFigures(tuple(found), shown, having, order)

    def _aggregate(self, node: Any) -> bool:
        if isinstance(node, exp.Filter):
            return self._aggregate(node.this)
        if isinstance(node, exp.WithinGroup):
            return True
        return is_share(node) or isinstance(node, exp.AggFunc)

    def _mixes(self, node: Any) -> bool:
        """Whether an aggregate is part of a larger expression."""
        if self._aggregate(node):
            return False
        return any(self._aggregate(one) for one in node.walk() if one is not node)

    def _arithmetic(self, node: Any) -> InputError:
        text = shown_condition(node)
        return InputError(f"Arithmetic with answers has no interval: {text!r}.", hint=ARITHMETIC)

    def _read(self, node: Any, alias: str) -> Aggregate:
        text = sql_of(node)
        name = alias or _lowered(shown_condition(node))
        filtered = None
        if isinstance(node, exp.Filter):
            filtered, node = node.expression.this, node.this
        if isinstance(node, exp.WithinGroup):
            node = self._within_group(node)
        for inner in node.walk():
            if inner is not node and self._aggregate(inner):
                raise self._arithmetic(node)
            if isinstance(inner, exp.Distinct | exp.Order):
                raise refused(f"{shown_condition(node)!r} cannot be estimated")
        return replace(self._of(node, name, text, filtered), alias=alias)

    def _within_group(self, node: Any) -> Any:
        """percentile_disc(q) WITHIN GROUP (ORDER BY x) with its arguments side by side."""
        ranked, order = node.this, node.expression.expressions
        if not isinstance(ranked, exp.PercentileDisc | exp.PercentileCont):
            raise refused(f"{shown_condition(node)!r} cannot be estimated")
        if len(order) != 1 or order[0].args.get("desc"):
            raise refused("A percentile is WITHIN GROUP (ORDER BY x), in ascending order")
        return type(ranked)(this=order[0].this.copy(), expression=ranked.this.copy())

    def _of(self, node: Any, name: str, text: str, filtered: Any) -> Aggregate:
        if isinstance(node, exp.Anonymous):
            return self._share(node, name, text, filtered)
        if isinstance(node, exp.Count) and (node.this is None or isinstance(node.this, exp.Star)):
            return Aggregate(COUNT, name, text, filtered=filtered)
        if isinstance(node, exp.Avg | exp.Sum | exp.Count):
            found = self._mean(node, name, text, filtered)
            if found is not None:
                return found
        share = self._ranked(node)
        if share is not None:
            return Aggregate(QUANTILE, name, text, node.this, filtered=filtered, share=share)
        shown = _lowered(shown_condition(node))
        if isinstance(node, exp.PercentileCont):
            raise InputError(
                f"{shown!r} interpolates between two records, which a release cannot tell.",
                hint="Ask for one of the values: quantile(x, q), median(x), or percentile_disc.",
            )
        if isinstance(node, exp.Min | exp.Max):
            raise InputError(
                f"{shown!r} hangs on a single record, so it cannot be estimated from a release.",
                hint="Ask for a quantile, such as quantile(x, 0.95).",
            )
        raise refused(f"{shown!r} cannot be estimated from a release")

    def _share(self, node: Any, name: str, text: str, filtered: Any) -> Aggregate:
        if len(node.expressions) != 1:
            raise refused("share takes * or one condition")
        (argument,) = node.expressions
        if isinstance(argument, exp.Star):  # FILTER says what is shared
            return Aggregate(SHARE, name, text, condition=filtered)
        return Aggregate(SHARE, name, text, condition=argument, filtered=filtered)

    def _mean(self, node: Any, name: str, text: str, filtered: Any) -> Aggregate | None:
        """An average or a sum; of a condition, that is a share or a count."""
        rest = {exp.Avg: ("0",), exp.Sum: ("0", "NULL"), exp.Count: ("NULL",)}[type(node)]
        condition = self._counted(node.this, otherwise=rest)
        if condition is not None:
            kind = SHARE if isinstance(node, exp.Avg) else COUNT
            case = node.this.unnest()
            decided, summed = not isinstance(case, exp.Case), isinstance(node, exp.Sum)
            if summed and not decided and _is_null(case.args.get("default")):
                filtered = condition if filtered is None else exp.and_(filtered, condition)
            return Aggregate(
                kind, name, text,
                condition=condition, filtered=filtered, decided=decided, summed=summed,
            )  # fmt: skip
        if isinstance(node, exp.Count):
            return None
        kind = AVERAGE if isinstance(node, exp.Avg) else SUM
        return Aggregate(kind, name, text, node.this, filtered=filtered)

    def _ranked(self, node: Any) -> float | None:
        """The share of a median or a quantile; None for anything else."""
        if isinstance(node, exp.Median):
            return 0.5
        if isinstance(node, exp.Quantile | exp.PercentileDisc):
            return self._number(node.args.get("quantile") or node.args.get("expression"))
        return None

    def _counted(self, node: Any, otherwise: Sequence[str]) -> Any:
        """The condition of CASE WHEN … THEN 1 ELSE 0 END or (…)::INT; None for anything else."""
        node = node.unnest()
        if isinstance(node, exp.Cast):
            inner = node.this.unnest()
            boolean = isinstance(inner, exp.Predicate | exp.Connector | exp.Not)
            numeric = node.is_type(*exp.DataType.NUMERIC_TYPES)
            return inner if boolean and numeric and "0" in otherwise else None
        if not isinstance(node, exp.Case) or node.this is not None or len(node.args["ifs"]) != 1:
            return None
        (branch,) = node.args["ifs"]
        default = node.args.get("default")
        rest = "NULL"
        if not _is_null(default):
            number = self._number(default)
            rest = "" if number is None else f"{number:g}"
        one = self._number(branch.args["true"]) == 1.0
        return branch.this if one and rest in otherwise else None

    def _number(self, node: Any) -> float | None:
        """The number of a literal, with its sign."""
        found = None if node is None else literal(node)
        return float(found) if isinstance(found, Decimal) else None

    def _having(self, found: list[Aggregate]) -> tuple[Having, ...]:
        clause = self.tree.args.get("having")
        if clause is None:
            return ()
        if self.tree.args.get("group") is None:
            raise refused("HAVING needs GROUP BY")
        return tuple(self._kept(node, found) for node in conjuncts(clause.this))

    def _kept(self, node: Any, found: list[Aggregate]) -> Having:
        operator = OPERATORS.get(type(node).__name__)
        text = _lowered(shown_condition(node))
        if operator is not None:
            left, value = node.left.unnest(), literal(node.right)
            if value is NO_LITERAL:
                left, operator = node.right.unnest(), mirrored(operator)
                value = literal(node.left)
            if value is not NO_LITERAL:
                return Having(self._place(left, found, "HAVING"), operator, value, text)
        raise refused(NO_NUMBER.format(text))

    def _place(self, node: Any, found: list[Aggregate], clause: str) -> int:
        """The aggregate that an expression or an alias means; a new one is added, not shown."""
        if self._mixes(node):
            raise self._arithmetic(node)
        if self._aggregate(node):
            one = self._read(node, "")
            for i, other in enumerate(found):
                if other.sql == one.sql:
                    return i
            found.append(one)
            return len(found) - 1
        if isinstance(node, exp.Column) and not node.args.get("table"):
            for i, other in enumerate(found):
                if other.name.lower() == node.name.lower():
                    return i
        text = shown_condition(node)
        raise refused(f"{clause} {text} names no answer; conditions on columns go into WHERE")

    def _write_out_positions(self, places: dict[int, int]) -> None:
        """Positions count all that is selected, so those of columns are replaced by the columns."""
        tree = self.tree
        for clause in ("group", "order"):
            for node in tree.args[clause].expressions if tree.args.get(clause) else ():
                inner = node.this if isinstance(node, exp.Ordered) else node
                if not isinstance(inner, exp.Literal):
                    continue
                place = int(inner.this) - 1 if inner.this.isdigit() else -1
                if not 0 <= place < len(tree.expressions) or (
                    clause == "group" and place in places
                ):
                    raise refused(
                        f"{clause.upper()} BY {inner.sql()} is not the position of a column"
                    )
                if place not in places:
                    inner.replace(tree.expressions[place].unalias().copy())

    def _order(self, found: list[Aggregate], places: dict[int, int]) -> tuple[OrderBy, ...]:
        """The order of the rows; what is ordered by columns stays in the tree."""
        clause = self.tree.args.get("order")
        if clause is None:
            return ()
        if self.tree.args.get("group") is None:
            raise refused("ORDER BY, LIMIT and OFFSET need GROUP BY")
        order, kept = [], []
        for node in clause.expressions:
            inner, place = node.this.unnest(), None
            if isinstance(inner, exp.Literal):
                place = places[int(inner.this) - 1]
            elif self._aggregate(inner) or self._mixes(inner):
                place = self._place(inner, found, "ORDER BY")
            elif isinstance(inner, exp.Column):
                names = [one.name.lower() for one in found]
                place = names.index(inner.name.lower()) if inner.name.lower() in names else None
            order.append(OrderBy(place, direction("", node)))
            if place is None:
                kept.append(node)
        if kept:
            clause.set("expressions", kept)
        else:
            self.tree.set("order", None)
        return tuple(order)


def _is_null(node: Any) -> bool:
    return node is None or isinstance(node, exp.Null)


def settled_having(
    one: Having, quantile_of: str | None, schema: Schema, *, whole_bins: bool
) -> Having:
    """What a quantile of bins is compared with are the bins on that side of the value."""
    recoding = None if quantile_of is None else schema.recoding(quantile_of)
    if recoding is None:
        if not isinstance(one.value, Decimal) and quantile_of != schema.sensitive.name:
            raise refused(NO_NUMBER.format(one.text))
        return one
    found = answer_test(recoding, one.operator, [one.value], one.text, whole_bins=whole_bins)
    labels = tuple(
        label for label in recoding.labels if (label in found.labels) is not found.negated
    )
    remark = None if found.remark is None else f"{one.text} is taken as {found.taken_as}"
    return replace(one, labels=labels, remark=remark)


def settled_order(figures: ReadFigures, shape: Shape) -> tuple[OrderBy, ...]:
    """The order with the groupings that the count was found to be ordered by."""
    own = iter(shape.order)
    return tuple(
        one if one.aggregate is not None else OrderBy(None, next(own)) for one in figures.order
    )


def _lowered(text: str) -> str:
    """Functions as people write them."""
    return _FUNCTION.sub(lambda found: found[0].lower(), text)
