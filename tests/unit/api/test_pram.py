"""Post-randomisation of one column with a matrix of one's own."""

import hashlib
import json
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import reconpriv as rp

DOMAIN = ["often", "rare", "never", "some"]  # not sorted: the matrix follows this order
COLUMN = ["often"] * 240 + ["some"] * 120 + ["rare"] * 40
SHARES = np.array([0.6, 0.1, 0.0, 0.3])
MATRIX = np.array(
    [[0.7, 0.1, 0.1, 0.1], [0.2, 0.6, 0.1, 0.1], [0.05, 0.15, 0.6, 0.2], [0.1, 0.05, 0.2, 0.65]]
)


def key(number):
    return rp.Key(hashlib.blake2b(b"pram%d" % number, digest_size=32).digest())


def off(factor):
    """The matrix with a diagonal that is wrong by a factor, rows still adding up to 1."""
    kept = factor * np.diag(MATRIX)
    rest = MATRIX - np.diag(np.diag(MATRIX))
    return rest * ((1 - kept) / rest.sum(axis=1))[:, None] + np.diag(kept)


@pytest.fixture(scope="module")
def answers():
    return [rp.perturb(COLUMN, DOMAIN, matrix=MATRIX, key=key(i)) for i in range(1000)]


def test_each_value_is_published_with_the_probabilities_of_its_row():
    for row, value in zip(MATRIX, DOMAIN, strict=True):
        found = Counter(rp.perturb([value] * 50_000, DOMAIN, matrix=MATRIX, key=key(1)))
        observed = [found[other] for other in DOMAIN]
        assert stats.chisquare(observed, row * 50_000).pvalue > 1e-6
        for factor in (0.7, 1.3):
            wrong = off(factor)[DOMAIN.index(value)]
            assert stats.chisquare(observed, wrong * 50_000).pvalue < 1e-6


def test_a_probability_of_zero_never_happens():
    matrix = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]
    for value, never in (("a", "c"), ("b", "a"), ("c", "b")):
        assert never not in rp.perturb([value] * 20_000, "abc", matrix=matrix, key=key(2))


def test_reconstruction_is_unbiased_and_its_errors_are_right(answers):
    def statistics(entries):
        matrix = rp.pram_matrix(entries, DOMAIN)
        found = [rp.reconstruct(a, DOMAIN, matrix=matrix) for a in answers]
        estimates = np.array([one.frequencies for one in found])
        error = estimates.std(axis=0) / math.sqrt(len(found))
        bias = np.abs((estimates.mean(axis=0) - SHARES) / error).max()
        predicted = np.mean([one.standard_errors**2 for one in found], axis=0)
        return bias, np.abs(estimates.var(axis=0) / predicted - 1).max()

    bias, spread = statistics(MATRIX)
    assert bias < 5
    assert spread < 0.2
    for factor in (0.7, 1.3):
        assert statistics(off(factor))[0] > 5


def coverage(answers, entries, confidence=0.95):
    matrix = rp.pram_matrix(entries, DOMAIN)
    found = [rp.reconstruct(a, DOMAIN, matrix=matrix, confidence=confidence) for a in answers]
    low, high = (np.array([getattr(one, end) for one in found]) for end in ("low", "high"))
    return ((low <= SHARES) & (high >= SHARES)).mean(axis=0)


def test_intervals_hold_for_every_value_and_fail_if_the_matrix_is_30_percent_off(answers):
    right = coverage(answers, MATRIX)
    assert (right > 0.935).all()
    assert right[[0, 1, 3]].max() < 0.98
    for factor in (0.7, 1.3):
        assert coverage(answers, off(factor)).min() < 0.8


def test_a_higher_confidence_misses_less(answers):
    less, more = (coverage(answers[:500], MATRIX, level) for level in (0.8, 0.99))
    assert (less < more).all()
    assert less[[0, 1, 3]].max() < 0.88


def test_the_covariance_serves_for_sums(answers):
    found = [rp.reconstruct(a, DOMAIN, matrix=MATRIX) for a in answers]
    spread = np.var([one.frequencies[[0, 3]].sum() for one in found])
    predicted = np.mean([one.covariance[np.ix_([0, 3], [0, 3])].sum() for one in found])
    assert spread == pytest.approx(predicted, rel=0.15)
    # Without the covariance the sum would look more uncertain than it is.
    alone = np.mean([(one.standard_errors[[0, 3]] ** 2).sum() for one in found])
    assert spread < 0.8 * alone


def test_the_uniform_matrix_reconstructs_as_a_retention_does():
    uniform = 0.5 * np.eye(4) + 0.125
    sent = rp.perturb(COLUMN, DOMAIN, retention=0.5, key=key(1))
    one = rp.reconstruct(sent, DOMAIN, matrix=uniform)
    other = rp.reconstruct(sent, DOMAIN, retention=0.5)
    assert one.frequencies == pytest.approx(other.frequencies)
    assert one.standard_errors == pytest.approx(other.standard_errors, rel=0.02)
    assert one.covariance == pytest.approx(other.covariance)
    assert one.low == pytest.approx(other.low, abs=0.01)
    assert one.high == pytest.approx(other.high, abs=0.01)
    assert one.condition_number == pytest.approx(other.condition_number)
    assert one.local_privacy_level == pytest.approx(other.local_privacy_level)


def test_intervals_of_a_retention_are_those_of_a_release_that_is_not_sampled(tmp_path):
    table = pd.DataFrame({"one": ["x"] * 400, "answer": COLUMN})
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none")
    with pytest.warns(rp.ReconprivWarning, match="only perturbs"):
        rp.publish(table, policy, sensitive="answer", public="all", out=tmp_path / "r", key=key(1))
    release = rp.open(tmp_path / "r")
    found = rp.reconstruct(release.to_pandas()["answer"], sorted(set(COLUMN)), retention=0.5)
    for row in found.as_rows():
        asked = release.count(answer=row["value"])
        assert (asked.low, asked.high) == pytest.approx((400 * row["low"], 400 * row["high"]))
        assert asked.standard_error == pytest.approx(400 * row["standard_error"])


def test_the_same_key_and_matrix_give_the_same_column_in_any_order_of_the_domain():
    one = rp.perturb(COLUMN, DOMAIN, matrix=MATRIX, key=key(1))
    assert one == rp.perturb(COLUMN, DOMAIN, matrix=MATRIX.tolist(), key=key(1))
    order = [2, 0, 3, 1]
    turned = [DOMAIN[i] for i in order]
    assert one == rp.perturb(COLUMN, turned, matrix=MATRIX[np.ix_(order, order)], key=key(1))
    checked = rp.pram_matrix(MATRIX, DOMAIN)
    assert one == rp.perturb(COLUMN, turned, matrix=checked, key=key(1))
    labelled = pd.DataFrame(MATRIX, index=DOMAIN, columns=DOMAIN)
    assert one == rp.perturb(COLUMN, turned, matrix=labelled, key=key(1))
    assert one != rp.perturb(COLUMN, DOMAIN, matrix=MATRIX, key=key(2))


def test_a_slightly_different_matrix_uses_other_words():
    # With the same words, a value that differs between two columns would be known to have changed.
    near = MATRIX.copy()
    near[0] = [0.7 + 1e-9, 0.1 - 1e-9, 0.1, 0.1]
    one, other = (rp.perturb(COLUMN, DOMAIN, matrix=m, key=key(1)) for m in (MATRIX, near))
    assert sum(a != b for a, b in zip(one, other, strict=True)) > 50


def test_an_invariant_matrix_keeps_shares_without_any_correction_and_says_what_it_tells():
    values = [value for value in DOMAIN if value != "never"]
    for how in ({"retention": 0.5}, {"matrix": MATRIX[np.ix_([0, 1, 3], [0, 1, 3])]}):
        if "matrix" in how:
            how["matrix"] /= how["matrix"].sum(axis=1, keepdims=True)
        matrix = rp.invariant_matrix(COLUMN, values, **how)
        shares = np.zeros(3)
        for i in range(300):
            sent = rp.perturb(COLUMN, values, matrix=matrix, key=key(i))
            shares += [sent.count(value) / 400 / 300 for value in values]
        assert shares == pytest.approx([0.6, 0.1, 0.3], abs=0.01)
        assert matrix.from_data
        assert "whoever has it can compute the exact frequencies" in str(matrix)
        # As it says: the stationary distribution is that of the data.
        powers = np.linalg.matrix_power(matrix.probabilities, 200)
        assert powers[0] == pytest.approx([0.6, 0.1, 0.3])
        found = rp.reconstruct(sent, values, matrix=matrix)
        assert matrix.remarks == found.remarks


def test_an_invariant_matrix_of_a_value_that_nobody_has_has_no_privacy_level():
    matrix = rp.invariant_matrix(COLUMN, DOMAIN, retention=0.5)
    assert matrix.local_privacy_level == math.inf
    assert matrix.as_dict()["local_dp_epsilon"] is None
    assert "no local privacy level" in str(matrix)


def test_results_can_be_read_and_written_as_json():
    matrix = rp.pram_matrix(MATRIX, DOMAIN)
    found = rp.reconstruct(COLUMN, DOMAIN, matrix=matrix)
    assert matrix.condition_number == pytest.approx(np.linalg.cond(MATRIX))
    assert matrix.local_privacy_level == pytest.approx(math.log(0.7 / 0.05))
    for shown in (str(found), str(matrix), found._repr_html_(), matrix._repr_html_()):
        assert "condition number" in shown
        assert "ε = 2.64" in shown
    assert "95 % interval" in str(found)
    assert [row["value"] for row in json.loads(json.dumps(found.as_rows()))] == DOMAIN
    assert json.loads(json.dumps(matrix.as_dict()))["matrix"] == MATRIX.tolist()


def test_a_large_matrix_is_described_without_its_entries():
    matrix = rp.pram_matrix(0.5 * np.eye(30) + 0.5 / 30, range(30))
    assert "%" not in str(matrix)
    assert "condition number  2" in str(matrix)


@pytest.mark.parametrize("call", [rp.perturb, rp.reconstruct, rp.invariant_matrix])
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "Give either a retention or a matrix."),
        ({"retention": 0.5, "matrix": MATRIX}, "Give either a retention or a matrix."),
        ({"matrix": MATRIX[:3]}, "a row and a column for each of the 4 values"),
        ({"matrix": np.full((4, 4), 0.25)}, "singular"),
        ({"matrix": np.eye(4)}, "randomises nothing"),
        ({"matrix": 2 * MATRIX}, "adds up to 2"),
        ({"matrix": rp.pram_matrix([[0.6, 0.4], [0.4, 0.6]], "ab")}, "for other values"),
        ({"matrix": pd.DataFrame(MATRIX, index=list("abcd"))}, "labelled with other values"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence(call, arguments, sentence):
    with pytest.raises(rp.ReconprivError) as refusal:
        call(COLUMN, DOMAIN, **arguments)
    assert sentence in str(refusal.value)


def test_an_empty_column_has_no_invariant_matrix():
    with pytest.raises(rp.ReconprivError, match="no values to take frequencies from"):
        rp.invariant_matrix([], DOMAIN, retention=0.5)


@pytest.mark.parametrize(
    "how", [{"retention": 0.5}, {"matrix": 0.5 * np.eye(4) + 0.125}], ids=["retention", "matrix"]
)
def test_a_frequency_below_zero_is_explained(how):
    """A value seen more rarely than replacement alone makes it has a negative estimate."""
    found = rp.reconstruct(["often"] * 30 + ["rare"] * 9 + ["some"] * 9, DOMAIN, **how)
    assert found.frequencies.min() < 0
    said = " ".join(str(found).split())
    assert "of some values, the estimate is below 0 by chance, as an unbiased one may be" in said
    even = rp.reconstruct(list(DOMAIN) * 9, DOMAIN, **how)
    assert not any("by chance" in remark for remark in even.remarks)
