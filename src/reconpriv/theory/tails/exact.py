"""The exact tails of F': O* is Bin(n_f, r) + Bin(n - n_f, t), so nothing need be bounded."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.counts import ObservedCount, counts_beyond, rounded_holders
from reconpriv.theory.perturbation import keep_probability, replacement_probability

# How far from its mean, in standard deviations (and 40 more, for small counts), a binomial is
# summed: the rest is below 1e-18.
_REACH = 9.0
# Elements of one vectorised evaluation; keeps memory bounded however many groups are asked for.
_CHUNK = 1 << 20
# Distributions of up to this many trials are made once for each p. Few of these tables are kept.
MOST_TABLED = 100
_TABLES = 2


@dataclass(frozen=True)
class _Limits:
    """Whole numbers of trials, of holders among them, and the counts that are too low or too high.

    If n f is not whole (a sample of a larger group), the holders among the n trials are n f rounded
    down or up: with the probability ``share`` that systematic sampling gives it, one more than
    ``below``.
    """

    n: Floats
    below: Floats
    share: Floats
    highest_low: Floats
    lowest_high: Floats

    def take(self, some: Any) -> _Limits:
        return _Limits(*(getattr(self, field.name)[some] for field in fields(self)))

    @classmethod
    def of(cls, count: ObservedCount) -> _Limits:
        n = np.ravel(count.trials).astype(np.float64)
        f = np.ravel(count.frequency)
        centre = n * (f * count.retention + count.replacement)
        lowest_high, highest_low = counts_beyond(centre, n * np.ravel(count.shift))
        return cls(n, *rounded_holders(n * f), highest_low, lowest_high)


def exact_tails(count: ObservedCount, *, few: bool = False) -> tuple[Floats, Floats]:
    """Pr[(F'-f)/f > ε] and Pr[(F'-f)/f < -ε] for each element.

    ``few`` takes elements one by one, without scipy. The last digits differ, so what decides about
    a group never uses it: a group's fate must not depend on how many others are decided with it.
    """
    shape, at = np.shape(count.trials), _Limits.of(count)
    tails = _tails_of_few if few else _tails_of_sum
    upper, lower = tails(at.n, at.below, at.highest_low, at.lowest_high, count)
    mixed = np.flatnonzero(at.share > 0)
    if mixed.size:
        more_upper, more_lower = tails(
            at.n[mixed], at.below[mixed] + 1, at.highest_low[mixed], at.lowest_high[mixed], count
        )
        upper[mixed] += at.share[mixed] * (more_upper - upper[mixed])
        lower[mixed] += at.share[mixed] * (more_lower - lower[mixed])
    return upper.reshape(shape), lower.reshape(shape)


def tabled_tails(count: ObservedCount) -> tuple[Floats, Floats]:
    """The exact tails of few trials, looked up: for many elements of one p."""
    at = _Limits.of(count)
    n = at.n.astype(np.int64)
    low = np.clip(at.highest_low + 1, 0, n + 1).astype(np.int64)
    high = np.clip(at.lowest_high, 0, n + 1).astype(np.int64)
    return 1.0 - _chance_below(at, count, high), _chance_below(at, count, low)


def tabled_masses(count: ObservedCount) -> Floats:
    """Pr[O* = k] for each element with few trials, a column per k."""
    at = _Limits.of(count)
    limits = np.arange(int(at.n.max(initial=0)) + 2)
    return np.diff(_chance_below(at.take(np.s_[:, None]), count, limits), axis=1)


def _chance_below(at: _Limits, count: ObservedCount, limit: Ints) -> Floats:
    """Pr[O* < limit], from a table."""
    table = _cumulative(count.retention, count.domain_size)
    n, below = at.n.astype(np.int64), at.below.astype(np.int64)
    # Nobody is rounded up beyond the trials; where the share is 0 it makes no difference.
    less, more = table[n, below, limit], table[n, np.minimum(below + 1, n), limit]
    return np.asarray(less + at.share * (more - less))


@lru_cache(_TABLES)
def _cumulative(retention: float, domain_size: int) -> Floats:
    """Pr[O* < k] for every number of trials, holders and k up to a limit, one trial at a time."""
    most = MOST_TABLED
    r = keep_probability(retention, domain_size)
    t = replacement_probability(retention, domain_size)
    table = np.zeros((most + 1, most + 1, most + 2))
    table[0, 0, 1] = 1.0
    for n in range(most):
        # Shifted by one place, so that the sum up to a place is the chance of fewer.
        for rows, new, chance in ((slice(n + 1), slice(n + 1), t), (n, n + 1, r)):
            old = table[n, rows]
            table[n + 1, new] = old * (1.0 - chance)
            table[n + 1, new, ..., 1:] += old[..., :-1] * chance
    return np.asarray(np.cumsum(table, axis=2))


def _tails_of_few(
    n: Floats, holders: Floats, highest_low: Floats, lowest_high: Floats, count: ObservedCount
) -> tuple[Floats, Floats]:
    """The same as below for a few elements, from the masses of both binomials.

    An audit shows the tails of its worst groups only. Importing scipy would take it longer than all
    the rest of its mathematics.
    """
    r, t = keep_probability(count.retention, count.domain_size), count.replacement
    upper, lower = np.empty_like(n), np.empty_like(n)
    for i in range(n.size):
        first, mass = _binomial(int(holders[i]), r)
        least, others = _binomial(int(n[i] - holders[i]), t)
        # Both sums start at the far end, so that small tails are exact.
        at_least = np.append(np.cumsum(others[::-1])[::-1], 0.0)
        at_most = np.append(0.0, np.cumsum(others))
        sums = first + np.arange(mass.size) + least
        high = np.clip(lowest_high[i] - sums, 0, others.size).astype(np.int64)
        low = np.clip(highest_low[i] - sums + 1, 0, others.size).astype(np.int64)
        upper[i], lower[i] = mass @ at_least[high], mass @ at_most[low]
    return upper, lower


def _binomial(n: int, p: float) -> tuple[int, Floats]:
    """The first count of Bin(n, p) within reach of its mean, and the masses from there on.

    Neighbours differ by a known factor, so all follow from the largest; together they are 1.
    """
    mode = min(int((n + 1) * p), n)
    width = _REACH * np.sqrt(n * p * (1 - p)) + 40.0
    first = max(int(n * p - width), 0)
    last = min(int(np.ceil(n * p + width)), n)
    up, down = np.arange(mode, last), np.arange(mode, first, -1)
    above = np.cumprod((n - up) * p / ((up + 1) * (1 - p)))
    below = np.cumprod(down * (1 - p) / ((n - down + 1) * p))
    mass = np.concatenate([below[::-1], [1.0], above])
    return first, mass / mass.sum()


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
