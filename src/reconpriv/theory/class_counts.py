"""Reconstructed counts of several classes in rows of records, with their covariance by design."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconpriv.theory.arrays import Floats
from reconpriv.theory.intervals import ROUNDING
from reconpriv.theory.perturbation import replacement_probability
from reconpriv.theory.reconstruction import reconstruct_count


@dataclass(frozen=True)
class PublishedCounts:
    """Published counts of rows (one column per sensitive value), and what their variance needs.

    ``observed`` is Σ_g O_g over the groups of a row, ``scaled_observed`` Σ_g w_g O_g with
    w_g = |g|/n_g, ``scaled_records`` Σ_g w_g |g|, ``sampled_squares`` Σ w_g² over sampled groups,
    ``uneven`` the factor of uneven copies; ``coins`` says that copies are independent coin flips.
    """

    records: Floats
    observed: Floats
    scaled_observed: Floats
    scaled_records: Floats
    sampled_squares: Floats
    uneven: Floats
    coins: bool = False


@dataclass(frozen=True)
class ClassCounts:
    """Unbiased counts of classes in rows of records, independent from row to row.

    The covariance of a row is

        diag(spread) - h s' - s h' - level s s' - uneven f f' + rounding K,

    with ``holders`` h, the number of values ``sizes`` s of each class, published ``shares`` f and
    ``neighbours`` K: perturbation (see :func:`reconpriv.theory.independence.trial_covariance`),
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


def class_counts(rows: PublishedCounts, retention: float) -> ClassCounts:
    """Lemma 1's counts of every sensitive value in every row, and their covariance.

    Trials with the count k have the covariance diag(pk + tn - p²k) - pt(k1' + 1k') - t²n 11',
    linear in k and therefore unbiased if k is estimated. Uneven copies are taken to fall on the
    published shares of the row. A retention of 1 is for raw records: nothing varies.
    """
    m = rows.observed.shape[1]
    p, t = retention, replacement_probability(retention, m)

    def reconstructed(observed: Floats, records: Floats) -> Floats:
        return reconstruct_count(observed, records[:, None], retention=p, domain_size=m)

    trials = reconstructed(rows.scaled_observed, rows.scaled_records)
    shares = rows.observed / np.maximum(rows.records, 1.0)[:, None]
    uneven = rows.uneven / p**2
    spread = (p * (1.0 - p) * trials + t * rows.scaled_records[:, None]) / p**2
    neighbours = np.eye(m) - 0.5 * (np.roll(np.eye(m), 1, axis=0) + np.roll(np.eye(m), -1, axis=0))
    return ClassCounts(
        records=rows.records,
        counts=reconstructed(rows.observed, rows.records),
        spread=spread + uneven[:, None] * shares,
        holders=t / p * trials,
        sizes=np.ones(m),
        level=t**2 / p**2 * rows.scaled_records,
        uneven=np.zeros_like(uneven) if rows.coins else uneven,
        shares=shares,
        rounding=ROUNDING * rows.sampled_squares,
        neighbours=neighbours,
    )
