"""The likelihood of a scaled group: which number of trials, and which f, fit its counts.

Scaling (Algorithm 1) publishes each of the n = |g1| trials ⌊b'⌋ or ⌊b'⌋+1 times, b' = |g|/n. So a
published count is y = k⌊b'⌋ + e for k trials, e of which got one extra copy; the k sum to n, and
the e to the rest of the group's size. Few n fit many counts at once, and n is near s(f). f is the
largest frequency of an exposed value; a harmless one may be more frequent, and limits nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np

from reconpriv.errors import PolicyError
from reconpriv.policy.exposure import exposed_values
from reconpriv.policy.policy import Policy
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.estimation.reconstruction import (
    constrained_frequencies,
    observed_mean,
    reconstruct_frequency,
)

# Candidates for f, evenly spaced in its logarithm: from 1/m to 1, and below 1/m.
_GRID, _RARE = 800, 200
_ENDLESS = 1 << 40  # records: more than any group has
_ROUNDING = 1e-9
# Search for f within this many standard deviations of the plain estimate.
_REACH = 5.0
# Each quota is rounded by a coin flip; this is the variance if all fractions are equally likely.
_COIN_VARIANCE = 1.0 / 6.0
# The adversary's prior on the values other than the one that is sought: their perturbed shares
# are Dirichlet with this parameter, an even but vague prior.
_VAGUE = 0.7
_NEGLIGIBLE = 30.0  # what is so much less likely than the best is left out, as natural logarithm
_LARGEST = 700.0  # of an exponent


T = TypeVar("T", Ints, Floats)


@dataclass(frozen=True)
class Knowledge:
    """What the adversary knows before looking at a group: policy, domain size, and hence s(f).

    ``size`` is s(f) of a group of any size, for each candidate f; 0 stands for no exposed value.
    """

    policy: Policy
    domain_size: int
    frequency: Floats
    size: Floats

    @classmethod
    def of(cls, policy: Policy, domain_size: int, largest: int = 0) -> Knowledge:
        """Tabulate the number of trials that the sampling rule allows for each candidate f.

        ``largest`` is the size of the largest group.
        """
        if policy.tail_bound.exact and policy.sampling_rule.classes is None:
            raise PolicyError(
                f"With the bound {policy.tail_bound.name!r} the number of trials is not a function"
                " of the largest frequency alone, so it cannot be inverted.",
                hint="Choose another bound, such as chernoff.",
            )
        frequency = np.geomspace(1.0 / domain_size, 1.0, _GRID)
        if policy.harmless:
            # The most frequent value need not be exposed, nor any other.
            ends = 1.0 / max(largest, domain_size), 1.0 / domain_size
            rare = np.geomspace(*ends, _RARE, endpoint=False)
            frequency = np.concatenate([[0.0], rare, frequency])
        return cls(policy, domain_size, frequency, _sizes(frequency, _ENDLESS, policy, domain_size))

    @property
    def share(self) -> Floats:
        """w = pf + t for each candidate f: the share of its value among the trials."""
        p, m = self.policy.retention, self.domain_size
        return observed_mean(self.frequency, 1.0, retention=p, domain_size=m)

    def sizes_in(self, records: int) -> Floats:
        """s(f) of a group of this size: by exact tails it also depends on that."""
        if not self.policy.tail_bound.exact:
            return self.size
        return _sizes(self.frequency, records, self.policy, self.domain_size)

    def consistent(self, records: int, trials: int) -> Flags:
        """Which candidates f give a group of this size exactly these trials.

        If margins take some of them away, which give it no fewer.
        """
        most = np.minimum(self.sizes_in(records), records)
        allowed = np.asarray(most >= trials if self.policy.margins else most == trials)
        if self.policy.harmless:
            allowed &= (self.frequency == 0.0) | (self.frequency >= (1.0 - _ROUNDING) / records)
        return allowed if allowed.any() else np.ones_like(allowed)


def _sizes(frequency: Floats, records: int, policy: Policy, domain_size: int) -> Floats:
    """The trials of groups of this size, by the largest frequency of an exposed value."""
    sizes = np.full(frequency.size, records)
    return np.maximum(policy.sampling_rule.limits_at(sizes, frequency, policy, domain_size), 1.0)


def likely_exposed(counts: Ints, policy: Policy) -> Ints:
    """The value of each group that its published counts show as the most frequent exposed one."""
    if not policy.harmless:
        return np.asarray(counts.argmax(axis=1))
    m, sizes = counts.shape[1], counts.sum(axis=1, keepdims=True)
    found = reconstruct_frequency(counts, sizes, retention=policy.retention, domain_size=m)
    exposed = exposed_values(found, np.arange(m), policy)
    # Where none seems to be exposed, one that could be.
    rank = exposed.astype(np.int64) + ~np.array(policy.harmless_flags)
    return np.asarray((counts + rank * (counts.max(initial=0) + 1)).argmax(axis=1))


def leading(columns: T, values: Ints) -> T:
    """One row per group and one column per value, with the value given for each group first."""
    order = np.argsort(np.arange(columns.shape[1]) != values[:, None], axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


@dataclass(frozen=True)
class Inferences:
    """What the adversary concludes about each group: |g1|, f, and where f may lie."""

    trials: Ints
    frequency: Floats
    low: Floats
    high: Floats


def infer(
    counts: Ints,
    known: Knowledge,
    trials: Ints | None = None,
    shares: Floats | None = None,
    watch: Callable[[float], None] = lambda _: None,
) -> Inferences:
    """The best |g1| and f for the published counts of each group (one column per value).

    f is that of the value in the first column.
    ``trials`` are |g1| if the release publishes them; otherwise they are inferred. ``shares`` are
    for an adversary who knows the perturbed shares pf + t of all other values: a limit, not an
    attack. ``watch`` is told the share of the groups that is done.
    """
    found = np.empty((4, len(counts)))
    for g, own in enumerate(counts):
        told = None if trials is None else int(trials[g])
        found[:, g] = _inferred(own, known, told, None if shares is None else shares[g])
        watch((g + 1) / len(counts))
    return Inferences(found[0].astype(np.int64), *found[1:])


def _inferred(
    counts: Ints, known: Knowledge, told: int | None, shares: Floats | None
) -> tuple[float, float, float, float]:
    """|g1|, f and its range in one group, from the posterior of all pairs of |g1| and f."""
    trials, near, prior = _log_prior(counts, known, told)
    fit, least = count_log_likelihood(counts, trials, shares)
    best = fit.max()
    if np.isfinite(best):  # otherwise nothing fits, and the prior is all there is
        some = fit.max(axis=1) > best - _NEGLIGIBLE
        trials, fit = trials[some], np.where(fit > best - _NEGLIGIBLE, fit, -np.inf)[some]
        share = known.share[near]
        prior = prior[some] + _given_frequency(fit, least, trials, share, counts[0] / counts.sum())
    weight = np.exp(prior - prior.max())
    by_frequency = weight.sum(axis=0)
    inside = np.flatnonzero(by_frequency > by_frequency.max() * np.exp(-2.0))
    found = known.frequency[near][[by_frequency.argmax(), inside[0], inside[-1]]]
    return int(trials[weight.sum(axis=1).argmax()]), *found.tolist()


def _log_prior(counts: Ints, known: Knowledge, told: int | None) -> tuple[Ints, Flags, Floats]:
    """Candidates for |g1|, those for f, and ln Pr[|g1| | f] of each pair, a line for each |g1|.

    |g1| is s(f) up to the coin flips of Sampling. If s(f) is not below the group's size, the group
    was not sampled: |g1| = |g|.
    """
    total = int(counts.sum())
    if told is not None:
        near = known.consistent(total, told)
        return np.array([told]), near, np.zeros((1, np.count_nonzero(near)))
    near = _plausible(counts, known)
    size = known.size[near]
    spread = _coin_spread(counts, known, float(np.median(np.minimum(size, total))))
    lowest = max(1, int(np.floor(min(float(size.min()), total) - 4 * spread)))
    highest = min(total, int(np.ceil(min(float(size.max()), total) + 4 * spread)))
    trials = np.arange(lowest, highest + 1)
    if size.min() >= total:
        trials = np.array([total])
    elif size.max() >= total and highest != total:
        trials = np.append(trials, total)
    distance = (np.where(size < total, size, np.inf) - trials[:, None]) / spread
    prior = -0.5 * distance**2 - np.log(spread)
    prior[np.ix_(trials == total, size >= total)] = 0.0
    return trials, near, prior


def _plausible(counts: Ints, known: Knowledge) -> Flags:
    """The candidates for f that the count of the value alone does not rule out."""
    total = int(counts.sum())
    share = known.share
    spread = np.sqrt(share * (1 - share) / np.minimum(known.size, total))
    distance = np.abs(counts[0] / total - share) / spread
    near = np.asarray(distance < _REACH)
    return near if near.any() else np.asarray(np.arange(near.size) == np.argmin(distance))


def _coin_spread(counts: Ints, known: Knowledge, trials: float) -> float:
    """The standard deviation of |g1| about s(f): one coin flip per value that occurs."""
    quota = trials * constrained_frequencies(counts, retention=known.policy.retention)
    coin_flips = np.where(quota < 1, quota * (1 - quota), _COIN_VARIANCE)
    return float(np.sqrt(max(coin_flips.sum(), 0.1)))


def _given_frequency(fit: Floats, least: int, trials: Ints, share: Floats, likely: float) -> Floats:
    """ln Pr[counts | n, f] for each candidate n (a line) and each candidate f, of ``share`` w.

    The value has k ~ Bin(n, w) of the n trials: (1-w)^n times a polynomial in the odds of w, whose
    terms are taken at the odds of a ``likely`` w first, so that they stay within range.
    """
    w = np.minimum(share, 1 - 1e-12)
    log_odds = np.log(w) - np.log1p(-w)
    usual = float(np.interp(likely, share, log_odds))
    used = np.flatnonzero(np.isfinite(fit).any(axis=0))
    k = least + used
    terms = fit[:, used] + log_choose(trials[:, None], k) + k * usual
    largest = terms.max(axis=1, keepdims=True)
    centre = k[terms.max(axis=0).argmax()]
    powers = np.exp(np.clip((k - centre)[:, None] * (log_odds - usual), -_LARGEST, _LARGEST))
    # Not by BLAS, whose threads would wait for each other: the matrices are small, and many.
    sums = np.log(np.einsum("nk,kf->nf", np.exp(terms - largest), powers))
    moved = largest + centre * (log_odds - usual) + trials[:, None] * np.log1p(-w)
    return np.asarray(sums + moved)


def count_log_likelihood(
    counts: Ints, candidates: Ints, shares: Floats | None = None
) -> tuple[Floats, int]:
    """ln Pr[counts | n, k] for each candidate n and each k trials of the first value.

    Returns a line per candidate; column j stands for k = ``least`` + j, the second result. The
    trials of all other values are summed out: a convolution of what each value allows.
    """
    total = int(counts.sum())
    copies = total // candidates
    least, most = counts[0] // (copies.max() + 1), counts[0] // copies.min()
    fit = np.full((candidates.size, most - least + 1), -np.inf)
    for c in np.unique(copies):
        some = np.flatnonzero(copies == c)
        state, start = _others(counts, int(c), int(candidates[some].max()), shares)
        first = np.arange(-(-counts[0] // (c + 1)), counts[0] // c + 1)
        n = candidates[some][:, None]
        others = n - first
        place = others - start
        inside = (place >= 0) & (place < state.size)
        found = log_choose(first, counts[0] - first * c) - log_choose(n, total % n)
        found = found + _of_sum(np.maximum(others, 0), counts.size, shares)
        found += np.append(state, -np.inf)[np.where(inside, place, -1)]
        fit[np.ix_(some, first - least)] = found
    return fit, int(least)


def _others(counts: Ints, copies: int, most: int, shares: Floats | None) -> tuple[Floats, int]:
    """ln of the weights of all values but the first, by their k from the least sum on, and that.

    A weight is that of the k, times the number of ways to give some of them an extra copy.
    """
    lowest, highest = -(-counts // (copies + 1)), counts // copies
    room, least = most - int(lowest.sum()) + 1, int(lowest[1:].sum())
    if (lowest > highest).any() or room <= 0:  # no number of trials fits
        return np.zeros(0), least
    state, scale = np.ones(1), 0.0
    for value in np.flatnonzero(counts[1:]) + 1:
        k = np.arange(lowest[value], min(highest[value], lowest[value] + room - 1) + 1)
        weight = log_choose(k, counts[value] - k * copies)
        weight += _prior(k, None if shares is None else shares[np.array([0, value])])
        state = np.convolve(state, np.exp(weight - weight.max()))[:room]
        scale += float(weight.max() + np.log(state.max()))
        state /= state.max()
    with np.errstate(divide="ignore"):
        return np.log(state) + scale, least


def _prior(k: Ints, shares: Floats | None) -> Floats:
    """ln of the weight of k trials of a value: Pólya's law, or the multinomial law of its share.

    ``shares`` are those of the value that is sought, and of this one.
    """
    if shares is None:
        return _log_gamma(k, _VAGUE) - _log_gamma(k, 1.0)
    return np.asarray(k * np.log(shares[1] / (1 - shares[0])) - _log_gamma(k, 1.0))


def _of_sum(k: Ints, domain_size: int, shares: Floats | None) -> Floats:
    """ln of the factor that goes with the k of all values but the first together."""
    if shares is not None:
        return _log_gamma(k, 1.0)
    return _log_gamma(k, 1.0) - _log_gamma(k, _VAGUE * (domain_size - 1))


def log_choose(n: Ints, k: Ints) -> Floats:
    """ln C(n, k); k must not be above n."""
    return _log_gamma(n, 1.0) - _log_gamma(k, 1.0) - _log_gamma(n - k, 1.0)


def _log_gamma(k: Ints, offset: float) -> Floats:
    """ln Γ(k + offset) - ln Γ(offset): with offset 1, this is ln k!."""
    return _table(offset, int(k.max(initial=0)).bit_length())[k]


@lru_cache(maxsize=64)
def _table(offset: float, bits: int) -> Floats:
    """The same for k = 0, 1, …, with so many binary digits."""
    return np.concatenate(([0.0], np.cumsum(np.log(np.arange((1 << bits) - 1) + offset))))
