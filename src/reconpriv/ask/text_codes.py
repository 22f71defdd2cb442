"""Text that looks like numbers: which columns hold such codes, and which code a number means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

from reconpriv.ask.sql.text import written_name
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.messages.remedies import Control, Remedy, either

# An optional sign, digits, perhaps digits after a point. No exponent, no blanks, no separators.
PATTERN = r"[+-]?[0-9]+(\.[0-9]+)?"
_NUMBER = re.compile(PATTERN)


def code_number(text: Value) -> Decimal | None:
    """The number that a text code spells; None if it does not spell one."""
    return Decimal(text) if isinstance(text, str) and _NUMBER.fullmatch(text) else None


def looks_numeric(values: Iterable[Value]) -> bool:
    """True if values are text codes: all of them, except missing ones, spell numbers."""
    present = [value for value in values if value is not None]
    return bool(present) and all(code_number(value) is not None for value in present)


def codes_of(number: Decimal, known: Iterable[Value]) -> list[str]:
    """The text codes that spell a number: '21' and '021' both spell 21."""
    return [value for value in known if code_number(value) == number]


def matching_code(column: str, number: Decimal, known: Iterable[Value]) -> str | None:
    """The one text code that a number means; an error if several spell it."""
    found = codes_of(number, known)
    if len(found) > 1:
        shown = ", ".join(repr(code) for code in found)
        raise InputError(
            f"Column {column!r} holds text, and {number:f} may mean {shown}.",
            hint=f"Write the one you mean in quotes, for example {found[0]!r}.",
        )
    return found[0] if found else None


def range_refused(
    column: str, first: Sequence[Value], known: Iterable[Value], *, mixed: bool = False
) -> InputError:
    """The error for a range over text codes, which would be compared letter by letter.

    ``mixed`` means that the column also holds text that spells no number, such as 'unknown'.
    """
    few = ", ".join(repr(value) for value in first if value is not None)
    name = written_name(column)
    kind = "DOUBLE" if any("." in value for value in known if value is not None) else "BIGINT"
    cast, what = ("TRY_CAST", "numbers and other text") if mixed else ("CAST", "numbers as text")
    return InputError(
        f"Column {column!r} holds {what}, so a range would put '10' before '9'.",
        hint=either(
            f"list the codes you mean ({name} IN ({few}, …))",
            Remedy(
                "ask the publisher to publish the column as a number",
                Control.SQL,
                f"SELECT * REPLACE ({cast}({name} AS {kind}) AS {name}) FROM input",
            ),
        ),
    )
