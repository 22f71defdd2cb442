"""Maximum likelihood reconstruction of a sensitive distribution (Theorem 1, Lemmas 1 and 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reconpriv.theory.perturbation import keep_probability, replacement_probability

Floats = NDArray[np.float64]


def observed_mean(
    frequency: ArrayLike, trials: ArrayLike, *, retention: float, domain_size: int
) -> Floats:
    """E[O*] = |S| (fp + (1-p)/m) (Lemma 1 (i))."""
    t = replacement_probability(retention, domain_size)
    return np.asarray(trials) * (np.asarray(frequency) * retention + t)


def reconstruct_frequency(
    observed: ArrayLike, trials: ArrayLike, *, retention: float, domain_size: int
) -> Floats:
    """F' = (O*/|S| - (1-p)/m) / p (Lemma 1 (ii)); unbiased, and may leave [0, 1]."""
    t = replacement_probability(retention, domain_size)
    return np.asarray((np.asarray(observed, dtype=np.float64) / np.asarray(trials) - t) / retention)


def reconstruct_count(
    observed: ArrayLike, records: ArrayLike, *, retention: float, domain_size: int
) -> Floats:
    """|S| F' = (O* - |S| t) / p: the answer to a count query (section 3.1)."""
    t = replacement_probability(retention, domain_size)
    return np.asarray(
        (np.asarray(observed, dtype=np.float64) - np.asarray(records) * t) / retention
    )


def global_estimate(
    frequency_x: ArrayLike, size_x: ArrayLike, frequency_y: ArrayLike, size_y: ArrayLike
) -> Floats:
    """(F'_X |X| - F'_Y |Y|) / |S| for S = X - Y (Definition 2); equals the local one (Lemma 2)."""
    x, y = np.asarray(size_x, dtype=np.float64), np.asarray(size_y, dtype=np.float64)
    return np.asarray((np.asarray(frequency_x) * x - np.asarray(frequency_y) * y) / (x - y))


def count_variance(
    count: ArrayLike, trials: ArrayLike, *, retention: float, domain_size: int
) -> Floats:
    """The variance of the reconstructed count of a value held in ``count`` of ``trials`` trials.

    Of (Bin(c, r) + Bin(n - c, t)) / p. Linear in c, so an unbiased estimate of c gives an
    unbiased estimate of the variance; it stays positive for every count that can be observed.
    """
    r = keep_probability(retention, domain_size)
    t = replacement_probability(retention, domain_size)
    c = np.asarray(count, dtype=np.float64)
    spread = c * (r * (1 - r)) + (np.asarray(trials) - c) * (t * (1 - t))
    return np.asarray(spread / retention**2)
