"""Weighted totals: their covariance against exact enumeration, and sums of matrices."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from reconpriv.theory.estimation.combined_limits import Range, fieller_limits
from reconpriv.theory.estimation.weighted_totals import (
    TotalSums,
    total_covariances,
    total_estimates,
)
from reconpriv.theory.perturbation import perturbation_matrix

P, VALUES = 0.4, np.array([[1.0, 0.0, 0.0], [2.0, 5.0, 11.0]])
WEIGHTS = (3.0, 0.5)


def sums(observed):
    """The sums of one group that is not sampled; ``observed`` counts the three values."""
    observed = np.asarray(observed, dtype=float)
    u, n = np.array(WEIGHTS), observed.sum()
    both = np.outer(u, u)
    first, second = VALUES @ observed, (VALUES * observed) @ VALUES.T
    zero = np.zeros((1, 2, 2))
    return TotalSums(
        (u * first)[None], (u * n)[None], (both * second)[None], (both * first[:, None])[None],
        (both * n)[None], zero, zero, zero, zero, zero,
    )  # fmt: skip


def outcomes(true):
    """Every table of counts that the records may be published as, with its probability."""
    matrix = perturbation_matrix(P, 3)
    for drawn in itertools.product(range(3), repeat=len(true)):
        chance = np.prod([matrix[to, of] for to, of in zip(drawn, true, strict=True)])
        yield np.bincount(drawn, minlength=3), chance


@pytest.mark.parametrize("true", [(0,), (1, 2), (0, 0, 2, 1)])
def test_estimates_and_covariances_are_unbiased(true):
    """By enumeration: E L̂ is the total, and the mean covariance is that of L̂."""
    mean, second, expected = np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2))
    for observed, chance in outcomes(true):
        found = sums(observed)
        estimate = total_estimates(found, VALUES, P)[0]
        mean += chance * estimate
        second += chance * np.outer(estimate, estimate)
        expected += chance * total_covariances(found, VALUES, P)[0]
    truth = np.array(WEIGHTS) * VALUES[:, list(true)].sum(axis=1)
    assert mean == pytest.approx(truth)
    assert second - np.outer(mean, mean) == pytest.approx(expected)
    for wrong in (0.7 * P, 1.3 * P):
        off = sum(c * total_covariances(sums(o), VALUES, wrong)[0] for o, c in outcomes(true))
        assert not np.allclose(off, expected, rtol=0.1)


def test_covariances_are_never_negative():
    for observed in itertools.product(range(4), repeat=3):
        if sum(observed):
            matrix = total_covariances(sums(observed), VALUES, P)[0]
            assert np.linalg.eigvalsh(matrix).min() > -1e-9 * np.trace(matrix)


def test_rounded_quotas_vary_by_a_sixth_per_run_but_no_more_than_a_simple_sample():
    """One sampled group of 100 records, two for each trial; the first value is asked about."""

    def rounding(first):
        values, n, s = np.array([[1.0, 0.0, 0.0]]), 100.0, 2.0
        observed = P * first + (1 - P) / 3 * n  # as expected
        some = [np.array([[[x]]]) for x in (s * observed, s * observed, s * n)]
        plain = TotalSums(
            np.array([[observed]]), np.array([[n]]), *some, *some, np.zeros((1, 1, 1)),
            np.zeros((1, 1, 1)),
        )  # fmt: skip
        with_squares = replace(plain, squares=np.array([[[s * s]]]))
        return (total_covariances(with_squares, values, P) - total_covariances(plain, values, P))[
            0, 0, 0
        ]

    assert rounding(40.0) == pytest.approx(4.0 / 6.0)
    assert rounding(0.1) == pytest.approx(2.0 * 0.1, rel=0.01)
    assert rounding(0.0) == pytest.approx(0.0, abs=1e-12)


def test_an_average_among_perhaps_nobody_may_be_anything_possible():
    covariance = np.array([[[900.0, 30.0], [30.0, 1.0]]])
    possible = Range(np.array([20.0]), np.array([60.0]))
    ends = fieller_limits(np.array([45.0]), np.array([1.5]), covariance, 1.96, possible)
    assert (ends[0][0], ends[1][0]) == (20.0, 60.0)
