"""Pearson's test of independence on published counts, with the variance that they really have.

A row is a value of a public attribute (or a combination of several), a column a sensitive value.
Published shares of a row a have the mean π = pq + t under independence, the same for all rows.
Their covariance is

    Γ_a = [ N_a (diag π - ππ') + V(Σ_g (w_g - 1) O_g) + E_a ] / N_a²,

the variance that N_a records drawn from a population and perturbed would have, and what sampling
adds: V is Lemma 1's covariance of perturbed trials, w_g = |g|/n_g the records that a trial of group
g stands for, and E_a what uneven copies and rounded quotas add. Pearson's statistic is then a sum
of squares with known mean and variance, and is compared with the χ² that has both (Rao and Scott's
second-order correction). If nothing is sampled, and no value is published more rarely than
replacement alone would make it, this is Pearson's own test.

With margins (theory.margins) a row's counts are Σ_g u_ag D_g + Σ_k λ_ak M_k: group g weighs
u_ag = 1{g in a} - Σ_k B_kg λ_ak in row a, margin row k weighs λ_ak, the same for all values, so
that a row still adds up to N_a. Rows then lean on the same groups and margins, and the covariance
of rows a and b is

    Ω_ab = V(Σ_g u_ag u_bg w_g O_g)/p² + Σ_k λ_ak λ_bk σ² (I - J/m) + 1{a=b} N_a (diag q - qq').

For a row with a margin of its own and no other knowledge this is N_a (diag q - qq') + σ²(I - J/m),
the true counts with noise. The statistic is as above; what it divides by is the variance that a
value has per record, plus q², so that without any noise it is Pearson's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.intervals import ROUNDING
from reconpriv.theory.estimation.reconstruction import constrained_frequencies
from reconpriv.theory.perturbation import replacement_probability


@dataclass(frozen=True)
class PublishedRows:
    """What the test needs of each row: Σ O, Σ w O, and the variance that copies and quotas add.

    Arrays have one row per public value and one column per sensitive value.
    """

    observed: Floats
    scaled_observed: Floats
    extra_variance: Floats

    @property
    def records(self) -> Floats:
        """N_a, the published records of each row."""
        return np.asarray(self.observed.sum(axis=1))

    @property
    def scaled_records(self) -> Floats:
        """Σ_g w_g |g| of each row."""
        return np.asarray(self.scaled_observed.sum(axis=1))

    @property
    def pooled(self) -> Floats:
        """π: the share of each published value among all records."""
        return np.asarray(self.observed.sum(axis=0) / self.observed.sum())


@dataclass(frozen=True)
class ChiSquare:
    """A statistic with its degrees of freedom, which need not be whole, and its p-value."""

    statistic: float
    degrees_of_freedom: float
    p_value: float


def pearson(observed: Floats) -> ChiSquare:
    """Pearson's test, every count taken as that many independent records."""
    counts = observed[:, observed.sum(axis=0) > 0]
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return _judged(statistic, float((counts.shape[0] - 1) * (counts.shape[1] - 1)))


def two_samples(one: Floats, others: Floats) -> Floats:
    """The p-values of Pearson's test of one sample of counts against each of several others.

    X² = Σ (√(N'/N) a - √(N/N') b)² / (a + b), with one degree of freedom fewer than values occur.
    """
    from scipy.special import chdtrc  # noqa: PLC0415 - slow import

    own, their = one.sum(), others.sum(axis=1, keepdims=True)
    both = one + others
    gap = np.sqrt(their / own) * one - np.sqrt(own / their) * others
    statistic = np.where(both > 0, gap**2 / np.maximum(both, 1.0), 0.0).sum(axis=1)
    freedom = (both > 0).sum(axis=1) - 1
    return np.where(freedom > 0, chdtrc(np.maximum(freedom, 1), statistic), 1.0)


def corrected(rows: PublishedRows, retention: float) -> tuple[ChiSquare, Floats]:
    """Pearson's test with the moments of the published design; also each row's design effect.

    A row counts as its effective size, N_a over its design effect, so a row that rests on few
    trials does not drown the others.
    """
    shares = rows.observed / rows.records[:, None]
    spread = standardised_covariances(rows, retention)
    trace = np.trace(spread, axis1=1, axis2=2)
    root = null_root(rows, retention)
    pooled = rows.pooled
    effects = trace * rows.records / float((pooled * (1.0 - pooled) / root**2).sum())
    statistic, size, weights = _weighed(shares, rows.records / effects, root)
    flat = spread.reshape(size.size, -1)
    mean = float(weights.diagonal() @ trace)
    half_variance = float(np.sum(weights**2 * (flat @ flat.T)))
    return _judged(statistic * mean / half_variance, mean**2 / half_variance), effects


def _weighed(shares: Floats, size: Floats, root: Floats) -> tuple[float, Floats, Floats]:
    """The statistic of rows of such effective sizes, the sizes, and the quadratic form it is."""
    centred = (shares - size @ shares / size.sum()) / root
    weights = np.diag(size) - np.outer(size, size) / size.sum()
    return float(size @ (centred**2).sum(axis=1)), size, weights


@dataclass(frozen=True)
class CombinedRows:
    """Counts of each row from records and margins; arrays of pairs have a line per pair of rows.

    ``scaled_observed`` (a column per value) and ``scaled_records`` are Σ_g u_ag u_bg w_g O_g and
    the same of |g|; ``noise`` is Σ_k λ_ak λ_bk σ². ``swollen`` is how much more than by their
    trials each row's counts vary, through copies and quotas. ``exact_sizes``: margins were moved to
    add up to the size of their row.
    """

    counts: Floats
    records: Floats
    scaled_observed: Floats
    scaled_records: Floats
    noise: Floats
    swollen: Floats
    exact_sizes: bool

    @property
    def frequencies(self) -> Floats:
        """q: the share of each value among all records."""
        total = np.maximum(self.counts.sum(axis=0), 0.0)
        return np.asarray(total / total.sum())


def corrected_with_margins(rows: CombinedRows, retention: float) -> tuple[ChiSquare, Floats]:
    """Pearson's test on combined counts; also each row's variance relative to perturbation alone.

    As in ``corrected``, a row counts as its effective size.
    """
    count, m = rows.counts.shape
    spread = combined_covariance(rows, retention)
    diagonal = spread[np.arange(count), np.arange(count)]
    by_value = diagonal[:, np.arange(m), np.arange(m)].sum(axis=0) / rows.records.sum()
    # One record without noise varies by q - q², and Pearson divides by q.
    by_value = by_value + rows.frequencies**2
    root = np.where(by_value > 0, np.sqrt(np.maximum(by_value, 0.0)), np.inf)
    spread = spread / (rows.records[:, None] * rows.records)[:, :, None, None]
    spread = spread / np.outer(root, root)
    trace = np.trace(spread[np.arange(count), np.arange(count)], axis1=1, axis2=2)
    pooled = retention * rows.frequencies + replacement_probability(retention, m)
    plain = float((pooled * (1.0 - pooled) / root**2).sum()) / retention**2
    effects = trace * rows.records / plain
    shares = rows.counts / rows.records[:, None]
    statistic, _, weights = _weighed(shares, rows.records / effects, root)
    weighed = np.tensordot(weights, spread, axes=1)
    mean = float(np.trace(weighed[np.arange(count), np.arange(count)].sum(axis=0)))
    half_variance = float(np.einsum("abij,baji->", weighed, weighed))
    return _judged(statistic * mean / half_variance, mean**2 / half_variance), effects


def combined_covariance(rows: CombinedRows, retention: float) -> Floats:
    """Ω_ab of every pair of rows: rows x rows x values x values.

    What copies and quotas add is taken to be in proportion to what trials do.
    """
    count, m = rows.counts.shape
    pairs = trial_covariance(
        rows.scaled_observed.reshape(-1, m), rows.scaled_records.reshape(-1), retention
    )
    swollen = np.sqrt(np.outer(rows.swollen, rows.swollen))[:, :, None, None]
    result = pairs.reshape(count, count, m, m) * swollen / retention**2
    alike = np.eye(m) - (1.0 / m if rows.exact_sizes else 0.0)
    result += rows.noise[:, :, None, None] * alike
    q = rows.frequencies
    drawn = np.diag(q) - np.outer(q, q)
    result[np.arange(count), np.arange(count)] += rows.records[:, None, None] * drawn
    return result


def standardised_covariances(rows: PublishedRows, retention: float) -> Floats:
    """π^-½ Γ_a π^-½ of every row: a share's covariance, each value in units of √π.

    What copies and quotas add has a known variance; its covariances are taken to be in proportion
    to all others, which is exact for two values.
    """
    pooled, records = rows.pooled, rows.records
    plain = _diagonals(np.tile(pooled, (records.size, 1))) - np.outer(pooled, pooled)
    more = trial_covariance(
        rows.scaled_observed - rows.observed, rows.scaled_records - records, retention
    )
    root = null_root(rows, retention)
    gamma = (records[:, None, None] * plain + more) / np.outer(root, root)
    trace = np.trace(gamma, axis1=1, axis2=2)
    extra = (rows.extra_variance / root**2).sum(axis=1)
    return np.asarray(gamma * ((1.0 + extra / trace) / records**2)[:, None, None])


def null_root(rows: PublishedRows, retention: float) -> Floats:
    """√π, what Pearson divides by: at least √t, since π = pq + t; ∞ for a value that cannot occur.

    A rare value's own share can fall far below t by chance, and dividing by it would give that
    value all the weight.
    """
    published = rows.observed.sum(axis=0)
    q = constrained_frequencies(published, retention=retention)
    pooled = retention * q + replacement_probability(retention, published.size)
    return np.where(pooled > 0, np.sqrt(pooled), np.inf)


def trial_covariance(observed: Floats, records: Floats, retention: float) -> Floats:
    """Σ_v k_v (diag P_v - P_v P_v'): the covariance of perturbed counts given the true ones.

    P_v = p e_v + t is a column of Eq. 1, k = (O - t|S|)/p the true counts (Lemma 1). Linear in the
    published counts, so an unbiased estimate; ``observed`` has one row per set of records.
    """
    t = replacement_probability(retention, observed.shape[1])
    holders = observed - t * records[:, None]  # p k
    cross = t * (holders[:, :, None] + holders[:, None, :])
    return np.asarray(
        _diagonals(observed - retention * holders) - cross - (t * t * records)[:, None, None]
    )


def rounding_variance(trials: Floats, scale: Floats, share: float) -> Floats:
    """The variance of a value's sampled quota, for groups with this many trials, w > 1.

    A quota far above 1 is rounded by 1/6 on average. A rare value is mostly absent from a group,
    and then nothing is rounded: n q (1 - 1/w) for a value held by a share q of the population.
    """
    rare = min(max(share, 0.0), max(1.0 - share, 0.0))
    return np.asarray(np.minimum(trials * rare * (1.0 - 1.0 / scale), ROUNDING))


def _diagonals(rows: Floats) -> Floats:
    """One diagonal matrix per row."""
    return np.asarray(rows[:, :, None] * np.eye(rows.shape[1]))


def _judged(statistic: float, degrees: float) -> ChiSquare:
    from scipy.special import chdtrc  # noqa: PLC0415 - slow import

    return ChiSquare(statistic, degrees, float(chdtrc(degrees, statistic)))
