"""The known name that a misspelt one most likely meant, and the hint that says so."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

# One wrong letter in a name of three is a slip (0.67); "name" for "age" (0.57) is another name.
_ALIKE = 0.65


def nearest_name(asked: str, known: Iterable[str]) -> str | None:
    """The known name that is nearest, whatever its case; None if all are far away."""
    folded: dict[str, str] = {}
    for name in known:
        folded.setdefault(name.lower(), name)
    near = difflib.get_close_matches(asked.lower(), folded, n=1, cutoff=_ALIKE)
    return folded[near[0]] if near else None


def column_hint(asked: str, known: Sequence[str]) -> str:
    """Which column was meant, or all that exist, as they are written in SQL and in lists."""
    near = nearest_name(asked, known)
    if near is None:
        return f"It has: {', '.join(map(_written, known))}." if known else ""
    hint = f"Did you mean {near!r}?"
    if (written := _written(near)) != near:
        hint += f" In SQL and in lists of columns, write {written}, with the double quotes."
    return hint


def _written(name: str) -> str:
    """In double quotes if the name holds commas or quotes, or begins or ends with a space."""
    if name == name.strip() and "," not in name and '"' not in name:
        return name
    return '"' + name.replace('"', '""') + '"'
