"""The best estimate of a group from its records and the margins together.

Generalised least squares (theory.margins) with the true variances, which is more than an adversary
knows: no linear unbiased estimate of one value from its own margins does better. With D the count
that the records of a group give, of variance V, and R what the margins and all other groups say
about it, of variance 1/k, it is (D + V k R)/(1 + V k), of variance V/(1 + V k).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable, Publication, count_of
from reconpriv.estimate.measurements import Measurements
from reconpriv.policy.exposure import largest_exposed
from reconpriv.policy.sampling_rules import sample_limits
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.counts import rounded_holders
from reconpriv.theory.estimation.design import exact_spread, trial_variance
from reconpriv.theory.estimation.reconstruction import reconstruct_count
from reconpriv.theory.margins.row_spectrum import between_rows, precision_of, without_itself
from reconpriv.theory.perturbation import keep_probability, replacement_probability

# Products that are whole on paper must count as whole here.
WHOLE = 1e-9
# From so many trials on, the tails of a count are those of a normal distribution.
_MANY = 1_000


@dataclass(frozen=True)
class BestEstimates:
    """Some groups of one publication, each with one value: what is known and what is estimated.

    ``alone`` and ``combined`` are frequencies, from records and with margins; ``truth`` is f.
    ``variance`` is that of the count from records, ``information`` k: how much margins tell.
    """

    groups: Ints
    sizes: Ints
    trials: Ints
    truth: Floats
    alone: Floats
    combined: Floats
    variance: Floats
    information: Floats
    retention: float
    domain_size: int

    @property
    def without_margins(self) -> BestEstimates:
        """The same groups for an adversary who has the records alone."""
        nothing = np.zeros_like(self.information)
        return replace(self, combined=self.alone, information=nothing)

    @property
    def combined_variance(self) -> Floats:
        """V/(1 + V k), of a count."""
        return np.asarray(self.variance / (1.0 + self.variance * self.information))

    @property
    def worth(self) -> Floats:
        """N² v k: how many trials margins are worth about each group."""
        squares = self.sizes.astype(np.float64) ** 2
        one_trial = trial_variance(self.truth, self.retention, self.domain_size)
        return np.asarray(squares * one_trial * self.information)

    @property
    def effective_trials(self) -> Floats:
        """A group's own trials and those that margins are worth."""
        return np.asarray(self.trials + self.worth)


def best_estimates(
    target: AttackedTable, published: Publication, groups: Ints, values: Ints
) -> BestEstimates:
    """Estimate the frequency of one value in each of some groups; without margins by Lemma 1.

    The publication is that of the whole table: a margin tells about a group through all the others.
    """
    cube, sizes = published.cube, target.batch.sizes
    margins = published.measurements
    alone, combined, truth, own, told = (np.zeros(groups.size) for _ in range(5))
    for value in np.unique(values).tolist():
        found = _estimated(target, published, margins, value)
        wanted = np.flatnonzero(values == value)
        some = groups[wanted]
        truth[wanted] = count_of(target.raw, np.full(sizes.size, value))[some] / sizes[some]
        own[wanted] = found.variance[some]
        alone[wanted] = found.alone[some] / cube.records[some]
        combined[wanted] = found.combined[some] / cube.records[some]
        rows = between_rows(margins.incidence(cube).rows[some], found.precision)[0]
        told[wanted] = without_itself(rows, found.variance[some])
    return BestEstimates(
        groups, sizes[groups], cube.trials[groups].astype(np.int64), truth, alone, combined, own,
        told, published.policy.retention, target.schema.domain_size,
    )  # fmt: skip


def estimated_counts(
    target: AttackedTable, published: Publication, values: Iterable[int]
) -> dict[int, EstimatedCounts]:
    """The counts of some values in every group: from its records, and with margins."""
    margins = published.measurements
    return {value: _estimated(target, published, margins, value) for value in values}


def best_guesses(target: AttackedTable, published: Publication) -> Ints:
    """The value with the largest estimate in every group, from records and margins together."""
    margins, values = published.measurements, range(target.schema.domain_size)
    found = [_estimated(target, published, margins, value).combined for value in values]
    return np.asarray(np.argmax(found, axis=0))


@dataclass(frozen=True)
class EstimatedCounts:
    """One value in every group: D, V, the best estimate, and Q^-1 of the rows of margins."""

    alone: Floats
    variance: Floats
    combined: Floats
    precision: Floats


def _estimated(
    target: AttackedTable, published: Publication, margins: Measurements, value: int
) -> EstimatedCounts:
    cube, policy, m = published.cube, published.policy, target.schema.domain_size
    sizes, asked = target.batch.sizes, np.full(cube.groups, value)
    count = count_of(target.raw, asked)
    spread = exact_spread(count, np.arange(cube.groups), sizes, cube.trials.astype(np.int64))
    estimate = reconstruct_count(
        count_of(cube, asked), cube.records, retention=policy.retention, domain_size=m
    )
    one_trial = trial_variance(count / sizes, policy.retention, m)
    variance: Floats = spread.weight * one_trial + spread.extra
    rows = margins.incidence(cube)
    precision = precision_of(rows.pairs(variance), margins.noise(1))
    moved = rows.spread(precision @ margins.distance[:, value])
    combined = np.asarray(estimate + variance * moved)
    return EstimatedCounts(estimate, variance, combined, precision)


def limits_of(target: AttackedTable, published: Publication, groups: Ints) -> Floats:
    """The trials that the sampling rule allows each group, margins included."""
    return sample_limits(target.batch, published.policy, target.schema.domain_size)[groups]


def over_limit(target: AttackedTable, published: Publication, groups: Ints) -> Flags | None:
    """Which groups have more trials than margins leave them, as the publisher counts margins.

    None if the sampling rule does not count margins. A group of which not even one trial is allowed
    has one nevertheless, if the policy says so, and is not counted here.
    """
    if not (published.tables and published.policy.sampling_rule.counts_margins):
        return None
    allowed = published.counted.lowered(target.batch, np.zeros(0))[groups]
    return _more_than(allowed, published, groups)


def truly_over_limit(
    target: AttackedTable, published: Publication, found: BestEstimates
) -> Flags | None:
    """The same with what margins are truly worth about the value that was estimated."""
    policy, m = published.policy, target.schema.domain_size
    if not policy.sampling_rule.counts_margins or policy.sampling_rule.classes is None:
        return None
    # Exact tails have a limit by class, a bound has one for every frequency.
    classes = found.truth
    if policy.tail_bound.exact:
        largest = largest_exposed(target.batch, policy)[found.groups]
        classes = policy.sampling_rule.classes(largest, policy)
    allowed = policy.sampling_rule.limits_of_classes(found.sizes, classes, policy, m, found.worth)
    return _more_than(allowed, published, found.groups)


def _more_than(allowed: Floats, published: Publication, groups: Ints) -> Flags:
    trials = published.cube.trials[groups]
    return np.asarray((trials > np.maximum(allowed, 1.0) + WHOLE) & np.isfinite(allowed))


def normal_share(found: BestEstimates, tolerance: float) -> Floats:
    """Pr[the combined estimate is within the tolerance], if it is normal."""
    return within_reach(tolerance * found.truth * found.sizes, found.combined_variance)


def within_reach(reach: Floats, variance: Floats) -> Floats:
    """Pr[a normal error of this variance is at most ``reach``, in either direction]."""
    from scipy.special import erf  # noqa: PLC0415 - slow import

    return np.asarray(erf(reach / np.sqrt(2.0 * variance)))


def combined_share(found: BestEstimates, tolerance: float) -> Floats:
    """Pr[the combined estimate is within the tolerance]."""
    upper, lower = combined_outside(found, tolerance)
    return np.asarray(1.0 - upper - lower)


def combined_outside(found: BestEstimates, tolerance: float) -> tuple[Floats, Floats]:
    """Pr[the combined estimate is too high] and Pr[it is too low], beyond the tolerance.

    Exact in the group's trials, normal in the rest. The error is ((D - c) + V k (R - c))/(1 + V k).
    D takes few values where there are few trials, so that a normal distribution would be off; R is
    a sum over many groups and noises.
    """
    upper = (1.0 - normal_share(found, tolerance)) / 2.0
    lower = upper.copy()
    # Without extra copies, the counts of many trials are quickly listed.
    few = np.flatnonzero((found.trials <= _MANY) | (found.sizes == found.trials))
    holders = np.rint(found.truth * found.sizes).astype(np.int64)
    alike, where = np.unique(
        np.stack([found.trials, found.sizes, holders])[:, few], axis=1, return_inverse=True
    )
    inside = few[np.argsort(where.reshape(-1), kind="stable")]
    ends = np.cumsum(np.bincount(where.reshape(-1), minlength=alike.shape[1]))
    for (trials, size, held), some in zip(
        alike.T.tolist(), np.split(inside, ends[:-1]), strict=True
    ):
        observed, chance = published_counts(trials, size, held, found.retention, found.domain_size)
        count = reconstruct_count(
            observed, size, retention=found.retention, domain_size=found.domain_size
        )
        shrink = 1.0 + found.variance[some] * found.information[some]
        spread = found.variance[some] * np.sqrt(found.information[some])
        reach = tolerance * held * shrink
        upper[some] = _beyond(count - held, chance, reach, spread)
        lower[some] = _beyond(held - count, chance, reach, spread)
    return upper, lower


def _beyond(error: Floats, chance: Floats, reach: Floats, spread: Floats) -> Floats:
    """Pr[X + spread·Z > reach] for X with these values and a standard normal Z, by spread."""
    from scipy.special import ndtr  # noqa: PLC0415

    past = error - reach[:, None]
    smooth = spread >= WHOLE
    width = np.where(smooth, spread, 1.0)[:, None]
    return np.asarray(np.where(smooth[:, None], ndtr(past / width), past > WHOLE) @ chance)


@lru_cache(maxsize=1 << 14)
def published_counts(
    n: int, size: int, holders: int, retention: float, domain_size: int
) -> tuple[Floats, Floats]:
    """The counts in which a value of a group may be published, and their probabilities.

    A value with k of the n trials is published k⌊|g|/n⌋ + H times, H hypergeometric: its share of
    the |g| mod n trials that got one extra copy.
    """
    from scipy.stats import hypergeom  # noqa: PLC0415

    k = np.arange(n + 1)
    copies, extra = divmod(size, n)
    more = np.arange(extra + 1)
    chance = hypergeom.pmf(more[None, :], n, k[:, None], extra)
    chance *= trial_counts(n, n * holders / size, retention, domain_size)[:, None]
    observed = k[:, None] * copies + more[None, :]
    total = np.bincount(observed.ravel(), weights=chance.ravel(), minlength=size + 1)
    some = np.flatnonzero(total > 0)
    return some.astype(np.float64), total[some].astype(np.float64)


def trial_counts(n: int, quota: float, retention: float, domain_size: int) -> Floats:
    """The distribution of O* among n trials, Bin(c, r) + Bin(n - c, t), c the rounded quota."""
    from scipy.stats import binom  # noqa: PLC0415

    r = keep_probability(retention, domain_size)
    t = replacement_probability(retention, domain_size)
    whole, share = rounded_holders(np.array(quota))
    below = int(whole)
    result = np.zeros(n + 1)
    for holders, weight in ((below, 1 - share), (min(below + 1, n), share)):
        kept = binom.pmf(np.arange(holders + 1), holders, r)
        strayed = binom.pmf(np.arange(n - holders + 1), n - holders, t)
        result += weight * np.convolve(kept, strayed)
    return result
