"""ρ of zero-concentrated differential privacy against the (ε, δ) that it implies."""

from __future__ import annotations

import math

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconpriv.errors import PolicyError
from reconpriv.policy.margin_settings import Margins
from reconpriv.theory.margins.concentrated import epsilon_of, rho_of

# ρ, δ and ε: the best of a million α.
KNOWN = [
    (0.015, 1e-9, 1.0009389),
    (0.1, 1e-6, 2.1419389),
    (0.5, 1e-5, 4.7283870),
    (1.0, 1e-9, 9.5214637),
]


def on_a_grid(rho, delta):
    """ε by brute force: the best of many α."""
    alpha = 1.0 + np.exp(np.linspace(-12.0, 12.0, 400_001))
    at = rho * alpha + np.log1p(-1.0 / alpha) - np.log(delta * alpha) / (alpha - 1.0)
    return max(float(at.min()), 0.0)


@pytest.mark.parametrize(("rho", "delta", "epsilon"), KNOWN)
def test_known_values(rho, delta, epsilon):
    assert epsilon_of(rho, delta) == pytest.approx(epsilon, abs=2e-7)
    assert epsilon_of(rho, delta) == pytest.approx(on_a_grid(rho, delta), rel=1e-8)


@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-5, 0.01])
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0, 22.0, 300.0])
def test_the_conversion_is_that_of_opendp(scale, delta):
    """OpenDP's own Gaussian on one count that moves by one: ρ = 1/(2σ²)."""
    dp.enable_features("contrib")
    domain = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    mechanism = dp.m.make_gaussian(*domain, scale=scale)
    theirs = dp.c.make_zCDP_to_approxDP(mechanism).map(1).epsilon(delta)
    assert epsilon_of(1.0 / (2.0 * scale**2), delta) == pytest.approx(theirs, rel=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(math.log(1e-4), math.log(30.0)).map(math.exp),
    st.floats(math.log(1e-15), math.log(0.1)).map(math.exp),
)
def test_one_is_the_inverse_of_the_other_to_six_digits(epsilon, delta):
    rho = rho_of(epsilon, delta)
    assert epsilon_of(rho, delta) <= epsilon * (1 + 1e-7)
    assert epsilon_of(rho * (1 + 2e-5), delta) > epsilon
    assert rho == float(f"{rho:.6g}")


def test_both_rise_with_each_other_and_fall_with_delta():
    rhos = [rho_of(epsilon, 1e-9) for epsilon in np.geomspace(0.01, 20, 25)]
    assert rhos == sorted(set(rhos))
    by_delta = [epsilon_of(0.015, delta) for delta in np.geomspace(1e-15, 0.5, 25)]
    assert by_delta == sorted(by_delta, reverse=True)


def test_the_simple_conversion_is_never_better():
    """ε = ρ + 2 sqrt(ρ ln(1/δ)), of Bun and Steinke."""
    for rho in np.geomspace(1e-4, 5, 20):
        for delta in (1e-12, 1e-9, 1e-3):
            simple = rho + 2 * math.sqrt(rho * math.log(1 / delta))
            assert 0.3 * simple < epsilon_of(rho, delta) < simple


def test_a_large_delta_may_need_no_epsilon_at_all():
    assert epsilon_of(1e-6, 0.5) == 0.0


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["epsilon", "rho", "delta"])
def test_a_measure_that_is_not_positive_is_refused(name, bad):
    what = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}[name]
    with pytest.raises(PolicyError, match=f"^The {what} of margins must "):
        Margins(**{"rho": 1.0} if name == "delta" else {}, **{name: bad})
