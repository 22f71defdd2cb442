"""The ratio attack on differentially private answers (Example 2, section 6.3), in closed form.

Two counts are answered with Laplace noise of scale b = 1/λ; their ratio F' = o'_2/o'_1 estimates
the frequency f = o_2/o_1 of a sensitive value in a group. The tails of F' are exact here.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from reconpriv.errors import PolicyError
from reconpriv.theory.arrays import Floats
from reconpriv.theory.search import last_true


class RatioTails(NamedTuple):
    """Pr[(F'-f)/f > ε] and Pr[(F'-f)/f < -ε]."""

    above: Floats
    below: Floats


def ratio_tails(
    group_size: ArrayLike, frequency: ArrayLike, *, privacy: float, epsilon: float
) -> RatioTails:
    """The exact tails of the ratio of two noisy counts under λ-differential privacy."""
    if not privacy > 0:
        raise PolicyError(f"The privacy level λ must be above 0; got {privacy:g}.")
    if not epsilon > 0:
        raise PolicyError(f"The relative error ε must be above 0; got {epsilon:g}.")
    exceeds = np.vectorize(_ratio_exceeds, otypes=[np.float64])
    size, f = (np.asarray(one, dtype=np.float64) for one in (group_size, frequency))
    above = exceeds(size, size * f, f * (1 + epsilon), 1 / privacy)
    return RatioTails(above, 1.0 - exceeds(size, size * f, f * (1 - epsilon), 1 / privacy))


def smallest_exposed_count(
    frequency: float, *, privacy: float, epsilon: float, delta: float
) -> float:
    """The smallest |g| f at which λ-differential privacy violates (ε, δ)-reconstruction-privacy.

    As the paper defines it in section 6.3: one of the two exact tails is below δ.
    """

    def violated(size: float) -> bool:
        tails = ratio_tails(size, frequency, privacy=privacy, epsilon=epsilon)
        return bool(min(float(tails.above), float(tails.below)) < delta)

    low, high = 0.0, 1.0 / privacy
    while not violated(high):
        low, high = high, high * 2
        if high > 1e12 / privacy:
            return math.inf
    return last_true(high, low, violated) * frequency


def _ratio_exceeds(size: float, count: float, threshold: float, scale: float) -> float:
    """Pr[o'_2/o'_1 > c]: above c times a positive o'_1, or below c times a negative one.

    With Y = o'_2 and X = o'_1 that is ∫_{x>0} g(x) Pr[Y > cx] dx + ∫_{x<0} g(x) Pr[Y < cx] dx,
    g the density of X: a sum of exponentials on each piece between 0, o_1 and o_2/c.
    """
    turn = count / threshold if threshold > 0 else math.inf
    total = 0.0
    cuts = sorted({0.0, size, turn} if math.isfinite(turn) else {0.0, size})
    edges = [-math.inf, *cuts, math.inf]
    for low, high in itertools.pairwise(edges):
        middle = _inside(low, high)
        # g(x) = exp(-|x - o_1| / b) / 2b
        slope = 1 / scale if middle < size else -1 / scale
        start = -slope * size
        # Pr[Y > cx] on the right of 0, Pr[Y < cx] on the left: 1 - e/2 or e/2, as a sum of terms.
        distance = threshold * middle - count
        exceeds = middle > 0
        if (distance > 0) == exceeds:
            terms = [(0.5, *_exponent(distance, threshold, count, scale))]
        else:
            terms = [(1.0, 0.0, 0.0), (-0.5, *_exponent(distance, threshold, count, scale))]
        for factor, rate, offset in terms:
            total += factor / (2 * scale) * _integral(slope + rate, start + offset, low, high)
    return min(max(total, 0.0), 1.0)


def _exponent(distance: float, threshold: float, count: float, scale: float) -> tuple[float, float]:
    """Rate and offset of exp(-|cx - o_2| / b) as exp(rate x + offset)."""
    sign = -1.0 if distance > 0 else 1.0
    return sign * threshold / scale, -sign * count / scale


def _inside(low: float, high: float) -> float:
    if math.isinf(low):
        return high - 1.0
    return low + 1.0 if math.isinf(high) else (low + high) / 2


def _integral(rate: float, offset: float, low: float, high: float) -> float:
    """∫ exp(rate x + offset) dx between two ends, one of which may be infinite."""
    if rate == 0:
        return math.exp(offset) * (high - low)
    ends = [0.0 if math.isinf(x) else math.exp(rate * x + offset) for x in (low, high)]
    return (ends[1] - ends[0]) / rate
