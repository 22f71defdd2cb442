"""Reconstructed counts of several classes in rows of records, with their covariance by design."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.intervals import ROUNDING
from reconpriv.theory.estimation.reconstruction import reconstruct_count
from reconpriv.theory.perturbation import replacement_probability


@dataclass(frozen=True)
class ClassCounts:
    """Unbiased counts of classes in rows of records, independent from row to row.

    The covariance of a row is

        diag(spread) - h s' - s h' - level s s' - uneven f f' + rounding K,

    with ``holders`` h, the number of values ``sizes`` s of each class, published ``shares`` f and
    ``neighbours`` K: perturbation (``trial_covariance`` in ``theory.estimation.independence``),
    copies, and the quotas of a systematic sample, which round each run of neighbouring values once.
    """

    records: Floats
    counts: Floats
    spread: Floats
    holders: Floats
    sizes: Floats
    level: Floats
    uneven: Floats
    shares: Floats
    rounding: Floats
    neighbours: Floats

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return int(self.counts.shape[1])

    def merged(self, classes: Floats) -> ClassCounts:
        """The counts of sets of classes; ``classes`` has a row of 0 and 1 for each set."""
        return ClassCounts(
            records=self.records,
            counts=self.counts @ classes.T,
            spread=self.spread @ classes.T,
            holders=self.holders @ classes.T,
            sizes=classes @ self.sizes,
            level=self.level,
            uneven=self.uneven,
            shares=self.shares @ classes.T,
            rounding=self.rounding,
            neighbours=classes @ self.neighbours @ classes.T,
        )

    def covariance(self, a: int, b: int) -> Floats:
        """The covariance of two classes in every row."""
        s = self.sizes
        found = self.rounding * self.neighbours[a, b]
        found = found - self.holders[:, a] * s[b] - self.holders[:, b] * s[a]
        found -= self.level * (s[a] * s[b]) + self.uneven * self.shares[:, a] * self.shares[:, b]
        return np.asarray(found + self.spread[:, a] if a == b else found)

    def times(self, factors: Floats) -> Floats:
        """The covariance of each row times a vector per row."""
        of_sizes = (factors @ self.sizes)[:, None]
        of_holders = np.sum(factors * self.holders, axis=1, keepdims=True)
        of_shares = np.sum(factors * self.shares, axis=1, keepdims=True)
        return np.asarray(
            self.spread * factors
            - self.holders * of_sizes
            - (of_holders + self.level[:, None] * of_sizes) * self.sizes
            - self.uneven[:, None] * of_shares * self.shares
            + self.rounding[:, None] * (factors @ self.neighbours)
        )

    def weighted(self, factors: Floats) -> Floats:
        """Σ over rows of diag(x) covariance diag(x), x the factors of the row."""
        sized = factors * self.sizes
        cross = (factors * self.holders).T @ sized
        shared = factors * self.shares
        rounded = (factors * self.rounding[:, None]).T @ factors
        return np.asarray(
            np.diag(np.sum(self.spread * factors**2, axis=0))
            - cross
            - cross.T
            - (sized * self.level[:, None]).T @ sized
            - (shared * self.uneven[:, None]).T @ shared
            + rounded * self.neighbours
        )


@dataclass(frozen=True)
class Evidence:
    """What is known about the classes of a model's rows, each of ``records`` records.

    A sum Σ q y over rows, y the number of records in a class, is estimated by Σ q̃ y over
    ``counts`` that are independent of each other, with q̃ = ``weights(q)``, a column for each q.
    Without margins these are the counts of the rows themselves.
    """

    records: Floats
    counts: ClassCounts
    weights: Callable[[Floats], Floats] = np.asarray

    @classmethod
    def of(cls, counts: ClassCounts) -> Self:
        """The counts of the rows themselves."""
        return cls(counts.records, counts)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self.counts.classes

    def totals(self, q: Floats) -> Floats:
        """Σ q y of every column of q and every class."""
        return np.asarray(self.weights(q).T @ self.counts.counts)

    def whole(self) -> Floats:
        """The classes' totals over all rows."""
        return np.asarray(self.totals(np.ones((self.records.size, 1)))[0])

    def errors(self) -> Floats:
        """The standard errors of the classes' totals."""
        weight = self.weights(np.ones((self.records.size, 1)))[:, 0] ** 2
        variances = [weight @ self.counts.covariance(i, i) for i in range(self.classes)]
        return np.sqrt(np.maximum(variances, 0.0))


def noisy_counts(counts: Floats, variance: float, *, exact_sizes: bool) -> ClassCounts:
    """Counts with independent noise; with exact sizes, their sum over the values has none."""
    rows, m = counts.shape
    nothing, alike = np.zeros(rows), np.full(rows, variance)
    return ClassCounts(
        records=counts.sum(axis=1),
        counts=counts,
        spread=np.full(counts.shape, variance),
        holders=np.zeros(counts.shape),
        sizes=np.ones(m),
        level=alike / m if exact_sizes else nothing,
        uneven=nothing,
        shares=np.zeros(counts.shape),
        rounding=nothing,
        neighbours=_neighbours(m),
    )


def joined(one: ClassCounts, other: ClassCounts) -> ClassCounts:
    """The rows of both, which have the same classes."""
    every = {}
    for name in (field.name for field in fields(ClassCounts)):
        alike = name in ("sizes", "neighbours")
        mine = getattr(one, name)
        every[name] = mine if alike else np.concatenate([mine, getattr(other, name)])
    return ClassCounts(**every)


def _neighbours(m: int) -> Floats:
    """K: a quota is rounded at the borders between neighbouring values, on a circle."""
    shifted = np.roll(np.eye(m), 1, axis=0) + np.roll(np.eye(m), -1, axis=0)
    return np.asarray(np.eye(m) - 0.5 * shifted)


def class_counts(
    records: Floats,
    observed: Floats,
    scaled_observed: Floats,
    scaled_records: Floats,
    sampled_squares: Floats,
    uneven: Floats,
    *,
    retention: float,
    coin_flips: bool = False,
) -> ClassCounts:
    """Lemma 1's counts of every sensitive value (a column) in every row, and their covariance.

    ``observed`` is Σ_g O_g over the groups of a row, ``scaled_observed`` Σ_g w_g O_g with
    w_g = |g|/n_g, ``scaled_records`` Σ_g w_g |g|, ``sampled_squares`` Σ w_g² over sampled groups,
    ``uneven`` the factor of uneven copies; with ``coin_flips`` copies are independent.

    Trials with the count k have the covariance diag(pk + tn - p²k) - pt(k1' + 1k') - t²n 11',
    linear in k and therefore unbiased if k is estimated. Uneven copies are taken to fall on the
    published shares of the row. A retention of 1 is for raw records: nothing varies.
    """
    m = observed.shape[1]
    p, t = retention, replacement_probability(retention, m)

    def reconstructed(published: Floats, of: Floats) -> Floats:
        return reconstruct_count(published, of[:, None], retention=p, domain_size=m)

    trials = reconstructed(scaled_observed, scaled_records)
    shares = observed / np.maximum(records, 1.0)[:, None]
    copies = uneven / p**2
    spread = (p * (1.0 - p) * trials + t * scaled_records[:, None]) / p**2
    return ClassCounts(
        records=records,
        counts=reconstructed(observed, records),
        spread=spread + copies[:, None] * shares,
        holders=t / p * trials,
        sizes=np.ones(m),
        level=t**2 / p**2 * scaled_records,
        uneven=np.zeros_like(copies) if coin_flips else copies,
        shares=shares,
        rounding=ROUNDING * sampled_squares,
        neighbours=_neighbours(m),
    )
