"""Theorem 1, Lemmas 1 and 2, and the variance of a reconstructed count."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from reconpriv.theory.estimation.reconstruction import (
    count_variance,
    global_estimate,
    observed_mean,
    reconstruct_count,
    reconstruct_frequency,
)
from reconpriv.theory.perturbation import perturbation_matrix

FIXED = settings(deadline=None, derandomize=True, max_examples=80)
RETENTION = st.floats(0.05, 0.95)
HISTOGRAM = st.lists(st.integers(0, 200), min_size=2, max_size=12).filter(lambda h: sum(h) > 0)


@FIXED
@given(RETENTION, HISTOGRAM)
def test_lemma_1_equals_the_inverse_matrix_times_the_observed(p, observed):
    m, n = len(observed), sum(observed)
    expected = np.linalg.inv(perturbation_matrix(p, m)) @ (np.array(observed) / n)
    got = reconstruct_frequency(observed, n, retention=p, domain_size=m)
    assert got == pytest.approx(expected, abs=1e-9)


def test_a_reconstructed_frequency_is_never_clipped():
    got = reconstruct_frequency([0, 10], 10, retention=0.5, domain_size=2)
    assert got.tolist() == pytest.approx([-0.5, 1.5])


@FIXED
@given(RETENTION, HISTOGRAM)
def test_reconstruction_of_the_mean_gives_the_frequencies_back(p, counts):
    f, n, m = np.array(counts) / sum(counts), sum(counts), len(counts)
    mean = observed_mean(f, n, retention=p, domain_size=m)
    assert mean == pytest.approx(perturbation_matrix(p, m) @ np.array(counts))
    known = {"retention": p, "domain_size": m}
    assert reconstruct_frequency(mean, n, **known) == pytest.approx(f, abs=1e-9)
    assert reconstruct_count(mean, n, **known) == pytest.approx(np.array(counts), abs=1e-8)


def test_a_reconstructed_count_by_hand():
    # (30 - 100 * .1) / .5
    assert float(reconstruct_count(30, 100, retention=0.5, domain_size=5)) == pytest.approx(40)


@FIXED
@given(
    RETENTION,
    st.integers(2, 30),
    st.integers(1, 200),
    st.integers(1, 200),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_lemma_2_every_global_estimate_equals_the_local_one(p, m, size_s, size_y, a, b):
    observed_s, observed_y = round(a * size_s), round(b * size_y)

    def estimate(observed, size):
        return reconstruct_frequency(observed, size, retention=p, domain_size=m)

    whole = estimate(observed_s + observed_y, size_s + size_y)
    combined = global_estimate(whole, size_s + size_y, estimate(observed_y, size_y), size_y)
    assert float(combined) == pytest.approx(float(estimate(observed_s, size_s)), abs=1e-7)


@FIXED
@given(RETENTION, st.integers(2, 30), st.integers(1, 300), st.floats(0, 1))
def test_count_variance_is_that_of_two_binomials(p, m, n, share):
    c = round(share * n)
    r, t = p + (1 - p) / m, (1 - p) / m
    expected = (stats.binom(c, r).var() + stats.binom(n - c, t).var()) / p**2
    got = count_variance(c, n, retention=p, domain_size=m)
    assert float(got) == pytest.approx(float(expected))


@FIXED
@given(RETENTION, st.integers(2, 30), st.integers(1, 60))
def test_count_variance_is_positive_for_every_count_that_can_be_observed(p, m, n):
    estimates = reconstruct_count(np.arange(n + 1), n, retention=p, domain_size=m)
    assert (count_variance(estimates, n, retention=p, domain_size=m) > 0).all()
