"""Limits of sums, differences and ratios of parts."""

import numpy as np
import pytest

from reconpriv.theory.estimation.combined_limits import (
    Parts,
    Range,
    combination_limits,
    errors_from_zero,
    fieller_limits,
    ratio_limits,
)

Z = 1.96
WIDE = 1e6


def normal_parts(values, errors, correlation=0.0, least=-WIDE, most=WIDE):
    """Parts with symmetric limits; nothing is impossible unless it is said."""
    value, error = np.array([values]), np.array([errors])
    joint = np.full((1, len(values), len(values)), correlation)
    joint[0][np.diag_indices(len(values))] = 1.0
    covariance = joint * error[:, :, None] * error[:, None, :]
    ends = (np.full_like(value, least), np.full_like(value, most))
    return Parts(value, value - Z * error, value + Z * error, *ends, covariance)


@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.8])
def test_symmetric_limits_give_the_normal_interval(correlation):
    weights = np.array([1.0, -2.0, 0.5])
    parts = normal_parts([10.0, 4.0, 7.0], [3.0, 4.0, 1.0], correlation)
    low, high = combination_limits(weights, parts, Z)
    half = Z * np.sqrt(weights @ parts.covariance[0] @ weights)
    assert (low[0], high[0]) == (pytest.approx(5.5 - half), pytest.approx(5.5 + half))


def test_a_part_without_errors_only_moves_the_limits():
    low, high = combination_limits(np.ones(2), normal_parts([10.0, 4.0], [3.0, 0.0]), Z)
    assert (low[0], high[0]) == (pytest.approx(14 - 3 * Z), pytest.approx(14 + 3 * Z))


def test_no_sum_is_beyond_the_ends_of_its_parts():
    parts = normal_parts([10.0, -4.0], [3.0, 4.0], least=0.0, most=12.0)
    low, high = combination_limits(np.array([1.0, -1.0]), parts, Z)
    assert high[0] == 12.0
    assert low[0] == pytest.approx(14.0 - 5 * Z)


def test_distances_that_cancel_leave_the_standard_error():
    """Limits that do not quite fit each other must not make a difference look certain."""
    parts = normal_parts([10.0, 4.0], [3.0, 3.1], 0.99)
    close = parts._replace(low=parts.value - 3.0 * Z, high=parts.value + 3.0 * Z)
    weights = np.array([1.0, -1.0])
    low, high = combination_limits(weights, close, Z)
    error = np.sqrt(weights @ parts.covariance[0] @ weights)
    assert high[0] - low[0] == pytest.approx(2 * Z * error)


def test_symmetric_limits_give_fiellers_interval_of_a_ratio():
    a, b, ea, eb, rho = 10.0, 20.0, 1.0, 2.0, 0.3
    parts = normal_parts([a, b], [ea, eb], rho)
    top, bottom = np.eye(2)
    low, high = ratio_limits(top, bottom, parts, Z, (0.0, np.inf))
    wide = Range(np.array([-100.0]), np.array([100.0]))
    ends = fieller_limits(np.array([a]), np.array([b]), parts.covariance, Z, wide)
    assert (low[0], high[0]) == (pytest.approx(ends[0][0]), pytest.approx(ends[1][0]))
    assert low[0] < a / b < high[0]


def test_a_ratio_to_what_may_be_nothing_has_no_upper_limit():
    low, high = ratio_limits(*np.eye(2), normal_parts([10.0, 2.0], [1.5, 1.5]), Z, (0.0, np.inf))
    assert np.isinf(high[0])
    assert 0 < low[0] < 5.0


def test_a_share_of_perhaps_nobody_may_be_anything():
    parts = normal_parts([1.0, 1.0], [2.0, 2.0], least=0.0, most=9.0)
    low, high = ratio_limits(np.array([1.0, 0.0]), np.ones(2), parts, Z, (0.0, 1.0))
    assert (low[0], high[0]) == (0.0, 1.0)


def test_a_ratio_of_a_quantity_to_itself_is_one():
    low, high = ratio_limits(np.ones(1), np.ones(1), normal_parts([10.0], [1.0]), Z, (0.0, np.inf))
    assert low[0] == pytest.approx(1.0) and high[0] == pytest.approx(1.0)


@pytest.mark.parametrize("gap", [0.0, 3.0, 9.7, 9.9, 20.0])
def test_zero_is_beyond_the_limits_if_it_is_more_than_z_errors_away(gap):
    weights = np.array([1.0, -1.0])
    for values in ([10.0 + gap, 10.0], [10.0, 10.0 + gap]):
        for most in (WIDE, 10.0):
            parts = normal_parts(values, [3.0, 4.0], most=most)
            low, high = combination_limits(weights, parts, Z)
            apart = not low[0] <= 0 <= high[0]
            assert apart == (errors_from_zero(weights, parts, Z)[0] > Z)
    assert errors_from_zero(weights, normal_parts([9.0, 2.0], [3.0, 4.0]), Z)[0] == (
        pytest.approx(7.0 / 5.0)
    )
