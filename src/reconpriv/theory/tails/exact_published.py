"""The exact tails of F' from published counts, in which trials have unequal numbers of copies.

A sampled group of |g| records has n trials. Each is published ⌊|g|/n⌋ times, and |g| mod n of them,
drawn at random, once more. So the published count of a value is ⌊|g|/n⌋ O* + H, where H, the number
of its trials with one more copy, is hypergeometric. Where O* is close to the limit of a tail, H can
move the published estimate across it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.counts import counts_beyond, rounded_holders
from reconpriv.theory.perturbation import keep_probability, replacement_probability

_KEPT = 64


def published_tails(
    size: int | Ints,
    trials: int,
    counts: Ints,
    *,
    retention: float,
    domain_size: int,
    epsilon: float,
) -> tuple[Floats, Floats]:
    """Pr[(F'-f)/f > ε] and Pr[(F'-f)/f < -ε] for values held by ``counts`` of the records."""
    sizes = np.broadcast_to(np.asarray(size, dtype=np.int64), counts.shape)
    whole, share = rounded_holders(trials * counts / sizes)
    below = whole.astype(np.int64)
    above = np.minimum(below + 1, trials)
    observed = observed_by_holders(trials, retention, domain_size)
    fewer = np.concatenate([np.zeros((trials + 1, 1)), np.cumsum(observed, axis=1)], axis=1)

    def mixed(by_holders: Floats, some: Ints, trial: Ints) -> Floats:
        low, high = by_holders[below[some], trial], by_holders[above[some], trial]
        return np.asarray(low + share[some] * (high - low))

    def chance_below(limit: Ints, some: Ints, more: int) -> Floats:
        """The probability that a published count is below this: H decides for a few O* only."""
        extra, copies = extra_copies(trials, more), sizes[some] // trials
        trial = np.clip((limit - more - 1) // copies + 1, 0, trials + 1)
        total = mixed(fewer, some, trial)
        while (unsure := np.flatnonzero((trial <= trials) & (copies * trial < limit))).size:
            now = trial[unsure]
            need = np.minimum(limit[unsure] - copies[unsure] * now, more + 1)
            total[unsure] += mixed(observed, some[unsure], now) * extra[now, need]
            trial = trial + 1
        return total

    lowest_high, highest_low = published_limits(sizes, counts, retention, domain_size, epsilon)
    upper, lower = np.empty(counts.size), np.empty(counts.size)
    for more in np.unique(sizes % trials).tolist():
        some = np.flatnonzero(sizes % trials == more)
        upper[some] = 1.0 - chance_below(lowest_high[some], some, more)
        lower[some] = chance_below(highest_low[some] + 1, some, more)
    return upper, lower


def published_limits(
    sizes: Ints, counts: Ints, retention: float, domain_size: int, epsilon: float
) -> tuple[Ints, Ints]:
    """The lowest published count that is too high, and the highest that is too low."""
    centre = retention * counts + sizes * replacement_probability(retention, domain_size)
    reach: Floats = np.asarray(epsilon * retention * counts, dtype=np.float64)
    high, low = counts_beyond(centre, reach)
    return high.astype(np.int64), low.astype(np.int64)


@lru_cache(_KEPT)
def observed_by_holders(trials: int, retention: float, domain_size: int) -> Floats:
    """Pr[O* = x] in row j, if j of the trials hold the value: Bin(j, r) + Bin(n - j, t)."""
    kept = _binomials(trials, keep_probability(retention, domain_size))
    drawn = _binomials(trials, replacement_probability(retention, domain_size))
    rows = [
        np.convolve(kept[j, : j + 1], drawn[trials - j, : trials - j + 1])
        for j in range(trials + 1)
    ]
    return np.stack(rows)


@lru_cache(_KEPT)
def extra_copies(trials: int, more: int) -> Floats:
    """Pr[H < h] in row x and column h, if x of the trials have the value and ``more`` are drawn."""
    from scipy.special import gammaln  # noqa: PLC0415 - slow import

    x, h = np.meshgrid(np.arange(trials + 1), np.arange(more + 1), indexing="ij")
    possible = (h <= x) & (more - h <= trials - x)

    def log_choose(n: Ints, k: Ints) -> Floats:
        return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))

    mass = np.zeros(x.shape)
    x, h = x[possible], h[possible]
    mass[possible] = np.exp(
        log_choose(x, h)
        + log_choose(trials - x, more - h)
        - log_choose(np.array(trials), np.array(more))
    )
    return np.concatenate([np.zeros((trials + 1, 1)), np.cumsum(mass, axis=1)], axis=1)


def _binomials(trials: int, probability: float) -> Floats:
    """Pr[Bin(j, q) = x] in row j, by the rule of Pascal's triangle."""
    rows = np.zeros((trials + 1, trials + 1))
    rows[0, 0] = 1.0
    for j in range(1, trials + 1):
        rows[j] = (1.0 - probability) * rows[j - 1]
        rows[j, 1:] += probability * rows[j - 1, :-1]
    return rows
