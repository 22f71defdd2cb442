"""Bounds on totals over all arrangements, against every arrangement of small groups."""

from itertools import permutations

import numpy as np
import pytest

from reconpriv.theory.estimation.arrangements import Weights, lower_bound, upper_bound

RNG = np.random.default_rng(7)
CASES = [
    (RNG.choice([-1.0, 0.0, 0.5, 2.0], 6), RNG.choice(values, 6))
    for values in ([0.0, 1.0], [0.0, 1.0], [-2.0, 3.0], [-1.0, 0.0, 4.0])
    for _ in range(5)
]


def ends(v, b):
    totals = [float(np.dot(v, one)) for one in permutations(b)]
    return min(totals), max(totals)


def bounds(v, b, share):
    """The limits of one group, from the weights of its records and Σ b."""
    weights = Weights.of(v, np.ones(v.size), np.zeros(v.size, dtype=np.int64), 1)
    least, most = np.array([b.min()]), np.array([b.max()])
    given = np.array([share]), least, most
    return [
        float((bound.weight * b.sum() + bound.constant)[0])
        for bound in (lower_bound(weights, *given), upper_bound(weights, *given))
    ]


@pytest.mark.parametrize(("v", "b"), CASES)
def test_no_arrangement_is_beyond_the_bounds(v, b):
    lowest, highest = ends(v, b)
    for share in np.linspace(0, 1, 11):
        low, high = bounds(v, b, share)
        assert low <= lowest + 1e-9 and highest - 1e-9 <= high


@pytest.mark.parametrize(("v", "b"), [case for case in CASES if np.unique(case[1]).size == 2])
def test_two_values_have_bounds_that_an_arrangement_reaches(v, b):
    share = float((b == b.max()).mean())
    assert bounds(v, b, share) == pytest.approx(ends(v, b))


def test_equal_weights_leave_no_room():
    b = np.array([0.0, 1.0, 5.0, 5.0])
    for share in (0.0, 0.4, 1.0):
        assert bounds(np.full(4, 3.0), b, share) == pytest.approx([33.0, 33.0])


def test_groups_are_bounded_each_by_itself():
    weight = np.array([1.0, 0.0, 2.0, 2.0, 0.0])
    records = np.array([3.0, 7.0, 5.0, 1.0, 4.0])
    group = np.array([1, 1, 0, 2, 2])
    weights = Weights.of(weight, records, group, 3)
    shares, none, one = np.full(3, 0.2), np.zeros(3), np.ones(3)
    holders = 0.2 * np.array([5.0, 10.0, 5.0])
    low, high = (
        bound.weight * holders + bound.constant
        for bound in (lower_bound(weights, shares, none, one),
                      upper_bound(weights, shares, none, one))
    )  # fmt: skip
    assert low.tolist() == pytest.approx([2.0, 0.0, 0.0])
    assert high.tolist() == pytest.approx([2.0, 2.0, 2.0])
