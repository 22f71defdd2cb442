"""The exact tails of O* = A + B for a few groups, from the masses of both binomials.

An audit shows the tails of its worst groups only. Importing scipy, whose binomial tails serve many
groups at once, would take it longer than all the rest of its mathematics.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reconpriv.theory.arrays import Floats


class Masses(NamedTuple):
    """The probabilities of first, first + 1, …; what lies outside is negligible."""

    first: int
    mass: Floats

    def at_least(self, k: Floats) -> Floats:
        """Pr[X >= k] for whole numbers k, summed from the far end so that small tails are exact."""
        upper = np.append(np.cumsum(self.mass[::-1])[::-1], 0.0)
        return np.asarray(upper[np.clip(k - self.first, 0, self.mass.size).astype(np.int64)])

    def at_most(self, k: Floats) -> Floats:
        """Pr[X <= k] likewise."""
        lower = np.append(0.0, np.cumsum(self.mass))
        return np.asarray(lower[np.clip(k - self.first + 1, 0, self.mass.size).astype(np.int64)])


def binomial(n: int, p: float, reach: float) -> Masses:
    """Bin(n, p) within ``reach`` standard deviations (and 40 more) of its mean.

    Neighbours differ by a known factor, so all follow from the largest; together they are 1.
    """
    mode = min(int((n + 1) * p), n)
    width = reach * np.sqrt(n * p * (1 - p)) + 40.0
    first = max(int(n * p - width), 0)
    last = min(int(np.ceil(n * p + width)), n)
    up, down = np.arange(mode, last), np.arange(mode, first, -1)
    above = np.cumprod((n - up) * p / ((up + 1) * (1 - p)))
    below = np.cumprod(down * (1 - p) / ((n - down + 1) * p))
    mass = np.concatenate([below[::-1], [1.0], above])
    return Masses(first, mass / mass.sum())


def tails_of_few(
    n: Floats,
    holders: Floats,
    highest_low: Floats,
    lowest_high: Floats,
    probabilities: tuple[float, float],
    reach: float,
) -> tuple[Floats, Floats]:
    """Pr[A + B >= lowest_high] and Pr[A + B <= highest_low] of each element.

    A is Bin(holders, r), B is Bin(n - holders, t), and ``probabilities`` are r and t.
    """
    r, t = probabilities
    upper, lower = np.empty_like(n), np.empty_like(n)
    for i in range(n.size):
        a = binomial(int(holders[i]), r, reach)
        b = binomial(int(n[i] - holders[i]), t, reach)
        values = a.first + np.arange(a.mass.size)
        upper[i] = a.mass @ b.at_least(lowest_high[i] - values)
        lower[i] = a.mass @ b.at_most(highest_low[i] - values)
    return upper, lower
