"""The known name that a misspelt one most likely meant, and the hint that says so."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence

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
    """Which column was meant, or all that exist, as they are written in a list of columns."""
    return _hint(asked, known, in_list, "a list of columns")


def sql_column_hint(asked: str, known: Sequence[str]) -> str:
    """The same as they are written in SQL."""
    return _hint(asked, known, _in_sql, "SQL")


def _hint(asked: str, known: Sequence[str], written: Callable[[str], str], where: str) -> str:
    near = nearest_name(asked, known)
    if near is None:
        return f"It has: {', '.join(map(written, known))}." if known else ""
    hint = f"Did you mean {near!r}?"
    if written(near) != near:
        hint += f" In {where}, write {written(near)}, with the double quotes."
    return hint


def in_list(name: str, more: str = "") -> str:
    """In double quotes if it holds commas, quotes or ``more``, or has a space at an end."""
    return name if name == name.strip() and not set(name) & {",", '"', *more} else quoted(name)


def _in_sql(name: str) -> str:
    """In double quotes unless the name is made of letters, digits and _."""
    return name if re.fullmatch(r"[^\W\d]\w*", name) else quoted(name)


def quoted(name: str) -> str:
    """A name in double quotes, with any in it doubled."""
    return '"' + name.replace('"', '""') + '"'
