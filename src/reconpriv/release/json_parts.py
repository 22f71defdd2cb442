"""Parts of a manifest as the types they must have; a ValueError if they do not."""

from __future__ import annotations

from typing import Any


def number(value: Any) -> float:
    """A number, but not true or false."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    return value


def count(value: Any) -> int:
    """A whole number from 0 on."""
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise ValueError
    return value
