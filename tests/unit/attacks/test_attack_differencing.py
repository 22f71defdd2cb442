"""Differencing: on data, X minus Y equals the local estimate (Lemma 2)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.attacks import attack
from reconpriv.attacks.attacked_table import AttackedTable
from reconpriv.attacks.differencing import (
    ROUNDING,
    attack_differencing,
    families,
    pairs_of_estimates,
)
from reconpriv.policy.policy import Policy


def target_of(census_tables, size: str) -> AttackedTable:
    return AttackedTable.of(
        census_tables("Education"), Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=size)
    )


@pytest.mark.parametrize("size", ["none", "octave", "public", "paper"])
def test_global_estimates_equal_local_ones(census_tables, size):
    result = attack_differencing(target_of(census_tables, size))
    assert result.success is not None
    assert result.success.successes == 0
    assert result.success.trials > 2_000
    assert result.figures["largest difference"] < ROUNDING


def test_with_y_of_another_release_they_do_not(census_tables):
    """The control: equality is no accident of the arithmetic, and another Y makes it worse."""
    target = target_of(census_tables, "octave")
    local, global_, mixed = pairs_of_estimates(target)
    assert np.abs(global_ - local).max() < ROUNDING
    assert np.median(np.abs(mixed - local)) > 0.05
    result = attack_differencing(target)
    assert result.control is not None
    assert result.control.high < 0.5
    for row in result.table:
        assert row["Y of another release"] > row["median error local"]


def test_families_agree_on_all_but_one_attribute(census_tables):
    target = target_of(census_tables, "none")
    keys = families(target, 1)
    codes = np.column_stack([column.codes for column in target.batch.public])
    some = np.flatnonzero(keys == keys[100])
    assert (np.delete(codes[some], 1, axis=1) == np.delete(codes[100], 1)).all()
    assert np.unique(codes[some][:, 1]).size == some.size
    assert families(target, -1).max() == 0


def test_a_table_of_one_group_has_nothing_to_subtract() -> None:
    data = pa.table({"s": ["x", "y", "x"] * 200})
    with (
        rp.read(data, sensitive="s", public="all") as table,
        pytest.raises(rp.ReconprivError, match="nothing to subtract"),
    ):
        attack("differencing", table, rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3))
