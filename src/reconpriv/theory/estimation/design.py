"""The variance that a published design gives a count query, from the true counts.

This is what the paper says in words after Theorem 7: fewer trials, a larger error. For a value held
by c of the N records of a group that is published from n trials, the variance of the reconstructed
count is

    (α a + β b) / p² + e,   α = r(1-r) - t(1-t),   β = t(1-t),

with a, b and e free of p, so a table is summed once for many retentions. A group that is not
sampled has a = c, b = N, e = 0.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from reconpriv.theory.arrays import Floats, Ints, quotient
from reconpriv.theory.estimation.intervals import ROUNDING
from reconpriv.theory.perturbation import replacement_probability

# E|X| of a normal X is this times its standard deviation.
MEAN_ABSOLUTE = math.sqrt(2.0 / math.pi)


class Spread(NamedTuple):
    """``weight`` W of each group, a = W c/N and b = W; ``extra`` is e of each cell."""

    weight: Floats
    extra: Floats


def mixing(retention: float, domain_size: int, values: Any = 1) -> tuple[Any, Any]:
    """α/p² and β/p²: what a holder adds to the variance of a count, and what every trial has.

    The count is of so many ``values``: a trial is published with one of them with the probability
    t_X = kt, or r_X = p + kt if it holds one.
    """
    t = values * replacement_probability(retention, domain_size)
    r = retention + t
    stray = t * (1.0 - t)
    return (r * (1.0 - r) - stray) / retention**2, stray / retention**2


def trial_variance(frequency: Any, retention: float, domain_size: int, values: Any = 1) -> Floats:
    """v = (α f + β)/p²: the variance of a reconstructed count for each trial."""
    holder, anybody = mixing(retention, domain_size, values)
    return np.asarray(anybody + holder * frequency)


def exact_spread(count: Ints, group: Ints, sizes: Ints, trials: Ints) -> Spread:
    """Systematic sampling and exact scaling (`octave`, `public`): no approximation.

    A quota cn/N is rounded up with probability φ, its fraction. The N mod n copies left over fall
    on trials at random (hypergeometric): π = part(1-part), part the fraction of N/n.
    """
    n = trials.astype(np.float64)
    uneven = uneven_copies(sizes, n)
    size, f = sizes[group], count / sizes[group]
    share = (count * trials[group]) % size / size
    rounding = share * (1.0 - share)
    scale = (sizes / n) ** 2 - uneven / np.maximum(n - 1.0, 1.0)
    extra = rounding * scale[group] + copies_variance(sizes, n)[group] * f * (1.0 - f)
    return Spread(_weight(sizes, n, uneven), extra)


def coin_spread(
    count: Ints, group: Ints, sizes: Ints, trials: Floats, *, systematic: bool
) -> Spread:
    """Algorithm 1 (`paper`): quotas and copies by independent coins; approximate.

    The trials of a group vary around s_g with a variance V: the estimate of a group is a ratio,
    taken to first order, E[1/n] is (1 + V/s²)/s, and the copies are averaged over the two whole
    numbers beside s_g. ``systematic`` is for the bound `exact`, which draws exactly s_g trials.
    """
    low = np.maximum(np.floor(trials), 1.0)
    above = trials - np.floor(trials)
    uneven = (1.0 - above) * uneven_copies(sizes, low) + above * uneven_copies(sizes, low + 1.0)
    f = count / sizes[group]
    quota = count * (trials / sizes)[group]
    share = quota - np.floor(quota)
    rounding = share * (1.0 - share)
    vary = np.zeros(sizes.size)
    if not systematic:
        vary = np.bincount(group, weights=rounding, minlength=sizes.size).astype(np.float64)
        rounding = (1.0 - 2.0 * f) * rounding + f * f * vary[group]
    extra = (uneven * trials)[group] * f + ((sizes / trials) ** 2)[group] * rounding
    fewer = trials / (1.0 + vary / trials**2)
    return Spread(_weight(sizes, fewer, uneven), extra)


class FrequencyVariance(NamedTuple):
    """The variance of F' in each group, as a function of f: level + slope f."""

    level: Floats
    slope: Floats


def frequency_variance(
    sizes: Ints, trials: Floats, *, retention: float, domain_size: int
) -> FrequencyVariance:
    """The variance of each group's F' as far as a release tells it: without the counts.

    As :func:`exact_spread`, but the rounding of a quota counts with its mean over all counts, and
    uneven copies with f instead of f(1-f), as coins make them: slightly too much.
    """
    holder, anybody = mixing(retention, domain_size)
    squares = sizes.astype(np.float64) ** 2
    uneven = uneven_copies(sizes, trials)
    weight = _weight(sizes, trials, uneven) / squares
    rounded = np.where(trials < sizes, ROUNDING / trials**2, 0.0)
    copies = copies_variance(sizes, trials) / squares
    return FrequencyVariance(weight * anybody + rounded, weight * holder + copies)


def uneven_copies(sizes: Ints, trials: Floats) -> Floats:
    """π: the variance of a trial's copies, ⌊N/n⌋ or one more, that turn n trials into N records."""
    part = sizes / trials - np.floor(sizes / trials)
    return np.asarray(part * (1.0 - part))


def copies_variance(sizes: Ints, trials: Floats) -> Floats:
    """π n²/(n-1), times f(1-f): what uneven copies add to the variance of a published count."""
    return np.asarray(uneven_copies(sizes, trials) * trials**2 / np.maximum(trials - 1.0, 1.0))


def _weight(sizes: Ints, trials: Floats, uneven: Floats) -> Floats:
    """W = n ((N/n)² + π): how much the noise of N trials is multiplied, N if n = N."""
    return np.asarray(trials * ((sizes / trials) ** 2 + uneven))


def mean_absolute_error(bias: Floats, variance: Floats) -> Floats:
    """E|X| of a normal X with this mean and variance (folded normal)."""
    from scipy.special import ndtr  # noqa: PLC0415 - slow import

    deviation = np.sqrt(variance)
    ratio = quotient(bias, deviation)
    spread = MEAN_ABSOLUTE * deviation * np.exp(-(ratio**2) / 2.0)
    shift = np.abs(bias) * (1.0 - 2.0 * ndtr(-np.abs(ratio)))
    return np.where(deviation > 0, spread + shift, np.abs(bias))


def group_error(frequency: Floats, trials: Floats, *, retention: float, domain_size: int) -> Floats:
    """E|F' - f| / f of a value in its own group: the adversary's expected relative error.

    From Lemma 1's variance of n trials alone. Rounding and copies would add to it, so it errs on
    the side of the adversary.
    """
    variance = trial_variance(frequency, retention, domain_size) / trials
    return np.asarray(MEAN_ABSOLUTE * np.sqrt(variance) / frequency)
