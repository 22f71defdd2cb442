"""Counts shrunk towards a model: weights, errors, and what moments tell about the model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reconpriv.theory.estimation.shrinkage import estimated_departure, model_error, shrunk

COUNTS = arrays(float, 5, elements=st.floats(0, 1e6))


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_a_shrunk_count_lies_between_both(unbiased, model, variance, shared, error):
    found = shrunk(unbiased, model, variance, shared, error)
    assert np.all((found.weight >= 0) & (found.weight <= 1))
    slack = 1e-9 * (unbiased + model)
    assert np.all(found.count >= np.minimum(unbiased, model) - slack)
    assert np.all(found.count <= np.maximum(unbiased, model) + slack)
    assert np.all((found.error >= 0) & (found.error <= variance * (1 + 1e-9)))


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_without_noise_it_is_the_unbiased_count(unbiased, model, shared, error):
    found = shrunk(unbiased, model, np.zeros(5), shared, error)
    assert np.array_equal(found.count, unbiased) and not found.error.any()


@given(COUNTS, COUNTS, arrays(float, 5, elements=st.floats(1e-3, 1e6)))
def test_a_model_without_error_is_believed(unbiased, model, variance):
    found = shrunk(unbiased, model, variance, np.zeros(5), np.zeros(5))
    assert np.array_equal(found.count, model) and not found.error.any()


def test_with_nothing_shared_weights_are_those_of_two_independent_counts():
    one = [np.array([x]) for x in (40.0, 60.0, 30.0, 0.0, 10.0)]
    found = shrunk(*one)
    assert found.weight[0] == pytest.approx(10 / (10 + 30))
    assert found.count[0] == pytest.approx(0.25 * 40 + 0.75 * 60)
    assert found.error[0] == pytest.approx(1 / (1 / 30 + 1 / 10))


@given(COUNTS, st.floats(0, 4))
def test_a_model_is_never_closer_than_independent_records(binomial, departure):
    assert np.all(model_error(binomial, departure) >= binomial)


def drawn(departure, seed):
    """Many counts: of the model, true ones, and two unbiased ones that share noise with it."""
    rng = np.random.default_rng(seed)
    records = rng.integers(40, 3000, 4000).astype(float)
    share = rng.uniform(0.05, 0.5, records.size)
    binomial = records * share * (1 - share)
    shared, own, more = 0.3 * binomial, 2.0 * binomial, 5.0 * binomial
    truth = records * share + rng.normal(0, np.sqrt(model_error(binomial, departure)))
    noise = rng.normal(0, np.sqrt(shared))
    model = records * share + noise
    best = truth + noise + rng.normal(0, np.sqrt(own))
    other = best + rng.normal(0, np.sqrt(more))
    return truth, model, best, other, shared, own + shared, own + more + shared, binomial


@pytest.mark.parametrize("departure", [0.0, 0.002, 0.02])
def test_the_departure_is_found(departure):
    found = []
    for seed in range(6):
        _, model, _, other, shared, _, variance, binomial = drawn(departure, seed)
        found.append(estimated_departure(other - model, variance, shared, binomial))
    assert np.mean(found) == pytest.approx(departure, rel=0.1, abs=3e-4)


def ratio(departure, stated=1.0):
    """Squared errors over what is stated, and over those of the unbiased count."""
    own, alone = [], []
    for seed in range(6):
        truth, model, best, other, shared, variance, more, binomial = drawn(departure, seed)
        left = estimated_departure(other - model, more, shared, binomial)
        found = shrunk(best, model, variance, shared, model_error(binomial, left))
        own.append(np.mean((found.count - truth) ** 2 / (stated * found.error)))
        alone.append(np.mean((found.count - truth) ** 2) / np.mean((best - truth) ** 2))
    return np.mean(own), np.mean(alone)


@pytest.mark.parametrize("departure", [0.0, 0.002, 0.02])
def test_the_mean_squared_error_is_honest(departure):
    own, alone = ratio(departure)
    assert 0.9 < own < 1.1
    assert alone < 0.97


@pytest.mark.parametrize("stated", [0.7, 1.3])
def test_an_error_that_is_30_percent_off_is_noticed(stated):
    assert not 0.9 < ratio(0.002, stated)[0] < 1.1


def test_nothing_to_judge_by_is_no_departure():
    nothing = np.zeros(3)
    assert estimated_departure(nothing, nothing, nothing, nothing) == 0.0
    assert estimated_departure(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)) == 0.0
