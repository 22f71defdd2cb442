"""Any transition matrix: what is refused, what it promises, and the variance it causes."""

import math

import numpy as np
import pytest

from reconpriv.errors import PolicyError
from reconpriv.theory.estimation.reconstruction import count_variance
from reconpriv.theory.estimation.transition import (
    check_transition,
    condition_number,
    covariances,
    frequency_limits,
    keep_or_draw,
    made_invariant,
    transition_privacy_level,
    undo,
    unit_variances,
    variances,
)
from reconpriv.theory.perturbation import local_privacy_level, perturbation_matrix

SHARES = np.array([0.5, 0.3, 0.15, 0.05])
UNEVEN = np.array(
    [[0.8, 0.1, 0.1, 0.0], [0.1, 0.6, 0.2, 0.1], [0.2, 0.1, 0.7, 0.0], [0.05, 0.15, 0.1, 0.7]]
)


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        ([["a", "b"], ["c", "d"]], "not one of numbers"),
        ([[1.0, 0.0]], "a row and a column for each of the 2 values of the domain; got 1 x 2"),
        (0.5, "got a single number"),
        ([[1.1, -0.1], [0.0, 1.0]], "negative or no number"),
        ([[math.nan, 1.0], [0.0, 1.0]], "negative or no number"),
        ([[0.9, 0.0], [0.2, 0.8]], "Row 1 of the matrix adds up to 0.9, not to 1. Divide each row"),
        ([[0.9, 0.3], [0.1, 0.7]], "Row 1 of the matrix adds up to 1.2, not to 1. Transpose it"),
        ([[0.0, 1.0], [1.0, 0.0]], "randomises nothing"),
        ([[0.5, 0.5], [0.5, 0.5]], "singular, or nearly so"),
        ([[0.5, 0.5], [0.5 + 1e-12, 0.5 - 1e-12]], "singular, or nearly so"),
    ],
)
def test_a_matrix_that_cannot_be_used_is_refused_in_one_sentence(matrix, sentence):
    with pytest.raises(PolicyError) as refusal:
        check_transition(matrix, 2)
    assert sentence in str(refusal.value)


def test_rows_that_add_up_to_1_but_for_rounding_are_taken():
    third = 1 / 3
    rows = [[0.4, 0.3, 0.3], [third, third, 1 - 2 * third], [0.1, 0.2, 0.7 - 1e-12]]
    assert check_transition(rows, 3).tolist() == rows


def test_uniform_replacement_is_a_special_case():
    p, m, n = 0.4, 4, 500
    matrix = perturbation_matrix(p, m)
    assert condition_number(matrix) == pytest.approx(1 / p)
    assert transition_privacy_level(matrix) == pytest.approx(local_privacy_level(p, m))
    assert undo(matrix, SHARES @ matrix) == pytest.approx(SHARES)
    known = count_variance(SHARES * n, n, retention=p, domain_size=m) / n**2
    assert variances(matrix, SHARES, n) == pytest.approx(known)
    assert np.diag(covariances(matrix, SHARES, n)) == pytest.approx(known)


def test_the_privacy_level_is_the_largest_ratio_within_a_column():
    assert transition_privacy_level(np.array([[0.9, 0.1], [0.3, 0.7]])) == pytest.approx(
        math.log(7)
    )
    assert transition_privacy_level(UNEVEN) == math.inf


def test_an_unpublished_value_has_no_say_in_the_privacy_level():
    assert transition_privacy_level(np.array([[0.6, 0.4, 0.0]] * 3)) == 0.0


def test_both_invariant_matrices_leave_the_shares_as_they_are():
    for matrix in (keep_or_draw(SHARES, 0.3), made_invariant(UNEVEN, SHARES)):
        assert matrix.sum(axis=1) == pytest.approx(np.ones(4))
        assert SHARES @ matrix == pytest.approx(SHARES)
    assert pytest.approx(SHARES) != SHARES @ UNEVEN


def test_values_that_nobody_has_stand_in_the_way_of_an_invariant_matrix():
    with pytest.raises(PolicyError, match="a value that nobody has"):
        made_invariant(UNEVEN, np.array([0.5, 0.5, 0.0, 0.0]))


def test_covariances_are_those_of_multinomial_draws_and_of_no_matrix_30_percent_off():
    counts = np.array([500, 300, 150, 50])
    rng = np.random.default_rng(3)
    draws = sum(rng.multinomial(c, row, size=20_000) for c, row in zip(counts, UNEVEN, strict=True))
    inverse = np.linalg.inv(UNEVEN)
    found = np.cov((draws / 1000) @ inverse, rowvar=False)
    expected = covariances(UNEVEN, SHARES, 1000)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs(found - expected).max() < 0.05 * scale.max()
    assert (np.abs(found - expected) / scale).max() < 0.05
    for factor in (0.7, 1.3):
        assert (np.abs(found - factor * expected) / scale).max() > 0.2


def test_a_variance_is_never_below_the_smallest_that_is_possible():
    unit = unit_variances(UNEVEN)
    impossible = undo(UNEVEN, np.array([0.0, 0.0, 0.0, 1.0]))
    assert (impossible < 0).any()
    assert (variances(UNEVEN, impossible, 10) >= unit.min(axis=0) / 10).all()


def test_limits_lie_within_0_to_1_around_the_estimate_and_shrink_with_the_records():
    estimate = np.array([-0.02, 0.5, 0.3, 0.22])
    low, high = frequency_limits(UNEVEN, estimate, 100, quantile=1.96)
    assert low[0] == 0.0
    assert high[0] > 0.0
    assert ((low >= 0) & (low <= np.clip(estimate, 0, 1)) & (estimate <= high) & (high <= 1)).all()
    narrow = frequency_limits(UNEVEN, estimate, 10_000, quantile=1.96)
    assert (narrow[1] - narrow[0] < high - low).all()


def test_limits_hold_where_one_value_has_every_record():
    low, high = frequency_limits(UNEVEN, np.array([1.0, 0.0, 0.0, 0.0]), 50, quantile=1.96)
    assert high[0] == 1.0
    assert 0 < low[0] < 1
