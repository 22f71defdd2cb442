"""Micro reconstruction (Example 1): what perturbation alone reveals, and how sampling hides it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.attacks.attacked_table import AttackedTable, count_of, frequency_in, largest_values
from reconpriv.attacks.best_estimate import combined_share
from reconpriv.attacks.micro import attack_micro, measure, predicted_share
from reconpriv.attacks.statistics import relative_error, score
from reconpriv.policy.policy import Policy
from reconpriv.theory.perturbation import retention_for_privacy

KEYS = 24


@pytest.fixture(scope="module")
def measured(target):
    return {size: measure(target, size, KEYS) for size in ("none", "octave", "public")}


@pytest.fixture(scope="module")
def under(measured):
    """Whether the error stays under ε: keys x groups, for each sampling rule."""
    return {size: one.errors.reshape(KEYS, -1) <= 0.5 for size, one in measured.items()}


@pytest.fixture(scope="module")
def predicted(measured):
    """The chance of that, by the counts as they are published."""
    return {size: combined_share(one.found[0], 0.5) for size, one in measured.items()}


def top_errors(target, published):
    found = frequency_in(published, target.values, target.policy.retention)
    return relative_error(found, target.frequency)


def guessed_persons(target, guess):
    return count_of(target.raw, guess).sum() / target.batch.sizes.sum()


def test_the_violating_groups_are_those_of_the_audit(target):
    assert target.violating().size == 355
    assert target.batch.sizes[target.violating()].sum() == 25_813


@pytest.mark.parametrize("size", ["none", "octave", "public"])
def test_exact_tails_match_simulation(predicted, under, size):
    """And a prediction off by 30 % of the tails, either way, is rejected."""
    predicted = predicted[size]
    simulated = under[size].astype(float)
    assert abs(score(simulated.ravel(), np.tile(predicted, KEYS))) < 4
    if size != "none":  # there hardly any error is above ε
        for factor in (0.7, 1.3):
            wrong = 1 - np.clip((1 - predicted) * factor, 0, 1)
            assert abs(score(simulated.ravel(), np.tile(wrong, KEYS))) > 4


def test_on_none_copies_change_nothing(exposed, predicted):
    assert predicted["none"] == pytest.approx(predicted_share(exposed, "none"))


def test_the_share_told_within_epsilon_drops_from_none_to_octave_as_predicted(predicted, under):
    drop = under["none"].mean() - under["octave"].mean()
    assert drop > 0.05
    expected = (predicted["none"] - predicted["octave"]).mean()
    assert drop == pytest.approx(expected, abs=0.02)
    assert under["public"].mean() < under["octave"].mean()


def test_the_result_has_each_sampling_and_beats_baseline_and_control(target):
    result = attack_micro(target, keys=2)
    rows = {row["sampling"]: row for row in result.table}
    assert list(rows) == ["none", "public", "octave", "paper"]
    assert result.success is not None and result.baseline is not None
    assert result.control is not None
    assert result.success.low > result.baseline.high
    assert result.success.low > result.control.high
    assert (
        rows["none"]["guess right"] > rows["octave"]["guess right"] > rows["public"]["guess right"]
    )
    assert rows["none"]["guess right"] > result.figures["it is right in"].high
    assert len(result.worst) == 5


def test_on_a_shuffled_column_a_guess_is_no_better_than_that_of_the_whole_table(target):
    """Persons guessed by group against persons guessed by the table, both on shuffled data."""
    shuffled = target.shuffled()
    assert shuffled.batch.sizes.tolist() == target.batch.sizes.tolist()
    assert shuffled.overall == pytest.approx(target.overall)
    large = shuffled.only(np.flatnonzero(shuffled.batch.sizes >= 20))
    persons = guessed_persons(large, largest_values(large.publish(0, "none")))
    whole = count_of(large.raw, np.full(large.batch.groups, int(np.argmax(target.overall))))
    assert persons <= whole.sum() / large.batch.sizes.sum() + 0.01
    true = target.only(np.flatnonzero(target.batch.sizes >= 20))
    guess = largest_values(true.publish(0, "none"))
    assert guessed_persons(true, guess) > persons + 0.03


def test_example_1_of_the_paper():
    """All k of Bob's group have x1, 0.1-0.5 privacy holds, and still Bob is given away."""
    k, p = 400, retention_for_privacy(0.1, 0.5, 10)
    group = ["M30"] * k + ["other"] * (9 * k)
    disease = ["x1"] * k + [f"x{2 + i % 9}" for i in range(9 * k)]
    with rp.read(
        pa.table({"group": group, "disease": disease}), sensitive="disease", public="all"
    ) as table:
        target = AttackedTable.of(
            table, Policy(retention=p, tolerance=0.5, doubt=0.3, sampling="none")
        )
    published = target.publish(0)
    bob = int(np.argmax(target.frequency))
    assert target.schema.domain[largest_values(published)[bob]] == "x1"
    assert top_errors(target, published)[bob] < 0.2
    sampled = np.array([top_errors(target, target.publish(i, "public"))[bob] for i in range(50)])
    plain = np.array([top_errors(target, target.publish(i, "none"))[bob] for i in range(50)])
    assert np.median(sampled) > 2 * np.median(plain)


def test_a_table_without_a_violating_group_is_refused_kindly():
    with rp.read(
        pa.table({"a": ["x", "y"], "s": ["u", "v"]}), sensitive="s", public="all"
    ) as table:
        target = AttackedTable.of(table, Policy(retention=0.5, tolerance=0.5, doubt=0.3))
    with pytest.raises(rp.ReconprivError, match="nothing to attack"):
        attack_micro(target)


def test_a_group_alone_is_published_as_in_the_whole_table(target, exposed):
    whole, part = target.publish(3), exposed.publish(3)
    violating = target.violating()
    assert whole.records[violating].tolist() == part.records.tolist()
    top = largest_values(part)
    everywhere = np.zeros(target.batch.groups, dtype=np.int64)
    everywhere[violating] = top
    assert count_of(whole, everywhere)[violating].tolist() == count_of(part, top).tolist()
