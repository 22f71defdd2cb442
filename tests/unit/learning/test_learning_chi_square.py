"""The test of independence: its level under the null, its power, its derivation, its interface."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2_contingency

import reconpriv as rp
from learning_fixtures import SIGMA, P, Population, replicated_cubes, replicated_margins
from query_fixtures import SAMPLING_RULES, numbered_key, people, people_release
from reconpriv.answers.answerer import Answerer
from reconpriv.errors import InputError
from reconpriv.estimate.counts import Design
from reconpriv.estimate.measurements import prepare_margins
from reconpriv.learning.independence import combined_rows, independence_of
from reconpriv.theory.estimation.independence import (
    CombinedRows,
    PublishedRows,
    combined_covariance,
    corrected,
    corrected_with_margins,
    pearson,
    rounding_variance,
    trial_covariance,
)

SIMULATIONS = 2_000
LEVEL, TOLERANCE = 0.05, 0.01
# One worker for all that share the simulations.
NULL = Population(rows=3, others=6, values=6, records=2_000)


def test_of(cube, sampling):
    answerer = Answerer(cube, Design(P, cube.schema.domain_size, sampling))
    return independence_of(answerer, ["a"], answerer.select(None, {}))


test_of.__test__ = False


@pytest.fixture(scope="module")
def rejected():
    """The share of null simulations rejected: corrected, naive, and with trials off by 30 %."""
    figures = {}
    for number, size in enumerate(("none", "octave", "public")):
        hits = {"corrected": 0, "naive": 0, "too few trials": 0, "too many trials": 0}
        for cube in replicated_cubes(NULL, size, SIMULATIONS, seed=number):
            found = test_of(cube, size)
            hits["corrected"] += found.p_value < LEVEL
            hits["naive"] += found.naive_p_value < LEVEL
            if size == "octave":
                for name, factor in (("too few trials", 0.7), ("too many trials", 1.3)):
                    trials = np.where(cube.sampled, cube.trials * factor, cube.trials)
                    wrong = replace(cube, trials=np.minimum(trials, cube.records))
                    hits[name] += test_of(wrong, size).p_value < LEVEL
        figures[size] = {name: count / SIMULATIONS for name, count in hits.items()}
        print(size, figures[size])
    return figures


@pytest.mark.parametrize("size", ["none", "octave", "public"])
def test_the_corrected_test_holds_its_level(rejected, size):
    """Not with trials that are off by 30 %; the naive test does only without sampling."""
    found = rejected[size]
    assert abs(found["corrected"] - LEVEL) <= TOLERANCE
    assert abs(found["naive"] - LEVEL) <= TOLERANCE if size == "none" else found["naive"] > 0.3
    if size == "octave":
        assert found["too few trials"] < LEVEL - TOLERANCE
        assert found["too many trials"] > LEVEL + TOLERANCE


def test_many_values_and_few_trials_err_on_the_careful_side():
    sparse = Population(rows=4, others=6, values=30, records=3_000)
    found = [test_of(cube, "public") for cube in replicated_cubes(sparse, "public", 500, 4)]
    print(np.mean([test.p_value < LEVEL for test in found]))
    assert np.mean([test.p_value < LEVEL for test in found]) <= LEVEL + TOLERANCE
    assert all("five effective trials" in test.remarks[0] for test in found)


tables = st.tuples(st.integers(2, 4), st.integers(2, 5)).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(1, 60), min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    )
)


@given(tables)
@settings(max_examples=80, deadline=None)
def test_on_raw_records_it_is_pearsons_test_as_scipy_has_it(table):
    observed = np.array(table, dtype=float)
    reference = chi2_contingency(observed, correction=False)
    mine, effects = corrected(PublishedRows(observed, observed, np.zeros_like(observed)), 1.0)
    for test in (mine, pearson(observed)):
        assert test.statistic == pytest.approx(reference.statistic, abs=1e-9)
        assert test.degrees_of_freedom == pytest.approx(reference.dof)
        assert test.p_value == pytest.approx(reference.pvalue, abs=1e-7)
    assert effects == pytest.approx(np.ones(len(table)))


def test_a_value_that_never_occurs_is_left_out():
    observed = np.array([[10.0, 0.0, 20.0], [20.0, 0.0, 10.0]])
    rows = PublishedRows(observed, observed, np.zeros_like(observed))
    reference = chi2_contingency(observed[:, [0, 2]], correction=False)
    assert corrected(rows, 1.0)[0].p_value == pytest.approx(reference.pvalue)
    assert pearson(observed).p_value == pytest.approx(reference.pvalue)


def compositions(total, parts):
    for cuts in itertools.combinations(range(total + parts - 1), parts - 1):
        edges = (-1, *cuts, total + parts - 1)
        yield tuple(edges[i + 1] - edges[i] - 1 for i in range(parts))


def samples(counts, trials):
    """Systematic samples of a group and their probabilities, by looking at every offset."""
    reached = np.cumsum(counts) * trials / sum(counts)
    borders = sorted({0.0, 1.0, *(1.0 - reached % 1.0).round(12).tolist()})
    for low, high in itertools.pairwise(borders):
        upto = np.floor(reached + (low + high) / 2)
        yield np.diff(np.minimum(upto, trials), prepend=0).astype(int), high - low


def brute_force(q, size, trials, p):
    """Every population draw, sample, perturbation: the mean and covariance of published counts.

    Also the mean covariance of the rounded quotas, which no release tells.
    """
    m = len(q)
    matrix = p * np.eye(m) + (1 - p) / m
    scale = size / trials
    first, second, rounding = np.zeros(m), np.zeros((m, m)), np.zeros((m, m))
    for counts in compositions(size, m):
        draw = math.factorial(size) * math.prod(
            q[v] ** c / math.factorial(c) for v, c in enumerate(counts)
        )
        quota = np.array(counts) / scale
        for sample, chance in samples(counts, trials):
            rounding += draw * chance * np.outer(sample - quota, sample - quota)
            own = np.repeat(np.arange(m), sample)
            for outcome in itertools.product(range(m), repeat=trials):
                weight = draw * chance * math.prod(matrix[list(outcome), own])
                published = scale * np.bincount(outcome, minlength=m)
                first += weight * published
                second += weight * np.outer(published, published)
    return first, second - np.outer(first, first), rounding


@pytest.mark.parametrize(
    ("q", "size", "trials", "p"),
    [((0.7, 0.3), 6, 3, 0.5), ((0.5, 0.4, 0.1), 6, 3, 0.6), ((0.8, 0.15, 0.05), 8, 2, 0.3)],
)
def test_the_covariance_is_that_of_every_possible_publication(q, size, trials, p):
    mean, covariance, rounding = brute_force(q, size, trials, p)
    pi = p * np.array(q) + (1 - p) / len(q)
    assert mean == pytest.approx(size * pi)
    more = size / trials - 1
    excess = trial_covariance(more * mean[None], np.array([more * size]), p)[0]
    formula = size * (np.diag(pi) - np.outer(pi, pi)) + excess
    formula += (p * size / trials) ** 2 * rounding
    assert formula == pytest.approx(covariance, abs=1e-9)
    # Taking rows for records, or trials for a plain sample, is another thing.
    assert np.trace(covariance) > 1.3 * size * (1 - pi @ pi)


@pytest.mark.parametrize(
    ("share", "size", "trials", "slack"),
    [(0.002, 100, 20, 0.1), (0.01, 200, 25, 0.1), (0.02, 40, 30, 0.6), (0.2, 300, 20, 0.2)],
)
def test_the_rounding_of_quotas_is_about_that_of_random_counts(share, size, trials, slack):
    counts = np.arange(size + 1)
    fraction = counts * trials / size % 1.0
    exact = float(binom.pmf(counts, size, share) @ (fraction * (1 - fraction)))
    guess = float(rounding_variance(np.array([float(trials)]), np.array([size / trials]), share)[0])
    print(share, exact, guess)
    assert guess == pytest.approx(exact, rel=slack)


@pytest.mark.parametrize("size", SAMPLING_RULES)
def test_a_release_is_tested_with_its_published_rows_and_trials(size):
    release = people_release(size)
    test = release.chi_square("Sex")
    rows = release.to_pandas()
    reference = chi2_contingency(
        pd.crosstab(rows["Sex"], rows["job"].fillna("?")), correction=False
    )
    assert test.naive_statistic == pytest.approx(reference.statistic)
    assert test.naive_p_value == pytest.approx(reference.pvalue)
    assert test.records == release.records
    assert test.p_value < 1e-4  # women are nurses more often
    if size == "none":
        assert test.statistic == pytest.approx(test.naive_statistic)
        assert test.design_effect == pytest.approx(1.0)
    else:
        assert test.statistic < test.naive_statistic
        assert test.design_effect > 1.1
    assert any("secret" in remark for remark in test.remarks) == (size == "paper")


def test_a_condition_restricts_the_records():
    release = people_release("octave")
    every = release.chi_square(["Sex", "region"])
    some = release.chi_square(["Sex", "region"], "age < 25")
    same = release.chi_square(["Sex", "region"], age=[20, 21, 22, 23, 24])
    assert some.p_value == same.p_value
    assert some.records == sum(age < 25 for age in people()["age"].to_pylist())
    assert every.naive_degrees_of_freedom == some.naive_degrees_of_freedom == 5 * 4
    assert some.condition == "age < 25"


@pytest.mark.parametrize(
    ("columns", "where", "words"),
    [
        ("job", None, "the sensitive one"),
        ("jobs", None, "no column 'jobs'"),
        ([], None, "at least one"),
        (["Sex", "Sex"], None, "twice"),
        ("Sex", "Sex = 'F'", "only one value"),
        ("Sex", "age = 99", "no record"),
        ("Sex", "job = 'nurse'", "randomised"),
    ],
)
def test_what_cannot_be_tested_is_refused_in_a_sentence(columns, where, words):
    with pytest.raises(rp.ReconprivError, match=words):
        people_release("octave").chi_square(columns, where)


def test_one_published_value_cannot_be_tested(tmp_path, cli):
    frame = pd.DataFrame({"a": ["x", "x", "y", "y"], "s": ["u"] * 4})
    policy = rp.Policy(retention=0.9, tolerance=0.5, doubt=0.3, sampling="none")
    with rp.read(frame, sensitive="s", public="all", domain=["u", "v"]) as table:
        release = table.publish(policy, tmp_path / "r", key=rp.Key.test())
    assert set(release.to_pandas()["s"]) == {"u"}
    with pytest.raises(InputError, match="only one sensitive value was published"):
        release.chi_square("a")
    done = cli("chi-square", tmp_path / "r", "a", "--json")
    assert done.code == 2
    assert "only one sensitive value" in done.err


def test_too_many_combinations_are_refused(monkeypatch):
    monkeypatch.setattr("reconpriv.learning.independence._MOST_ENTRIES", 100)
    with pytest.raises(InputError, match="too many"):
        people_release("octave").chi_square(["age", "region"])


def test_a_result_shows_both_tests():
    test = people_release("octave").chi_square("Sex")
    text = str(test)
    assert text.startswith("job depends on Sex (p < 0.0001).")
    assert "corrected for the release" in text
    assert "naive" in text
    assert "<table>" in test._repr_html_()
    assert test.as_dict()["p_value"] == test.p_value


def with_margins(population, size, simulations, seed, tables=("a", "b"), wrong=1.0):
    """Answerers of simulated releases with margins; ``wrong`` is how far off σ is thought to be."""
    for cube, margins in replicated_margins(population, size, simulations, seed, tables=tables):
        design = Design(P, cube.schema.domain_size, size)
        ready = prepare_margins(cube, margins, (wrong * SIGMA) ** 2, design)
        yield Answerer(cube, design, ready)


def share_rejected(answerers, **options):
    found = [
        independence_of(answerer, ["a"], answerer.select(None, {}), **options).p_value < LEVEL
        for answerer in answerers
    ]
    return float(np.mean(found))


# Margins of the tested column and another one; of the other one only, which tells the total but
# nothing about the rows.
@pytest.mark.parametrize("tables", [("a", "b"), ("b",)], ids=["own margin", "another's margin"])
@pytest.mark.parametrize("size", ["none", "octave", "public"])
def test_with_margins_it_holds_its_level(size, tables):
    seed = 20 + ["none", "octave", "public"].index(size)
    share = share_rejected(with_margins(NULL, size, SIMULATIONS, seed, tables))
    print(size, tables, share)
    assert abs(share - LEVEL) <= TOLERANCE


def test_a_sigma_that_is_off_by_30_percent_breaks_the_level_either_way():
    low, high = (
        share_rejected(with_margins(NULL, "public", 500, 22, wrong=factor)) for factor in (1.3, 0.7)
    )
    print(low, high)
    assert low < LEVEL - TOLERANCE
    assert high > LEVEL + TOLERANCE


@pytest.mark.parametrize("size", ["none", "octave", "public"])
def test_margins_find_what_records_alone_miss(size):
    weak = Population(others=60, records=12_000, tilt=0.2)
    answerers = list(with_margins(weak, size, 100, 9))
    alone, together = (share_rejected(answerers, margins=used) for used in (False, True))
    print(size, alone, together)
    assert together > 0.9
    assert alone < 0.6


def test_the_covariance_of_rows_is_that_of_repeated_publications():
    """Three rows that lean on one another: margins of b tell their total."""
    population = replace(NULL, records=20_000)
    counts, predicted = [], []
    for answerer in with_margins(population, "none", 1_500, 31, ("b",)):
        rows = rows_with_margins(answerer)
        counts.append(rows.counts)
        predicted.append(combined_covariance(rows, P))
    found = np.array(counts)
    # Sizes of rows are drawn anew each time; what is compared are counts given the sizes.
    found = found - found.sum(axis=2, keepdims=True) * population_shares(population)
    expected = np.mean(predicted, axis=0)
    flat = found.reshape(found.shape[0], -1)
    measured = np.cov(flat.T).reshape(3, 6, 3, 6).transpose(0, 2, 1, 3)
    spread = np.sqrt(np.einsum("aaii->ai", expected))
    scale = np.einsum("ai,bj->abij", spread, spread)
    assert np.abs((measured - expected) / scale).max() < 0.12
    # Without the covariances between rows, contrasts would seem far more certain than they are.
    between = (expected / scale)[0, 1, 0, 0]
    print(between)
    assert between < -0.15


def population_shares(population):
    return population.probabilities().sum(axis=(0, 1))


def rows_with_margins(answerer):
    table = answerer.rows_of(answerer.select(None, {}), ["a"])
    sums = answerer.sums(table, None, margins=False)
    return combined_rows(answerer, table, sums, np.zeros_like(sums.observed))


def test_a_margin_alone_gives_the_true_counts_with_its_noise():
    """Records that tell nothing: N (diag q - qq') + σ² (I - J/m), and rows that add up."""
    rng = np.random.default_rng(3)
    q, sizes, m = np.array([0.5, 0.3, 0.2]), np.array([400.0, 600.0]), 3
    counts = np.array([rng.multinomial(int(n), q) for n in sizes]).astype(float)
    nothing = np.zeros((2, 2, m))
    rows = CombinedRows(
        counts, sizes, nothing, nothing[:, :, 0], 49.0 * np.eye(2), np.ones(2), exact_sizes=True
    )
    covariance = combined_covariance(rows, 0.5)
    share = counts.sum(axis=0) / sizes.sum()
    formula = 600 * (np.diag(share) - np.outer(share, share)) + 49 * (np.eye(m) - 1 / m)
    assert covariance[1, 1] == pytest.approx(formula)
    assert covariance[0, 1] == pytest.approx(np.zeros((m, m)))
    assert covariance.sum(axis=3) == pytest.approx(np.zeros((2, 2, m)))
    quiet = replace(rows, noise=np.zeros((2, 2)))
    test, _ = corrected_with_margins(quiet, 1.0)
    assert test.p_value == pytest.approx(pearson(counts).p_value)


@pytest.fixture(scope="module")
def margins_release(tmp_path_factory):
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none", margins=2.0)
    folder = tmp_path_factory.mktemp("margins") / "release"
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        return table.publish(policy, folder, key=numbered_key(1))


def test_a_release_with_margins_is_tested_with_them(margins_release, cli):
    used = margins_release.chi_square("region", Sex="F")
    alone = margins_release.chi_square("region", margins=False, Sex="F")
    assert used.margins and not alone.margins
    assert alone.statistic == pytest.approx(people_release("none").chi_square("region", Sex="F")
                                            .statistic)  # fmt: skip
    assert used.design_effect < alone.design_effect == pytest.approx(1.0)
    assert used.naive_p_value == alone.naive_p_value
    assert "corrected, from records and margins" in str(used)
    assert "margins" not in str(alone)
    # No number of records: margins are worth more than the table has.
    said = " ".join(str(used).split())
    assert f"thanks to the margins, more precise than all {used.records:,} records" in said
    assert f"as precise as {alone.records:,} records that are only perturbed" in str(alone)
    assert used.as_dict()["margins"] is True
    done = cli("chi-square", margins_release.path, "Sex")
    assert done.code == 0 and "from records and margins" in done.out
    done = cli("chi-square", margins_release.path, "Sex", "--no-margins")
    assert done.code == 0 and "margins" not in done.out


def test_too_many_combinations_are_tested_on_the_records_alone(margins_release, monkeypatch):
    monkeypatch.setattr("reconpriv.learning.independence._MOST_PAIRS", 99)
    test = margins_release.chi_square("Sex")
    assert not test.margins
    assert any("margins were left aside" in remark for remark in test.remarks)
