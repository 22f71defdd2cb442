"""The likelihood of a scaled group: which number of trials, and which f, fit its counts.

Few numbers of trials n = |g1| fit many counts at once (count_likelihood.py), and n is near s(f). f
is the largest frequency of an exposed value; a harmless one may be more frequent, and limits
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from reconpriv.attacks.count_likelihood import count_log_likelihood, log_choose, log_gamma
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
# Natural logarithms of how much less likely than the best is left out: pairs of |g1| and k, and
# frequencies f whose s(f) is too far from |g1|.
_NEGLIGIBLE, _EXCLUDED = 30.0, 60.0
# Candidates for |g1| that are judged together, each with every candidate for f.
_TOGETHER = 2_000


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
        """Tabulate the number of trials that the sample size allows for each candidate f.

        ``largest`` is the size of the largest group.
        """
        if policy.tail_bound.exact and policy.sampling.classes is None:
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
    return np.maximum(policy.sampling.limits_at(sizes, frequency, policy, domain_size), 1.0)


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
    groups = len(counts)
    found = Inferences(np.empty(groups, np.int64), *(np.empty(groups) for _ in range(3)))
    # Groups of about the same size are alike, and go together.
    order = np.argsort(counts.sum(axis=1), kind="stable")
    done = 0
    while done < groups:
        guesses, rows = [], 0
        for g in order[done:]:
            guesses.append(_guesses(counts[g], known, None if trials is None else int(trials[g])))
            rows += guesses[-1].trials.size
            if rows >= _TOGETHER:
                break
        here = order[done : done + len(guesses)]
        part = _inferred(counts[here], known, guesses, None if shares is None else shares[here])
        for name in Inferences.__dataclass_fields__:
            getattr(found, name)[here] = getattr(part, name)
        done += here.size
        watch(done / groups)
    return found


@dataclass(frozen=True)
class _Guesses:
    """Candidates for |g1| and f in a group, and the spread of |g1| about s(f); 0 if it is known."""

    trials: Ints
    near: Flags
    spread: float


def _guesses(counts: Ints, known: Knowledge, trials: int | None) -> _Guesses:
    total = int(counts.sum())
    if trials is not None:
        return _Guesses(np.array([trials]), known.consistent(total, trials), 0.0)
    near = _plausible(counts, known)
    size = known.size[near]
    spread = _coin_spread(counts, known, float(np.median(np.minimum(size, total))))
    if size.min() >= total:
        return _Guesses(np.array([total]), near, spread)
    lowest = max(1, int(np.floor(float(size.min()) - 4 * spread)))
    highest = min(total, int(np.ceil(min(float(size.max()), total) + 4 * spread)))
    candidates = np.arange(min(lowest, total), highest + 1)
    if size.max() >= total and candidates[-1] != total:
        candidates = np.append(candidates, total)
    return _Guesses(candidates, near, spread)


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
    coins = np.where(quota < 1, quota * (1 - quota), _COIN_VARIANCE)
    return float(np.sqrt(max(coins.sum(), 0.1)))


def _inferred(
    counts: Ints, known: Knowledge, guesses: list[_Guesses], shares: Floats | None
) -> Inferences:
    """All pairs of |g1| and f at once, for groups of about the same size."""
    groups, grid = len(guesses), known.frequency.size
    group = np.repeat(np.arange(groups), [one.trials.size for one in guesses])
    trials = np.concatenate([one.trials for one in guesses])
    fit = _Fit.of(*count_log_likelihood(counts, group, trials, shares), group, trials)
    prior = fit.log_prior(counts.sum(axis=1), known, guesses)
    # A row leaves out the f that its number of trials all but excludes.
    row, f = np.nonzero(prior > prior.max(axis=1, keepdims=True) - _EXCLUDED)
    share = counts[:, 0] / counts.sum(axis=1)
    joint = prior[row, f] + fit.given_frequency(row, f, known.share, share)
    first = np.flatnonzero(np.diff(row, prepend=-1))
    peak = np.full(groups, -np.inf)
    np.maximum.at(peak, fit.group[row[first]], np.maximum.reduceat(joint, first))
    weight = np.exp(joint - peak[fit.group[row]])
    by_trials = np.bincount(row, weights=weight, minlength=fit.trials.size)
    by_frequency = np.bincount(fit.group[row] * grid + f, weights=weight, minlength=groups * grid)
    by_frequency = by_frequency.reshape(groups, grid)
    best = np.lexsort((fit.trials, -by_trials, fit.group))
    inside = by_frequency > by_frequency.max(axis=1, keepdims=True) * np.exp(-2.0)
    return Inferences(
        trials=fit.trials[best[np.searchsorted(fit.group[best], np.arange(groups))]],
        frequency=known.frequency[by_frequency.argmax(axis=1)],
        low=known.frequency[inside.argmax(axis=1)],
        high=known.frequency[grid - 1 - inside[:, ::-1].argmax(axis=1)],
    )


@dataclass(frozen=True)
class _Fit:
    """Numbers of trials that fit, those with the most ``terms`` (k that fit) first.

    ``log_weight`` is ln Pr[counts | n, k] + ln C(n, k) for k from ``least`` on. ``blank`` are the
    groups that nothing fits: all their candidates are kept, and are equally likely.
    """

    group: Ints
    trials: Ints
    least: Ints
    terms: Ints
    log_weight: Floats
    blank: Flags

    @classmethod
    def of(cls, fit: Floats, top: Ints, group: Ints, trials: Ints) -> _Fit:
        """What is within 30 of the best fit of each group, in natural logarithms."""
        best = np.full(int(group[-1]) + 1, -np.inf)
        np.maximum.at(best, group, fit.max(axis=1))
        blank = np.isneginf(best)
        fit = np.where(blank[group][:, None], 0.0, fit)
        kept = fit > (best - _NEGLIGIBLE)[group][:, None]
        terms = kept.shape[1] - kept[:, ::-1].argmax(axis=1) - kept.argmax(axis=1)
        terms = np.where(kept.any(axis=1), terms, 0)
        rows = np.argsort(-terms, kind="stable")[: np.count_nonzero(terms)]
        first, n, least = kept[rows].argmax(axis=1), trials[rows], top[rows]
        column = first[:, None] + np.arange(int(terms.max()))
        inside = column < (first + terms[rows])[:, None]
        column = np.where(inside, column, 0)
        k = np.where(inside, np.minimum(least[:, None] + column, n[:, None]), 0)
        weight = fit[rows[:, None], column] + log_choose(
            n[:, None], k, log_gamma(int(n.max()) + 2, 1.0)
        )
        weight = np.where(inside & kept[rows[:, None], column], weight, -np.inf)
        return cls(group[rows], n, least + first, terms[rows], weight, blank)

    def log_prior(self, total: Ints, known: Knowledge, guesses: list[_Guesses]) -> Floats:
        """ln Pr[|g1| | f]: s(f) up to the coin flips of Sampling.

        If s(f) is not below the group's size, the group was not sampled: |g1| = |g|.
        """
        near = np.stack([one.near for one in guesses])
        if guesses[0].spread == 0.0:
            return np.where(near, 0.0, -np.inf)[self.group]
        spread = np.array([one.spread for one in guesses])[self.group][:, None]
        sampled = known.size < total[:, None]
        # In place: these are the largest arrays of the attack.
        prior = np.where(near & sampled, known.size, np.inf)[self.group]
        prior -= self.trials[:, None]
        prior /= spread
        prior *= prior
        prior *= -0.5
        prior -= np.log(spread)
        whole = np.flatnonzero(self.trials == total[self.group])
        unlimited = near & ~sampled
        prior[whole] = np.where(unlimited[self.group[whole]], 0.0, prior[whole])
        return prior

    def given_frequency(self, row: Ints, f: Ints, share: Floats, about: Floats) -> Floats:
        """ln Pr[counts | n, f] of rows and candidates f.

        The value has k ~ Bin(n, w) of the n trials: a polynomial in the odds of w,
        summed from the end where its terms do not grow. ``about`` is a likely w of each group.
        """
        w = np.minimum(share, 1 - 1e-12)
        log_odds, log_rest = np.log(w) - np.log1p(-w), np.log1p(-w)
        likely = np.interp(about, share, log_odds)[self.group]
        columns = np.arange(self.log_weight.shape[1])
        log_terms = self.log_weight + (self.least[:, None] + columns) * likely[:, None]
        largest = log_terms.max(axis=1)
        term = np.exp(log_terms - largest[:, None])
        last = np.maximum(self.terms - 1, 0)[:, None]
        backwards = np.take_along_axis(term, np.abs(last - columns), axis=1)
        backwards[columns > last] = 0.0
        both = np.stack([term, backwards], axis=1).reshape(-1, columns.size)
        away = log_odds[f] - likely[row]
        rising = away > 0
        at, ratio = 2 * row + rising, np.exp(-np.abs(away))
        sums = np.zeros(row.size)
        ends = np.searchsorted(-self.terms[row], -columns)
        for column in columns[::-1]:
            some = slice(int(ends[column]))
            sums[some] = sums[some] * ratio[some] + both[at[some], column]
        power = self.least[row] + np.where(rising, last[row, 0], 0)
        with np.errstate(divide="ignore"):
            found = np.log(sums) + largest[row] + self.trials[row] * log_rest[f] + power * away
        return np.where(self.blank[self.group[row]], 0.0, found)
