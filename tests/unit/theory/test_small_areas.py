"""Composites of direct and synthetic counts: weights, sums, and errors that are what they say."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconpriv.theory.small_areas import (
    Composite,
    Departure,
    Layout,
    departure,
    direct_weight,
    main_effects,
    possible_totals,
)

FIXED = settings(deadline=None, derandomize=True, max_examples=60)
POSITIVE = st.floats(1e-3, 1e6)


def layout(*sizes):
    return Layout.of(np.array(list(itertools.product(*map(range, sizes)))).T)


def model_shares(places, rng, spread=0.6, level=-1.5):
    return 1 / (1 + np.exp(-level - places.effects(rng.normal(0, spread, places.parameters))))


def composite(places, records, direct, variance, *, sigma=None, rounds=4):
    """Fitted as queries.smooth does, with variances that do not depend on the model."""
    weight = np.ones(records.size)
    for _ in range(rounds):
        totals = possible_totals(
            places, weight * records, weight * direct, places.sums(weight**2 * variance)
        )
        shares = main_effects(places, weight * records, totals)
        synthetic = records * shares
        binomial = synthetic * (1 - shares)
        left = departure(direct - synthetic, variance, binomial, places.areas - places.free)
        if sigma is not None:
            left = Departure(np.array([sigma]), np.ones(1))
        found = Composite(places, direct, synthetic, variance, binomial, left)
        weight = binomial / (variance + found.model)
    return found


def drawn(rng, sigma=0.3, noise=1.0, sizes=(12, 10)):
    """Areas that follow the model up to σ, with their true counts."""
    places = layout(*sizes)
    records = rng.integers(50, 1_500, places.areas).astype(float)
    logits = np.log(1 / (1 / model_shares(places, rng) - 1)) + rng.normal(0, sigma, places.areas)
    truth = rng.binomial(records.astype(int), 1 / (1 + np.exp(-logits))).astype(float)
    variance = noise * (0.14 * records + 20.0)
    return places, records, truth, truth + rng.normal(0, np.sqrt(variance)), variance


@FIXED
@given(POSITIVE, POSITIVE)
def test_weights_lie_between_the_model_and_the_direct_count(psi, model):
    (weight,) = direct_weight(np.array([psi]), np.array([model]))
    assert 0 <= weight <= 1
    assert weight == pytest.approx(model / (model + psi))
    assert direct_weight(np.array([psi]), np.array([np.inf]))[0] == 1
    assert direct_weight(np.array([psi]), np.array([0.0]))[0] == 0
    assert direct_weight(np.array([0.0]), np.array([model]))[0] == 1


def test_without_a_model_the_composite_is_direct_and_with_a_certain_one_synthetic():
    places, records, _, direct, variance = drawn(np.random.default_rng(1))
    found = composite(places, records, direct, variance, sigma=1e6)
    assert found.counts == pytest.approx(direct, abs=0.05)
    certain = Composite(
        places, direct, found.synthetic, variance, np.zeros(places.areas),
        Departure(np.zeros(1), np.ones(1)),
    )  # fmt: skip
    assert certain.weight.tolist() == [0.0] * places.areas
    plain = certain.counts - certain._share * (direct.sum() - found.synthetic.sum())
    assert plain == pytest.approx(found.synthetic)


@FIXED
@given(st.integers(0, 10_000), st.floats(0.0, 1.5))
def test_composites_add_up_to_the_direct_total(seed, sigma):
    places, records, _, direct, variance = drawn(np.random.default_rng(seed), sigma, sizes=(6, 7))
    found = composite(places, records, direct, variance)
    assert ((found.weight >= 0) & (found.weight <= 1)).all()
    assert found.counts.sum() == pytest.approx(direct.sum())
    assert found.departure.probability.sum() == pytest.approx(1)
    assert (found.departure.probability >= -1e-12).all()


@FIXED
@given(st.integers(0, 10_000), st.sampled_from([(5, 4), (4, 3, 3), (2, 9)]))
def test_the_model_adds_up_to_the_totals_of_every_public_value(seed, sizes):
    rng = np.random.default_rng(seed)
    places = layout(*sizes)
    records = rng.integers(1, 400, places.areas).astype(float)
    shares = model_shares(places, rng)
    found = main_effects(places, records, places.sums(records * shares))
    assert found == pytest.approx(shares, abs=1e-5)


def test_sums_and_products_are_those_of_the_design_matrix():
    places = layout(3, 2, 4)
    matrix = np.zeros((places.areas, places.parameters))
    for i, levels in enumerate(places.levels):
        matrix[i, levels] = 1
    weights = np.random.default_rng(3).random(places.areas)
    assert places.sums(weights) == pytest.approx(matrix.T @ weights)
    assert places.products(weights) == pytest.approx(matrix.T @ np.diag(weights) @ matrix)
    assert places.free == np.linalg.matrix_rank(matrix)


def test_totals_outside_what_is_possible_are_moved_inside_and_still_agree():
    places = layout(3, 4)
    records = np.full(places.areas, 100.0)
    direct = np.where(places.levels[:, 0] == 0, -20.0, 30.0)
    got = possible_totals(places, records, direct, np.full(places.parameters, 400.0))
    sizes = places.sums(records)
    assert ((got > 0) & (got < sizes)).all()
    assert got[:3].sum() == pytest.approx(got[3:].sum())
    inside = np.full(places.areas, 30.0)
    assert possible_totals(places, records, inside, np.ones(7)).tolist() == [
        *[120.0] * 3, *[90.0] * 4,
    ]  # fmt: skip


@pytest.mark.parametrize("sigma", [0.0, 0.3, 0.8])
def test_the_spread_of_departures_is_found(sigma):
    rng = np.random.default_rng(11)
    found = [composite(*_without_truth(drawn(rng, sigma, sizes=(20, 20)))) for _ in range(10)]
    mean = np.mean([one.departure.probability @ one.departure.sigma for one in found])
    assert mean == pytest.approx(sigma, abs=0.08)
    assert all(one.departure.strong < 0.01 for one in found)


def _without_truth(areas):
    places, records, _, direct, variance = areas
    return places, records, direct, variance


def squared_errors(stated, sigma, *, union=False):
    """Mean squared error over its estimate, and over that of direct counts."""
    rng = np.random.default_rng(5)
    own, gain = [], []
    for _ in range(25):
        places, records, truth, direct, variance = drawn(rng, sigma)
        found = composite(places, records, direct, stated * variance)
        some = [np.flatnonzero(places.levels[:, 0] < 3)] if union else np.arange(0, 120, 3)[:, None]
        for areas in some:
            error = (found.counts - truth)[areas].sum() ** 2
            own.append(error / found.mean_squared_error(areas))
            gain.append(error / variance[areas].sum())
    return float(np.mean(own)), float(np.mean(gain))


@pytest.mark.parametrize("sigma", [0.0, 0.2, 0.5])
def test_the_mean_squared_error_is_honest_and_smaller_than_the_direct_variance(sigma):
    ratio, gain = squared_errors(1.0, sigma)
    assert 0.85 < ratio < 1.15
    assert gain < (0.6 if sigma == 0 else 0.97)


def test_the_error_of_a_sum_of_areas_is_honest():
    ratio, gain = squared_errors(1.0, 0.3, union=True)
    assert 0.6 < ratio < 1.5
    assert gain < 1.1


@pytest.mark.parametrize("stated", [0.7, 1.3])
def test_a_direct_variance_that_is_30_percent_off_is_noticed(stated):
    ratio, _ = squared_errors(stated, 0.2)
    assert not 0.85 < ratio < 1.15


def test_a_single_departing_area_stands_out():
    places, records, truth, _, variance = drawn(np.random.default_rng(8), 0.1)
    direct = truth.copy()
    direct[17] += 0.5 * records[17]
    found = composite(places, records, direct, variance)
    assert found.departure_of(np.array([17])) > 3
    assert abs(found.departure_of(np.array([40]))) < 3
    assert np.abs(found.departures).argmax() == 17
