"""Names of columns that every engine can tell apart."""

from __future__ import annotations

from collections.abc import Sequence

from reconpriv.errors import InputError

LONGEST_NAME = 10_000


def check_names(names: Sequence[str], shown: str) -> None:
    """Refuse names that SQL cannot tell apart; DuckDB would quietly rename them."""
    seen: dict[str, str] = {}
    for number, name in enumerate(names, start=1):
        if name == "":
            raise InputError(f"Column {number} of {shown} has no name.")
        halves = any("\ud800" <= letter <= "\udfff" for letter in name)  # of surrogate pairs
        if "\0" in name or len(name) > LONGEST_NAME or halves:
            raise InputError(
                f"The name of column {number} of {shown} holds a NUL character, is no text or has"
                f" more than {LONGEST_NAME:,} characters.",
                hint="Rename it.",
            )
        if name.lower() in seen:
            other = seen[name.lower()]
            raise InputError(
                f"There are two columns called {name!r} in {shown}."
                if other == name
                else f"The columns {other!r} and {name!r} of {shown} differ only in case.",
                hint="Rename one of them.",
            )
        seen[name.lower()] = name


def free_name(name: str, taken: Sequence[str]) -> str:
    """A name that none of the taken ones equals, whatever their case."""
    lowered = {other.lower() for other in taken}
    while name in lowered:
        name += "_"
    return name
