"""Limits for differences and ratios of two quantities, from the limits of each.

Each quantity has its own limits, which need not be symmetric (those of a count are not). The
distance of a limit from its estimate stands for z standard errors on that side (Zou and Donner
2008; for ratios Donner and Zou 2012), and ``correlation`` is that of the two estimates:

    low = a - b - √((a - l_a)² + (u_b - b)² - 2ρ (a - l_a)(u_b - b))

The limits of a ratio are the numbers R at which the limit of a - R b is 0. Where b may be 0, a
ratio has no upper limit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reconpriv.theory.arrays import Floats


class Limits(NamedTuple):
    """Estimates with their limits, one entry per case."""

    value: Floats
    low: Floats
    high: Floats

    def inside(self) -> Limits:
        """With the estimate moved into its limits: an unbiased one may lie outside."""
        return Limits(np.clip(self.value, self.low, self.high), self.low, self.high)


def difference_limits(one: Limits, other: Limits, correlation: Floats) -> tuple[Floats, Floats]:
    """The limits of a - b."""
    a, b = one.inside(), other.inside()
    gap = a.value - b.value
    low = gap - _joined(a.value - a.low, b.high - b.value, correlation)
    high = gap + _joined(a.high - a.value, b.value - b.low, correlation)
    return low, high


def _joined(one: Floats, other: Floats, correlation: Floats) -> Floats:
    square = one**2 + other**2 - 2.0 * correlation * one * other
    return np.asarray(np.sqrt(np.maximum(square, 0.0)))


def ratio_limits(one: Limits, other: Limits, correlation: Floats) -> tuple[Floats, Floats]:
    """The limits of a / b, both of which cannot be negative; the upper one may be infinite."""
    a, b = one.inside(), other.inside()
    low = _border(a.value, b.value, a.value - a.low, b.high - b.value, correlation, -1.0)
    high = _border(a.value, b.value, a.high - a.value, b.value - b.low, correlation, 1.0)
    return np.maximum(low, 0.0), np.where(b.low > 0, high, np.inf)


def _border(a: Floats, b: Floats, da: Floats, db: Floats, rho: Floats, side: float) -> Floats:
    """The smaller (side -1) or larger root R of (a - R b)² = da² + R² db² - 2 R ρ da db."""
    square = b**2 - db**2
    half = a * b - rho * da * db
    rest = a**2 - da**2
    root = np.sqrt(np.maximum(half**2 - square * rest, 0.0))
    # The lower limit is rest / (half + root), which also serves where b² <= db².
    if side < 0:
        return np.divide(rest, half + root, out=np.zeros_like(half), where=half + root > 0)
    return np.divide(half + root, square, out=np.full_like(half, np.inf), where=square > 0)


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
    return (
        np.clip(low, possible.low, possible.high),
        np.clip(high, possible.low, possible.high),
    )
