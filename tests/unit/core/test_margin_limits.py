"""What margins tell about a group is counted: against dense matrices, and in every publication."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from reconpriv.core.kernel import Kernel
from reconpriv.core.margin_limits import TYPICAL_EXCESS, effective_trials
from reconpriv.core.margin_noise import adjusted, noisy_tables
from reconpriv.core.margin_plan import count_margins, margins_of
from reconpriv.core.margin_tables import Candidates, index_rows, limits_and_classes, rows_of
from reconpriv.core.margins import Margins
from reconpriv.errors import PolicyError
from reconpriv.theory.margins import cell_noise, row_precision, trials_from_margins

P, M = 0.5, 4


def one_trial(frequency: float, p: float = P, m: int = M) -> float:
    """Lemma 1: r(1-r) for a holder and t(1-t) for anybody else, over p²."""
    t = (1 - p) / m
    r = p + t
    return (frequency * r * (1 - r) + (1 - frequency) * t * (1 - t)) / p**2


def dense_worth(matrix, sizes, trials, own, others, noise) -> np.ndarray:
    """E_g by inverting the information of all groups at once, one group after the other."""
    found = []
    for g in range(sizes.size):
        frequency = np.full(sizes.size, others)
        frequency[g] = own[g]
        variances = sizes**2 / trials * np.array([one_trial(f) for f in frequency])
        information = np.diag(1 / variances) + matrix.T @ matrix / noise
        combined = np.linalg.inv(information)[g, g]
        found.append(trials[g] * variances[g] / combined - trials[g])
    return np.array(found)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.5, 500.0), st.floats(0.0, 0.9))
def test_worth_is_that_of_the_best_linear_unbiased_estimate(seed, variance, others) -> None:
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
    own = rng.random(groups)
    products = matrix @ np.diag(sizes**2 / trials) @ matrix.T
    precision = row_precision(products, variance, others, retention=P, domain_size=M)
    found = trials_from_margins(
        rows, sizes, trials, own, others, precision, retention=P, domain_size=M
    )
    noise = variance * (1 - 1 / M)
    assert cell_noise(variance, M) == pytest.approx(noise)
    expected = dense_worth(matrix, sizes, trials, own, others, noise)
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 40))
def test_worth_does_not_depend_on_the_trials_of_the_group_itself(seed, fewer) -> None:
    """So a limit s leaves s - E trials, and nothing has to be solved."""
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.integers(0, 2, 6), 2 + rng.integers(0, 2, 6)], axis=1)
    matrix = np.zeros((4, 6))
    for a in range(2):
        matrix[rows[:, a], np.arange(6)] = 1
    sizes = rng.integers(40, 200, 6)
    worth = []
    for own_trials in (40, fewer):
        trials = np.array([own_trials, 20, 20, 20, 20, 20], dtype=float)
        precision = row_precision(
            matrix @ np.diag(sizes**2 / trials) @ matrix.T, 30.0, 0.2, retention=P, domain_size=M
        )
        worth.append(
            trials_from_margins(
                rows, sizes, trials, np.full(6, 0.4), 0.2, precision, retention=P, domain_size=M
            )[0]
        )
    assert worth[0] == pytest.approx(worth[1], rel=1e-8)


# --- publications ---------------------------------------------------------------------------------


def published(size: str, margins: Margins, seed: int = 1, key: int = 1) -> InMemory:
    schema = schema_of(4, M)
    raw = cube_of(skewed_rows((4, 3, 3, 2), M, seed), schema)
    policy = rp.Policy(P, 0.5, 0.3, sample_size=size, unattainable="one-trial", margins=margins)
    return publish_in_memory(raw, policy, margin_key(key))


def by_hand(made: InMemory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Limits, and the worth of margins for the values they tell most of, with dense matrices.

    Others vary as if they had all the trials that their limits allow, as the publisher counts.
    """
    batch = made.raw.as_batch()
    schema, policy = made.raw.schema, made.policy
    limits, frequency = limits_and_classes(batch, policy, M)
    tables = noisy_tables(made.plan.totals.tables, made.plan.variance, schema, margin_key(1))
    rows = rows_of(index_rows(made.plan.published, schema), batch.public, schema)
    every = rows_of(index_rows(tables, schema), batch.public, schema)
    k = sum(table.rows for table in made.plan.published)
    matrix = np.zeros((k, batch.groups))
    for column in rows.T:
        inside = np.flatnonzero(column >= 0)
        matrix[column[inside], inside] = 1
    shares = []
    for table, true in zip(tables, made.plan.totals.tables, strict=True):
        sizes = true.counts.sum(axis=1)
        shares.append(np.clip(adjusted(table.counts, sizes) / sizes[:, None], 0, 1))
    sizes = made.plan.totals.tables[0].counts.sum(axis=1)
    overall = sizes @ shares[0] / sizes.sum()
    by_row = np.concatenate(shares)
    trials = np.maximum(np.minimum(limits, batch.sizes), 1.0)
    classes = {}
    for value in range(M):
        others = 2.0 ** np.floor(np.log2(overall[value])) if overall[value] >= 2**-6 else 0.0
        classes.setdefault(others, []).append(value)
    worth = np.zeros(batch.groups)
    for others, values in classes.items():
        largest = by_row[:, values].max(axis=1)
        own = np.minimum(frequency, TYPICAL_EXCESS * largest[every].max(axis=1))
        noise = made.plan.variance * (1 - 1 / M)
        found = dense_worth(matrix, batch.sizes, trials, own, others, noise)
        worth = np.maximum(worth, found)
    return limits, worth, batch.sizes


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("size", ["octave", "public"])
def test_no_group_has_more_effective_trials_than_its_limit(size: str, epsilon: float) -> None:
    made = published(size, Margins(epsilon))
    limits, worth, sizes = by_hand(made)
    alone = Kernel(made.raw.schema, replace(made.policy, margins=None), margin_key(1))
    assert np.array_equal(alone.limits(made.raw.as_batch()), limits)
    limited = sizes + worth > limits
    assert np.all(made.cube.trials[limited] + worth[limited] <= limits[limited] + 1e-6)
    assert np.array_equal(
        made.cube.trials[limited], np.maximum(np.floor(limits - worth + 1e-9), 1.0)[limited]
    )
    assert np.all(made.cube.trials[~limited] == sizes[~limited])
    assert np.all(made.cube.trials >= 1)
    # The margins cost something here, or the test would be about nothing.
    assert (made.cube.trials < np.minimum(limits, sizes)).any()


def test_effective_trials_are_a_groups_own_and_those_of_margins() -> None:
    made = published("public", Margins(1.0))
    batch = made.raw.as_batch()
    limits, frequency = limits_and_classes(batch, made.policy, M)
    rows = rows_of(made.plan.counted.indexes, batch.public, made.raw.schema)
    groups = Candidates(rows, batch.sizes, limits, frequency)
    found = effective_trials(made.plan.counted.worth, groups, made.cube.trials)
    assert np.allclose(found - made.cube.trials, by_hand(made)[1], rtol=1e-6)


def test_rows_that_would_give_a_group_away_are_left_out() -> None:
    """A row of one large group and little else: without it the rest is published."""
    rows = skewed_rows((3, 3, 3), M, 2) + [(7, 0, 0, 1)] * 900 + [(7, 1, 1, 0)] * 2
    policy = rp.Policy(P, 0.5, 0.3, sample_size="public", margins=2.0)
    made = publish_in_memory(cube_of(rows, schema_of(3, M)), policy, margin_key(3))
    first = made.plan.tables[0]
    assert first.left_out >= 1
    values = first.table.columns[0]
    assert 7 not in values.values.take(values.codes).to_pylist()
    assert made.cube.trials.min() >= 1


@pytest.mark.parametrize("size", ["octave", "public"])
def test_one_public_attribute_makes_every_row_a_group_and_is_refused(size: str) -> None:
    raw = cube_of([(g, g % 2) for g in range(5) for _ in range(300)], schema_of(1, M))
    policy = rp.Policy(P, 0.5, 0.3, sample_size=size, margins=3.0)
    with pytest.raises(PolicyError) as caught:
        margins_of(raw, policy, margin_key(1))
    assert str(caught.value).startswith(
        "The margin table by a would give groups away: every row of it is little more than a single"
        " group."
    )


@pytest.mark.parametrize("size", ["none", "paper"])
def test_sample_sizes_that_count_no_margins_are_not_limited(size: str) -> None:
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
    policy = rp.Policy(P, 0.5, 0.3, sample_size="public", margins=1.0)
    raw = cube_of(rows, schema)
    first = margins_of(raw, policy, margin_key(1))
    noisy = noisy_tables(first.totals.tables, first.variance, schema, margin_key(1))
    monkeypatch.setattr("reconpriv.core.margin_plan.noisy_tables", lambda *_: noisy)
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
        count_margins(lambda work: [], rp.Policy(P, 0.5, 0.3, margins=1.0), schema)


def test_the_fixture_sorts_like_an_engine() -> None:
    batch = batch_of([(2, 0), (1, 1), (None, 0), (1, 0)], schema_of(1, 2))
    assert batch.public[0].values.to_pylist() == [1, 2, None]
    assert batch.sizes.tolist() == [2, 1, 1]


def test_an_audit_refuses_noise_that_is_of_no_use() -> None:
    raw = cube_of(skewed_rows((4, 3), M, 1), schema_of(2, M))
    with pytest.raises(PolicyError, match="too much to be of any use"):
        margins_of(raw, rp.Policy(P, 0.5, 0.3, margins=1e-9))
