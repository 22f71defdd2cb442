"""Conditions in SQL on recoded columns, rewritten to the labels that stand for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconpriv.ask.bins import LabelTest, answer_test, mirrored, misused, opposite
from reconpriv.ask.sql.trees import NO_LITERAL, OPERATORS, exp, literal, shown_condition
from reconpriv.columns.recoding import Recoding
from reconpriv.columns.schema import Schema, Value


def rewrite_recoded(
    condition: Any, schema: Schema, known: Mapping[str, Sequence[Value]], *, whole_bins: bool
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
        negated = _negated(test, holder)
        answered = _answer(side, test, recoding, whole_bins, negated=bool(negated))
        labels = [label for label in answered.labels if label in known[column.name]]
        told = answered.remark
        if told is not None and negated is None:
            told = f"{shown_condition(test)} is taken as {answered.taken_as}"
        # If a NOT around the test stays in place, what is answered is the opposite of the test.
        test.replace(_membership(column.copy(), labels, answered.negated != bool(negated)))
        if told is not None:
            remarks.append(told)
    return holder.this, tuple(dict.fromkeys(remarks))


def _negated(test: Any, holder: Any) -> bool | None:
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
    side: Any, test: Any, recoding: Recoding, whole_bins: bool, *, negated: bool
) -> LabelTest:
    """What a comparison covers; ``side`` is the side that holds the column.

    Under NOT the opposite is answered, so NOT age < 65 means age >= 65.
    """
    text = shown_condition(test)
    operator, values = OPERATORS.get(type(test).__name__, ""), []
    if operator:
        on_left = test.this is side
        values = [test.expression if on_left else test.this]
        operator = operator if on_left else mirrored(operator)
    elif isinstance(test, exp.Between) and test.this is side and not test.args.get("symmetric"):
        operator, values = "BETWEEN", [test.args["low"], test.args["high"]]
    elif isinstance(test, exp.In) and test.this is side:
        operator, values = "=", test.expressions
    found = [literal(one) for one in values]
    if found and NO_LITERAL not in found:
        operator = opposite(operator) if negated else operator
        return answer_test(recoding, operator, found, text, whole_bins=whole_bins)
    raise misused(recoding, text)


def _membership(column: Any, labels: Sequence[str], negated: bool) -> Any:
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
