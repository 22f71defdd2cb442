"""Figures as a SELECT writes them: counts, shares, averages, sums, medians and quantiles.

    count(*) [FILTER (WHERE …)]         also count(CASE WHEN … THEN 1 END), sum(CASE … 1 ELSE 0 END)
    share(*)                            of the sensitive values in WHERE, or of those grouped by
    share(condition), share(*) FILTER   also avg(CASE WHEN … THEN 1 ELSE 0 END), avg((…)::INT)
    avg(x), sum(x), median(x), quantile(x, 0.9), each with FILTER (WHERE …); the last one also as
    percentile_disc(0.9) WITHIN GROUP (ORDER BY x)

x is the sensitive column or an expression over public columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from reconpriv.answers.figure import AVERAGE, COUNT, QUANTILE, SHARE, SUM
from reconpriv.ask.sql.trees import exp, is_share, literal, refused, shown_condition, sql_of
from reconpriv.errors import InputError

_FUNCTION = re.compile(r"(COUNT|AVG|SUM|MEDIAN|QUANTILE(_DISC|_CONT)?|PERCENTILE_\w+|SHARE)\(")
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


def is_aggregate(node: Any) -> bool:
    """True if this is a figure of many records."""
    if isinstance(node, exp.Filter):
        return is_aggregate(node.this)
    return isinstance(node, exp.WithinGroup | exp.AggFunc) or is_share(node)


def read_aggregate(node: Any, alias: str = "") -> Aggregate | None:
    """The figure that an expression is; None if it has none, refused if it computes with one."""
    if not is_aggregate(node):
        if any(map(is_aggregate, node.walk())):
            raise _arithmetic(node)
        return None
    text = sql_of(node)
    name = alias or lowered(shown_condition(node))
    filtered = None
    if isinstance(node, exp.Filter):
        filtered, node = node.expression.this, node.this
    if isinstance(node, exp.WithinGroup):
        node = _within_group(node)
    for inner in node.walk():
        if inner is not node and is_aggregate(inner):
            raise _arithmetic(node)
        if isinstance(inner, exp.Distinct | exp.Order):
            raise refused(f"{shown_condition(node)!r} cannot be estimated")
    return replace(_aggregate_of(node, name, text, filtered), alias=alias)


def _arithmetic(node: Any) -> InputError:
    text = shown_condition(node)
    return InputError(f"Arithmetic with answers has no interval: {text!r}.", hint=ARITHMETIC)


def _within_group(node: Any) -> Any:
    """percentile_disc(q) WITHIN GROUP (ORDER BY x) with its arguments side by side."""
    ranked, order = node.this, node.expression.expressions
    if not isinstance(ranked, exp.PercentileDisc | exp.PercentileCont):
        raise refused(f"{shown_condition(node)!r} cannot be estimated")
    if len(order) != 1 or order[0].args.get("desc"):
        raise refused("A percentile is WITHIN GROUP (ORDER BY x), in ascending order")
    return type(ranked)(this=order[0].this.copy(), expression=ranked.this.copy())


def _aggregate_of(node: Any, name: str, text: str, filtered: Any) -> Aggregate:
    if isinstance(node, exp.Anonymous):
        return _share(node, name, text, filtered)
    if isinstance(node, exp.Count) and (node.this is None or isinstance(node.this, exp.Star)):
        return Aggregate(COUNT, name, text, filtered=filtered)
    if isinstance(node, exp.Avg | exp.Sum | exp.Count):
        found = _mean(node, name, text, filtered)
        if found is not None:
            return found
    share = _ranked(node)
    if share is not None:
        return Aggregate(QUANTILE, name, text, node.this, filtered=filtered, share=share)
    shown = lowered(shown_condition(node))
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


def _share(node: Any, name: str, text: str, filtered: Any) -> Aggregate:
    if len(node.expressions) != 1:
        raise refused("share takes * or one condition")
    (argument,) = node.expressions
    if isinstance(argument, exp.Star):  # FILTER says what is shared
        return Aggregate(SHARE, name, text, condition=filtered)
    return Aggregate(SHARE, name, text, condition=argument, filtered=filtered)


def _mean(node: Any, name: str, text: str, filtered: Any) -> Aggregate | None:
    """An average or a sum; of a condition, that is a share or a count."""
    rest = {exp.Avg: ("0",), exp.Sum: ("0", "NULL"), exp.Count: ("NULL",)}[type(node)]
    condition = _counted(node.this, otherwise=rest)
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


def _ranked(node: Any) -> float | None:
    """The share of a median or a quantile; None for anything else."""
    if isinstance(node, exp.Median):
        return 0.5
    if isinstance(node, exp.Quantile | exp.PercentileDisc):
        return _number(node.args.get("quantile") or node.args.get("expression"))
    return None


def _counted(node: Any, otherwise: Sequence[str]) -> Any:
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
        number = _number(default)
        rest = "" if number is None else f"{number:g}"
    one = _number(branch.args["true"]) == 1.0
    return branch.this if one and rest in otherwise else None


def _number(node: Any) -> float | None:
    """The number of a literal, with its sign."""
    found = None if node is None else literal(node)
    return float(found) if isinstance(found, Decimal) else None


def _is_null(node: Any) -> bool:
    return node is None or isinstance(node, exp.Null)


def lowered(text: str) -> str:
    """Functions as people write them."""
    return _FUNCTION.sub(lambda found: found[0].lower(), text)
