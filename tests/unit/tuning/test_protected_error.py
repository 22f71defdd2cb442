"""The error that protection groups cost, as an audit predicts it."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

import reconpriv as rp
from margin_fixtures import simulated_errors
from query_fixtures import numbered_key
from reconpriv.ask.workload import make_workload
from reconpriv.cells.cube import collect
from reconpriv.theory.estimation.design import mean_absolute_error
from reconpriv.tuning.tuner import Tuner

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="public", protect={"age": 10})


@pytest.fixture(scope="module")
def table():
    """Ages that differ within their band, so that shares are biased."""
    rng = np.random.default_rng(1)
    age = rng.integers(20, 40, 6_000)
    ill = np.where(rng.random(6_000) < (age - 15) / 30, "x", rng.choice(list("yz"), 6_000))
    sex = rng.choice(["f", "m"], 6_000)
    with rp.read(
        pa.table({"age": age, "sex": sex, "ill": ill}), sensitive="ill", public="all"
    ) as opened:
        yield opened


@pytest.fixture(scope="module")
def raw(table):
    return collect(table.batches(), table.schema)


@pytest.mark.parametrize("sampling", ["public", "octave", "none"])
def test_the_predicted_error_is_that_of_releases(raw, sampling):
    policy = replace(POLICY, sampling=sampling)
    workload = make_workload(raw, queries=300)
    predicted = Tuner.on(raw, workload).setting(policy).error
    found = simulated_errors(raw, workload, policy, [numbered_key(i) for i in range(120)])
    doubt = 4 * found.std() / np.sqrt(found.size) + 0.01 * predicted
    assert abs(found.mean() - predicted) < doubt
    assert abs(found.mean() - 0.7 * predicted) > doubt
    assert abs(found.mean() - 1.3 * predicted) > doubt


def test_without_noise_the_error_is_the_bias_of_shares(raw):
    policy = rp.Policy(
        retention=1 - 1e-9, tolerance=0.5, doubt=0.3, sampling="none", protect={"age": "*"}
    )
    workload = make_workload(raw, queries=200)
    by_hand = []
    frame = raw.group_table().to_pandas()
    counts = np.zeros((raw.groups, 3))
    counts[raw.group, raw.value] = raw.count
    for query, answer in zip(workload.queries, workload.answers, strict=True):
        value = raw.schema.domain.index(query["ill"])
        inside = np.ones(raw.groups, dtype=bool)
        for name in set(query) - {"ill"}:
            inside &= (frame[name] == query[name]).to_numpy()
        estimate = 0.0
        for sex in ("f", "m"):
            group = (frame["sex"] == sex).to_numpy()
            share = raw.records[inside & group].sum() / raw.records[group].sum()
            estimate += share * counts[group, value].sum()
        by_hand.append(abs(estimate - answer) / answer)
    found = Tuner.on(raw, workload).setting(policy).error
    assert found == pytest.approx(np.mean(by_hand), rel=1e-3)
    assert np.mean(by_hand) > 0.1


def test_the_mean_of_a_folded_normal():
    bias, variance = np.array([0.0, 1.0, -3.0, 2.0]), np.array([4.0, 1.0, 9.0, 0.0])
    x = np.linspace(-60, 60, 200_001)
    for b, v, found in zip(bias, variance, mean_absolute_error(bias, variance), strict=True):
        density = norm.pdf(x, b, np.sqrt(v)) if v else None
        expected = abs(b) if density is None else np.trapezoid(np.abs(x) * density, x)
        assert found == pytest.approx(expected, rel=1e-6)


def test_an_audit_shows_it_unless_it_is_left_out(table):
    found = table.audit(POLICY)
    assert found.errors is not None
    assert found.errors.published == pytest.approx(0.3, abs=0.2)
    assert found.errors.plain < found.errors.published
    assert table.audit(POLICY, columns=False).errors is None


def test_an_audit_compares_columns_by_protection_groups(table):
    found = {one.name: one.without for one in table.audit(POLICY).columns}
    assert found["sex"].groups == 2  # the two bands
    assert found["age"].groups == 2 and found["age"].error is not None
    alone = table.audit(replace(POLICY, protect=None)).columns
    assert {one.name: one.without.groups for one in alone} == {"sex": 20, "age": 2}


def test_tune_judges_protection_groups(table):
    found = table.tune(current=POLICY, queries=50, margins=[0, 1.0])
    assert all(one.policy.protect == POLICY.protect for one in found.settings)
    audited = table.audit(POLICY)
    judged = table.tuner(queries=50).setting(POLICY)
    assert judged.violating_groups == audited.violating_groups
    assert judged.policy == POLICY
    # Fewer and larger groups: an adversary reconstructs more of them, analysts err more.
    plain = table.tuner(queries=50).setting(replace(POLICY, protect=None))
    assert judged.error > plain.error and judged.trials < plain.trials
