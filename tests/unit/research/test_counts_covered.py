"""Coverage by class of count is that of the intervals, and a wrong design shows in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from lab.counts_covered import counts_covered
from reconpriv.attacks.attacked_table import AttackedTable
from reconpriv.estimate.counts import Design

KEYS = 12


@pytest.fixture(scope="module")
def target() -> AttackedTable:
    rng = np.random.default_rng(3)
    rows = {name: rng.integers(0, k, 6_000) for name, k in zip("abc", (6, 4, 3), strict=True)}
    rows["s"] = (rows["a"] + rng.choice(5, 6_000, p=[0.5, 0.2, 0.1, 0.1, 0.1])) % 5
    with rp.read(pa.table(rows), sensitive="s", public=list("abc")) as opened:
        return AttackedTable.of(opened, rp.preset("recommended"))


def outside(found: list[dict[str, Any]]) -> float:
    """By how many standard errors the worst class of large counts is outside 93 to 97 %."""
    return max(
        (abs(row["covered"] - 0.95) - 0.02) / row["standard_error"]
        for row in found if row["from_count"] >= 100
    )  # fmt: skip


def test_intervals_hold_in_every_class(target: AttackedTable) -> None:
    found = counts_covered(target, KEYS)
    assert sum(row["intervals"] for row in found) == KEYS * 5 * (6 + 4 + 3 + 24 + 18 + 12)
    for row in found:
        assert row["covered"] == pytest.approx(1.0 - row["too_low"] - row["too_high"])
        assert row["covered"] > 0.93 - 3.0 * row["standard_error"]
    assert outside(found) < 3.0


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_a_wrong_retention_probability_shows(
    target: AttackedTable, monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    """Where neither margins nor few trials hide it."""
    of, alone = (
        Design.of,
        replace(target, policy=rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none")),
    )
    monkeypatch.setattr(
        Design, "of",
        lambda policy, schema: of(replace(policy, retention=factor * policy.retention), schema),
    )  # fmt: skip
    assert outside(counts_covered(alone, KEYS)) > 3.0
