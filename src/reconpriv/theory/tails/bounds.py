"""Tail bounds for O*, pluggable (Theorem 3, Corollary 1).

A bound is a function from an :class:`~reconpriv.theory.counts.ObservedCount` to :class:`Tails`:
upper bounds of Pr[(F'-f)/f > ε] and Pr[(F'-f)/f < -ε]. Wrap your own in :class:`Bound`, or hand
the bare function to a policy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from reconpriv.errors import PolicyError
from reconpriv.registry import Registry
from reconpriv.theory.arrays import Floats
from reconpriv.theory.counts import ObservedCount
from reconpriv.theory.tails.exact import exact_tails


class Tails(NamedTuple):
    """U and L: the bounds on the upper and the lower tail."""

    upper: Floats
    lower: Floats


class TailBound(Protocol):
    """What a user's own bound looks like: a plain function."""

    def __call__(self, count: ObservedCount, /) -> Tails:
        """Bound both tails for each element of ``count``."""
        ...


SizeFunction = Callable[[ObservedCount, float], Floats]


@dataclass(frozen=True)
class Bound:
    """A tail bound with what is known about it.

    ``size`` is the closed form of the largest private number of trials, if there is one.
    ``worst_at_largest_frequency`` says that this size falls as f grows, so the most frequent value
    decides and a frequency may be rounded up without harm. ``label`` and ``explanation`` are for
    menus and documents.
    """

    name: str
    tails: TailBound
    size: SizeFunction | None = None
    worst_at_largest_frequency: bool = False
    label: str = ""
    explanation: str = ""

    @property
    def exact(self) -> bool:
        """True for the tails themselves: δ is a probability, and s_g no function of f alone."""
        return self.tails is exact

    @property
    def sizes_classes(self) -> bool:
        """Whether it has a size for a whole class of groups, as ``octave`` and ``public`` need."""
        return self.worst_at_largest_frequency or self.exact


def _log_lower_factor(theta: Floats) -> Floats:
    """ln Y = -θ - (1-θ) ln(1-θ), by its series where the two terms would cancel."""
    return _by_series(theta, sign=1.0)


def _log_upper_factor(theta: Floats) -> Floats:
    """ln X = θ - (1+θ) ln(1+θ)."""
    return _by_series(theta, sign=-1.0)


def _by_series(theta: Floats, sign: float) -> Floats:
    x = np.atleast_1d(np.asarray(theta, dtype=np.float64)) * sign
    k = np.arange(2, 16, dtype=np.float64)
    series = -np.sum(np.where(np.abs(x) < 0.05, x, 0.0)[..., None] ** k / (k * (k - 1)), axis=-1)
    rest = np.where(x < 1.0, 1.0 - x, 1.0)
    closed = -x - np.where(x < 1.0, (1.0 - x) * np.log(rest), 0.0)
    return np.where(np.abs(x) < 0.05, series, closed).reshape(np.shape(theta))


def chernoff(count: ObservedCount) -> Tails:
    """Simplified Chernoff, U2 and L2 (Eq. 4 and 5)."""
    theta, mean = count.theta, count.mean
    return Tails(np.exp(-(theta**2) / (2 + theta) * mean), np.exp(-(theta**2) / 2 * mean))


def chernoff_size(count: ObservedCount, delta: float) -> Floats:
    """s_g = -2 ln δ / (w θ²) (Theorem 5, Eq. 10)."""
    return np.asarray(-2.0 * np.log(delta) / (count.weight * count.theta**2))


def chernoff_full(count: ObservedCount) -> Tails:
    """Full Chernoff, U1 and L1 (Eq. 2 and 3)."""
    theta, mean = count.theta, count.mean
    return Tails(np.exp(mean * _log_upper_factor(theta)), np.exp(mean * _log_lower_factor(theta)))


def chernoff_full_size(count: ObservedCount, delta: float) -> Floats:
    """s_g = ln δ / (w ln Y) (Theorem 4, Eq. 9)."""
    return np.asarray(np.log(delta) / (count.weight * _log_lower_factor(count.theta)))


def hoeffding(count: ObservedCount) -> Tails:
    """Hoeffding's inequality: exp(-2 n (εpf)²) on either side."""
    tail = np.exp(-2.0 * count.trials * count.shift**2)
    return Tails(tail, tail)


def hoeffding_size(count: ObservedCount, delta: float) -> Floats:
    """The n at which Hoeffding's bound equals δ."""
    return np.asarray(-np.log(delta) / (2.0 * count.shift**2))


def bernstein(count: ObservedCount) -> Tails:
    """Bernstein's inequality with the exact variance: exp(-n (εpf)² / (2v + 2εpf/3))."""
    tail = np.exp(-count.trials * _bernstein_rate(count))
    return Tails(tail, tail)


def bernstein_size(count: ObservedCount, delta: float) -> Floats:
    """The n at which Bernstein's bound equals δ."""
    return np.asarray(-np.log(delta) / _bernstein_rate(count))


def _bernstein_rate(count: ObservedCount) -> Floats:
    return count.shift**2 / (2.0 * count.trial_variance + 2.0 * count.shift / 3.0)


def chebyshev(count: ObservedCount) -> Tails:
    """Cantelli's one-sided form of Chebyshev's inequality: v / (v + n (εpf)²).

    v is the variance where the number of holders is whole; rounding it at random adds to that.
    """
    variance = count.trial_variance
    tail = variance / (variance + count.trials * count.shift**2)
    return Tails(tail, tail)


def chebyshev_size(count: ObservedCount, delta: float) -> Floats:
    """The n at which Cantelli's bound equals δ."""
    return np.asarray(count.trial_variance * (1.0 - delta) / (delta * count.shift**2))


def markov(count: ObservedCount) -> Tails:
    """Markov's inequality: 1/(1+θ) above; it says nothing below, so L = 1."""
    upper = 1.0 / (1.0 + count.theta)
    return Tails(upper, np.ones_like(upper))


def markov_size(count: ObservedCount, delta: float) -> Floats:
    """Markov's bound does not depend on n: any size is private, or none."""
    return np.where(markov(count).upper >= delta, np.inf, 0.0)


def exact(count: ObservedCount) -> Tails:
    """The tails themselves, not a bound of them: δ then means what it says."""
    return Tails(*exact_tails(count))


BOUNDS = Registry(
    "tail bound",
    (
        Bound(
            "chernoff",
            chernoff,
            chernoff_size,
            worst_at_largest_frequency=True,
            label="Chernoff (the paper’s)",
            explanation="Chernoff's bound in its simplified form, as in the paper.",
        ),
        Bound(
            "chernoff-full",
            chernoff_full,
            chernoff_full_size,
            worst_at_largest_frequency=True,
            label="Chernoff in full",
            explanation="Chernoff's bound before it is simplified: a little tighter.",
        ),
        Bound(
            "hoeffding",
            hoeffding,
            hoeffding_size,
            worst_at_largest_frequency=True,
            label="Hoeffding",
            explanation="Hoeffding's inequality, which does not use the variance.",
        ),
        Bound(
            "bernstein",
            bernstein,
            bernstein_size,
            worst_at_largest_frequency=True,
            label="Bernstein",
            explanation="Bernstein's inequality with the exact variance.",
        ),
        Bound(
            "chebyshev",
            chebyshev,
            chebyshev_size,
            worst_at_largest_frequency=True,
            label="Chebyshev",
            explanation="Chebyshev's inequality in Cantelli's one-sided form.",
        ),
        Bound(
            "markov",
            markov,
            markov_size,
            worst_at_largest_frequency=True,
            label="Markov",
            explanation="Markov's inequality, which does not depend on the number of trials.",
        ),
        Bound(
            "exact",
            exact,
            label="Exact tails",
            explanation="The tails themselves: δ is then a true probability.",
        ),
    ),
)


def resolve_bound(bound: str | Bound | TailBound) -> Bound:
    """A bound by its name, as it is, or wrapped around a user's function."""
    if isinstance(bound, Bound):
        return bound
    if callable(bound):
        return Bound(getattr(bound, "__name__", "custom"), bound)
    return BOUNDS.find(bound)


def named_bound(name: str) -> Bound:
    """The bound of a release. One of the publisher's own has a name here, but no tails."""

    def unknown(_: ObservedCount) -> Tails:
        raise PolicyError(
            f"The release was made with a bound of its own, {name!r}, which is not known here: its"
            " sizes cannot be computed."
        )

    return BOUNDS[name] if name in BOUNDS else Bound(name, unknown)
