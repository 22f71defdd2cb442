"""A model of everybody: what margins alone tell about a group, in the table and held out."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from made_tables import made, rounded
from reconpriv.attacks.attacked_table import AttackedTable, dense
from reconpriv.attacks.fitted_model import fitted_model
from reconpriv.attacks.from_release import guess_groups
from reconpriv.attacks.held_out import part_of_group, without_groups
from reconpriv.attacks.model import attack_model, guess, model_errors
from reconpriv.attacks.statistics import paired_difference
from reconpriv.errors import InputError
from reconpriv.policy.policy import Policy

LEVELS = (6, 5, 4)
POLICY = Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="public", margins=1.0)


def public() -> dict[str, pa.Array]:
    codes = np.array(list(itertools.product(*(range(k) for k in LEVELS))))
    return {name: pa.array(codes[:, i]) for i, name in enumerate("abc")}


def alike(policy: Policy = POLICY, size: int = 200) -> AttackedTable:
    """Public columns that do not act on one another: the model is true."""
    draw = np.random.default_rng(4)
    factors = [np.exp(draw.normal(0.0, 0.8, size=(k, 4))) for k in LEVELS]
    codes = np.array(list(itertools.product(*(range(k) for k in LEVELS))))
    shares = np.prod([factors[i][codes[:, i]] for i in range(3)], axis=0)
    return made(rounded(shares, size), policy, public())


def unlike(policy: Policy = POLICY, size: int = 200) -> AttackedTable:
    """Every group has a distribution of its own: nobody knows it who does not know the group."""
    shares = np.random.default_rng(5).dirichlet(np.full(4, 0.5), int(np.prod(LEVELS)))
    return made(rounded(shares, size), policy, public())


def test_every_group_is_held_out_once_and_always_in_the_same_part() -> None:
    target = alike()
    parts = list(without_groups(target))
    out = np.concatenate([part.out for part in parts])
    assert sorted(out) == list(range(target.batch.groups))
    assert part_of_group(120).tolist() == part_of_group(120).tolist()
    assert set(np.bincount(part_of_group(120)).tolist()) == {24}
    for part in parts:
        assert part.inside.batch.groups == part.kept.size == target.batch.groups - part.out.size
        assert not np.isin(part.kept, part.out).any()
        assert (dense(part.inside.raw) == dense(target.raw)[part.kept]).all()


@pytest.mark.parametrize("margins", [1.0, None])
def test_where_the_model_is_true_it_knows_groups_that_it_has_never_seen(
    margins: float | None,
) -> None:
    """Margins of ε = 1, or of what the records say."""
    target = alike(replace(POLICY, margins=margins), size=400)
    errors = model_errors(target, "public", 2)
    assert (errors.inside <= 0.5).mean() > 0.9
    assert (errors.outside <= 0.5).mean() > 0.85
    difference, error = errors.difference(0.5)
    assert abs(difference) < 3 * error + 0.03


def test_where_groups_are_unlike_each_other_it_knows_none_of_them() -> None:
    """The same test fails for the model if there is nothing to know about everybody."""
    errors = model_errors(unlike(), "public", 2)
    assert (errors.outside <= 0.5).mean() < 0.6


def test_a_group_that_is_most_of_its_row_is_told_only_while_it_is_in_the_table() -> None:
    """The control of the baseline: where margins do give groups away, the difference says so."""
    groups = 40
    shares = np.random.default_rng(6).dirichlet(np.full(4, 0.4), groups)
    counts = np.concatenate([rounded(shares, 400), np.tile([3, 3, 3, 3], (groups, 1))])
    columns = {
        "place": pa.array(np.tile(np.arange(groups), 2)),
        "sex": pa.array(np.repeat(["f", "m"], groups)),
    }
    # With `none`, margins are not counted, and every row is published.
    target = made(counts, replace(POLICY, sampling="none", margins=5.0), columns)
    errors = model_errors(target, "none", 1)
    difference, error = errors.difference(0.5)
    assert (errors.inside <= 0.5).mean() > 0.9
    assert difference > 0.3 > 3 * error


def test_people_of_the_two_halves_of_a_group_are_told_alike() -> None:
    errors = model_errors(alike(size=400), "public", 2)
    difference, error = errors.people_difference
    assert abs(difference) < 3 * error + 0.03
    assert errors.people.mean() > 0.85


def test_the_result_has_its_baseline_and_a_control_that_fails() -> None:
    result = attack_model(alike(), keys=1)
    assert result.success is not None and result.baseline is not None
    assert result.control is not None
    guess = result.figures["a guess from the whole table"]
    assert result.control.low < guess.high
    assert result.control.high < result.success.low
    assert result.figures["fitted to"] == "the published margins"
    assert [row["sampling"] for row in result.table] == ["none", "public", "octave", "paper"]
    for row in result.table:
        assert row["difference"] == pytest.approx(row["in the table"] - row["held out"])
    assert len(result.worst) == 5
    assert "if they are held out" in result.verdict


def test_without_margins_the_records_give_them() -> None:
    plain = alike(replace(POLICY, margins=None))
    result = attack_model(plain, keys=1)
    assert result.figures["fitted to"] == "margins estimated from the records"
    exact = fitted_model(replace(plain.publication(0), cube=plain.raw), plain.raw)
    assert exact.sum(axis=1) == pytest.approx(np.ones(120))


def test_protection_groups_are_attacked_as_well() -> None:
    target = alike(replace(POLICY, margins=None, protect={"a": "*"}))
    result = attack_model(target, keys=1)
    assert all(row["unbiased"] is None for row in result.table)


def test_a_table_without_public_columns_is_refused() -> None:
    target = made(np.array([[60, 40]]), replace(POLICY, margins=None), {})
    with pytest.raises(InputError, match="no public column"):
        fitted_model(target.publication(0), target.raw)


def test_guesses_from_a_release_are_those_of_the_model() -> None:
    target = alike(size=400)
    published = target.publication(0)
    result = guess_groups("model", published, guess, 10)
    shares = fitted_model(published, target.raw)
    assert result.success is None and len(result.table) == 10
    for row in result.table:
        place = (row["group"]["a"] * 5 + row["group"]["b"]) * 4 + row["group"]["c"]
        assert row["model"] == pytest.approx(shares[place].max())


def test_a_paired_difference_is_that_of_cases_not_of_repetitions() -> None:
    first = np.array([[True, True, False, True]] * 3)
    second = np.array([[True, False, False, False]] * 3)
    difference, error = paired_difference(first, second)
    assert difference == 0.5
    assert error == pytest.approx(np.std([0, 1, 0, 1], ddof=1) / 2)
