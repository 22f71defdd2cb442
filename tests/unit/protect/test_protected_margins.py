"""Margins beside protection groups are those of the coarse table, and tell no more than those."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.attacks.attacked_table import AttackedTable, attack_key
from reconpriv.attacks.pool import attack_pool, pool_all
from reconpriv.errors import PolicyError
from reconpriv.policy.presets import RECOMMENDED, fitted

POLICY = rp.Policy(
    retention=0.5, tolerance=0.5, doubt=0.3, margins=1.0, protect={"age": 10, "race": "*"}
)


def people():
    rng = np.random.default_rng(7)
    n = 24_000
    age, town = rng.integers(20, 50, n), rng.choice(list("abcd"), n)
    ill = np.where(rng.random(n) < 0.2 + (age // 10) / 10, "x", rng.choice(list("yz"), n))
    return pa.table({"age": age, "race": rng.choice(["p", "q"], n), "town": town, "ill": ill})


def coarse(table):
    """The table as somebody who publishes coarse values alone would have it."""
    bands = [f"{age // 10 * 10} to {age // 10 * 10 + 9}" for age in table["age"].to_pylist()]
    return table.drop_columns(["race"]).set_column(0, "age", pa.array(bands))


@pytest.fixture(scope="module")
def table():
    with rp.read(people(), sensitive="ill", public="all") as opened:
        yield opened


@pytest.fixture(scope="module")
def releases(table, tmp_path_factory):
    """With protection, and of the coarse table, with one key."""
    folder, key = tmp_path_factory.mktemp("releases"), attack_key(1)
    protected = table.publish(POLICY, folder / "protected", key=key)
    with rp.read(coarse(people()), sensitive="ill", public="all") as opened:
        plain = opened.publish(replace(POLICY, protect=None), folder / "coarse", key=key)
    return protected, plain


def test_margins_and_trials_are_those_of_the_coarse_table(releases):
    protected, plain = releases
    for name in ("margins.parquet", "groups.parquet"):
        ours, theirs = (pq.read_table(one.path / name) for one in (protected, plain))
        assert ours.to_pylist() == theirs.to_pylist()
    assert protected.description.format_version == 6


def test_questions_about_whole_protection_groups_are_answered_alike(releases):
    protected, plain = (rp.open(one.path) for one in releases)
    fine = {"age": list(range(20, 30)), "town": "a", "ill": "x"}
    ours, theirs = protected.count(**fine), plain.count(age="20 to 29", town="a", ill="x")
    for name in ("count", "low", "high", "standard_error", "from_margins"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-9), name
    assert ours.from_margins > 0
    cut = protected.count(age=23, ill="x")
    assert cut.low <= (people().to_pandas().query("age == 23").ill == "x").sum() <= cut.high


def test_an_adversary_who_pools_gains_nothing_over_the_coarse_table(table):
    target = AttackedTable.of(table, POLICY)
    groups, alone = target.violating(), target.by_promise()
    for number in range(3):
        ours, theirs = (one.publication(number) for one in (target, alone))
        assert ours.tables and len(ours.tables) == len(theirs.tables)
        found = pool_all(ours, groups)
        expected = pool_all(theirs, ours.cube.within[groups])
        assert np.array_equal(found.estimate, expected.estimate)
        assert np.array_equal(found.alone, expected.alone)
    assert {row["sampling"] for row in attack_pool(target, keys=1).table} >= {"octave"}


def test_margins_cost_protection_groups_their_trials(table, tmp_path):
    without = table.publish(replace(POLICY, margins=None), tmp_path / "r", key=attack_key(1))
    beside = table.publish(POLICY, tmp_path / "m", key=attack_key(1))
    assert beside.written.trials < without.written.trials
    lost = table.audit(POLICY).margins.trials_lost
    assert lost == pytest.approx(without.written.trials - beside.written.trials, rel=0.05)


def test_the_recommended_policy_keeps_its_margins_unless_too_few_columns_are_left(table):
    policy = replace(RECOMMENDED.policy, protect={"age": 10})
    assert fitted(policy, table.schema, retention=True, margins=True).policy.margins
    policy = replace(policy, protect={"age": "*", "race": "*"})
    assert not fitted(policy, table.schema, retention=True, margins=True).policy.margins
    with pytest.raises(PolicyError, match="at least one public column"):
        table.audit(replace(POLICY, protect=dict.fromkeys(["age", "race", "town"], "*")))
