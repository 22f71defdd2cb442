"""Inference: what a model learns about those in the table, and what about everybody."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import reconpriv as rp
from made_tables import made, rounded
from reconpriv.attacks import Effort, attack
from reconpriv.attacks.attacked_table import AttackedTable, Publication, attack_key
from reconpriv.attacks.held_out import split_people
from reconpriv.attacks.infer import (
    NAIVE_BAYES,
    OWN_GROUP,
    attack_infer,
    features,
    judge_guesses,
    naive_bayes_shares,
)
from reconpriv.attacks.statistics import difference_of_shares, true_positives
from reconpriv.errors import InputError
from reconpriv.learning import ReconstructedNaiveBayes
from reconpriv.learning.classifiers import learned_shares
from reconpriv.policy.policy import Policy

SAMPLED = Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="public")


@pytest.fixture(scope="module")
def pairs():
    """6,000 groups of two people: whoever is in the table is nearly all of a group."""
    rng = np.random.default_rng(8)
    counts = np.stack([rng.integers(0, 3, 6_000)] * 2, axis=1)
    counts[:, 1] = 2 - counts[:, 0]
    public = {"place": pa.array(np.arange(6_000) // 40), "number": pa.array(np.arange(6_000) % 40)}
    return counts, public


@pytest.fixture(scope="module")
def hundreds():
    """120 groups of 200 people whose values depend on their age."""
    age = np.linspace(0, 3, 120)
    shares = np.stack([1.2 + np.sin(age + shift) for shift in (0, 1, 2, 4)], axis=1)
    return made(rounded(shares**4, 200), SAMPLED)


def rows_of(result, size):
    return {row["model"]: row for row in result.table if row["sampling"] == size}


def test_people_are_split_by_chance_and_always_alike(hundreds):
    split = split_people(hundreds)
    assert (split.published + split.held_out == hundreds.batch.count).all()
    people = hundreds.batch.count.sum()
    assert abs(split.published.sum() / people - 0.8) < 4 * np.sqrt(0.16 / people)
    assert split.inside.batch.count.sum() == split.published.sum()
    assert split_people(hundreds).published.tolist() == split.published.tolist()


def test_a_group_nobody_of_which_is_published_is_not_in_the_release(pairs):
    counts, public = pairs
    split = split_people(made(counts, SAMPLED, public))
    absent = np.setdiff1d(np.arange(6_000), split.kept)
    assert 0 < absent.size < 0.06 * 6_000
    assert split.inside.batch.groups == split.kept.size
    cube = split.inside.raw
    assert cube.group_table().column("place").to_pylist() == [int(g) // 40 for g in split.kept]


def test_naive_bayes_is_the_one_of_the_package(small, tmp_path):
    policy = Policy(retention=0.5, tolerance=0.5, doubt=0.3)
    with rp.read(small, sensitive="Education", public="all") as table:
        target = AttackedTable.of(table, policy)
        release = table.publish(policy, tmp_path / "r", key=attack_key(0))
    cube = target.publish(0)
    shares = naive_bayes_shares(
        Publication(target.policy, cube), target.raw, np.arange(cube.groups)
    )
    model = ReconstructedNaiveBayes.from_release(release)
    people = cube.group_table().select(model.feature_names_in_.tolist()).to_pandas()
    assert shares == pytest.approx(model.predict_proba(people), abs=1e-9)


def test_in_sampled_groups_being_in_the_table_makes_no_difference(hundreds):
    """Of 160 people of a group a few trials are published: one person is next to nothing."""
    result = attack_infer(hundreds, classifier="forest")
    for row in rows_of(result, "public").values():
        assert abs(row["difference"]) < 3 * row["its error"]
        assert row["its error"] < 0.02
        assert row["in larger groups"] == pytest.approx(row["difference"])
    assert result.success is not None and result.baseline is not None
    assert result.control is not None
    # It learns, though: about everybody.
    assert result.baseline.low > result.figures["the most frequent value"] + 0.03
    assert result.control.high < result.baseline.low


def test_records_published_nearly_as_they_are_are_learnt_by_heart(pairs):
    counts, public = pairs
    policy = Policy(retention=0.95, tolerance=0.5, doubt=0.3, sampling="none")
    result = attack_infer(made(counts, policy, public), classifier="forest")
    rows = rows_of(result, "none")
    for model in (OWN_GROUP, "forest"):
        assert rows[model]["difference"] > 10 * rows[model]["its error"]
    assert rows[OWN_GROUP]["members found"] > 0.005
    assert rows[OWN_GROUP]["most among one value"] > 0.005
    # Naive Bayes has no place for single groups.
    assert rows[NAIVE_BAYES]["difference"] < 0.3 * rows[OWN_GROUP]["difference"]
    assert result.success is not None and result.baseline is not None
    assert result.success.low > result.baseline.high + 0.1


def test_randomised_response_bounds_what_is_learnt_by_heart(pairs):
    """The lower p, the less being in the table matters."""
    counts, public = pairs
    found = [
        rows_of(
            attack_infer(made(counts, Policy(retention=p, tolerance=0.5, doubt=0.3), public)),
            "none",
        )[OWN_GROUP]
        for p in (0.2, 0.5, 0.9)
    ]
    differences = [row["difference"] for row in found]
    assert differences[0] < differences[1] < differences[2]
    assert differences[2] > 3 * differences[0]


def test_a_perfect_score_and_a_useless_one(hundreds):
    split = split_people(hundreds)
    truth = np.zeros((120, 4))
    batch = hundreds.batch
    truth[batch.group_of_cell, batch.value] = split.published
    even = np.full((120, 4), 0.25)
    assert judge_guesses(split, even).members[0] == pytest.approx(0.001)
    learnt = judge_guesses(split, (truth + 1) / (truth + 1).sum(axis=1, keepdims=True))
    assert learnt.difference[0] > 0
    assert learnt.inside == truth.max(axis=1).sum()


def test_the_rate_of_true_positives_is_that_of_false_ones_by_chance():
    """On average, also with few people and many ties; 30 % more or less would be noticed."""
    rng, found = np.random.default_rng(4), []
    for _ in range(600):
        score = np.round(rng.random(2_000), 2)
        inside = (rng.random(2_000) < 0.8).astype(np.int64)
        found.append(true_positives(score, inside, 1 - inside, 0.05))
    rates, errors = np.array(found).T
    near = 4 * rates.std() / np.sqrt(600)
    assert abs(rates.mean() - 0.05) < near
    assert abs(rates.mean() - 0.05 * 0.7) > near
    assert abs(rates.mean() - 0.05 * 1.3) > near
    error = np.sqrt(np.mean(errors**2))
    assert error == pytest.approx(rates.std(), rel=0.2)
    assert 0.7 * error != pytest.approx(rates.std(), rel=0.2)
    assert 1.3 * error != pytest.approx(rates.std(), rel=0.2)


def test_true_positives_of_a_score_that_tells_members_apart():
    inside, outside = np.array([6, 3, 1, 0]), np.array([0, 1, 4, 5])
    score = np.array([0.9, 0.5, 0.4, 0.1])
    found, _ = true_positives(score, inside, outside, 0.1)
    assert found == pytest.approx(0.9)
    assert true_positives(score, inside, outside, 0.3)[0] == pytest.approx(0.95)


def test_the_error_of_a_difference_is_that_of_drawing_people_by_lot():
    """People of a group are right together, but each is drawn alone: z is standard normal."""
    rng, scores = np.random.default_rng(6), []
    for _ in range(800):
        right, sizes = rng.random(60) < 0.4, rng.integers(1, 60, 60)
        first = rng.binomial(sizes, 0.8)
        difference, error = difference_of_shares(right, first, sizes - first)
        scores.append(difference / error)
    assert abs(np.mean(scores)) < 0.2
    assert np.std(scores) == pytest.approx(1, rel=0.15)
    for factor in (0.7, 1.3):
        assert factor * np.std(scores) != pytest.approx(1, rel=0.15)


def test_a_classifier_may_be_an_object_and_need_not_take_weights(hundreds):
    cube = hundreds.publish(0, "none")
    lines = features(hundreds.raw)
    truth = np.zeros((120, 4))
    truth[hundreds.raw.group, hundreds.raw.value] = hundreds.raw.count / 200
    for chosen in (LogisticRegression(), KNeighborsClassifier(600)):
        shares = learned_shares(chosen, cube, lines, lines, retention=0.5)
        assert shares.sum(axis=1) == pytest.approx(np.ones(120))
        # Corrected: without, no share would be above 0.5·0.6 + 0.125.
        assert np.abs(shares - truth).mean() < 0.08
    result = attack_infer(hundreds, classifier=KNeighborsClassifier(600))
    assert "KNeighborsClassifier" in rows_of(result, "public")
    assert result.success is not None and "KNeighborsClassifier" in result.success.what


def test_features_keep_order_and_split_texts():
    public = {"age": pa.array([3, None, 9], pa.int64()), "sex": pa.array(["f", "m", "m"])}
    lines = features(made(np.ones((3, 2), dtype=np.int64), SAMPLED, public).raw)
    assert lines.tolist() == [[0, 1, 0], [-1, 0, 1], [1, 0, 1]]


@pytest.mark.parametrize(
    ("classifier", "words"),
    [("oracle", "no classifier called 'oracle'"), (object(), "needs fit and predict_proba")],
)
def test_what_is_no_classifier_is_refused(hundreds, classifier, words):
    with pytest.raises(InputError, match=words):
        attack_infer(hundreds, classifier=classifier)


def test_a_table_of_one_person_cannot_be_split():
    with pytest.raises(InputError, match="too few people"):
        split_people(made(np.array([[1, 0]]), SAMPLED))


def test_the_command_takes_a_classifier_by_name(cli, tmp_path, small):
    pa.parquet.write_table(small, tmp_path / "small.parquet")
    given = (tmp_path / "small.parquet", "-s", "Education", "--public=all")
    done = cli("attack", "infer", *given, "--classifier", "forest")
    assert done.code == 0, done.err
    assert "guessed by forest (octave)" in " ".join(done.out.split())
    refused = cli("attack", "micro", *given, "--classifier", "logistic")
    assert refused.code == 2 and "--classifier works only with the attack infer" in refused.err
    unknown = cli("attack", "infer", *given, "--classifier", "oracle")
    assert unknown.code == 2 and "Choose one of: forest, boosting, logistic" in unknown.err
    with rp.read(small, sensitive="Education", public="all") as table:
        effort = Effort(keys=2, classifier=KNeighborsClassifier(50))
        result = attack("infer", table, Policy(retention=0.5, tolerance=0.5, doubt=0.3), effort)
    assert (
        result.success is not None
        and result.success.trials == 2 * result.figures["people published"]
    )


def test_naive_bayes_learns_from_margins_as_an_analyst_does(small, tmp_path):
    policy = Policy(retention=0.3, tolerance=0.5, doubt=0.3, sampling="public", margins=3.0)
    with rp.read(small, sensitive="Education", public="all") as table:
        target = AttackedTable.of(table, policy)
        release = table.publish(policy, tmp_path / "r", key=attack_key(0))
        effort = Effort(classifier="logistic")
        plain, both = attack("infer", table, policy), attack("infer", table, policy, effort)
    published = target.publication(0)
    found = naive_bayes_shares(published, target.raw, np.arange(target.batch.groups))
    features = target.raw.group_table().to_pandas()
    assert found == pytest.approx(release.naive_bayes().predict_proba(features), abs=1e-6)
    alone = release.naive_bayes(margins=False).predict_proba(features)
    assert np.abs(found - alone).max() > 0.01
    assert plain.figures["margins"] == "used by naive Bayes"
    assert both.figures["margins"].endswith("not used by the classifier, which learns from records")


def test_protection_groups_leave_less_to_learn_by_heart(pairs):
    """Values dealt within a place say nothing about a single number of it."""
    counts, public = pairs
    plain = Policy(retention=0.9, tolerance=0.5, doubt=0.3, sampling="none")
    free, guarded = (
        rows_of(attack_infer(made(counts, policy, public)), "none")[OWN_GROUP]
        for policy in (plain, replace(plain, protect={"number": "*"}))
    )
    assert free["difference"] > 10 * free["its error"]
    assert guarded["difference"] < 0.4 * free["difference"]


def test_a_table_without_public_columns_has_a_guess_for_everybody():
    result = attack_infer(made(np.array([[600, 400]]), SAMPLED, {}))
    assert result.baseline.share == pytest.approx(0.6, abs=0.15)
