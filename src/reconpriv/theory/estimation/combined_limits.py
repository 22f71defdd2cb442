"""Limits for sums, differences and ratios of several quantities, from the limits of each.

The quantities are disjoint parts of a table, such as two groups of records. Each has its own
limits, which need not be symmetric (those of a count are not). The distance of a limit from its
estimate stands for z standard errors on that side (Zou and Donner 2008; for ratios Donner and Zou
2012); with weights w, distances d on the side that lowers the sum, and correlations R,

    low = Σ wθ̂ - √(Σ_ij w_i d_i R_ij w_j d_j)

A limit that is cut, because a count cannot be negative, is too close to its estimate to stand for
z standard errors. So these limits are uncut, and estimates are taken as they are, possible or not.
What is possible comes in afterwards, by limits of all parts that hold together: no sum lies beyond
that of their ends.

The limits of a ratio are the numbers R at which a limit of a - R b is 0. Where b may be 0, a ratio
has no upper limit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reconpriv.theory.arrays import Flags, Floats, quotient
from reconpriv.theory.search import last_contained

_STEPS = 45  # of bisection
_ROUNDING = 1e-12  # relative error of a sum
_ENDLESS = 1e9  # a ratio beyond which it may be any
_DECIMALS = 9  # of a ratio: what processors compute alike


class Parts(NamedTuple):
    """Estimates of disjoint parts, one line per case and one column per part.

    ``low`` and ``high`` are uncut; ``least`` and ``most`` are possible, and hold for all parts
    together. ``covariance`` is that of the estimates, cases x parts x parts.
    """

    value: Floats
    low: Floats
    high: Floats
    least: Floats
    most: Floats
    covariance: Floats


def combination_limits(weights: Floats, parts: Parts, z: float) -> tuple[Floats, Floats]:
    """The limits of Σ wθ; ``weights`` are those of the parts, the same for all cases or not."""
    centre = _sum(weights * parts.value)
    down, up = _reaches(weights, parts, z)
    least, most = _ends(weights, parts)
    return np.maximum(centre - down, least), np.minimum(centre + up, most)


def errors_from_zero(weights: Floats, parts: Parts, z: float) -> Floats:
    """How many standard errors Σ wθ̂ is from 0, by its limits: more than z if 0 is beyond one."""
    centre = _sum(weights * parts.value)
    down, up = _reaches(weights, parts, z)
    reach = np.where(centre > 0, down, up)
    found = quotient(z * np.abs(centre), reach, np.where(centre == 0, 0.0, np.inf))
    least, most = _ends(weights, parts)
    beyond = (least > 0) | (most < 0)
    return np.where(beyond, np.maximum(found, z * (1.0 + _ROUNDING)), found)


def _ends(weights: Floats, parts: Parts) -> tuple[Floats, Floats]:
    """The smallest and the largest sum, by the limits that hold for all parts together."""
    positive = weights > 0
    least = _sum(weights * np.where(positive, parts.least, parts.most))
    return least, _sum(weights * np.where(positive, parts.most, parts.least))


def _reaches(weights: Floats, parts: Parts, z: float) -> tuple[Floats, Floats]:
    """How far Σ wθ may be below and above its estimate."""
    below, above = parts.value - parts.low, parts.high - parts.value
    positive = weights > 0
    return (
        _reach(weights * np.where(positive, below, above), weights, parts, z),
        _reach(weights * np.where(positive, above, below), weights, parts, z),
    )


def _sum(columns: Floats) -> Floats:
    return np.asarray(columns.sum(axis=-1))


def _reach(distances: Floats, weights: Floats, parts: Parts, z: float) -> Floats:
    """How far a sum may be off on one side, from how far each part may be.

    Where errors of parts cancel, distances that do not quite fit each other cancel too well: then
    it is at least z standard errors.
    """
    deviation = np.sqrt(np.diagonal(parts.covariance, axis1=-2, axis2=-1))
    scale = deviation[..., :, None] * deviation[..., None, :]
    correlation = quotient(parts.covariance, scale)
    # Of uncorrelated parts this is 0, which rounding must not make negative.
    shared = _product(distances, correlation * (1.0 - np.eye(scale.shape[-1])))
    joint = _sum(distances**2) + shared
    usual = z**2 * _product(weights, parts.covariance)
    return np.sqrt(np.maximum(np.where(shared < 0, np.maximum(joint, usual), joint), 0.0))


def _product(columns: Floats, matrix: Floats) -> Floats:
    return np.asarray(np.einsum("...i,...ij,...j->...", columns, matrix, columns))


def ratio_limits(
    top: Floats, bottom: Floats, parts: Parts, z: float, ends: tuple[float, float]
) -> tuple[Floats, Floats]:
    """The limits of Σ aθ / Σ bθ, for weights a and b ≥ 0 of the parts.

    They lie between ``ends``, what is possible; an end that nothing contradicts is a limit, so the
    upper one may be infinite.
    """

    def contained(angle: Floats) -> Flags:
        """True where the ratio tan(angle) is not contradicted."""
        sine, cosine = np.sin(angle)[..., None], np.cos(angle)[..., None]
        weights = cosine * top - sine * bottom
        low, high = combination_limits(weights, parts, z)
        used = np.abs(cosine * top) + np.abs(sine * bottom)
        slack = _ROUNDING * _sum(used * (np.abs(parts.value) + parts.high - parts.low))
        return np.asarray((low <= slack) & (high >= -slack))

    possible = np.clip(parts.value, parts.least, parts.most)
    first, last = np.arctan(ends)
    shape = possible.shape[:-1]
    above, below = _sum(top * possible), _sum(bottom * possible)
    start = np.clip(np.arctan2(above, below), first, last)
    sure = contained(start)
    low, high = (
        last_contained(start, np.full(shape, end), contained, _STEPS) for end in (first, last)
    )
    return _ratio_of(np.where(sure, low, first)), _ratio_of(np.where(sure, high, last))


def _ratio_of(angle: Floats) -> Floats:
    """The ratio that an angle stands for; infinite at a right angle."""
    ratio = np.tan(angle)
    return np.asarray(np.where(ratio > _ENDLESS, np.inf, np.round(ratio, _DECIMALS)))


class Range(NamedTuple):
    """The smallest and the largest value that is possible."""

    low: Floats
    high: Floats


def fieller_limits(
    top: Floats, bottom: Floats, covariance: Floats, z: float, possible: Range
) -> tuple[Floats, Floats]:
    """The limits of a mean S/C: every μ for which S - μC is within z standard errors of 0.

    ``covariance`` is that of (S, C). The variance is taken at the μ that is tested (Fieller 1954).
    If C is not told from 0, the limits are what is ``possible``.
    """
    v11, v12, v22 = covariance[..., 0, 0], covariance[..., 0, 1], covariance[..., 1, 1]
    # About the middle of what is possible, where rounding errors are smallest.
    middle = (possible.low + possible.high) / 2.0
    s = top - middle * bottom
    v11, v12 = v11 - 2.0 * middle * v12 + middle**2 * v22, v12 - middle * v22
    square = bottom**2 - z**2 * v22
    half = s * bottom - z**2 * v12
    rest = s**2 - z**2 * v11
    found = half**2 - square * rest
    root = np.sqrt(np.maximum(found, 0.0))
    sure = (square > 0) & (bottom > 0)
    safe = np.where(sure, square, 1.0)
    low, high = (np.where(sure, middle + (half + sign * root) / safe, end)
                 for sign, end in ((-1.0, possible.low), (1.0, possible.high)))  # fmt: skip
    return (np.clip(low, possible.low, possible.high), np.clip(high, possible.low, possible.high))
