"""Tail bounds for O*, pluggable (Theorem 3, Corollary 1).

A bound is a function from an :class:`~reconpriv.theory.counts.ObservedCount` to :class:`Tails`:
upper bounds of Pr[(F'-f)/f > ε] and Pr[(F'-f)/f < -ε]. Wrap your own in :class:`Bound`, or hand
the bare function to a policy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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
    size: SizeFunction | None = field(default=None, compare=False)
    worst_at_largest_frequency: bool = False
    label: str = ""
    explanation: str = ""

    @property
    def exact(self) -> bool:
        """True for the tails themselves: δ is a probability, and s_g no function of f alone."""
        return self.tails is exact

    @property
    def sizes_classes(self) -> bool:
        """True if it has a size for a whole class of groups, as ``octave`` and ``public`` need."""
        return self.worst_at_largest_frequency or self.exact


Rates = tuple[Floats, Floats]


@dataclass(frozen=True)
class Exponential:
    """Tails that fall exponentially in the number of trials: U = exp(-n a) and L = exp(-n b)."""

    rates: Callable[[ObservedCount], Rates]

    def __call__(self, count: ObservedCount, /) -> Tails:
        """Both tails at the number of trials."""
        return Tails(*(np.exp(-count.trials * rate) for rate in self.rates(count)))

    def size(self, count: ObservedCount, delta: float) -> Floats:
        """The n at which the smaller tail equals δ."""
        return np.asarray(-np.log(delta) / np.maximum(*self.rates(count)))


def chernoff(count: ObservedCount) -> Rates:
    """Simplified Chernoff: U2 = exp(-μθ²/(2+θ)) and L2 = exp(-μθ²/2) (Eq. 4 and 5).

    So s_g = -2 ln δ / (w θ²) (Theorem 5, Eq. 10).
    """
    square = count.weight * count.theta**2
    return square / (2.0 + count.theta), square / 2.0


def chernoff_full(count: ObservedCount) -> Rates:
    """Full Chernoff: U1 = X^μ and L1 = Y^μ (Eq. 2 and 3), so s_g = ln δ / (w ln Y) (Eq. 9)."""
    theta, weight = count.theta, count.weight
    return -weight * log_factor(-theta), -weight * log_factor(theta)


_SERIES = [*(-1.0 / (k * (k - 1)) for k in range(15, 1, -1)), 0.0, 0.0]


def log_factor(x: Floats) -> Floats:
    """-x - (1-x) ln(1-x), by its series where the terms would cancel: ln Y of θ and ln X of -θ."""
    rest = np.maximum(1.0 - x, np.finfo(float).tiny)
    return np.where(np.abs(x) < 0.05, np.polyval(_SERIES, x), -x - rest * np.log(rest))


def hoeffding(count: ObservedCount) -> Rates:
    """Hoeffding's inequality: exp(-2 n (εpf)²) on either side."""
    rate = 2.0 * count.shift**2
    return rate, rate


def bernstein(count: ObservedCount) -> Rates:
    """Bernstein's inequality with the exact variance: exp(-n (εpf)² / (2v + 2εpf/3))."""
    rate = count.shift**2 / (2.0 * count.trial_variance + 2.0 * count.shift / 3.0)
    return rate, rate


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


def _exponential(
    name: str, rates: Callable[[ObservedCount], Rates], label: str, explanation: str
) -> Bound:
    tails = Exponential(rates)
    return Bound(
        name,
        tails,
        tails.size,
        worst_at_largest_frequency=True,
        label=label,
        explanation=explanation,
    )


BOUNDS = Registry(
    "tail bound",
    (
        _exponential(
            "chernoff",
            chernoff,
            "Chernoff (the paper’s)",
            "Chernoff's bound in its simplified form, as in the paper.",
        ),
        _exponential(
            "chernoff-full",
            chernoff_full,
            "Chernoff in full",
            "Chernoff's bound before it is simplified: a little tighter.",
        ),
        _exponential(
            "hoeffding",
            hoeffding,
            "Hoeffding",
            "Hoeffding's inequality, which does not use the variance.",
        ),
        _exponential(
            "bernstein", bernstein, "Bernstein", "Bernstein's inequality with the exact variance."
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
            explanation="The tails themselves: the doubt is then a true probability.",
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
