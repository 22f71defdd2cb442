"""Bisection: the last number, on the way from one that is inside, of which something is true."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reconpriv.theory.arrays import Flags, Floats


def last_true(inside: float, outside: float, true: Callable[[float], bool]) -> float:
    """The last number from ``inside`` to ``outside`` of which it is true, to the last digit."""
    while (middle := (inside + outside) / 2.0) not in (inside, outside):
        inside, outside = (middle, outside) if true(middle) else (inside, middle)
    return inside


def last_contained(
    inside: Floats, outside: Floats, contained: Callable[[Floats], Flags], steps: int
) -> Floats:
    """The same for each of many numbers, to so many binary places; the end itself if it is in."""
    whole, end = contained(outside), outside
    for _ in range(steps):
        middle = (inside + outside) / 2.0
        good = contained(middle)
        inside, outside = np.where(good, middle, inside), np.where(good, outside, middle)
    return np.where(whole, end, inside)
