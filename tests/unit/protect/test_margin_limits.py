"""What margins tell about a group is counted: against dense matrices, and in every publication."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.margin_fixtures import margins_of

import reconpriv as rp
from margin_fixtures import (
    InMemory,
    batch_of,
    cube_of,
    margin_key,
    publish_in_memory,
    schema_of,
    skewed_rows,
)
from reconpriv.errors import PolicyError
from reconpriv.policy.exposure import largest_exposed
from reconpriv.policy.margin_settings import Margins
from reconpriv.policy.sampling_rules import private_size
from reconpriv.protect.kernel import Kernel
from reconpriv.protect.margins.noise import noisy_tables
from reconpriv.protect.margins.plan import count_margins
from reconpriv.protect.margins.tables import rows_of
from reconpriv.theory.margins.row_spectrum import cell_noise, row_precision, trials_from_margins

P, M = 0.5, 4


def one_trial(frequency: float, p: float = P, m: int = M) -> float:
    """Lemma 1: r(1-r) for a holder and t(1-t) for anybody else, over p²."""
    t = (1 - p) / m
    r = p + t
    return (frequency * r * (1 - r) + (1 - frequency) * t * (1 - t)) / p**2


def dense_worth(matrix, sizes, trials, own, others, noise) -> np.ndarray:
    """E_g with Q as a dense matrix, without the group, one group after the other.

    ``others`` are frequencies by row; two rows share their groups' geometric mean.
    """
    root = np.sqrt(others)
    found = []
    for g in range(sizes.size):
        rest = np.arange(sizes.size) != g
        unknown = matrix[:, rest] @ np.diag((sizes**2 / trials)[rest]) @ matrix[:, rest].T
        share = np.outer(root, root)
        t = (1 - P) / M
        r = P + t
        holder, anybody = (r * (1 - r) - t * (1 - t)) / P**2, t * (1 - t) / P**2
        told = np.linalg.inv(unknown * (holder * share + anybody) + noise * np.eye(len(matrix)))
        k = matrix[:, g] @ told @ matrix[:, g]
        found.append(sizes[g] ** 2 * one_trial(own[g]) * k)
    return np.array(found)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.5, 500.0))
def test_worth_is_that_of_the_best_linear_unbiased_estimate(seed, variance) -> None:
    rng = np.random.default_rng(seed)
    groups, tables = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    rows = np.stack([rng.integers(0, 3, groups) + 3 * a for a in range(tables)], axis=1)
    rows[rng.random(rows.shape) < 0.15] = -1  # rows that are not published
    matrix = np.zeros((3 * tables, groups))
    for a in range(tables):
        inside = np.flatnonzero(rows[:, a] >= 0)
        matrix[rows[inside, a], inside] = 1
    sizes = rng.integers(1, 200, groups)
    trials = np.minimum(sizes, rng.integers(1, 30, groups)).astype(float)
    own, others = rng.random(groups), rng.random(3 * tables)
    products = matrix @ np.diag(sizes**2 / trials) @ matrix.T
    precision = row_precision(products, variance, others, retention=P, domain_size=M)
    found = trials_from_margins(
        rows, sizes, trials, own, others, precision, retention=P, domain_size=M
    )
    noise = variance * (1 - 1 / M)
    assert cell_noise(variance, M) == pytest.approx(noise)
    expected = dense_worth(matrix, sizes, trials, own, others, noise)
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_one_frequency_for_all_rows_is_the_variance_of_every_group() -> None:
    """Then Q is B V B' + σ² I to the letter, and the worth that of generalised least squares."""
    rng = np.random.default_rng(5)
    rows = np.stack([rng.integers(0, 2, 6), 2 + rng.integers(0, 2, 6)], axis=1)
    matrix = np.zeros((4, 6))
    for a in range(2):
        matrix[rows[:, a], np.arange(6)] = 1
    sizes, trials = rng.integers(40, 200, 6), rng.integers(5, 30, 6).astype(float)
    variances = sizes**2 / trials * one_trial(0.2)
    information = np.diag(1 / variances) + matrix.T @ matrix / (30.0 * (1 - 1 / M))
    combined = np.linalg.inv(information).diagonal()
    precision = row_precision(
        matrix @ np.diag(sizes**2 / trials) @ matrix.T,
        30.0,
        np.full(4, 0.2),
        retention=P,
        domain_size=M,
    )
    found = trials_from_margins(
        rows, sizes, trials, np.full(6, 0.2), np.full(4, 0.2), precision, retention=P, domain_size=M
    )
    assert trials + found == pytest.approx(trials * variances / combined)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 40))
def test_worth_does_not_depend_on_the_trials_of_the_group_itself(seed, fewer) -> None:
    """So a limit s leaves s - E trials, and nothing has to be solved."""
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.integers(0, 2, 6), 2 + rng.integers(0, 2, 6)], axis=1)
    matrix = np.zeros((4, 6))
    for a in range(2):
        matrix[rows[:, a], np.arange(6)] = 1
    sizes, others = rng.integers(40, 200, 6), rng.random(4)
    worth = []
    for own_trials in (40, fewer):
        trials = np.array([own_trials, 20, 20, 20, 20, 20], dtype=float)
        precision = row_precision(
            matrix @ np.diag(sizes**2 / trials) @ matrix.T, 30.0, others, retention=P, domain_size=M
        )
        worth.append(
            trials_from_margins(
                rows, sizes, trials, np.full(6, 0.4), others, precision, retention=P, domain_size=M
            )[0]
        )
    assert worth[0] == pytest.approx(worth[1], rel=1e-6)


# --- publications ---------------------------------------------------------------------------------


EXACT = {"bound": "exact", "exposed_above": 0.25}


def published(size: str, margins: Margins, seed: int = 1, **how) -> InMemory:
    schema = schema_of(4, M)
    raw = cube_of(skewed_rows((4, 3, 3, 2), M, seed), schema)
    policy = rp.Policy(
        retention=P, tolerance=0.5, doubt=0.05 if how else 0.3, sampling=size,
        unattainable="one-trial", margins=margins,
        **how,
    )  # fmt: skip
    return publish_in_memory(raw, policy, margin_key(1))


def allowed_by_hand(made: InMemory) -> tuple[np.ndarray, np.ndarray]:
    """The most trials of each group beside margins, and the limits without them.

    Value by value with dense matrices, from the noisy frequencies that the plan holds.
    """
    batch, policy, worth = made.raw.as_batch(), made.policy, made.plan.worth
    sampling, lattice = policy.sampling_rule, policy.tail_bound.exact
    alone = sampling.limits(batch, policy, M)
    classes = sampling.classes(largest_exposed(batch, policy), policy)
    every = rows_of(made.plan.counted.indexes, batch.public, made.raw.schema)
    matrix = np.zeros((made.plan.totals.rows, batch.groups))
    for column in every.T:
        matrix[column, np.arange(batch.groups)] = made.plan.rows[column]
    trials = np.maximum(np.minimum(alone, batch.sizes), 1.0)
    noise = made.plan.variance * (1 - 1 / M)

    def told(own, others):
        return dense_worth(matrix, batch.sizes, trials, own, others, noise)

    def limits(told, frequency):
        if not lattice:
            return np.floor(private_size(frequency, policy, M) - told)
        return sampling.limits_of_classes(batch.sizes, frequency, policy, M, told)

    nobody = np.zeros(len(matrix))
    if size_is_public(policy):
        return limits(told(classes, nobody), classes), alone
    cells = np.zeros((batch.groups, M))
    cells[batch.group_of_cell, batch.value] = batch.count / batch.sizes[batch.group_of_cell]
    result = alone.copy()
    if not lattice:
        half = classes / 2
        result = np.minimum(result, limits(told(half, nobody), half))
    expected = np.zeros((batch.groups, M))
    for g in range(batch.groups):
        mine = worth.by_row[every[g]]
        predicted = worth.overall * np.prod(mine / worth.overall, axis=0)
        expected[g] = np.maximum(predicted / predicted.sum(), mine.mean(axis=0))
    least = policy.exposed_above if lattice else classes[:, None] / 2
    ratio = np.where(cells > least, cells / expected, 0.0).max(axis=1)
    factor = np.maximum(2.0, 2.0 ** np.ceil(np.log2(np.maximum(ratio, 1.0))))
    highest = np.minimum(expected * factor[:, None], classes[:, None])
    for value in range(M):
        own = highest[:, value]
        found = limits(told(own, worth.by_row[:, value]), classes if lattice else own)
        result = np.where(own > policy.exposed_above, np.minimum(result, found), result)
    return result, alone


def size_is_public(policy: rp.Policy) -> bool:
    return policy.sampling == "public"


@pytest.mark.parametrize("how", [{}, EXACT], ids=["chernoff", "exact"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("size", ["octave", "public"])
def test_no_group_has_more_trials_than_margins_leave_it(size: str, epsilon: float, how) -> None:
    made = published(size, Margins(epsilon), **how)
    allowed, alone = allowed_by_hand(made)
    sizes, trials = made.raw.records, made.cube.trials
    assert (trials >= 1).all()
    # Limits of less frequent values are looked up a little too low, never too high.
    assert (trials <= np.maximum(np.minimum(allowed, sizes), 1.0) + 1e-6).all()
    nearly = np.minimum(np.minimum(alone, sizes), np.floor(allowed) - 2)
    assert (trials >= nearly - 0.1 * np.minimum(alone, sizes)).all()
    if epsilon == 4.0 and not how:
        # The margins cost something here, or the test would be about nothing.
        assert (trials < np.minimum(alone, sizes)).any()


def test_rows_that_would_give_a_group_away_are_left_out() -> None:
    """A row of one large group and little else: without it the rest is published."""
    rows = skewed_rows((3, 3, 3), M, 2) + [(7, 0, 0, 1)] * 900 + [(7, 1, 1, 0)] * 2
    policy = rp.Policy(retention=P, tolerance=0.5, doubt=0.3, sampling="public", margins=2.0)
    made = publish_in_memory(cube_of(rows, schema_of(3, M)), policy, margin_key(3))
    first = made.plan.tables[0]
    assert first.left_out >= 1
    values = first.table.columns[0]
    assert 7 not in values.values.take(values.codes).to_pylist()
    assert made.cube.trials.min() >= 1


@pytest.mark.parametrize("size", ["octave", "public"])
def test_one_public_attribute_makes_every_row_a_group_and_none_is_published(size: str) -> None:
    raw = cube_of([(g, g % 2) for g in range(5) for _ in range(300)], schema_of(1, M))
    policy = rp.Policy(retention=P, tolerance=0.5, doubt=0.3, sampling=size, margins=3.0)
    assert margins_of(raw, policy, margin_key(1)).published == ()
    named = replace(policy, margins=Margins(3.0, tables=["a"]))
    with pytest.raises(PolicyError) as caught:
        margins_of(raw, named, margin_key(1))
    assert str(caught.value).startswith(
        "The margin table by a would give groups away: every row of it is little more than a single"
        " group."
    )


@pytest.mark.parametrize("size", ["none", "paper"])
def test_samplings_that_count_no_margins_are_not_limited(size: str) -> None:
    made = published(size, Margins(4.0))
    batch = made.raw.as_batch()
    plain = Kernel(made.raw.schema, replace(made.policy, margins=None), margin_key(1))
    with_margins = Kernel(made.raw.schema, made.policy, margin_key(1), made.plan.counted)
    assert np.array_equal(plain.limits(batch), with_margins.limits(batch))
    assert all(one.left_out == 0 for one in made.plan.tables)


def test_limits_depend_on_sizes_classes_and_noisy_counts_and_on_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another table with the same sizes, published with the same noisy counts: the same limits."""
    schema, rows = schema_of(2, M), skewed_rows((4, 4), M, 3)
    policy = rp.Policy(retention=P, tolerance=0.5, doubt=0.3, sampling="public", margins=1.0)
    raw = cube_of(rows, schema)
    first = margins_of(raw, policy, margin_key(1))
    noisy = noisy_tables(first.totals.tables, first.variance, schema, margin_key(1))
    monkeypatch.setattr("reconpriv.protect.margins.plan.noisy_tables", lambda *_: noisy)
    other = cube_of([(*row[:-1], M - 1 - row[-1]) for row in rows], schema)
    second = margins_of(other, policy, margin_key(2))
    nothing = np.zeros(raw.groups)
    assert [one.left_out for one in first.tables] == [one.left_out for one in second.tables]
    limits = first.counted.lowered(raw.as_batch(), nothing)
    assert np.array_equal(limits, second.counted.lowered(other.as_batch(), nothing))


def test_batches_of_any_size_get_the_same_limits() -> None:
    made = published("octave", Margins(1.0))
    batch = made.raw.as_batch()
    kernel = Kernel(made.raw.schema, made.policy, margin_key(1), made.plan.counted)
    pieces = [kernel.limits(batch.slice(i, i + 1)) for i in range(batch.groups)]
    assert np.array_equal(kernel.limits(batch), np.concatenate(pieces))


def test_a_policy_without_public_columns_is_refused() -> None:
    schema = schema_of(0, M)
    with pytest.raises(PolicyError, match=r"^Margins need at least one public column"):
        count_margins(
            lambda work: [], rp.Policy(retention=P, tolerance=0.5, doubt=0.3, margins=1.0), schema
        )


def test_the_fixture_sorts_like_an_engine() -> None:
    batch = batch_of([(2, 0), (1, 1), (None, 0), (1, 0)], schema_of(1, 2))
    assert batch.public[0].values.to_pylist() == [1, 2, None]
    assert batch.sizes.tolist() == [2, 1, 1]


def test_an_audit_refuses_noise_that_is_of_no_use() -> None:
    raw = cube_of(skewed_rows((4, 3), M, 1), schema_of(2, M))
    with pytest.raises(PolicyError, match="too much to be of any use"):
        margins_of(raw, rp.Policy(retention=P, tolerance=0.5, doubt=0.3, margins=1e-9))
