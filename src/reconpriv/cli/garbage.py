"""Commands seldom search for garbage: what they import stays, and numbers are in arrays."""

from __future__ import annotations

import gc

# New objects between two searches; Python's default is some hundreds, 200 searches for an audit.
_OBJECTS = 100_000


def search_seldom() -> None:
    """Search for garbage only where there may be some."""
    gc.set_threshold(_OBJECTS)
