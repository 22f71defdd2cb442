"""A series of releases with one key: its trials, counted one by one, and what they tell."""

from dataclasses import replace

import numpy as np
import pytest

from reconpriv.attacks.attacked_table import AttackedTable, attack_key, dense
from reconpriv.attacks.run import Effort, attack
from reconpriv.attacks.updates import attack_updates, in_and_out, replaced, with_trials
from reconpriv.errors import PolicyError
from reconpriv.policy.policy import Policy
from reconpriv.protect.kernel import Kernel

POLICY = Policy(retention=0.5, tolerance=0.5, doubt=0.3)
SIZES = ("none", "paper", "octave", "public")


@pytest.fixture(scope="module")
def target(adult):
    return AttackedTable.of(adult, POLICY).by_promise()


@pytest.fixture(scope="module")
def result(target):
    return attack_updates(target)


@pytest.mark.parametrize("size", SIZES)
def test_the_trials_of_cells_are_those_that_are_published(target, size):
    kernel = Kernel(target.schema, replace(POLICY, sampling=size), attack_key(0))
    draw = kernel.draw(target.batch)
    cells, drawn = draw.cells, draw.trials
    published = np.concatenate([piece.trials for piece in kernel(target.batch)])
    assert (np.add.reduceat(drawn, target.batch.starts) == published).all()
    assert np.unique(cells).size == cells.size


def test_a_series_shows_the_union_of_all_trials(target):
    """Counted as sets of (cell, number), by hand; with fresh keys it would be the sum."""
    shown, total = set(), 0
    seen = np.zeros(target.batch.groups * target.schema.domain_size, np.int64)
    for state in replaced(target, 3):
        kernel = Kernel(target.schema, POLICY, attack_key(0))
        drawn = kernel.draw(state.table.batch).trials
        seen = with_trials(seen, state, kernel)
        shown |= {(c, i) for c, n in zip(state.cells, drawn, strict=True) for i in range(n)}
        total += int(drawn.sum())
    assert int(seen.sum()) == len(shown)
    assert len(shown) < total / 3


def test_one_percent_is_replaced_and_a_person_comes_and_goes(target):
    first, second = (state.table.batch for state in replaced(target, 1))
    assert first.count.sum() == second.count.sum() == target.batch.count.sum()
    some = np.flatnonzero(target.batch.sizes > 50)[:3]
    states = [state.table for state in in_and_out(target, some, 4)]
    grown = [int(table.batch.count.sum() - target.batch.count.sum()) for table in states]
    assert grown == [0, 3, 0, 3, 0]
    once, again = (dense(states[i].publish(0)) for i in (0, 2))
    assert (once == again).all()


def test_one_key_shows_little_more_than_one_release(result):
    assert result.success is not None and result.control is not None
    fresh = result.figures["11 fresh keys"]
    assert result.success.low <= result.control.share <= result.success.high
    assert fresh.low > result.success.high
    last = [row for row in result.table if row["releases"] == 11]
    assert [row["series"] for row in last] == ["1 % replaced", "one person in and out"]
    for row in last:
        assert 1.0 < row["trials, mean growth"] < 1.3
        assert row["error, all trials"] > 2 * row["error, fresh keys"]
    assert all(row["error, all trials"] > 0.2 for row in result.table)


def test_the_first_release_is_within_every_limit(result):
    for row in result.table:
        if row["releases"] == 1:
            assert row["groups over limit"] == 0 and row["largest"] == 1.0
    assert result.figures["groups over their limit"] > 0


@pytest.mark.parametrize("size", SIZES)
def test_every_sampling(adult, size):
    found = attack("updates", adult, replace(POLICY, sampling=size), Effort(updates=2))
    assert len(found.table) == 6 and found.success is not None
    if size == "none":
        assert found.figures["groups over their limit"] == 0


def test_margins_add_up(adult):
    found = attack("updates", adult, replace(POLICY, margins=1.0), Effort(updates=3))
    assert found.figures["ε of the margins of all releases"] > 1.5


def test_protection_groups(adult):
    policy = replace(POLICY, sampling="public", protect={"age": 10})
    assert attack("updates", adult, policy, Effort(updates=1)).figures["groups"] < 200


def test_no_update_is_refused(adult, cli):
    with pytest.raises(PolicyError, match="updates"):
        Effort(updates=0)
    done = cli(
        "attack", "micro", "example:adult", "-s", "occupation", "--public=all", "--updates", "3"
    )
    assert done.code == 2 and "--updates works only with the attack updates" in done.err
