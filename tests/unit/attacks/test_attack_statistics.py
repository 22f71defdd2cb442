"""The attacks' statistics, checked by hand; and they reject what is off."""

from __future__ import annotations

import json
import math
from functools import partial

import numpy as np
import pytest

from reconpriv.attacks.attacked_table import uniforms
from reconpriv.attacks.result import AttackResult
from reconpriv.attacks.statistics import (
    ConfidenceInterval,
    Rate,
    bootstrap,
    correlation,
    log_slope,
    rate,
    ratio_of,
    relative_error,
    score,
    wilson,
)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (8, 10, 0.4902, 0.9433),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (50, 100, 0.4038, 0.5962),
    ],
)
def test_wilsons_interval_by_hand(successes, trials, low, high):
    assert wilson(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_nothing_tried_is_nothing_known():
    assert wilson(0, 0) == (0.0, 1.0)
    assert math.isnan(Rate(0, 0, "x").share)
    assert str(Rate(0, 0, "x")) == "nothing to count"


def test_wilsons_interval_covers():
    """About 95 % of intervals for 60 tosses of an uneven coin hold its share."""
    heads = (uniforms(60 * 4_000, "coins").reshape(4_000, 60) < 0.2).sum(axis=1)
    low, high = np.array([wilson(int(h), 60) for h in heads]).T
    assert 0.93 < ((low <= 0.2) & (high >= 0.2)).mean() < 0.97


def test_a_paired_ratio_is_found_and_another_is_rejected():
    noise = uniforms(600, "noise")
    pairs = np.column_stack([3 * noise, noise * (0.9 + 0.2 * uniforms(600, "more"))])
    draws = uniforms(300 * 600, "draws").reshape(300, 600)
    for average in (np.median, np.mean):
        found = bootstrap(pairs, partial(ratio_of, average=average), draws)
        assert found.contains(3.0)
        assert not found.contains(3.9)
        assert not found.contains(2.1)


def test_ratios_of_nothing_are_endless():
    assert ratio_of(np.array([[1.0, 0.0]])) == math.inf


def test_a_slope_by_hand():
    k = np.array([1.0, 2.0, 4.0, 8.0])
    assert log_slope(k, 3 / np.sqrt(k)) == pytest.approx(-0.5)
    assert log_slope(k, 3 / k) == pytest.approx(-1.0)


def test_a_score_sees_probabilities_that_are_off():
    p = np.full(4_000, 0.3)
    outcomes = (uniforms(4_000, "outcomes") < 0.3).astype(float)
    assert abs(score(outcomes, p)) < 4
    assert score(outcomes, p * 1.3) < -4
    assert score(outcomes, p * 0.7) > 4
    assert score(np.ones(3), np.ones(3)) == 0.0


def test_correlation_is_seen_where_it_is_and_not_where_it_is_not():
    x, y = uniforms(500, "x"), uniforms(500, "y")
    assert correlation(x, y).contains(0.0)
    assert correlation(x, x + 2 * y).low > 0.2


def test_a_relative_error_by_hand():
    assert relative_error(np.array([0.3, 0.1]), np.array([0.2, 0.2])) == pytest.approx([0.5, 0.5])


def test_a_result_is_plain_in_json_and_readable_as_text_and_html():
    result = AttackResult(
        name="micro",
        knew="all & everything",
        verdict="It works <well>.",
        success=rate(np.array([True, False]), "groups"),
        figures={
            "gain": ConfidenceInterval(2.0, 1.0, math.inf),
            "n": 3,
            "flag": True,
            "none": None,
        },
        table=({"a": 1.23456789, "b": "x"},),
        worst=({"group": {"sex": "F", "age": None}, "size": 7},),
    )
    plain = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert plain["success"]["share"] == 0.5
    assert plain["baseline"] is None
    assert plain["figures"]["gain"] == {"value": 2.0, "low": 1.0, "high": None}
    assert plain["worst_groups_internal"][0]["size"] == 7
    text = " ".join(str(result).split())
    assert text.startswith("It works <well>.")
    assert "1.23 " in text and "sex=F, age=(missing)" in text and "not for release" in text
    html = result._repr_html_()
    assert "&lt;well&gt;" in html and "sex=F, age=(missing)" in html
