"""No interval without width unless it is exact, and no value outside its own, in any release."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oracle.properties import DESIGNS, faults_in, property_faults
from oracle.tables import made_table
from reconpriv.estimate.counts import Estimate

SEEDS = (200, 203)


@pytest.mark.parametrize("design", DESIGNS, ids=[one.name for one in DESIGNS])
@pytest.mark.parametrize("seed", SEEDS)
def test_intervals_have_a_width_and_hold_their_values(seed, design, tmp_path):
    answered, faults = property_faults(seed, design, tmp_path, 30)
    assert answered >= 20
    assert not faults, "\n".join(faults[:10])


@pytest.mark.parametrize(
    ("count", "low", "high", "exact", "remarks", "faults"),
    [
        (5.0, 1.0, 9.0, False, (), 0),
        (5.0, 5.0, 5.0, True, (), 0),
        (5.0, 5.0, 5.0, False, (), 1),
        (1.8, 0.0, 1.0, False, (), 1),
        (-2.0, 0.0, 1.0, False, ("the estimate is below 0",), 0),
    ],
)
def test_the_properties_can_fail(count, low, high, exact, remarks, faults):
    one = Estimate(
        "q", "count", "count", count, low, high, 0.95, 1.0, exact, "mle", 9, 1, 9.0, remarks
    )
    truth = replace(one, value=7.0)
    assert len(list(faults_in(one, lambda: truth, made_table(200), DESIGNS[0]))) == faults
