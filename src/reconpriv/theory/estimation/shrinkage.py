"""A direct estimate of a count, shrunk towards that of a model by the errors of both.

Of N records, c hold a value. The best unbiased count L = c + e has variance ψ, and a model expects
S = N π. The model is fitted to such counts of whole margins, so it shares a part of their noise: by
Gauss and Markov, that of S has a variance E, and E is also its covariance with any unbiased count.
Beyond it, true counts scatter around the model with variance

    A = B + σ² B²,   B = N π (1 - π):

B is what independent records give, and σ the standard deviation of what the model leaves out, on
the scale of the logit. An unbiased count D of variance ψ_D is then off the model by

    E[(D - S)²] = ψ_D - E + A,

from which σ² follows by moments, over all counts of one kind. What both share cannot be shrunk; the
rest is, w L + (1 - w) S with w = A/(A + ψ - E), and leaves a mean squared error of E + w (ψ - E).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconpriv.theory.arrays import Floats, quotient

_ROUNDS = 8  # of estimating σ² and weighing counts by it; it settles in a few


@dataclass(frozen=True)
class Shrunk:
    """Counts that lean on a model, their mean squared errors, and the weights of unbiased ones."""

    count: Floats
    error: Floats
    weight: Floats


def model_error(binomial: Floats, departure: float) -> Floats:
    """A = B + σ² B²: how far true counts are from a model that is known exactly."""
    return np.asarray(binomial + departure * binomial**2)


def estimated_departure(gaps: Floats, variances: Floats, shared: Floats, binomial: Floats) -> float:
    """σ² by moments, at least 0: from D - S, ψ_D, E and B of many counts.

    Each count weighs as much as it tells: the inverse variance of (D - S)², if that is normal.
    """
    beyond = gaps**2 - variances + np.minimum(shared, variances) - binomial
    squares, departure = binomial**2, 0.0
    for _ in range(_ROUNDS):
        spread = variances + model_error(binomial, departure)
        weight = quotient(squares, spread**2)
        total = float(np.sum(weight * squares))
        departure = max(float(np.sum(weight * beyond)) / total, 0.0) if total > 0 else 0.0
    return departure


def shrunk(
    unbiased: Floats, model: Floats, variance: Floats, shared: Floats, error: Floats
) -> Shrunk:
    """Shrink L towards S, given ψ, E (at most ψ) and A."""
    both = np.minimum(shared, variance)
    own = variance - both
    # Without any noise of its own, the unbiased count has nothing to gain.
    weight = np.divide(error, error + own, out=np.ones_like(own), where=own > 0)
    return Shrunk(weight * unbiased + (1.0 - weight) * model, both + weight * own, weight)
