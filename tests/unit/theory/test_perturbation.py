"""Eq. 1: the perturbation matrix, and what p promises for one record."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconpriv.errors import PolicyError
from reconpriv.theory.perturbation import (
    amplification,
    keep_probability,
    local_privacy_level,
    perturbation_matrix,
    posterior_limit,
    retention_for_privacy,
)

FIXED = settings(deadline=None, derandomize=True, max_examples=60)
RETENTION = st.floats(0.01, 0.99)
DOMAIN = st.integers(2, 40)


@st.composite
def beliefs(draw):
    rho1 = draw(st.floats(0.01, 0.9))
    return rho1, draw(st.floats(rho1 + 0.02, 0.99))


def test_matrix_written_out_by_hand_for_three_values():
    assert perturbation_matrix(0.4, 3) == pytest.approx(
        np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])
    )


@FIXED
@given(RETENTION, DOMAIN)
def test_every_column_of_the_matrix_is_a_distribution(p, m):
    matrix = perturbation_matrix(p, m)
    assert matrix.sum(axis=0) == pytest.approx(np.ones(m))
    assert (matrix > 0).all()
    assert np.diag(matrix) == pytest.approx(keep_probability(p, m))


def test_golden_retention_for_rho_privacy():
    assert retention_for_privacy(0.1, 0.5, 10) == pytest.approx(4 / 9, rel=1e-15)


@FIXED
@given(beliefs(), DOMAIN)
def test_retention_for_privacy_makes_the_worst_posterior_equal_rho2(pair, m):
    rho1, rho2 = pair
    p = retention_for_privacy(rho1, rho2, m)
    r = p + (1 - p) / m
    t = (1 - p) / m
    assert rho1 * r / (rho1 * r + (1 - rho1) * t) == pytest.approx(rho2, rel=1e-9)


@FIXED
@given(beliefs(), DOMAIN)
def test_posterior_limit_is_the_inverse_of_retention_for_privacy(pair, m):
    rho1, rho2 = pair
    assert posterior_limit(retention_for_privacy(rho1, rho2, m), m, rho1) == pytest.approx(rho2)


def test_amplification_by_hand():
    assert amplification(0.1, 0.5) == pytest.approx(9.0)


def test_local_privacy_level_is_the_log_of_the_largest_ratio_of_the_matrix():
    matrix = perturbation_matrix(0.3, 7)
    assert local_privacy_level(0.3, 7) == pytest.approx(math.log(matrix[0, 0] / matrix[0, 1]))


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, 1.1, math.nan, math.inf])
@pytest.mark.parametrize("call", [perturbation_matrix, local_privacy_level])
def test_a_retention_or_domain_out_of_range_is_refused(call, p):
    with pytest.raises(PolicyError, match="retention probability p"):
        call(p, 3)
    with pytest.raises(PolicyError, match="at least two values"):
        call(0.5, 1)


@pytest.mark.parametrize("m", [1, 0, -3])
def test_a_domain_of_fewer_than_two_values_is_refused(m):
    with pytest.raises(PolicyError, match="at least two values"):
        retention_for_privacy(0.1, 0.5, m)


@pytest.mark.parametrize("pair", [(0.5, 0.5), (0.5, 0.1), (0.0, 0.5), (0.5, 1.0), (math.nan, 0.5)])
def test_beliefs_out_of_order_are_refused(pair):
    with pytest.raises(PolicyError, match="0 < ρ1 < ρ2 < 1"):
        retention_for_privacy(*pair, 10)


@pytest.mark.parametrize("rho1", [0.0, 1.0, math.nan])
def test_a_prior_out_of_range_is_refused(rho1):
    with pytest.raises(PolicyError, match="prior"):
        posterior_limit(0.5, 10, rho1)


@pytest.mark.parametrize(("rho1", "rho2"), [(1e-320, 0.999999999999), (1e-30, 0.9)])
def test_beliefs_too_far_apart_are_named(rho1, rho2):
    with pytest.raises(PolicyError, match="ρ1"):
        retention_for_privacy(rho1, rho2, 5)
