"""Regression on reconstructed counts: raw records, covariances and limits, by brute force."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from query_fixtures import people_release
from reconpriv.estimate.set_counts import SetCounts
from reconpriv.learning.fitting import counts_of
from reconpriv.theory.estimation.class_counts import Evidence, class_counts
from reconpriv.theory.estimation.regression import fit_linear, fit_logistic, move_logistic


def raw_rows(counts):
    """Rows of true counts, as records of which nothing is hidden."""
    counts = np.asarray(counts, dtype=np.float64)
    records, nothing = counts.sum(axis=1), np.zeros(len(counts))
    found = class_counts(records, counts, counts, records, nothing, nothing, retention=1.0)
    return Evidence.of(found)


@pytest.mark.parametrize("size", ["none", "paper", "octave", "public"])
@pytest.mark.parametrize("chosen", [(0,), (1, 2), (0, 2, 4)])
def test_the_variance_of_a_set_is_that_of_a_count_query(size, chosen):
    answerer = people_release(size).answerer
    _, sums = answerer.sums_by_value(answerer.select(None, {}), ["age", "Sex", "region"])
    rows = counts_of(sums, answerer.design)
    members = np.zeros((2, 5))
    members[0, list(chosen)] = 1.0
    members[1] = 1.0 - members[0]
    merged = rows.merged(members)
    table = answerer.rows_of(answerer.select(None, {}), ["age", "Sex", "region"])
    alone = answerer.sums(table, chosen)  # the sums of a count query
    expected = SetCounts.of(alone, chosen, answerer.design).variances
    assert merged.covariance(0, 0) == pytest.approx(expected)
    # The classes of a row add up to its records, which do not vary.
    if size != "paper":
        assert merged.covariance(0, 1) == pytest.approx(-expected)
        assert rows.times(np.ones_like(rows.counts)) == pytest.approx(0.0, abs=1e-8)


def test_products_with_the_covariance_agree():
    answerer = people_release("octave").answerer
    _, sums = answerer.sums_by_value(answerer.select(None, {}), ["Sex", "region"])
    rows = counts_of(sums, answerer.design)
    whole = np.array(
        [[rows.covariance(a, b) for b in range(5)] for a in range(5)]
    )  # value, value, row
    factors = np.random.default_rng(1).normal(size=rows.counts.shape)
    assert rows.times(factors) == pytest.approx(np.einsum("abr,rb->ra", whole, factors))
    weighted = np.einsum("ra,abr,rb->ab", factors, whole, factors)
    assert rows.weighted(factors) == pytest.approx(weighted)


def test_raw_records_give_the_ordinary_fits():
    rng = np.random.default_rng(2)
    x = np.column_stack([np.ones(40), rng.normal(size=(40, 2))])
    counts = rng.poisson(6, size=(40, 3)) + 1
    fit = fit_logistic(x, raw_rows(counts))

    def loss(beta):
        scores = np.column_stack([x @ beta.reshape(3, 2), np.zeros(40)])
        return -np.sum(counts * log_softmax(scores, axis=1))

    best = minimize(loss, np.zeros(6), options={"gtol": 1e-6})
    assert fit.coefficients == pytest.approx(best.x.reshape(3, 2), abs=1e-5)
    assert fit.covariance == pytest.approx(0.0, abs=1e-12)
    outcome = rng.normal(size=40)
    linear = fit_linear(x, outcome, raw_rows(counts))
    row, label = np.repeat(np.arange(40), 3), np.tile(np.arange(3), 40)
    half = np.sqrt(counts.ravel())
    design = np.column_stack([x[row], np.eye(3)[label][:, :2]])
    ordinary = np.linalg.lstsq(design * half[:, None], outcome[row] * half, rcond=None)[0]
    assert linear.coefficients == pytest.approx(ordinary)


def test_a_limit_is_that_of_the_count_behind_it():
    """With an intercept alone, the log-odds is a function of one count."""
    records, nothing = np.full(1, 400.0), np.zeros(1)

    def rows_with(count):
        observed = np.array([[count, 400.0 - count]])
        return class_counts(records, observed, observed, records, nothing, nothing, retention=0.5)

    rows = rows_with(90.0)
    assert rows.counts[0, 0] == pytest.approx((90 - 0.25 * 400) / 0.5)  # below 0: no finite fit
    assert not fit_logistic(np.ones((1, 1)), Evidence.of(rows)).converged
    rows = rows_with(150.0)
    count, error = rows.counts[0, 0], np.sqrt(rows.covariance(0, 0)[0])
    fit = fit_logistic(np.ones((1, 1)), Evidence.of(rows))
    assert fit.coefficients[0, 0] == pytest.approx(np.log(count / (400 - count)))
    for errors in (-1.96, 1.0, 1.96):
        moved = count + errors * error
        limit = move_logistic(np.ones((1, 1)), rows.records, fit, np.ones(1), errors)
        assert limit == pytest.approx(np.log(moved / (400 - moved)), abs=1e-4)
    assert move_logistic(np.ones((1, 1)), rows.records, fit, np.ones(1), -9.0) == -np.inf


def test_complete_separation_does_not_converge():
    x = np.array([[1.0, -1.0], [1.0, 1.0]])
    assert not fit_logistic(x, raw_rows([[5, 0], [0, 5]])).converged
