"""Zero-concentrated differential privacy (ρ-zCDP), and the (ε, δ) that it implies.

Noise of variance σ² on counts whose vector moves by at most Δ (Euclidean) between neighbouring
tables is ρ-zCDP with ρ = Δ²/(2σ²), for the discrete Gaussian as for the continuous one. The
conversion is that of Canonne, Kamath and Steinke (2020, Proposition 7): ρ-zCDP implies (ε, δ) with

    δ = inf over α > 1 of  exp((α-1)(αρ-ε)) / (α-1) · (1 - 1/α)^α.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from reconpriv.theory.search import last_true

# ρ is rounded down to this many digits, so that every machine draws noise of the same variance.
_DIGITS = 6
_STEPS = 200  # of a search; each takes a constant share off what is left
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def epsilon_of(rho: float, delta: float) -> float:
    """The smallest ε with which ρ-zCDP is (ε, δ)-differentially private."""

    def at(log_excess: float) -> float:
        """ε for α = 1 + exp(log_excess); unimodal."""
        excess = math.exp(log_excess)
        alpha = 1.0 + excess
        return alpha * rho - math.log1p(1.0 / excess) - (math.log(delta * alpha)) / excess

    return max(at(_lowest(at, -30.0, 60.0)), 0.0)


# A search of searches, asked again for every setting that a report names.
@lru_cache(maxsize=256)
def rho_of(epsilon: float, delta: float) -> float:
    """The largest ρ, to six digits, that implies (ε, δ)-differential privacy."""
    high = epsilon  # ε is above ρ for every ρ and δ that matter; widened if it is not
    while epsilon_of(high, delta) < epsilon:
        high *= 2.0
    rho = last_true(0.0, high, lambda rho: epsilon_of(rho, delta) <= epsilon)
    place = _DIGITS - 1 - math.floor(math.log10(rho))
    return float(f"{math.floor(rho * 10.0**place)}e{-place}")


def _lowest(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a unimodal function is lowest: golden section."""
    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_inner, at_outer = function(inner), function(outer)
    for _ in range(_STEPS):
        if at_inner <= at_outer:
            high, outer, at_outer = outer, inner, at_inner
            inner = high - _GOLDEN * (high - low)
            at_inner = function(inner)
        else:
            low, inner, at_inner = inner, outer, at_outer
            outer = low + _GOLDEN * (high - low)
            at_outer = function(outer)
    return (low + high) / 2.0
