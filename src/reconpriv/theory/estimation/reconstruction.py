"""Maximum likelihood reconstruction of a sensitive distribution (Theorem 1, Lemmas 1 and 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.design import mixing, published_spread
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
    t = replacement_probability(retention, domain_size)
    return np.asarray((np.asarray(observed, dtype=np.float64) / np.asarray(trials) - t) / retention)


def reconstruct_count(
    observed: ArrayLike,
    records: ArrayLike,
    values: ArrayLike = 1,
    *,
    retention: float,
    domain_size: int,
) -> Floats:
    """|S| F' = (O* - |S| kt) / p: the answer to a count query for k values (section 3.1)."""
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
    count: ArrayLike, trials: ArrayLike, *, retention: float, domain_size: int
) -> Floats:
    """The variance of the reconstructed count of a value held in ``count`` of ``trials`` trials.

    Of (Bin(c, r) + Bin(n - c, t)) / p. Linear in c, so an unbiased estimate of c gives an
    unbiased estimate of the variance; it stays positive for every count that can be observed.
    """
    holder, anybody = mixing(retention, domain_size)
    return np.asarray(holder * np.asarray(count) + anybody * np.asarray(trials))


def set_count_variance(
    scaled_observed: ArrayLike,
    scaled_records: ArrayLike,
    values: ArrayLike,
    *,
    retention: float,
    domain_size: int,
) -> Floats:
    """The variance of a count over sampled groups for a set of ``values`` sensitive values.

    Σ_g (|g|/n_g)² [n̂ R + (n_g - n̂) T] / p², with R = r_X(1-r_X), T = t_X(1-t_X) for the
    probabilities r_X = p + kt and t_X = kt that a holder and a non-holder of one of the k values
    land in the set, which carries the covariance of the k counts. It is linear in the published
    counts: ``scaled_observed`` is Σ_g (|g|/n_g) O_g and ``scaled_records`` is Σ_g (|g|/n_g) |g|.
    """
    holder, anybody = published_spread(retention, domain_size, np.asarray(values))
    scaled = np.asarray(scaled_records, dtype=np.float64)
    holders = reconstruct_count(
        scaled_observed, scaled, values, retention=retention, domain_size=domain_size
    )
    # Rounding may leave a tiny negative number if every value is in the set.
    return np.asarray(np.maximum((holders * holder + scaled * anybody) / retention**2, 0.0))


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
