"""The vote over a person's rows: as theory predicts, and nothing where there is one row."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from peoples_rows import peoples_rows
from reconpriv.attacks import Effort, attack
from reconpriv.attacks.persons import MANY_ROWS
from reconpriv.attacks.persons import peoples_rows as rows_by_person
from reconpriv.errors import InputError
from reconpriv.policy.policy import Policy
from reconpriv.theory.votes import vote_success

POLICY = Policy(retention=0.5, tolerance=0.5, doubt=0.3)
PEOPLE = 2_000
ROLES = {"sensitive": "result", "public": ["visit", "ward"], "person": "pid"}


def attacked(table, policy=POLICY, keys=1, **roles):
    with rp.read(table, **(ROLES | roles)) as opened:
        return attack("persons", opened, policy, Effort(keys=keys))


def by_rows(result):
    return {row["rows"]: row for row in result.table}


@pytest.fixture(scope="module")
def constant():
    """2,000 people each with one, two, three and five rows, which all show the same value."""
    return peoples_rows([1, 2, 3, 5], PEOPLE)


@pytest.fixture(scope="module")
def result(constant):
    return attacked(constant)


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_the_vote_succeeds_as_often_as_predicted(result, rows):
    """A p that is 30 % off either way would be noticed."""
    found = by_rows(result)[rows]
    assert found["people"] == PEOPLE and found["same value in all"] == 1
    assert found["predicted for the same value"] == vote_success(rows, 0.5, 4)
    near = 4 * math.sqrt(0.25 / PEOPLE)
    assert abs(found["vote"] - vote_success(rows, 0.5, 4)) < near
    for wrong in (0.7, 1.3):
        assert abs(found["vote"] - vote_success(rows, 0.5 * wrong, 4)) > near


def test_five_rows_give_away_far_more_people_than_one(result):
    found = by_rows(result)[5]
    assert found["vote"] > found["one row"] + 0.15
    assert next(iter(by_rows(result))) == 5, "the worst class comes first"
    votes = [row["vote"] for row in result.table]
    assert votes == sorted(votes, reverse=True)
    one = result.figures["one row of each"]
    assert one.share == pytest.approx(0.625, abs=4 * math.sqrt(0.25 / one.trials))
    assert result.success.low > one.high
    assert result.success.trials == result.figures["people with several rows"] == 3 * PEOPLE
    assert "people with several rows" in result.verdict


def test_a_person_with_one_row_has_nothing_to_vote_over(result):
    found = by_rows(result)[1]
    assert found["vote"] == found["one row"]


def test_baseline_and_control_tell_nothing(result):
    """Values are equally frequent, and rows dealt by lot are not a person's."""
    assert result.baseline.share == pytest.approx(0.25)
    assert abs(result.control.share - 0.25) < 4 * math.sqrt(0.19 / result.control.trials)
    assert result.control.high < result.figures["one row of each"].low


def test_with_one_row_of_each_the_vote_is_worth_one_row(constant, result):
    kept = attacked(constant, rows_per_person="one")
    assert kept.figures["people"] == 4 * PEOPLE
    assert kept.figures["people with several rows"] == 0
    assert kept.success.successes == kept.figures["one row of each"].successes
    near = 4 * math.sqrt(0.25 / kept.success.trials)
    assert abs(kept.success.share - vote_success(1, 0.5, 4)) < near
    for wrong in (0.35, 0.65):
        assert abs(kept.success.share - vote_success(1, wrong, 4)) > near
    assert kept.success.high < result.success.low
    assert list(by_rows(kept)) == [1]
    assert "nothing to vote over" in kept.verdict


def test_rows_that_differ_hide_more(result):
    mixed = attacked(peoples_rows([5], PEOPLE, same=0.3))
    assert by_rows(mixed)[5]["same value in all"] < 0.2
    assert by_rows(mixed)[5]["vote"] < by_rows(result)[5]["vote"] - 0.1


def test_votes_are_weighed_against_how_frequent_a_value_is():
    """Where 92 % are negative, a lone positive row is no reason to believe it."""
    people = np.repeat(np.arange(2_000), 2)
    value = np.where(people < 160, "positive", "negative")
    table = pa.table({"pid": people, "visit": np.tile([0, 1], 2_000), "result": value})
    policy = Policy(retention=0.3, tolerance=0.5, doubt=0.3)
    found = attacked(table, policy, keys=5, public=["visit"])
    assert found.baseline.share == pytest.approx(0.92)
    # Ignoring the shares, the vote over two rows would be right for r = 65 % of the people.
    assert found.success.share == pytest.approx(0.92, abs=0.005)


def test_a_value_that_two_rows_share_counts_as_right():
    """A person with two true values has no single most frequent one; either is right."""
    table = pa.table(
        {
            "pid": [1, 1, 2, 2] * 2,
            "visit": list(range(8)),
            "result": ["a", "a", "b", "b", "c", "c", "b", "b"],
        }
    )
    found = attacked(table, Policy(retention=0.999, tolerance=0.5, doubt=0.3), public=["visit"])
    assert found.success.share == 1
    assert found.figures["rows of one person, at most"] == 4


def test_many_rows_are_counted_together():
    found = by_rows(attacked(peoples_rows([MANY_ROWS, MANY_ROWS + 1, 20], 40)))
    assert set(found) == {MANY_ROWS, f"over {MANY_ROWS}"}
    assert found[f"over {MANY_ROWS}"]["people"] == 80
    assert found[f"over {MANY_ROWS}"]["predicted for the same value"] is None


def test_keys_are_publications(constant):
    found = attacked(constant, keys=3)
    assert found.success.trials == 9 * PEOPLE


def test_rows_of_nobody_are_left_out():
    table = peoples_rows([1, 3], 50)
    pid = pa.array([None if i < 7 else v for i, v in enumerate(table["pid"].to_pylist())])
    table = table.set_column(0, "pid", pid)
    with rp.read(table, **ROLES) as opened:
        target, unknown = rows_by_person(opened, POLICY)
        found = attack("persons", opened, POLICY)
    assert unknown == found.figures["rows of nobody, left out"] == 7
    assert target.batch.sizes.sum() == 193
    empty = table.set_column(0, "pid", pa.array([None] * 200, pa.string()))
    with rp.read(empty, **ROLES) as opened, pytest.raises(InputError, match="'pid' is empty"):
        attack("persons", opened, POLICY)


def test_rows_without_a_sensitive_value_do_not_vote():
    table = peoples_rows([3], 200)
    value = pa.array([None if i % 4 == 0 else v for i, v in enumerate(table["result"].to_pylist())])
    table = table.set_column(3, "result", value)
    with rp.read(table, missing="drop", **ROLES) as opened:
        target, _ = rows_by_person(opened, POLICY)
    assert target.batch.sizes.sum() == 450


def test_margins_and_protection_are_left_aside_and_the_result_says_so(constant, result):
    with rp.read(constant, **ROLES) as opened:
        policy = Policy(retention=0.5, tolerance=0.5, doubt=0.3, margins=1.0)
        found = attack("persons", opened, policy)
        guarded = attack(
            "persons",
            opened,
            Policy(retention=0.5, tolerance=0.5, doubt=0.3, protect={"ward": "*"}),
        )
    assert found.success == result.success == guarded.success
    assert "margins and protection are left aside" in found.figures["published"]


def test_without_the_persons_column_it_is_refused(cli, constant, tmp_path):
    file = tmp_path / "visits.parquet"
    pq.write_table(constant, file)
    given = ("attack", "persons", file, "-s", "result", "--public", "visit,ward")
    refused = cli(*given)
    assert refused.code == 2
    assert refused.err == (
        "error: The attack 'persons' must know who a row is about. Name that column with"
        " --person.\n"
    )
    done = cli(*given, "--person", "pid", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["table"][0]["rows"] == 5
    assert "p000" not in done.out, "nobody's number is shown"


@pytest.mark.parametrize("rows_per_person", ["refuse", "one"])
def test_other_attacks_run_although_people_have_several_rows(constant, rows_per_person):
    """Also the one that publishes: nothing of it leaves the lab."""
    with rp.read(constant, rows_per_person=rows_per_person, **ROLES) as table:
        files = attack("side-channels", table, POLICY)
        assert attack("micro", table, POLICY).success.trials
        assert table.schema.person is not None
    assert files.success.successes == 0
    assert {row["leaks"] for row in files.table} == {"no"}
