"""The exact tails of F' against sums over two binomials, in rational arithmetic."""

import itertools
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconpriv.auditing.verdicts import smallest_exact_tails
from reconpriv.cells.cell_batch import CellBatch, Encoded
from reconpriv.policy.policy import Policy
from reconpriv.theory.counts import observed_count
from reconpriv.theory.tails import exact
from reconpriv.theory.tails.exact import exact_tails
from reconpriv.theory.tails.privacy import is_private, private_group_sizes
from tail_referee import tails_of_trials

FIXED = settings(deadline=None, derandomize=True, max_examples=60)
# Fractions that make n p f and its like whole numbers every now and then.
PROBABILITY = st.sampled_from([Fraction(k, 20) for k in (2, 4, 5, 8, 10, 13, 16, 18)])
EPSILON = st.sampled_from([Fraction(k, 10) for k in (1, 2, 3, 5, 8, 10)])


def tails(n, f, p, m, epsilon):
    count = observed_count(n, float(f), retention=float(p), domain_size=m, epsilon=float(epsilon))
    found, one_by_one = ([*map(float, exact_tails(count, few=few))] for few in (False, True))
    assert one_by_one == pytest.approx(found, rel=1e-10, abs=1e-15)
    return tuple(found)


def test_golden_tails_of_a_group_just_at_its_size():
    upper, lower = tails(26, Fraction(21, 26), Fraction(1, 2), 14, Fraction(1, 2))
    assert upper == pytest.approx(0.013, abs=0.0005)
    assert lower == pytest.approx(0.016, abs=0.0005)


@FIXED
@given(st.integers(1, 14), st.data(), PROBABILITY, st.integers(2, 7), EPSILON)
def test_tails_equal_brute_force_where_the_holders_are_whole(n, data, p, m, epsilon):
    f = Fraction(data.draw(st.integers(1, n)), n)
    expected = tails_of_trials(n, f, p, m, epsilon)
    assert tails(n, f, p, m, epsilon) == pytest.approx([float(x) for x in expected], abs=1e-12)


@FIXED
@given(st.integers(1, 12), st.data(), PROBABILITY, st.integers(2, 7), EPSILON)
def test_tails_mix_floor_and_ceiling_where_the_holders_are_not_whole(n, data, p, m, epsilon):
    size = data.draw(st.integers(n + 1, 40))
    f = Fraction(data.draw(st.integers(1, size)), size)
    expected = tails_of_trials(n, f, p, m, epsilon)
    assert tails(n, f, p, m, epsilon) == pytest.approx([float(x) for x in expected], abs=1e-12)


def test_an_outcome_exactly_at_epsilon_counts_in_neither_tail():
    # p = 1/2, m = 2, f = 1, n = 4: F' = (O/4 - 1/4) * 2; O = 4 gives 3/2, an error of just 1/2.
    upper, lower = tails(4, Fraction(1), Fraction(1, 2), 2, Fraction(1, 2))
    assert upper == 0.0
    # O = 2 gives 1/2, just -1/2; only O <= 1 lies below.
    assert lower == pytest.approx(0.25**4 + 4 * 0.75 * 0.25**3)


def test_a_chunk_boundary_changes_nothing(monkeypatch):
    n = np.arange(1, 60)
    count = observed_count(n, 0.4, retention=0.5, domain_size=5, epsilon=0.5)
    whole = exact_tails(count)
    monkeypatch.setattr(exact, "_CHUNK", 7)
    for one, other in zip(whole, exact_tails(count), strict=True):
        assert one.tolist() == pytest.approx(other.tolist(), rel=1e-13)


@pytest.mark.parametrize(("p", "m"), [(0.02, 2), (0.5, 15), (0.99, 1000)])
@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_few_groups_have_the_tails_that_many_have(p, m, epsilon):
    n = np.array([1, 2, 7, 26, 255, 256, 783, 3001, 20_000, 100_000])
    f = np.maximum(np.round(n * np.array([[0.001], [0.3], [1.0]])), 1) / n
    for trials in (n, np.maximum(n // 2, 1)):  # holders that are whole, and some that are not
        count = observed_count(trials, f, retention=p, domain_size=m, epsilon=epsilon)
        for few, many in zip(exact_tails(count, few=True), exact_tails(count), strict=True):
            assert few.shape == many.shape == f.shape
            # scipy's logarithms of large factorials have lost three digits here.
            np.testing.assert_allclose(few, many, rtol=1e-9, atol=1e-17)
        other = observed_count(trials, f, retention=p, domain_size=m, epsilon=epsilon * 1.3)
        assert not np.allclose(exact_tails(other, few=True), exact_tails(count), rtol=1e-3)


# --- s_g for the exact bound --------------------------------------------------------------


def naive_size(histogram, p, m, epsilon, delta):
    """The largest n <= |g| at which every value of the group passes, by trying them all."""
    size = sum(histogram)
    for n in range(size, 0, -1):
        if all(
            min(tails_of_trials(n, Fraction(c, size), p, m, epsilon)) >= delta
            for c in set(histogram)
        ):
            return float(n)
    return 0.0


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    PROBABILITY,
    st.integers(3, 6),
    EPSILON,
    st.sampled_from([Fraction(1, 97), Fraction(3, 97), Fraction(10, 97), Fraction(25, 97)]),
)
def test_exact_size_is_the_largest_n_up_to_the_group_that_passes(histogram, p, m, epsilon, delta):
    got = private_group_sizes(
        np.array(histogram),
        np.array([0]),
        retention=float(p),
        domain_size=m,
        epsilon=float(epsilon),
        delta=float(delta),
        bound="exact",
    )
    assert got.tolist() == [naive_size(histogram, p, m, epsilon, delta)]


def test_exact_tails_are_not_monotone_in_the_number_of_trials():
    lower = [tails(n, 1, 0.5, 4, 0.5)[1] for n in range(1, 40)]
    assert any(b > a for a, b in itertools.pairwise(lower))


def test_exact_test_of_a_group_uses_the_exact_tails():
    policy = {"retention": 0.5, "domain_size": 14, "epsilon": 0.5, "bound": "exact"}
    worst = min(
        min(tails_of_trials(26, Fraction(c, 26), Fraction(1, 2), 14, Fraction(1, 2)))
        for c in (21, 5)
    )
    assert is_private([21, 5], delta=float(worst) * 0.99, **policy)
    assert not is_private([21, 5], delta=float(worst) * 1.01, **policy)


def test_audit_tails_are_those_of_the_value_with_the_smallest_tail():
    # In [4, 5] the value with the smallest tail is not the one whose larger tail is smallest.
    histograms = [[7, 2, 1], [3], [4, 5]]
    batch = CellBatch(
        (Encoded(np.arange(3, dtype=np.int32), pa.array(["a", "b", "c"])),),
        np.array([0, 3, 4]),
        np.array([0, 1, 2, 0, 0, 1]),
        np.array([7, 2, 1, 3, 4, 5]),
    )
    upper, lower = smallest_exact_tails(batch, Policy(retention=0.5, tolerance=0.5, doubt=0.3), 5)
    half = Fraction(1, 2)
    for group, histogram in enumerate(histograms):
        every = [
            tails_of_trials(sum(histogram), Fraction(c, sum(histogram)), half, 5, half)
            for c in histogram
        ]
        expected = min(every, key=min)
        assert (upper[group], lower[group]) == pytest.approx([float(x) for x in expected])
