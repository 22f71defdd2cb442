"""The likelihood of a scaled group: which number of trials, and which f, fit its counts.

Scaling (Algorithm 1) publishes each of the n = |g1| trials ⌊b'⌋ or ⌊b'⌋+1 times, b' = |g|/n. So a
published count is y = k⌊b'⌋ + e for k trials, e of which got one extra copy; the k sum to n, and
the e to the rest of the group's size. Few n fit many counts at once, and n is near s(f).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconpriv.errors import PolicyError
from reconpriv.policy import Policy
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.reconstruction import constrained_frequencies, observed_mean

# Candidates for f, evenly spaced in its logarithm between 1/m and 1.
_GRID = 800
_ENDLESS = 1 << 40  # records: more than any group has
# Search for f within this many standard deviations of the plain estimate.
_REACH = 5.0
# The adversary's prior on the values other than the most frequent one: their perturbed shares
# are Dirichlet with this parameter, an even but vague prior.
_VAGUE = 0.7
# Each quota is rounded by a coin flip; this is the variance if all fractions are equally likely.
_COIN_VARIANCE = 1.0 / 6.0
_NEGLIGIBLE = 30.0


@dataclass(frozen=True)
class Knowledge:
    """What the adversary knows before looking at a group: policy, domain size, and hence s(f)."""

    policy: Policy
    domain_size: int
    frequency: Floats
    size: Floats

    @classmethod
    def of(cls, policy: Policy, domain_size: int) -> Knowledge:
        """Tabulate the number of trials that the sample size allows for each candidate f."""
        if policy.tail_bound.lattice and policy.sampling.classes is None:
            raise PolicyError(
                f"With the bound {policy.tail_bound.name!r} the number of trials is not a function"
                " of the largest frequency alone, so it cannot be inverted.",
                hint="Choose another bound, such as chernoff.",
            )
        frequency = np.geomspace(1.0 / domain_size, 1.0, _GRID)
        endless = np.full(_GRID, _ENDLESS)
        size = policy.sampling.limits_at(endless, frequency, policy, domain_size)
        return cls(policy, domain_size, frequency, np.maximum(size, 1.0))

    @property
    def share(self) -> Floats:
        """w = pf + t for each candidate f: the share of its value among the trials."""
        p, m = self.policy.retention, self.domain_size
        return observed_mean(self.frequency, 1.0, retention=p, domain_size=m)

    def consistent(self, records: int, trials: int) -> Flags:
        """Which candidates f give a group of this size exactly these trials.

        If margins take some of them away, which give it no fewer.
        """
        most = np.minimum(self.size, records)
        allowed = np.asarray(most == trials if self.policy.margins is None else most >= trials)
        return allowed if allowed.any() else np.ones_like(allowed)


@dataclass(frozen=True)
class Inference:
    """What the adversary concludes about one group."""

    trials: int
    frequency: float
    low: float
    high: float


def infer(
    counts: Ints, known: Knowledge, trials: int | None = None, shares: Floats | None = None
) -> Inference:
    """The best |g1| and f for the published counts of one group (all values of the domain).

    ``trials`` is |g1| if the release publishes it; otherwise it is inferred. ``shares`` are for an
    adversary who knows the perturbed shares pf + t of all other values: a limit, not an attack.
    """
    near = _plausible(counts, known, trials)
    if trials is None:
        candidates, prior = _unknown_trials(counts, known, near)
    else:
        candidates, prior = np.array([trials]), np.zeros((1, near.size))
    fit, top = lattice_fit(counts, candidates, known.domain_size, shares)
    joint = prior + _given_frequency(fit, top, candidates, known.share[near])
    by_frequency, by_trials = _log_sum(joint, 0), _log_sum(joint, 1)
    frequency = known.frequency[near]
    inside = frequency[by_frequency > by_frequency.max() - 2.0]
    return Inference(
        trials=int(candidates[np.argmax(by_trials)]),
        frequency=float(frequency[np.argmax(by_frequency)]),
        low=float(inside.min()),
        high=float(inside.max()),
    )


def _plausible(counts: Ints, known: Knowledge, trials: int | None) -> Ints:
    """The candidates for f that the largest count alone does not rule out."""
    total = int(counts.sum())
    if trials is not None:
        return np.flatnonzero(known.consistent(total, trials))
    share = known.share
    spread = np.sqrt(share * (1 - share) / np.minimum(known.size, total))
    distance = np.abs(counts.max() / total - share) / spread
    near = np.flatnonzero(distance < _REACH)
    return near if near.size else np.array([int(np.argmin(distance))])


def _unknown_trials(counts: Ints, known: Knowledge, near: Ints) -> tuple[Ints, Floats]:
    """Candidates for |g1| and ln Pr[|g1| | f]: s(f) up to the coin flips of Sampling.

    If s(f) is not below the group's size, the group was not sampled: |g1| = |g|.
    """
    total, size = int(counts.sum()), known.size[near]
    spread = _coin_spread(counts, known, float(np.median(np.minimum(size, total))))
    lowest = max(1, int(np.floor(min(float(size.min()), total) - 4 * spread)))
    highest = min(total, int(np.ceil(min(float(size.max()), total) + 4 * spread)))
    candidates = np.arange(min(lowest, total), highest + 1)
    if size.max() >= total and candidates[-1] != total:
        candidates = np.append(candidates, total)
    with np.errstate(invalid="ignore"):
        z = (candidates[:, None] - size[None, :]) / spread
    prior = np.where(size[None, :] < total, -0.5 * z * z - np.log(spread), -np.inf)
    prior[candidates == total] = np.where(size >= total, 0.0, prior[candidates == total])
    return candidates, prior


def _coin_spread(counts: Ints, known: Knowledge, trials: float) -> float:
    """The standard deviation of |g1| about s(f): one coin flip per value that occurs."""
    quota = trials * constrained_frequencies(counts, retention=known.policy.retention)
    coins = np.where(quota < 1, quota * (1 - quota), _COIN_VARIANCE)
    return float(np.sqrt(max(coins.sum(), 0.1)))


def lattice_fit(
    counts: Ints, candidates: Ints, domain_size: int, shares: Floats | None = None
) -> tuple[Floats, Ints]:
    """ln Pr[counts | n, k] for each candidate n and each k trials of the most frequent value.

    Returns one row per candidate; column j stands for k = top + j. The other values' trials are
    summed out: a convolution of what each value allows, restricted to the sum n - k.
    """
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    y = counts[order]
    total = int(y.sum())
    copies = total // candidates
    extra = total - copies * candidates
    least = -(-y[:, None] // (copies + 1))
    most = y[:, None] // copies
    slack = candidates - least.sum(axis=0)
    possible = (least <= most).all(axis=0) & (slack >= 0) & (most.sum(axis=0) >= candidates)
    columns = int(max(slack[possible].max(), 0)) + 1 if possible.any() else 1
    log_factorial = _log_gamma(total + 2, 1.0)
    prior, of_sum = _trial_prior(total + 2, domain_size, None if shares is None else shares[order])
    state, scale = np.zeros((candidates.size, columns)), np.zeros(candidates.size)
    state[:, 0] = 1.0
    for value in range(1, y.size):
        k, choose = _ways(y[value], least[value], most[value], copies, columns, log_factorial)
        state, scale = _convolve(state, scale, choose + prior[value % len(prior)][k])
    k, choose = _ways(y[0], least[0], most[0], copies, columns, log_factorial)
    rest = slack[:, None] - np.arange(k.shape[1])
    inside = (rest >= 0) & (rest < columns) & possible[:, None]
    with np.errstate(divide="ignore"):
        summed = np.log(np.take_along_axis(state, np.where(inside, rest, 0), axis=1))
    others = np.where(inside, candidates[:, None] - k, 0)
    fit = summed + scale[:, None] + choose - _log_choose(candidates, extra, log_factorial)[:, None]
    return np.where(inside, fit + of_sum[others], -np.inf), least[0]


def _trial_prior(
    count: int, domain_size: int, shares: Floats | None
) -> tuple[list[Floats], Floats]:
    """ln of the weight of k trials of each value, and of the factor that goes with their sum.

    Pólya's law, the same for all values, or the multinomial law if their shares are known.
    """
    log_factorial = _log_gamma(count, 1.0)
    if shares is None:
        even = _log_gamma(count, _VAGUE) - log_factorial
        return [even], log_factorial - _log_gamma(count, _VAGUE * (domain_size - 1))
    k = np.arange(count + 1)
    return [k * np.log(w / (1 - shares[0])) - log_factorial for w in shares], log_factorial


def _ways(
    count: int, least: Ints, most: Ints, copies: Ints, columns: int, log_factorial: Floats
) -> tuple[Ints, Floats]:
    """k from its minimum on, and ln C(k, e) with e = y - k⌊b'⌋ trials that got an extra copy."""
    width = min(int(np.maximum(most - least, 0).max()), columns - 1) + 1
    k = least[:, None] + np.arange(width)
    inside = k <= most[:, None]
    k = np.where(inside, k, least[:, None])
    e = np.clip(count - k * copies[:, None], 0, k)
    return k, np.where(inside, _log_choose(k, e, log_factorial), -np.inf)


def _log_choose(n: Ints, k: Ints, log_factorial: Floats) -> Floats:
    return np.asarray(log_factorial[n] - log_factorial[k] - log_factorial[n - k])


def _convolve(state: Floats, scale: Floats, log_weight: Floats) -> tuple[Floats, Floats]:
    """One more value: row-wise convolution, kept in range by one factor per row."""
    largest = log_weight.max(axis=1)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    weight = np.exp(log_weight - largest[:, None])
    result = state * weight[:, :1]
    for shift in range(1, weight.shape[1]):
        result[:, shift:] += state[:, :-shift] * weight[:, shift : shift + 1]
    peak = result.max(axis=1)
    peak = np.where(peak > 0, peak, 1.0)
    return result / peak[:, None], scale + largest + np.log(peak)


def _given_frequency(fit: Floats, top: Ints, candidates: Ints, share: Floats) -> Floats:
    """ln Pr[counts | n, f]: the most frequent value has k ~ Bin(n, w) of the n trials."""
    row, column = np.nonzero(fit > fit.max() - _NEGLIGIBLE)
    result = np.full((candidates.size, share.size), -np.inf)
    if not row.size:
        return np.zeros_like(result)
    n, k = candidates[row], top[row] + column
    log_factorial = _log_gamma(int(candidates.max()) + 2, 1.0)
    log_share, log_rest = np.log(share), np.log1p(-np.minimum(share, 1 - 1e-12))
    terms = (fit[row, column] + _log_choose(n, k, log_factorial))[:, None] + (
        k[:, None] * log_share + (n - k)[:, None] * log_rest
    )
    # np.nonzero works row by row, so the terms of a candidate are adjacent.
    first = np.flatnonzero(np.diff(row, prepend=-1))
    peak = terms.max()
    with np.errstate(divide="ignore"):
        result[row[first]] = peak + np.log(np.add.reduceat(np.exp(terms - peak), first, axis=0))
    return result


def _log_sum(log_terms: Floats, axis: int) -> Floats:
    peak = log_terms.max()
    with np.errstate(divide="ignore"):
        return np.asarray(peak + np.log(np.exp(log_terms - peak).sum(axis=axis)))


def _log_gamma(count: int, offset: float) -> Floats:
    """ln Γ(k + offset) - ln Γ(offset) for k = 0, 1, …: with offset 1 these are ln k!."""
    return np.concatenate(([0.0], np.cumsum(np.log(np.arange(count) + offset))))
