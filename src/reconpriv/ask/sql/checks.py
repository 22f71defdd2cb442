"""Comparisons of columns with values in SQL, checked before they are evaluated.

A text that does not occur is treated as a typo; a number means the text code that spells it; a
range over text codes, which would be compared letter by letter, is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from reconpriv.ask.comparisons import Known, holds_codes, unknown_value
from reconpriv.ask.ordering import first_for_display
from reconpriv.ask.sql.trees import exp, literal_text
from reconpriv.ask.text_codes import code_number, matching_code, range_refused
from reconpriv.ask.values import Values
from reconpriv.columns.schema import Column, Kind, Schema, Value
from reconpriv.errors import InputError

_LISTED = 2  # codes that an error lists as examples


def settle_comparisons(tree: Any, schema: Schema, known: Known) -> None:
    """Check every comparison in a condition, and write text codes where numbers stand for them."""
    columns = {column.name: column for column in schema.columns}
    _refuse_ranges(tree, columns, known)
    for node in list(tree.find_all(exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In)):
        others = node.expressions if isinstance(node, exp.In) else [node.right, node.left]
        targets = [node.this] if isinstance(node, exp.In) else [node.left, node.right]
        for target in targets:
            named = target.unnest()
            if not isinstance(named, exp.Column):
                continue
            column = columns[named.name]
            for other in others:
                _settle(column, other, known[column.name])


def _refuse_ranges(tree: Any, columns: Mapping[str, Column], known: Known) -> None:
    for node in tree.find_all(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between):
        sides = [node.args.get(name) for name in ("this", "expression", "low", "high")]
        parts = [part for side in sides if side is not None for part in _parts(side)]
        for column in (columns[part.name] for part in parts if isinstance(part, exp.Column)):
            values = known[column.name]
            if column.kind is Kind.STRING and holds_codes(values):
                raise range_refused(column.name, first_for_display(values, _LISTED), values)
            literals = [found for part in parts if (found := literal_text(part)) is not None]
            numbers = [text for text, _ in literals if code_number(text) is not None]
            if column.kind is Kind.STRING and numbers:
                _refuse_mixed(column, values)
            for text, quoted in literals:
                _check_kind(column, text, quoted)


def _refuse_mixed(column: Column, known: Sequence[Value]) -> None:
    """Refuse to compare a number with codes among which there is other text, such as 'unknown'."""
    codes: Sequence[Value] = (
        known.codes
        if isinstance(known, Values)
        else [value for value in known if code_number(value) is not None]
    )
    if len(codes) > 1:
        first = first_for_display(codes, _LISTED)
        raise range_refused(column.name, first, codes, mixed=True)


def _parts(side: Any) -> Iterator[Any]:
    """What is compared: a single expression, or the elements of a row (a, b)."""
    inner = side.unnest()
    if isinstance(inner, exp.Tuple):
        for one in inner.expressions:
            yield from _parts(one)
    else:
        yield inner


def _settle(column: Column, node: Any, known: Sequence[Value]) -> None:
    found = literal_text(node)
    if found is None:
        return
    text, quoted = found
    if column.kind is Kind.STRING and not quoted and holds_codes(known):
        code = matching_code(column.name, Decimal(text), known)
        if code is None:
            raise unknown_value(column.name, text, known)
        node.replace(exp.Literal.string(code))
        return
    _check_kind(column, text, quoted)
    if column.kind is Kind.STRING and text not in known:
        raise unknown_value(column.name, text, known)


def _check_kind(column: Column, text: str, quoted: bool) -> None:
    """Refuse a number for text, and text that is not a number for a number."""
    if column.kind is Kind.STRING and not quoted:
        raise InputError(
            f"Column {column.name!r} holds text; {text} is a number.",
            hint=f"Write '{text}' if the text is meant.",
        )
    if column.kind in (Kind.INTEGER, Kind.NUMBER):
        try:
            Decimal(text)
        except InvalidOperation:
            raise InputError(
                f"Column {column.name!r} holds numbers; {text!r} is not a number."
            ) from None
