"""l-diversity and t-closeness: values by hand, and by their definitions on tiny tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconpriv.theory.diversity import distance_to_all, distinct_values, effective_values

FLU, COLD, HIV = 0, 1, 2
# Two groups of four people: 2 flu, 1 cold, 1 HIV; and 4 flu.
STARTS, VALUE, COUNT = (np.array(one) for one in ([0, 3], [FLU, COLD, HIV, FLU], [2, 1, 1, 4]))
OVERALL = np.array([6, 1, 1]) / 8


def test_values_by_hand():
    assert distinct_values(STARTS, COUNT).tolist() == [3, 1]
    # H = ½ ln 2 + 2 · ¼ ln 4 = 1.5 ln 2, so exp(H) = 2^1.5; one value has H = 0.
    assert effective_values(STARTS, COUNT) == pytest.approx([2**1.5, 1.0])
    # ½ (|½ - ¾| + 2 |¼ - ⅛|) = ¼, and ½ (|1 - ¾| + 2 · ⅛) = ¼.
    assert distance_to_all(STARTS, VALUE, COUNT, OVERALL) == pytest.approx([0.25, 0.25])


def test_a_group_like_the_table_is_at_no_distance_and_a_foreign_one_at_almost_one():
    starts, value, count = np.array([0, 2]), np.array([0, 1, 2]), np.array([99, 99, 2])
    overall = np.array([99, 99, 2]) / 200
    found = distance_to_all(starts, value, count, overall)
    assert found[1] == pytest.approx(0.99)  # ½ (0.495 + 0.495 + 0.99)
    alike = distance_to_all(
        np.array([0]), np.array([0, 1]), np.array([5, 15]), np.array([0.25, 0.75])
    )
    assert alike == pytest.approx([0.0])


def test_as_many_values_equally_often_are_as_diverse_as_they_are_many():
    for m in (1, 2, 7, 40):
        count = np.full(m, 3)
        assert effective_values(np.array([0]), count) == pytest.approx([m])


def by_definition(groups, m):
    """l, exp(H) and t of each group of sensitive values, straight from the papers."""
    everybody = [value for group in groups for value in group]
    found = []
    for group in groups:
        shares = [group.count(value) / len(group) for value in range(m)]
        overall = [everybody.count(value) / len(everybody) for value in range(m)]
        entropy = -sum(share * math.log(share) for share in shares if share)
        distance = sum(abs(a - b) for a, b in zip(shares, overall, strict=True)) / 2
        found.append((len(set(group)), math.exp(entropy), distance))
    return [list(column) for column in zip(*found, strict=True)]


def as_cells(groups):
    """The same groups as cells."""
    cells = [
        sorted({(i, v): group.count(v) for v in group}.items()) for i, group in enumerate(groups)
    ]
    starts = np.cumsum([0, *(len(one) for one in cells[:-1])])
    flat = [cell for one in cells for cell in one]
    return starts, np.array([v for (_, v), _ in flat]), np.array([n for _, n in flat])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=9), min_size=1, max_size=6))
def test_any_tiny_table_is_as_the_definitions_say(groups):
    starts, value, count = as_cells(groups)
    overall = np.bincount(value, weights=count, minlength=5) / count.sum()
    distinct, effective, distance = by_definition(groups, 5)
    assert distinct_values(starts, count).tolist() == distinct
    assert effective_values(starts, count) == pytest.approx(effective)
    assert distance_to_all(starts, value, count, overall) == pytest.approx(distance, abs=1e-12)
