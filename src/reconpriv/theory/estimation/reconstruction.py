"""Maximum likelihood reconstruction of a sensitive distribution (Theorem 1, Lemmas 1 and 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.design import mixing
from reconpriv.theory.perturbation import replacement_probability


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
    share = np.asarray(observed, dtype=np.float64) / np.asarray(trials)
    return reconstruct_count(share, 1.0, retention=retention, domain_size=domain_size)


def reconstruct_count(
    observed: ArrayLike,
    records: ArrayLike,
    values: ArrayLike = 1,
    *,
    retention: float,
    domain_size: int,
) -> Floats:
    """|S| F' = (O* - |S| kt) / p: the answer to a count query for k values (section 3.1).

    This is P⁻¹ O* of Theorem 1 in closed form: P⁻¹ = (I - tJ)/p, with J all ones.
    """
    stray = np.asarray(values) * replacement_probability(retention, domain_size)
    return np.asarray(
        (np.asarray(observed, dtype=np.float64) - np.asarray(records) * stray) / retention
    )


def global_estimate(
    frequency_x: ArrayLike, size_x: ArrayLike, frequency_y: ArrayLike, size_y: ArrayLike
) -> Floats:
    """(F'_X |X| - F'_Y |Y|) / |S| for S = X - Y (Definition 2); equals the local one (Lemma 2)."""
    x, y = np.asarray(size_x, dtype=np.float64), np.asarray(size_y, dtype=np.float64)
    return np.asarray((np.asarray(frequency_x) * x - np.asarray(frequency_y) * y) / (x - y))


def count_variance(
    count: ArrayLike,
    trials: ArrayLike,
    values: ArrayLike = 1,
    *,
    retention: float,
    domain_size: int,
) -> Floats:
    """The variance of a reconstructed count of k values, held in ``count`` of ``trials`` trials.

    Of (Bin(c, r_X) + Bin(n - c, t_X)) / p, which carries the covariance of the k counts. It is
    linear in c, so an unbiased estimate of c gives an unbiased estimate of the variance, and
    positive for every count that can be observed. A group of n_g trials counts |g|/n_g times with
    its reconstructed count and its records, Σ_g (|g|/n_g)² [n̂ R + (n_g - n̂) T] / p².
    """
    holder, anybody = mixing(retention, domain_size, np.asarray(values))
    return np.asarray(holder * np.asarray(count) + anybody * np.asarray(trials))


def constrained_frequencies(observed: ArrayLike, *, retention: float) -> Floats:
    """The maximum likelihood distribution on the simplex, in closed form.

    Where Lemma 1 leaves [0, 1], the likelihood is largest on the border: the k most observed values
    share the mass, f_x = (O_x/λ - t)/p with λ = O_K/(p + kt), for the largest k that keeps all k
    positive; the rest are 0.
    """
    counts = np.asarray(observed, dtype=np.float64)
    m = counts.size
    t = replacement_probability(retention, m)
    order = np.argsort(-counts, kind="stable")
    sorted_counts = counts[order]
    k = np.arange(1, m + 1)
    level = np.cumsum(sorted_counts) / (retention + k * t)
    inside = np.flatnonzero(sorted_counts > level * t)
    size = int(inside[-1]) + 1 if inside.size else m
    frequency = np.zeros(m)
    frequency[order[:size]] = (sorted_counts[:size] / level[size - 1] - t) / retention
    return frequency
