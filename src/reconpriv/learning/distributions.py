"""From published cross tables to the class-conditional distributions of naive Bayes.

A table has one row per value of the feature and one column per class. If one of the two is the
sensitive attribute, its counts are those of Lemma 1, each with a variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconpriv.cells.sums import Sums
from reconpriv.estimate.counts import Design
from reconpriv.estimate.set_counts import SetCounts
from reconpriv.theory.arrays import Floats, quotient
from reconpriv.theory.estimation.reconstruction import (
    constrained_frequencies,
    count_variance,
    reconstruct_count,
)


@dataclass(frozen=True)
class CrossTable:
    """Counts (feature value x class) and their variances, 0 if a count is exact."""

    counts: Floats
    variances: Floats


def exact_table(counts: Floats) -> CrossTable:
    """A table without the sensitive attribute."""
    return CrossTable(counts, np.zeros_like(counts))


def reconstructed_table(observed: Floats, retention: float, *, along_classes: bool) -> CrossTable:
    """Lemma 1 along the sensitive axis of a table of published records, each a separate trial."""
    if not along_classes:
        turned = reconstructed_table(observed.T, retention, along_classes=True)
        return CrossTable(turned.counts.T, turned.variances.T)
    m = observed.shape[1]
    records = observed.sum(axis=1, keepdims=True)
    counts = reconstruct_count(observed, records, retention=retention, domain_size=m)
    variances = count_variance(counts, records, retention=retention, domain_size=m)
    return CrossTable(counts, variances)


def release_table(sums: Sums, design: Design) -> CrossTable:
    """One row per public value, one column per sensitive value, with the published variance."""
    found = SetCounts(sums, design)
    return CrossTable(found.number, found.variances)


def sensitive_counts(observed: Floats, retention: float) -> Floats:
    """How many records hold each sensitive value: maximum likelihood on the simplex."""
    total = observed.sum()
    if total <= 0:
        return np.zeros_like(observed)
    return np.asarray(total * constrained_frequencies(observed, retention=retention))


def log_prior(class_counts: Floats, alpha: float) -> Floats:
    """Log shares of the classes; a class reconstructed as absent counts as α records."""
    floored = np.maximum(class_counts, alpha)
    return np.asarray(np.log(floored) - np.log(floored.sum()))


def log_conditional(table: CrossTable, class_counts: Floats, alpha: float) -> tuple[Floats, Floats]:
    """log P(value | class) with Laplace's α, and how much of each class's profile was kept."""
    counts, kept = shrink_to_independence(table, class_counts)
    smoothed = np.maximum(counts, 0.0) + alpha
    return np.log(smoothed) - np.log(smoothed.sum(axis=0)), kept


def shrink_to_independence(table: CrossTable, class_counts: Floats) -> tuple[Floats, Floats]:
    """The share λ of each class: how far its counts may differ from independence.

    A reconstructed profile is the true one plus noise of known variance σ². Its distance from what
    independence would give is Σ((T-E)/σ)² over k values. The share kept is James and Stein's
    λ = 1 - k/Σ, or nothing if that is negative. Noise alone gives a distance below k, since E
    rests on the same counts (k - 1 if the classes are sensitive, otherwise k(1 - N_c/N)), so k
    shrinks slightly more than noise requires; that predicts better (docs/learning.md). Exact counts
    are kept whole.
    """
    values = table.counts.sum(axis=1)
    total = values.sum()
    expected = np.outer(values, class_counts) / total if total > 0 else np.zeros_like(table.counts)
    noisy = table.variances > 0
    squares = quotient((table.counts - expected) ** 2, table.variances)
    distance, freedom = squares.sum(axis=0), noisy.sum(axis=0)
    kept = np.clip(1.0 - quotient(freedom, distance, 1.0), 0.0, 1.0)
    kept = np.where(freedom > 0, kept, 1.0)
    return expected + kept * (table.counts - expected), kept
