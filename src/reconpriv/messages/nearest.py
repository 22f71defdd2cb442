"""The known name that a misspelt one most likely meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# One wrong letter in a name of three is a slip (0.67); "name" for "age" (0.57) is another name.
_ALIKE = 0.65


def nearest_name(asked: str, known: Iterable[str]) -> str | None:
    """The known name that is nearest, whatever its case; None if all are far away."""
    folded: dict[str, str] = {}
    for name in known:
        folded.setdefault(name.lower(), name)
    near = difflib.get_close_matches(asked.lower(), folded, n=1, cutoff=_ALIKE)
    return folded[near[0]] if near else None
