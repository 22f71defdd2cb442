"""Comparisons of columns with values, checked before they are evaluated.

A text that does not occur is treated as a typo; a number means the text code that spells it; a
range over text codes, which would be compared letter by letter, is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from reconpriv.errors import InputError
from reconpriv.messages.nearest import nearest_name
from reconpriv.queries.ordering import first_for_display
from reconpriv.queries.text_codes import (
    code_number,
    codes_of,
    looks_numeric,
    matching_code,
    range_refused,
)
from reconpriv.queries.values import Values
from reconpriv.schema import Column, Kind, Schema, Value

Known = Mapping[str, Sequence[Value]]

_COMPARED = 10_000  # values that a typo is compared with
_SHOWN = 8
_LISTED = 2  # codes that an error lists as examples


def unknown_value(column: str, value: Value, known: Sequence[Value]) -> InputError:
    """The error for a value that does not occur, suggesting the nearest one."""
    number = code_number(value)
    if holds_codes(known):
        # Codes are not misspelt like words: only another spelling of the same number is near.
        same = [] if number is None else codes_of(number, known)
        near = same[0] if same else None
    else:
        texts = [str(other) for other in itertools.islice(known, _COMPARED) if other is not None]
        near = nearest_name(str(value), texts)
    first = [str(v) for v in first_for_display(known, _SHOWN + 1) if v is not None]
    few = ", ".join(first[:_SHOWN]) + (", …" if len(first) > _SHOWN else "")
    hint = f"Did you mean {near!r}?" if near else f"Known: {few}."
    return InputError(f"Column {column!r} has no value {value!r}.", hint=hint)


def holds_codes(known: Sequence[Value]) -> bool:
    """Whether the values of a column are text codes that all look like numbers."""
    return known.numeric_text if isinstance(known, Values) else looks_numeric(known)


def settle_comparisons(exp: Any, tree: Any, schema: Schema, known: Known) -> None:
    """Check every comparison in a condition, and write text codes where numbers stand for them."""
    columns = {column.name: column for column in schema.columns}
    _refuse_ranges(exp, tree, columns, known)
    for node in list(tree.find_all(exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In)):
        others = node.expressions if isinstance(node, exp.In) else [node.right, node.left]
        targets = [node.this] if isinstance(node, exp.In) else [node.left, node.right]
        for target in targets:
            named = target.unnest()
            if not isinstance(named, exp.Column):
                continue
            column = columns[named.name]
            for other in others:
                _settle(exp, column, other, known[column.name])


def _refuse_ranges(exp: Any, tree: Any, columns: Mapping[str, Column], known: Known) -> None:
    for node in tree.find_all(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between):
        sides = [node.args.get(name) for name in ("this", "expression", "low", "high")]
        parts = [part for side in sides if side is not None for part in _parts(exp, side)]
        for column in (columns[part.name] for part in parts if isinstance(part, exp.Column)):
            values = known[column.name]
            if column.kind is Kind.STRING and holds_codes(values):
                raise range_refused(column.name, first_for_display(values, _LISTED), values)
            literals = [found for part in parts if (found := _literal(exp, part)) is not None]
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


def _parts(exp: Any, side: Any) -> Iterator[Any]:
    """What is compared: a single expression, or the elements of a row (a, b)."""
    inner = side.unnest()
    if isinstance(inner, exp.Tuple):
        for one in inner.expressions:
            yield from _parts(exp, one)
    else:
        yield inner


def _literal(exp: Any, node: Any) -> tuple[str, bool] | None:
    """A literal's text, with its sign, and whether it is quoted; None for anything else."""
    inner = node.unnest()
    if isinstance(inner, exp.Neg):
        found = _literal(exp, inner.this)
        return None if found is None or found[1] else (f"-{found[0]}", False)
    return (str(inner.this), bool(inner.is_string)) if isinstance(inner, exp.Literal) else None


def _settle(exp: Any, column: Column, node: Any, known: Sequence[Value]) -> None:
    literal = _literal(exp, node)
    if literal is None:
        return
    text, quoted = literal
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
