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
from reconpriv.theory.perturbation import keep_probability, replacement_probability

_WHOLE = 1e-9
_KEPT = 64


def published_tails(
    size: int,
    trials: int,
    counts: Ints,
    *,
    retention: float,
    domain_size: int,
    epsilon: float,
) -> tuple[Floats, Floats]:
    """Pr[(F'-f)/f > ε] and Pr[(F'-f)/f < -ε] for values held by ``counts`` of the records."""
    copies, more = divmod(size, trials)
    holders = trials * counts / size
    below = np.floor(holders + _WHOLE).astype(np.int64)
    share = np.clip(holders - below, 0.0, 1.0)
    share = np.where(share < _WHOLE, 0.0, share)
    by_holders = observed_by_holders(trials, retention, domain_size)
    above = np.minimum(below + 1, trials)
    observed = (1.0 - share)[:, None] * by_holders[below] + share[:, None] * by_holders[above]
    centre = retention * counts + size * replacement_probability(retention, domain_size)
    reach = epsilon * retention * counts
    lowest_high = np.floor(centre + reach + _WHOLE) + 1.0
    highest_low = np.ceil(centre - reach - _WHOLE) - 1.0
    extra = extra_copies(trials, more)
    trial = np.arange(trials + 1)
    # Pr[H >= h] and Pr[H <= h] for the h that each number of trials needs.
    need_high = (lowest_high[:, None] - copies * trial).clip(0, more + 1).astype(np.int64)
    need_low = (highest_low[:, None] - copies * trial).clip(-1, more).astype(np.int64)
    upper = (observed * (1.0 - extra[trial, need_high])).sum(axis=1)
    lower = (observed * extra[trial, need_low + 1]).sum(axis=1)
    return upper, lower


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
