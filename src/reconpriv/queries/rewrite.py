"""Conditions in SQL on recoded columns, rewritten to the labels that stand for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from reconpriv.engines.local import DIALECT
from reconpriv.queries.bins import (
    Answered,
    answer_between,
    answer_comparison,
    answer_membership,
    mirrored,
    misused,
    opposite,
)
from reconpriv.queries.sql_text import written_name
from reconpriv.recoding import Recoding, as_number
from reconpriv.schema import Schema, Value

OPERATORS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
NO_LITERAL = object()
_CAST = re.compile(r"CAST\(('(?:[^']|'')*') AS (DATE|TIMESTAMP|TIMESTAMPTZ)\)")
_TIMES = ("date", "timestamp", "timestampntz", "timestamptz")


def rewrite_recoded(
    exp: Any,
    condition: Any,
    schema: Schema,
    known: Mapping[str, Sequence[Value]],
    *,
    whole_bins: bool,
) -> tuple[Any, tuple[str, ...]]:
    """The condition in terms of labels, and the remarks for the answer.

    Columns have already been checked and quoted. Only comparisons with values are accepted.
    """
    if not any(schema.recoding(node.name) for node in condition.find_all(exp.Column)):
        return condition, ()
    holder = exp.Paren(this=condition.copy())
    remarks = []
    for column in list(holder.find_all(exp.Column)):
        recoding = schema.recoding(column.name)
        if recoding is None:
            continue
        side, test = column, column.parent
        while isinstance(test, exp.Paren) and test is not holder:
            side, test = test, test.parent
        if isinstance(test, exp.Is) and isinstance(test.expression, exp.Null):
            continue
        negated = _negated(exp, test, holder)
        answered = _answer(exp, side, test, recoding, whole_bins, negated=bool(negated))
        labels = [label for label in answered.labels if label in known[column.name]]
        told = answered.remark
        if told is not None and negated is None:
            told = f"{shown_condition(exp, test)} is taken as {answered.taken_as}"
        # If a NOT around the test stays in place, what is answered is the opposite of the test.
        test.replace(_membership(exp, column.copy(), labels, answered.negated != bool(negated)))
        if told is not None:
            remarks.append(told)
    return holder.this, tuple(dict.fromkeys(remarks))


def _negated(exp: Any, test: Any, holder: Any) -> bool | None:
    """Whether a test is under an odd number of NOTs; None if it is inside anything else."""
    negated, node = False, test.parent if test is not holder else holder
    while node is not holder:
        if isinstance(node, exp.Not):
            negated = not negated
        elif not isinstance(node, exp.And | exp.Or | exp.Paren):
            return None
        node = node.parent
    return negated


def _answer(
    exp: Any, side: Any, test: Any, recoding: Recoding, whole_bins: bool, *, negated: bool
) -> Answered:
    """What a comparison covers; ``side`` is the side that holds the column.

    Under NOT the opposite is answered, so NOT age < 65 means age >= 65.
    """
    text = shown_condition(exp, test)
    operator = OPERATORS.get(type(test).__name__)
    if operator is not None:
        on_left = test.this is side
        value = literal(exp, test.expression if on_left else test.this)
        if value is not NO_LITERAL:
            operator = operator if on_left else mirrored(operator)
            operator = opposite(operator) if negated else operator
            return answer_comparison(recoding, operator, value, text, whole_bins=whole_bins)
    elif isinstance(test, exp.Between) and test.this is side and not test.args.get("symmetric"):
        low, high = literal(exp, test.args["low"]), literal(exp, test.args["high"])
        if NO_LITERAL not in (low, high):
            return answer_between(recoding, low, high, text, whole_bins=whole_bins, negated=negated)
    elif isinstance(test, exp.In) and test.this is side and test.expressions:
        values = [literal(exp, one) for one in test.expressions]
        if NO_LITERAL not in values:
            return answer_membership(recoding, values, text, whole_bins=whole_bins, negated=negated)
    raise misused(recoding, text)


def literal(exp: Any, node: Any) -> Any:
    """A text, number, truth value or, as its text, a time written as a literal."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        number = literal(exp, node.this)
        return number.copy_negate() if isinstance(number, Decimal) else NO_LITERAL
    if isinstance(node, exp.Cast) and node.is_type(*_TIMES):
        text = literal(exp, node.this)
        if not isinstance(text, str):
            return NO_LITERAL
        return text.strip()[:10] if node.is_type("date") else text
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    value = node.this if isinstance(node, exp.Literal) else None
    found = value if value is None or node.is_string else as_number(value)
    return NO_LITERAL if found is None else found


def _membership(exp: Any, column: Any, labels: Sequence[str], negated: bool) -> Any:
    """Whether the column has one of these labels; unknown if it is missing."""
    texts = [exp.Literal.string(label) for label in labels]
    if not texts:
        never = exp.EQ if negated else exp.NEQ
        return exp.Paren(this=never(this=column, expression=column.copy()))
    if len(texts) == 1:
        equal = exp.NEQ if negated else exp.EQ
        return exp.Paren(this=equal(this=column, expression=texts[0]))
    inside = exp.In(this=column, expressions=texts)
    return exp.Paren(this=exp.Not(this=inside) if negated else inside)


def shown_condition(exp: Any, node: Any) -> str:
    """A condition as its user may have written it: names are quoted only if they must be."""
    copy = node.copy()
    for name in copy.find_all(exp.Identifier):
        if written_name(str(name.this)) == name.this:
            name.set("quoted", False)
    return _CAST.sub(r"\2 \1", str(copy.sql(dialect=DIALECT)))


def present(exp: Any, node: Any) -> Any:
    """The condition that an expression, or a condition, is not NULL."""
    inner = exp.Paren(this=node.copy())
    return exp.Not(this=exp.Is(this=inner, expression=exp.Null()))


def may_be_unknown(exp: Any, node: Any, known: Mapping[str, Sequence[Value]]) -> bool:
    """Whether a condition may be neither true nor false, as one about a missing value is."""
    missing = {name.lower() for name, values in known.items() if None in values}
    sure = (
        exp.Predicate, exp.Connector, exp.Not, exp.Paren, exp.Neg, exp.Column, exp.Identifier,
        exp.Literal, exp.Boolean,
    )  # fmt: skip
    return any(
        not isinstance(one, sure) or (isinstance(one, exp.Column) and one.name.lower() in missing)
        for one in node.walk()
    )
