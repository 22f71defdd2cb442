"""The table under attack, published with protection groups: what an adversary sees."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.attacks.attacked_table import AttackedTable, attack_key, dense
from reconpriv.protect.publish_cube import published_cube
from reconpriv.theory.estimation.reconstruction import reconstruct_frequency

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="public")
PROTECTED = replace(POLICY, protect={"age": 10})


@pytest.fixture(scope="module")
def table():
    """Ten ages of 300 records each, all with the same distribution: pooling is worth most."""
    rng = np.random.default_rng(1)
    ill = rng.choice(list("xyz"), 3_000, p=[0.6, 0.3, 0.1])
    with rp.read(
        pa.table({"age": np.tile(np.arange(20, 30), 300), "ill": ill}),
        sensitive="ill",
        public="all",
    ) as t:
        yield t


def test_the_adversary_sees_dealt_rows(table):
    target = AttackedTable.of(table, PROTECTED)
    cube = target.publish(3)
    assert cube.whole is not cube
    expected = published_cube(target.raw, PROTECTED, attack_key(3))
    assert np.array_equal(cube.count, expected.count)
    assert np.array_equal(cube.records, target.batch.sizes)
    assert target.publication(3).cube.count.tolist() == cube.count.tolist()
    plain = AttackedTable.of(table, POLICY).publish(3)
    assert plain.whole is plain


def test_some_groups_are_published_as_in_the_whole_table(table):
    target = AttackedTable.of(table, PROTECTED)
    groups = np.array([2, 5, 9])
    some = target.only(groups)
    assert np.array_equal(dense(some.publish(1)), dense(target.publish(1))[groups])
    again = some.only(np.array([1]))
    assert np.array_equal(dense(again.publish(1)), dense(target.publish(1))[[5]])
    assert some.publish(1).group_table().to_pylist() == [{"age": 22}, {"age": 25}, {"age": 29}]


def test_attacks_on_groups_see_protection_groups(table):
    target = AttackedTable.of(table, PROTECTED).by_promise()
    assert target.batch.groups == 1 and target.policy == POLICY
    assert AttackedTable.of(table, POLICY).by_promise().batch.groups == 10


def test_the_control_is_shuffled_and_protected_too(table):
    control = AttackedTable.of(table, PROTECTED).shuffled()
    assert control.publish(0).pools is not None


def pooled_errors(target, keys=60):
    """|F' - f|/f of the value x from all ages together: who pools."""
    truth = (target.raw.count * (target.raw.value == 0)).sum() / target.raw.count.sum()
    counts = [dense(target.publish(number)).sum(axis=0) for number in range(keys)]
    shares = [reconstruct_frequency(c[0], c.sum(), retention=0.5, domain_size=3) for c in counts]
    return np.abs(np.array(shares) - truth) / truth


def test_pooling_undoes_the_sampling_only_without_protection(table):
    alone = pooled_errors(AttackedTable.of(table, POLICY))
    guarded = pooled_errors(AttackedTable.of(table, PROTECTED))
    # Ten groups of 24 trials against 24 trials in all: √10 times the error.
    ratio = np.sqrt((guarded**2).mean() / (alone**2).mean())
    assert 0.75 * np.sqrt(10) < ratio < 1.35 * np.sqrt(10)
