"""The exact tails of F': O* is Bin(n_f, r) + Bin(n - n_f, t), so nothing need be bounded."""

from __future__ import annotations

import numpy as np

from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.counts import ObservedCount
from reconpriv.theory.perturbation import keep_probability

# How far from its mean, in standard deviations (and 40 more, for small counts), a binomial is
# summed: the rest is below 1e-18.
_REACH = 9.0
# Products such as n p f that are whole numbers on paper must count as whole here.
_WHOLE = 1e-9
# Elements of one vectorised evaluation; keeps memory bounded however many groups are asked for.
_CHUNK = 1 << 20


def exact_tails(count: ObservedCount) -> tuple[Floats, Floats]:
    """Pr[(F'-f)/f > ε] and Pr[(F'-f)/f < -ε] for each element.

    If n f is not whole (a sample of a larger group), the holders among the n trials are n f rounded
    down or up with the probabilities that systematic sampling gives them.
    """
    shape = np.shape(count.trials)
    n = np.ravel(count.trials).astype(np.float64)
    f = np.ravel(count.frequency)
    holders = n * f
    below = np.floor(holders + _WHOLE)
    share = np.clip(holders - below, 0.0, 1.0)
    share = np.where(share < _WHOLE, 0.0, share)
    centre = n * (f * count.retention + count.replacement)
    reach = n * np.ravel(count.shift)
    highest_low = np.ceil(centre - reach - _WHOLE) - 1.0
    lowest_high = np.floor(centre + reach + _WHOLE) + 1.0
    upper, lower = _tails_of_sum(n, below, highest_low, lowest_high, count)
    mixed = np.flatnonzero(share > 0)
    if mixed.size:
        more_upper, more_lower = _tails_of_sum(
            n[mixed], below[mixed] + 1, highest_low[mixed], lowest_high[mixed], count
        )
        upper[mixed] += share[mixed] * (more_upper - upper[mixed])
        lower[mixed] += share[mixed] * (more_lower - lower[mixed])
    return upper.reshape(shape), lower.reshape(shape)


def _tails_of_sum(
    n: Floats, holders: Floats, highest_low: Floats, lowest_high: Floats, count: ObservedCount
) -> tuple[Floats, Floats]:
    """Pr[A + B >= lowest_high] and Pr[A + B <= highest_low], summed over A in bounded chunks."""
    r = keep_probability(count.retention, count.domain_size)
    reach = _REACH * np.sqrt(holders * r * (1 - r)) + 40.0
    first = np.maximum(np.floor(holders * r - reach), 0.0)
    last = np.minimum(np.ceil(holders * r + reach), holders)
    widths = (last - first + 1).astype(np.int64)
    upper, lower = np.empty_like(n), np.empty_like(n)
    start = 0
    while start < n.size:
        total = np.cumsum(widths[start:])
        stop = start + max(1, int(np.searchsorted(total, _CHUNK, side="right")))
        part = slice(start, stop)
        upper[part], lower[part] = _sum_chunk(
            n[part],
            holders[part],
            first[part],
            widths[part],
            highest_low[part],
            lowest_high[part],
            (r, count.replacement),
        )
        start = stop
    return upper, lower


def _sum_chunk(
    n: Floats,
    holders: Floats,
    first: Floats,
    widths: Ints,
    highest_low: Floats,
    lowest_high: Floats,
    probabilities: tuple[float, float],
) -> tuple[Floats, Floats]:
    from scipy.special import bdtr, bdtrc, gammaln, xlog1py, xlogy  # noqa: PLC0415 - slow import

    r, t = probabilities
    offsets = np.concatenate(([0], np.cumsum(widths)[:-1]))
    row = np.repeat(np.arange(n.size), widths)
    a = first[row] + (np.arange(row.size) - offsets[row])
    h = holders[row]
    log_mass = (
        gammaln(h + 1) - gammaln(a + 1) - gammaln(h - a + 1) + xlogy(a, r) + xlog1py(h - a, -r)
    )
    mass = np.exp(log_mass)
    others = (n - holders)[row]
    need_high = lowest_high[row] - a
    need_low = highest_low[row] - a
    # Most terms are 0 or 1 to thirty digits, and a binomial tail is expensive: only the others are
    # computed. bdtrc(k, n, t) = Pr[B > k].
    mean = others * t
    reach = _REACH * np.sqrt(mean * (1 - t)) + 40.0
    above = (need_high <= 0).astype(np.float64)
    near = np.flatnonzero((need_high > 0) & (need_high <= np.minimum(others, mean + reach)))
    above[near] = bdtrc(need_high[near] - 1, others[near].astype(np.int64), t)
    at_most = (need_low >= np.minimum(others, mean + reach)).astype(np.float64)
    near = np.flatnonzero((need_low >= 0) & (need_low < np.minimum(others, mean + reach)))
    at_most[near] = bdtr(need_low[near], others[near].astype(np.int64), t)
    return np.add.reduceat(mass * above, offsets), np.add.reduceat(mass * at_most, offsets)
