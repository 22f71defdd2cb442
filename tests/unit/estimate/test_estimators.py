"""The estimators, their variances, and what an estimate says about itself."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

import reconpriv as rp
from query_fixtures import JOBS, numbered_key, people_release, publish_quietly
from reconpriv.answers.figure import ABOVE, BELOW_ZERO
from reconpriv.cells.cube import Cube
from reconpriv.columns.schema import Column, Kind, Schema
from reconpriv.errors import PolicyError
from reconpriv.estimate.counts import quantile
from reconpriv.estimate.set_counts import runs
from reconpriv.theory.estimation.reconstruction import (
    constrained_frequencies,
    count_variance,
    reconstruct_count,
    reconstruct_frequency,
)
from reconpriv.theory.perturbation import perturbation_matrix

FIXED = settings(deadline=None, derandomize=True, max_examples=100)
RETENTION = st.floats(0.15, 0.95)
HISTOGRAM = st.lists(st.integers(0, 60), min_size=2, max_size=6).filter(lambda h: sum(h) > 0)
VALUES = st.sets(st.sampled_from(JOBS), min_size=1, max_size=4)


def expectation_maximisation(observed, p, steps=40_000):
    """The iteration of Agrawal and others; whether it has come to rest is the second part."""
    matrix, share = perturbation_matrix(p, len(observed)), np.array(observed) / sum(observed)
    f = np.full(len(observed), 1.0 / len(observed))
    for _ in range(steps):
        new = f * (matrix.T @ (share / (matrix @ f)))
        if np.abs(new - f).max() < 1e-14:
            return new, True
        f = new
    return f, False


def log_likelihood(f, observed, p):
    return float(np.array(observed) @ np.log(perturbation_matrix(p, len(observed)) @ f))


# --- the constrained estimator -------------------------------------------------------------------


@settings(FIXED, max_examples=60)
@given(RETENTION, HISTOGRAM)
@example(0.5, [0, 10])
@example(0.3, [40, 0, 0, 1, 2])
def test_the_closed_form_agrees_with_em_to_1e_9(p, observed):
    em, at_rest = expectation_maximisation(observed, p)
    assume(at_rest)
    assert constrained_frequencies(observed, retention=p) == pytest.approx(em, abs=1e-9)


def test_em_comes_to_rest_on_most_histograms():
    rng = np.random.default_rng(5)
    rests = [
        expectation_maximisation(rng.integers(0, 60, rng.integers(2, 7)), p)[1]
        for p in rng.uniform(0.15, 0.95, 20)
    ]
    assert sum(rests) >= 18


@FIXED
@given(RETENTION, HISTOGRAM, st.integers(0, 10_000))
def test_no_distribution_is_likelier_than_the_constrained_one(p, observed, seed):
    best = log_likelihood(constrained_frequencies(observed, retention=p), observed, p)
    for other in np.random.default_rng(seed).dirichlet(np.full(len(observed), 0.5), 30):
        assert log_likelihood(other, observed, p) <= best + 1e-9


@FIXED
@given(RETENTION, st.lists(st.integers(0, 10**6), min_size=2, max_size=60).filter(any))
def test_the_constrained_estimate_lies_on_the_simplex(p, observed):
    got = constrained_frequencies(observed, retention=p)
    assert got.min() >= 0
    assert got.sum() == pytest.approx(1, abs=1e-12)


@FIXED
@given(RETENTION, HISTOGRAM)
def test_the_constrained_estimate_is_the_unbiased_one_where_that_is_inside(p, observed):
    m, n = len(observed), sum(observed)
    unbiased = reconstruct_frequency(observed, n, retention=p, domain_size=m)
    got = constrained_frequencies(observed, retention=p)
    if unbiased.min() >= 0:
        assert got == pytest.approx(unbiased, abs=1e-12)
    else:
        assert np.abs(got - unbiased).max() > 0


def test_the_constrained_estimate_by_hand():
    # p = .5, m = 3, t = 1/6: 12 of 12 observations are the first value, the rest cannot be below 0.
    assert constrained_frequencies([12, 0, 0], retention=0.5).tolist() == pytest.approx([1, 0, 0])
    # k = 2: λ = 18 / (.5 + 2/6) = 21.6; f = (O/λ - 1/6) / .5
    expected = [(10 / 21.6 - 1 / 6) * 2, (8 / 21.6 - 1 / 6) * 2, 0]
    assert constrained_frequencies([10, 8, 0], retention=0.5).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("sampling", ["none", "octave", "public", "paper"])
def test_constrained_counts_of_a_selection_are_possible_and_sum_to_its_records(sampling):
    release = people_release(sampling)
    table = release.frequencies("age = 34 AND Sex = 'M'", estimator="constrained")
    counts = [estimate.count for _, estimate in table]
    assert min(counts) >= 0
    assert sum(counts) == pytest.approx(table["nurse"].records)
    assert min(e.count for _, e in release.frequencies("age = 34 AND Sex = 'M'")) < 0


def test_a_constrained_set_is_the_sum_of_its_constrained_values():
    release = people_release("octave")
    parts = release.frequencies("age > 30", estimator="constrained")
    got = release.count("age > 30", job=["baker", None], estimator="constrained")
    assert got.count == pytest.approx(parts["baker"].count + parts[None].count)
    assert got.estimator == "constrained"


@pytest.mark.parametrize("by", [["job"], ["age", "job"], ["age", "Sex", "region", "job"]])
def test_a_constrained_estimate_lies_in_its_own_interval(by):
    for sampling in ("none", "octave", "public"):
        for _, e in people_release(sampling).crosstab(by, estimator="constrained"):
            assert e.low - 1e-9 <= e.count <= e.high + 1e-9 and 0 <= e.low < e.high <= e.records


def test_a_constrained_estimate_lies_in_its_own_interval_on_a_large_sparse_domain(tmp_path):
    table = pa.table({"g": ["x"] * 2_000, "job": pa.array([1] * 2_000)})
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none")
    with rp.read(table, sensitive="job", public="all", domain=list(range(1, 51))) as opened:
        release = opened.publish(policy, tmp_path / "r", key=numbered_key(3))
    got = release.count(job=1, estimator="constrained")
    assert got.low <= got.count <= got.high


# --- what an estimate says -----------------------------------------------------------------------


def test_an_estimate_outside_the_possible_is_shown_as_it_is_with_a_remark(tmp_path):
    jobs = ["a"] * 240 + ["b"] * 120 + ["c"] * 120
    groups = [name for name in "uvwxyz" for _ in range(40)] + ["k"] * 240
    table = pa.table({"g": groups, "job": jobs})
    release = publish_quietly(table, tmp_path / "r", sampling="none")
    published = release.to_pandas()
    outside = 0
    for labels, estimate in release.crosstab(["g", "job"]):
        rows = published[published["g"] == labels["g"]]
        observed = int((rows["job"] == labels["job"]).sum())
        size = len(rows)
        assert estimate.count == pytest.approx((observed - size * 0.5 / 3) / 0.5)
        below, above = (mark in estimate.remarks for mark in (BELOW_ZERO, ABOVE))
        assert (below, above) == (estimate.count < 0, estimate.count > size)
        outside += below or above
    assert outside > 0


def test_an_estimate_that_rests_on_one_micro_group_says_so():
    release = people_release("octave")
    one = release.count("age = 20 AND Sex = 'F' AND region = 'North'", job="nurse")
    assert one.groups == 1 and any("single group" in remark for remark in one.remarks)
    assert "single group" in str(one)
    two = release.count("age = 20 AND Sex = 'F' AND region IS NOT NULL", job="nurse")
    assert two.groups == 2 and not two.remarks
    known = release.count(age=20, Sex="F", region="North")
    assert known.groups == 1 and known.exact and known.remarks == ()


def test_estimates_from_a_paper_release_say_that_they_are_approximate():
    got = people_release("paper").count("age < 25", job="nurse")
    assert any(r.startswith("approximate") and "secret" in r for r in got.remarks)
    assert not people_release("octave").count("age < 25", job="nurse").remarks
    of_public = people_release("paper").count("age < 25")
    assert not of_public.exact and of_public.low < of_public.count < of_public.high
    assert any("coin flips" in remark for remark in of_public.remarks)
    plain, together = (
        people_release("paper").crosstab(["Sex"], simultaneous=s) for s in (False, True)
    )
    assert together["F"].high > plain["F"].high


def test_an_estimate_names_what_its_interval_is_for():
    text = str(people_release("octave").count("age < 25", job="nurse", confidence=0.9))
    assert "90 % interval for the count in the original table" in text
    assert "groups" in text and "trials" in text


def test_an_estimate_as_a_dictionary_holds_every_field():
    got = people_release("octave").count("age < 25", job="nurse")
    fields = {**got.__dict__, "remarks": list(got.remarks)}
    assert (fields.pop("kind"), fields.pop("value")) == ("count", got.count)
    assert got.as_dict() == {**fields, "count": got.count}


# --- confidence ----------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, 95, math.nan])
def test_a_confidence_outside_0_to_1_is_refused(confidence):
    release = people_release("octave")
    for ask in (release.count, release.frequencies):
        with pytest.raises(PolicyError, match="strictly between 0 and 1"):
            ask(job="nurse", confidence=confidence)
    with pytest.raises(PolicyError, match="strictly between 0 and 1"):
        release.count_many([{"job": "nurse"}], confidence=confidence)
    with pytest.raises(PolicyError, match="strictly between 0 and 1"):
        release.sql("SELECT count(*) FROM release", confidence=confidence)


def test_an_unknown_estimator_is_refused_with_the_known_ones():
    with pytest.raises(PolicyError, match=r"'em'.*mle, constrained"):
        people_release("octave").count(job="nurse", estimator="em")


@pytest.mark.parametrize(("confidence", "intervals"), [(0.95, 1), (0.9, 5), (0.99, 30)])
def test_the_quantile_is_the_normal_one_shared_among_intervals(confidence, intervals):
    expected = stats.norm.ppf(1 - (1 - confidence) / (2 * intervals))
    assert quantile(confidence, intervals) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("by", "cells"), [(["job"], 5), (["Sex", "job"], 10), (["region"], 3)]
)  # fmt: skip
def test_simultaneous_intervals_share_the_error_among_all_cells(by, cells):
    release = people_release("octave")
    where = None if "job" in by else "job = 'nurse'"
    plain = release.crosstab(by, where)
    together = release.crosstab(by, where, simultaneous=True)
    assert len(plain) == len(together) == cells
    shared = release.crosstab(by, where, confidence=1 - 0.05 / cells)
    for (_, one), (_, other), (_, alone) in zip(plain, together, shared, strict=True):
        assert (other.count, other.standard_error) == (one.count, one.standard_error)
        assert (other.low, other.high) == pytest.approx((alone.low, alone.high))
        assert other.high - other.low > one.high - one.low


# --- variances -----------------------------------------------------------------------------------


def set_count_variance(observed, records, values, *, retention, domain_size):
    """The variance of a set's count, from its published count."""
    known = {"retention": retention, "domain_size": domain_size}
    return count_variance(
        reconstruct_count(observed, records, values, **known), records, values, **known
    )


def _outcomes(held, p, m):
    """Every outcome of perturbing the values in ``held``, with its probability."""
    matrix = perturbation_matrix(p, m)
    for outcome in itertools.product(range(m), repeat=len(held)):
        yield outcome, math.prod(matrix[new, old] for old, new in zip(held, outcome, strict=True))


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
@pytest.mark.parametrize(
    ("held", "chosen", "m"),
    [((0, 0, 1), {0}, 2), ((0, 1, 1, 2), {1}, 3), ((0, 0, 1, 2), {0, 2}, 3),
     ((0, 1, 2, 3), {1, 2, 3}, 4), ((2, 2, 2), {0}, 3), ((0, 1), {0, 1, 2}, 3)],
)  # fmt: skip
def test_the_variance_of_a_set_is_that_of_all_outcomes(p, held, chosen, m):
    n, k, t = len(held), len(chosen), (1 - p) / m
    counts = np.array([sum(v in chosen for v in out) for out, _ in _outcomes(held, p, m)])
    weights = np.array([weight for _, weight in _outcomes(held, p, m)])
    estimates = (counts - k * t * n) / p
    mean = weights @ estimates
    assert mean == pytest.approx(sum(v in chosen for v in held))
    true = weights @ (estimates - mean) ** 2
    of_the_mean = set_count_variance(weights @ counts, n, k, retention=p, domain_size=m)
    assert float(of_the_mean) == pytest.approx(true, abs=1e-12)
    # It is linear in the observed count, so on average an observed count gives the truth too;
    # what is cut at zero must never be more than rounding.
    each = set_count_variance(counts, np.full(counts.size, n), k, retention=p, domain_size=m)
    assert weights @ each == pytest.approx(true, abs=1e-12)


@pytest.mark.parametrize("coin_flips", [False, True])
@pytest.mark.parametrize(("records", "trials", "held"), [(50, 20, 7), (33, 32, 1), (99, 40, 39)])
def test_uneven_copies_vary_as_they_are_dealt(records, trials, held, coin_flips):
    """Hypergeometrically; if each trial flips a coin, as often as not at worst."""
    schema = Schema((), Column("s", Kind.INTEGER), (0, 1, 2))
    every = np.array([records])
    none = np.zeros(1, dtype=int)
    cube = Cube(
        schema, (), (), every, every * trials / records, none, none, every, coin_flips=coin_flips
    )
    share = held / trials
    dealt = (
        stats.binom(held, 0.5) if coin_flips else stats.hypergeom(trials, held, records % trials)
    )
    spread = share if coin_flips else share * (1 - share)
    assert cube.uneven[0] * spread == pytest.approx(dealt.var(), abs=1e-9)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [([0], 1), ([0, 1], 1), ([0, 2], 2), ([0, 4], 1), ([1, 3], 2), ([0, 1, 2, 3, 4], 0), ([], 0),
     ([0, 2, 4], 2)],
)  # fmt: skip
def test_neighbours_on_the_circle_of_the_domain_are_rounded_together(chosen, expected):
    assert runs(chosen, 5) == expected
