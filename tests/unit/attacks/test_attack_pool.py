"""Pooling with neighbours: what groups that differ in little tell about a group."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from made_tables import made, rounded
from reconpriv.attacks.attacked_table import AttackedTable, Publication, largest_values
from reconpriv.attacks.from_release import guess_groups
from reconpriv.attacks.neighbourhoods import (
    Loose,
    NeighbourKind,
    Neighbours,
    pairs_of,
    single_kinds,
)
from reconpriv.attacks.pool import MARGINS, attack_pool, guess, measure, pooled_errors
from reconpriv.attacks.pooling import MODEL, pool
from reconpriv.attacks.statistics import root_mean_square
from reconpriv.cells.cube import collect
from reconpriv.policy.policy import Policy
from reconpriv.theory.estimation.design import exact_spread, frequency_variance, mixing

PLAIN = Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none")
SAMPLED = Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="public")


def smooth_shares(groups):
    age = np.linspace(0, 3, groups)
    return np.stack([1 + np.sin(age + shift) for shift in (0, 1, 2, 4)], axis=1) + 0.1


def independent_shares(groups, seed=1):
    return np.random.default_rng(seed).dirichlet(np.ones(4), groups)


@pytest.mark.parametrize(
    "loose",
    [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2), ((0, 1),), ((0, 3),), ((2, 2),), ((0, 2), 1),
     ((0, 1), (2, 2)), ((0, 5), (2, 1))],
)  # fmt: skip
def test_neighbours_are_those_that_a_search_finds(loose):
    """Two ordered attributes, one of them with missing values, and one without order."""
    rng = np.random.default_rng(3)
    every = list(itertools.product([*range(6), None], ["x", "y", "z"], range(20, 27)))
    some = [every[i] for i in sorted(rng.choice(len(every), 90, replace=False))]
    a, b, c = zip(*some, strict=True)
    public = {"a": pa.array(a, pa.int64()), "b": pa.array(b), "c": pa.array(c, pa.int64())}
    target = made(np.ones((90, 2), dtype=np.int64), PLAIN, public)
    kind = NeighbourKind(
        tuple(Loose(*one) if isinstance(one, tuple) else Loose(one) for one in loose)
    )
    groups = np.arange(0, 90, 2)
    columns = rng.random((90, 3))
    found = Neighbours.of(target.raw, kind, groups).sums(columns, groups)

    def near(i, g):
        for position in range(3):
            mine, theirs = some[g][position], some[i][position]
            reach = next((one.reach for one in kind.loose if one.attribute == position), None)
            if mine == theirs or reach == 0:
                continue
            if reach is None or mine is None or theirs is None or abs(mine - theirs) > reach:
                return False
        return i != g

    expected = [sum(columns[i] for i in range(90) if near(i, g)) + np.zeros(3) for g in groups]
    assert found == pytest.approx(np.array(expected))


def test_kinds_loosen_one_attribute_or_two():
    public = {"age": pa.array(np.arange(12)), "sex": pa.array(["f", "m"] * 6)}
    cube = made(np.ones((12, 2), dtype=np.int64), PLAIN, public).raw
    single = single_kinds(cube)
    words = [kind.words(cube.schema) for kind in single]
    assert words == ["age ±1", "age ±2", "age ±5", "age ±10", "any age", "any sex",
                     "the whole table"]  # fmt: skip
    pairs = [kind.words(cube.schema) for kind in pairs_of(single)]
    assert "age ±5, any sex" in pairs
    assert not any("age ±1, age" in one for one in pairs)


def test_bins_are_ordered_as_their_publisher_declared_them():
    people = pa.table({"age": list(range(0, 120)), "s": ["a", "b"] * 60})
    with rp.read(people, sensitive="s", public="all", bin={"age": 10}) as table:
        cube = AttackedTable.of(table, PLAIN).raw
    labels = cube.values[0].to_pylist()
    assert labels.index("100 to 109") < labels.index("20 to 29")  # as texts
    one = np.eye(12)
    near = Neighbours.of(cube, NeighbourKind((Loose(0, 1),)), np.arange(12)).sums(
        one, np.arange(12)
    )
    neighbours = [labels[i] for i in np.flatnonzero(near[labels.index("100 to 109")])]
    assert sorted(neighbours) == ["110 to 119", "90 to 99"]


def test_the_variance_that_a_release_tells_is_that_of_the_design():
    """Averaged over counts, since rounding depends on them; within the 6 % that copies add."""
    for sizes, trials in ((400, 20), (30, 20), (50, 50)):
        counts = np.arange(1, sizes, dtype=np.int64)
        n, m = np.array([trials]), 5
        exact = exact_spread(counts, np.zeros_like(counts), np.array([sizes]), n)
        holder, anybody = mixing(0.5, m)
        f = counts / sizes
        variance = (exact.weight * (holder * f + anybody) + exact.extra) / sizes**2
        told = frequency_variance(np.array([sizes]), n.astype(float), retention=0.5, domain_size=m)
        guessed = told.level + told.slope * f
        assert guessed.mean() == pytest.approx(variance.mean(), rel=0.06)
        assert (guessed >= 0.95 * variance).all()


@pytest.mark.parametrize("tau", [0.04, 0.08])
def test_the_weight_is_right_where_the_scatter_is_known(tau):
    """f is normal with variance τ²: the best weight of the mean is V/(V + τ²)."""
    size, groups = 400, 3_000
    f = 0.4 + tau * np.random.default_rng(5).standard_normal(groups)
    public = {"place": pa.array([f"p{i:04}" for i in range(groups)])}
    target = made(rounded(np.stack([f, 1 - f], axis=1), size), PLAIN, public)
    found = pool(target.publish(0), np.arange(groups), retention=0.5)
    mean = found.alone[:, 0].mean()
    weight = np.polyfit(found.alone[:, 0] - mean, found.alone[:, 0] - found.estimate[:, 0], 1)[0]
    _, anybody = mixing(0.5, 2)
    noise = anybody / size

    def best(tau_squared):
        return noise / (noise + tau_squared)

    near = 0.08 * best(tau**2)
    assert abs(weight - best(tau**2)) < near
    assert abs(weight - best(0.7 * tau**2)) > near
    assert abs(weight - best(1.3 * tau**2)) > near
    # And so is the error that the adversary reckons with.
    actual = np.mean((found.estimate[:, 0] - f) ** 2)
    assert found.error[:, 0].mean() == pytest.approx(actual, rel=0.1)
    assert actual < 0.95 * np.mean((found.alone[:, 0] - f) ** 2)


@pytest.mark.parametrize("policy", [PLAIN, SAMPLED])
def test_smooth_neighbours_give_a_group_away(policy):
    target = made(rounded(smooth_shares(60), 300), policy)
    found = pooled_errors(target, [target.publication(i) for i in range(4)], np.arange(60))
    assert root_mean_square(found.pooled) < 0.6 * root_mean_square(found.alone)
    assert any("age ±" in word for word in found.words[0])


@pytest.mark.parametrize("policy", [PLAIN, SAMPLED])
@pytest.mark.parametrize("groups", [12, 60, 400])
def test_independent_neighbours_do_no_harm(policy, groups):
    target = made(rounded(independent_shares(groups), 300), policy)
    found = pooled_errors(target, [target.publication(i) for i in range(6)], np.arange(groups))
    assert root_mean_square(found.pooled) < 1.05 * root_mean_square(found.alone)


def test_a_group_without_neighbours_is_estimated_from_its_own_records():
    public = {"place": pa.array(["here"])}
    target = made(np.array([[60, 40]]), PLAIN, public)
    found = pool(target.publish(0), np.array([0]), retention=0.5)
    assert found.estimate == pytest.approx(np.clip(found.alone, 0, 1))
    assert (found.chosen == -1).all()


def test_pooling_beats_the_local_estimate_on_the_census(target):
    result = attack_pool(replace(target, policy=SAMPLED), keys=1)
    assert result.success is not None and result.baseline is not None
    assert result.success.low > result.baseline.high
    rows = {row["sampling"]: row for row in result.table}
    assert list(rows) == ["none", "public", "octave", "paper"]
    for row in rows.values():
        assert row["rms error pooled"] < 0.8 * row["rms error alone"]
        assert row["guess right pooled"] > row["guess right alone"]
    assert rows["public"]["rms error pooled"] < 0.6 * rows["public"]["rms error alone"]
    assert "Age" in result.figures["mostly pooled with"]
    assert len(result.worst) == 5


def test_on_a_shuffled_column_pooling_is_a_guess_from_the_whole_table(target):
    result = attack_pool(replace(target, policy=SAMPLED), keys=1)
    guess = result.figures["a guess from the whole table"]
    assert result.control is not None and result.success is not None
    assert result.control.share < guess.high
    assert result.control.high < result.success.low


def test_the_groups_of_another_table_are_not_given_away(target):
    """What is claimed about a shuffled table is near the truth of that table, the overall one."""
    shuffled = target.shuffled()
    groups = np.flatnonzero(shuffled.batch.sizes >= 100)
    found = pool(shuffled.publish(0, "public"), groups, retention=0.5)
    distance = np.abs(found.estimate - target.overall).sum(axis=1) / 2
    alone = np.abs(found.alone - target.overall).sum(axis=1) / 2
    assert distance.mean() < 0.05
    assert alone.mean() > 0.2


def test_a_model_of_the_margins_is_one_more_kind_of_neighbours():
    """Where groups have few trials and no neighbour is like them, margins tell most."""
    rng = np.random.default_rng(4)
    rows, columns = rng.dirichlet(np.ones(4), 12), rng.dirichlet(np.ones(4), 12)
    shares = (rows[:, None] * columns).reshape(-1, 4)
    counts = rounded(shares / shares.sum(axis=1, keepdims=True), 300)
    public = {
        "a": pa.array([f"a{i}" for i in np.arange(144) // 12]),
        "b": pa.array([f"b{i}" for i in np.arange(144) % 12]),
    }
    strict = replace(SAMPLED, sampling="public", margins=1.0)
    target = made(counts, strict, public)
    result = attack_pool(target, keys=1)
    plain = attack_pool(made(counts, replace(strict, margins=None), public), keys=1)
    assert result.figures["margins"] == MARGINS["margins"]
    assert MODEL in result.figures["mostly pooled with"]
    assert "margins" not in plain.figures
    assert result.success.share > plain.success.share + 0.05
    assert result.control.share < result.success.share
    row, before = (
        next(line for line in one.table if line["sampling"] == "public") for one in (result, plain)
    )
    assert row["rms error pooled"] < before["rms error pooled"] / 2
    # The adversary is not off by more than he reckons with: these groups scatter by nothing.
    assert row["rms error pooled"] < 1.2 * row["claimed"]


def test_guesses_from_a_release_alone_are_near_the_truth():
    target = made(rounded(smooth_shares(60), 300), SAMPLED)
    cube = target.publish(0)
    result = guess_groups("pool", Publication(target.policy, cube), guess, 30)
    assert result.success is None and len(result.table) == 30
    truth = target.raw
    shares = np.zeros((60, 4))
    shares[truth.group, truth.value] = truth.count / truth.records[truth.group]
    errors = []
    for row in result.table:
        errors.append(row["pooled"] - shares[row["group"]["age"], int(row["guess"][1])])
    assert np.sqrt(np.mean(np.square(errors))) < 0.08
    assert np.mean([row["give or take"] for row in result.table]) < 0.08


def test_a_batch_made_here_is_what_the_package_counts():
    """The helper of these tests, against a table that is read."""
    counts = rounded(smooth_shares(5), 20)
    target = made(counts, PLAIN)
    group = np.repeat(np.arange(5), 20)
    value = np.concatenate([np.repeat([f"v{i}" for i in range(4)], row) for row in counts])
    with rp.read(pa.table({"age": group, "s": value}), sensitive="s", public="all") as table:
        read = collect(table.batches(), table.schema)
    assert read.count.tolist() == target.raw.count.tolist()
    assert largest_values(read).tolist() == largest_values(target.raw).tolist()


@pytest.mark.parametrize("size", ["public", "octave"])
def test_protection_stops_whoever_pools_over_the_protected_columns(size):
    """Ages of one band are alike: without protection they give each other away, with it not."""
    counts = rounded(np.tile([0.5, 0.25, 0.15, 0.1], (60, 1)), 300)
    policy = replace(SAMPLED, sampling=size)
    free, guarded = (
        measure(made(counts, replace(policy, protect=protect)), size, 20)[0]
        for protect in (None, {"age": "*"})
    )
    assert free["rms error pooled"] < 0.5 * free["rms error alone"]
    # All ages are one protection group, which has no neighbour: what the policy allows, no more.
    assert guarded["pooled"] == guarded["alone"]
    error = np.sqrt(guarded["exact tails"] * (1 - guarded["exact tails"]) / 20)
    assert abs(guarded["pooled"] - guarded["exact tails"]) < 3 * error
    assert guarded["rms error pooled"] > 2 * free["rms error pooled"]


def test_parts_of_a_protection_group_are_estimated_like_the_whole():
    counts = rounded(smooth_shares(60), 300)
    target = made(counts, replace(SAMPLED, protect={"age": 10}))
    cube = target.publish(0)
    assert cube.whole is not cube
    found = pool(cube, np.arange(60), retention=0.5)
    whole = pool(cube.whole, np.arange(cube.whole.groups), retention=0.5)
    assert found.estimate.tolist() == whole.estimate[cube.within].tolist()
    assert found.alone.tolist() == whole.alone[cube.within].tolist()
    assert len({tuple(line) for line in found.estimate}) <= 6
    result = attack_pool(target, keys=1)
    assert [row["sampling"] for row in result.table] == ["none", "public", "octave"]
    assert "from their protection groups" in result.verdict


def test_harmless_values_are_not_what_the_adversary_is_after():
    counts = rounded(np.tile([0.5, 0.3, 0.1, 0.1], (60, 1)), 300)
    plain = made(counts, SAMPLED)
    target = replace(plain, policy=replace(SAMPLED, harmless=("v0",)).on(plain.schema))
    found = pooled_errors(target, [target.publication(i) for i in range(4)])
    # The errors are those of v1, held by 30 %, though v0 is more frequent.
    assert target.frequency == pytest.approx(np.full(60, 0.3))
    assert root_mean_square(found.pooled) < 0.2
    assert found.right_pooled.mean() > 0.9
