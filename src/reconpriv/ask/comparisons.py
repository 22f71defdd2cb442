"""The errors for columns and values that do not exist, with the nearest one that does."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from reconpriv.ask.ordering import first_for_display
from reconpriv.ask.text_codes import code_number, codes_of, looks_numeric
from reconpriv.ask.values import Values
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.messages.nearest import nearest_name, sql_column_hint

Known = Mapping[str, Sequence[Value]]

_COMPARED = 10_000  # values that a typo is compared with
_SHOWN = 8


def unknown_column(name: str, names: Sequence[str]) -> InputError:
    """The error for a column that does not exist, suggesting the nearest one."""
    return InputError(f"The release has no column {name!r}.", hint=sql_column_hint(name, names))


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
    """True if the values of a column are text codes that all look like numbers."""
    return known.numeric_text if isinstance(known, Values) else looks_numeric(known)


def check_distinct(by: Sequence[str]) -> None:
    """Refuse to group by the same thing twice."""
    repeated = [name for i, name in enumerate(by) if name in by[:i]]
    if repeated:
        raise InputError(f"Column {repeated[0]!r} is grouped by twice.")
