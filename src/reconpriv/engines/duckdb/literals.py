"""SQL literals."""

from __future__ import annotations


def literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"
