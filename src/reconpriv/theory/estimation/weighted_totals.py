"""Weighted totals Σ u_g b(x) over the records of a table, and their covariances.

A total weighs every record by a number u_g of its group and a number b(x) of its sensitive value:
counts, sums, averages and quantiles are made of such totals. Published records estimate it without
bias. With b̄ = b - mean(b) over the m values,

    L̂ = (1/p) Σ_g u_g Σ_x O_gx b̄(x) + mean(b) Σ_g u_g N_g        (Lemma 1, value by value)

The covariance of two totals has the three terms of a count's variance:

    perturbation  (1/p²) Σ s u u' [(1-p) Σ_x O_gx b̄ b̄' + p t N_g Σ_x b̄ b̄']
    copies        (1/p²) Σ e u u' cov_g(b, b'), over the published values of a group
    rounding      Σ s² u u' Σ (Δb)(Δb')/12 over the borders of neighbouring values, on a circle

with s = N_g/n_g and e the factor of uneven copies. The first is linear in the published
counts, so it is unbiased, and never negative. A quota of a systematic sample is cut at borders
between values, each of which is off by 1/12 on average; for a set that is 1/6 per run of values.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from reconpriv.theory.arrays import Floats, quotient
from reconpriv.theory.estimation.intervals import ROUNDING
from reconpriv.theory.perturbation import replacement_probability


@dataclass(frozen=True)
class TotalSums:
    """What K totals need from each of R selections; E_k is Σ_x O_gx b_k(x) of a group.

    ``observed`` is Σ u E and ``records`` Σ u N, both R x K. The others are R x K x K:
    ``products`` Σ s u u' Σ_x O_gx b b', ``cross`` Σ s u u' E (of the first of the two), ``scaled``
    Σ s u u' N, ``uneven`` the copies, ``squares`` Σ s² u u' over sampled groups; ``sampled_…`` are
    the same as those without over sampled groups alone.
    """

    observed: Floats
    records: Floats
    products: Floats
    cross: Floats
    scaled: Floats
    sampled_products: Floats
    sampled_cross: Floats
    sampled_scaled: Floats
    squares: Floats
    uneven: Floats

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """What the sums are called, in order."""
        return tuple(one.name for one in fields(cls))

    def __add__(self, more: TotalSums) -> TotalSums:
        """The sums over two parts, row by row."""
        return TotalSums(*(getattr(self, name) + getattr(more, name) for name in self.names()))


def total_estimates(sums: TotalSums, values: Floats, retention: float) -> Floats:
    """L̂ of every selection and total; ``values`` has a line b(x) per total (Lemma 1)."""
    mean = values.mean(axis=-1)
    return np.asarray((sums.observed - mean * sums.records) / retention + mean * sums.records)


def total_covariances(sums: TotalSums, values: Floats, retention: float) -> Floats:
    """The covariance matrix of the totals of every selection, R x K x K."""
    p, m = retention, values.shape[-1]
    t = replacement_probability(p, m)
    mean = values.mean(axis=-1)
    centred = values - mean[:, None]
    spread = centred @ centred.T
    second = _about(sums.products, sums.cross, sums.scaled, mean)
    perturbed = perturbation_variance(second, spread, p, t, sums.scaled)
    return np.asarray(perturbed + sums.uneven / p**2 + _rounding(sums, values, p))


def perturbation_variance(
    second: Floats, spread: Floats, p: float, t: float, trials: Floats | float = 1.0
) -> Floats:
    """[(1-p) Σ_x O_x b̄ b̄' + p t n Σ_x b̄ b̄'] / p², from the first sum and the last one."""
    return np.asarray(((1.0 - p) * second + p * t * spread * trials) / p**2)


def _about(products: Floats, cross: Floats, scaled: Floats, centre: Floats) -> Floats:
    """Second moments about a centre, one number per total or one row of them per selection."""
    first, second = centre[..., :, None], centre[..., None, :]
    moved = cross * second + np.swapaxes(cross, -1, -2) * first
    return np.asarray(products - moved + first * second * scaled)


def _rounding(sums: TotalSums, values: Floats, p: float) -> Floats:
    """Rounded quotas; no total varies more by them than it would in a simple sample.

    That is Σ s u² N_g var_g(b), and never more than Σ s u² Σ (b - c)² about any level c that all
    groups share. The least of these is about the mean of b with weights s u², which serves for
    weights of either sign, too.
    """
    m = values.shape[-1]
    t = replacement_probability(p, m)
    steps = values - np.roll(values, 1, axis=-1)
    quotas = ROUNDING / 2.0 * (steps @ steps.T) * sums.squares
    if not quotas.any():
        return np.zeros_like(quotas)
    mean = values.mean(axis=-1)
    centred = values - mean[:, None]
    scaled = sums.sampled_scaled
    inner = _about(sums.sampled_products, sums.sampled_cross, scaled, mean)
    moment = (inner - t * (centred @ centred.T) * scaled) / p
    first = (sums.sampled_cross - mean[:, None] * scaled) / p
    level = quotient(_diagonal(first), _diagonal(scaled))
    low, high = centred.min(axis=-1), centred.max(axis=-1)
    simple = _about(moment, first, scaled, np.clip(level, low, high))
    rounded, drawn = _diagonal(quotas), np.maximum(_diagonal(simple), 0.0)
    smaller = np.divide(drawn, rounded, out=np.ones_like(drawn), where=rounded > drawn)
    factor = np.sqrt(smaller)
    return np.asarray(quotas * factor[..., :, None] * factor[..., None, :])


def _diagonal(matrices: Floats) -> Floats:
    return np.asarray(np.diagonal(matrices, axis1=-2, axis2=-1))
