"""The observed count O* of a value, and Theorem 2: errors of F' as errors of O*.

This is the one place where a relative error ε of the reconstructed frequency F' becomes a
relative error θ of the observed count O*. Everything that bounds a tail starts from here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from reconpriv.errors import PolicyError
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.perturbation import (
    check_domain_size,
    check_retention,
    keep_probability,
    replacement_probability,
)

# Products that are whole numbers on paper must count as whole.
_WHOLE = 1e-9
# θ is a quotient of rounded numbers; ε exactly at its limit must not be refused.
_THETA_SLACK = 1e-12


@dataclass(frozen=True)
class ObservedCount:
    """O* for a value of frequency f among n independent trials (Lemma 1), and the ε asked about.

    ``trials`` and ``frequency`` are arrays of one shape; the rest are numbers.
    """

    trials: Floats
    frequency: Floats
    retention: float
    domain_size: int
    epsilon: float

    def take(self, some: Ints) -> ObservedCount:
        """Some of the elements."""
        return replace(self, trials=self.trials[some], frequency=self.frequency[some])

    @property
    def weight(self) -> Floats:
        """w = fp + (1-p)/m, the mean of one trial."""
        return self.frequency * self.retention + self.replacement

    @property
    def replacement(self) -> float:
        """t = (1-p)/m."""
        return replacement_probability(self.retention, self.domain_size)

    @property
    def mean(self) -> Floats:
        """μ = E[O*] = n w (Lemma 1 (i))."""
        return self.trials * self.weight

    @property
    def trial_variance(self) -> Floats:
        """The variance of one trial, averaged over holders and non-holders of the value."""
        r, t = keep_probability(self.retention, self.domain_size), self.replacement
        return self.frequency * (r * (1 - r)) + (1 - self.frequency) * (t * (1 - t))

    @property
    def shift(self) -> Floats:
        """εpf, the error of one trial that amounts to a relative error ε of F'."""
        return self.epsilon * self.retention * self.frequency

    @property
    def theta(self) -> Floats:
        """θ = ε n p f / μ = ε p f / w (Theorem 2)."""
        return np.minimum(self.shift / self.weight, 1.0)


def rounded_holders(holders: Floats) -> tuple[Floats, Floats]:
    """A quota n f rounded down, and the probability with which a systematic sample rounds it up."""
    below = np.floor(holders + _WHOLE)
    share = np.clip(holders - below, 0.0, 1.0)
    return below, np.where(share < _WHOLE, 0.0, share)


def counts_beyond(centre: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """The lowest count that is more than ``reach`` above the centre, and the highest below it."""
    return np.floor(centre + reach + _WHOLE) + 1.0, np.ceil(centre - reach - _WHOLE) - 1.0


def epsilon_limit(retention: float, domain_size: int, frequency: float = 1.0) -> float:
    """1 + (1-p)/(m p f): up to here θ <= 1 and the lower tail is not empty (Corollary 2)."""
    return 1.0 + replacement_probability(retention, domain_size) / (retention * frequency)


def observed_count(
    trials: ArrayLike, frequency: ArrayLike, *, retention: float, domain_size: int, epsilon: float
) -> ObservedCount:
    """Check the ranges of Corollary 2 and describe O*; refuse an ε past θ = 1.

    The message names the limit for f = 1, which is safe for every group and discloses none.
    """
    check_retention(retention)
    check_domain_size(domain_size)
    n, f = np.broadcast_arrays(
        np.asarray(trials, dtype=np.float64), np.asarray(frequency, dtype=np.float64)
    )
    if f.size and not ((f > 0).all() and (f <= 1).all()):
        raise PolicyError("A frequency must lie in (0, 1]: only occurring values are tested.")
    if not epsilon > 0:
        raise PolicyError(f"The relative error ε must be above 0; got {epsilon:g}.")
    limit = epsilon_limit(retention, domain_size, float(f.max())) if f.size else np.inf
    if epsilon > limit * (1 + _THETA_SLACK):
        safe = epsilon_limit(retention, domain_size)
        raise PolicyError(
            f"ε = {epsilon:g} is past the range of the tail bounds (θ > 1: no estimate can be"
            f" that far below the truth) for p = {retention:g} and {domain_size} sensitive values.",
            hint=f"Keep ε at or below 1 + (1-p)/(m p) = {safe:.6g}.",
        )
    return ObservedCount(n, f, retention, domain_size, epsilon)
