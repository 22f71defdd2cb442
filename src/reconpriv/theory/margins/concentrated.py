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

from reconpriv.errors import PolicyError
from reconpriv.messages.shares import check_share

_STEPS = 200  # of a search; each takes a constant share off what is left
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
# ρ is rounded down to this many digits, so that every machine draws noise of the same variance.
_DIGITS = 6


_LARGEST = 1_000_000  # such margins have no noise to speak of


def check_epsilon(epsilon: float) -> float:
    """Return ε if it is a positive number."""
    if not 0 < epsilon <= _LARGEST:
        raise PolicyError(
            f"The ε of margins must be above 0 and at most {_LARGEST:,}; got {epsilon:g}.",
            hint="ε = 1 is usual; smaller is stricter and adds more noise.",
        )
    return float(epsilon)


def check_delta(delta: float) -> float:
    """Return δ if it is a probability strictly between 0 and 1."""
    hint = "It should be far below one over the number of records; 1e-9 is the default."
    return check_share(delta, "The δ of margins", hint=hint)


def check_rho(rho: float) -> float:
    """Return ρ if it is a positive number."""
    if not 0 < rho <= _LARGEST:
        raise PolicyError(
            f"The ρ of margins must be above 0 and at most {_LARGEST:,}; got {rho:g}.",
            hint="ρ = 0.015 is about ε = 1 at δ = 1e-9; smaller is stricter.",
        )
    return float(rho)


def epsilon_of(rho: float, delta: float) -> float:
    """The smallest ε with which ρ-zCDP is (ε, δ)-differentially private."""
    check_rho(rho)
    check_delta(delta)

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
    check_epsilon(epsilon)
    check_delta(delta)
    low, high = 0.0, epsilon  # ε is above ρ for every ρ and δ that matter; widened if it is not
    while epsilon_of(high, delta) < epsilon:
        high *= 2.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        if epsilon_of(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return _rounded_down(low)


def _rounded_down(rho: float) -> float:
    """ρ to a few digits: what processors compute alike."""
    place = _DIGITS - 1 - math.floor(math.log10(rho))
    return float(f"{math.floor(rho * 10.0**place)}e{-place}")


def _lowest(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a unimodal function is lowest: golden section."""
    inner = high - _GOLDEN * (high - low)
    outer = low + _GOLDEN * (high - low)
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
