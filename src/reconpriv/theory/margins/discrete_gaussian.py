"""The discrete Gaussian: P(k) proportional to exp(-k²/(2σ²)) on the whole numbers.

Drawn by inverting its distribution function on 128-bit words. The function is a table computed in
decimal arithmetic of 60 digits and rounded to multiples of 2^-128; values with less than 2^-128 of
the probability beyond them are left out. With fewer than 2^24 values, the distribution drawn from
is therefore within 2^-100 (total variation) of the true one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reconpriv.errors import PolicyError
from reconpriv.theory.arrays import Floats, Ints

LARGEST_DEVIATION = 1e5
_DIGITS = 60
_BITS = 128
_LOW = (1 << 64) - 1

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class DiscreteGaussian:
    """The distribution function at -reach, …, reach, times 2^128.

    ``high`` and ``low`` are its upper and lower 64 bits; the last one, which is 1, is left out.
    """

    variance: float
    reach: int
    high: Words
    low: Words

    def draw(self, high: Words, low: Words) -> Ints:
        """The value at each uniform 128-bit word: how many entries of the table do not exceed it.

        The upper 64 bits decide unless they are equal to those of an entry.
        """
        first = np.searchsorted(self.high, high, side="left")
        last = np.searchsorted(self.high, high, side="right")
        for i in np.flatnonzero(first < last).tolist():
            equal = self.low[first[i] : last[i]]
            first[i] += np.searchsorted(equal, low[i], side="right")
        return np.asarray(first - self.reach, dtype=np.int64)

    def probabilities(self) -> Floats:
        """The probability of each of -reach, …, reach, as drawn."""
        bounds = [(int(h) << 64) | int(w) for h, w in zip(self.high, self.low, strict=True)]
        steps = np.diff([0, *bounds, 1 << _BITS])
        return np.array([step / (1 << _BITS) for step in steps.tolist()])


def check_variance(variance: float) -> float:
    """Return σ² unless it is too large for noise to be of any use."""
    deviation = math.sqrt(variance)
    if deviation > LARGEST_DEVIATION:
        raise PolicyError(
            f"Margins would get noise of ±{deviation:,.0f}, too much to be of any use.",
            hint="Choose a larger ε, or fewer tables.",
        )
    return variance


@lru_cache(maxsize=8)
def discrete_gaussian(variance: float) -> DiscreteGaussian:
    """The table for noise of parameter σ² (its variance, but for a tiny σ)."""
    deviation = math.sqrt(check_variance(variance))
    reach = math.ceil(deviation * math.sqrt(2.0 * math.log(2.0) * (_BITS + 2))) + 1
    with localcontext() as context:
        context.prec = _DIGITS
        # exp(-(k+1)²/2σ²) is exp(-k²/2σ²) times an odd power of exp(-1/2σ²).
        ratio = (Decimal(-1) / (2 * Decimal(variance))).exp()
        factor, square = ratio, ratio * ratio
        weights = [Decimal(1)]
        for _ in range(reach):
            weights.append(weights[-1] * factor)
            factor *= square
        total = 2 * sum(weights) - 1
        scale = Decimal(1 << _BITS) / total
        running, bounds = Decimal(0), []
        for k in range(-reach, reach):
            running += weights[abs(k)]
            bounds.append(min(int(running * scale), (1 << _BITS) - 1))
    return DiscreteGaussian(
        variance,
        reach,
        np.array([bound >> 64 for bound in bounds], dtype=np.uint64),
        np.array([bound & _LOW for bound in bounds], dtype=np.uint64),
    )
