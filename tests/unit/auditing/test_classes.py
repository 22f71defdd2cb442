"""Equivalence classes: counted in the audit's pass, in any parts, as in plain Python."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reconpriv as rp
from reconpriv.auditing.classes import SMALL, ClassPart, EquivalenceClasses, GroupsSeen, shares_of
from reconpriv.cells.cube import collect

ROWS = [("a", 1), ("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 1), ("b", 1), ("b", 1), ("c", 2)]


def audited(rows, **how):
    table = pa.table({"g": [g for g, _ in rows], "ill": [v for _, v in rows]})
    with rp.read(table, sensitive="ill", public="all", domain=[1, 2, 3, 4], **how) as opened:
        return opened.audit(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), columns=False
        ).classes


def by_counting(rows):
    groups = defaultdict(list)
    for group, value in rows:
        groups[group].append(value)
    whole, n = Counter(value for _, value in rows), len(rows)
    measures = []
    for values in groups.values():
        shares = {v: k / len(values) for v, k in Counter(values).items()}
        entropy = -sum(s * math.log(s) for s in shares.values())
        distance = sum(abs(shares.get(v, 0) - k / n) for v, k in whole.items()) / 2
        measures.append((len(values), len(shares), math.exp(entropy), distance))
    sizes = [size for size, *_ in measures]
    same = [size for size, distinct, *_ in measures if distinct == 1 and size > 1]

    def mean(place):
        return sum(one[0] * one[place] for one in measures) / n

    return {
        "records": n,
        "groups": len(groups),
        "unique": sizes.count(1),
        "smallest": min(sizes),
        "below": tuple((k, sum(size for size in sizes if size < k)) for k in SMALL),
        "one_value_groups": len(same),
        "one_value_records": sum(same),
        "distinct": min(one[1] for one in measures),
        "mean_distinct": mean(1),
        "effective": min(one[2] for one in measures),
        "mean_effective": mean(2),
        "distance": max(one[3] for one in measures),
        "mean_distance": mean(3),
    }


def test_a_table_by_hand():
    found = audited(ROWS)
    assert (found.records, found.groups, found.unique, found.smallest) == (9, 3, 1, 1)
    assert found.below == ((3, 1), (5, 9), (10, 9))
    assert (found.one_value_groups, found.one_value_records) == (1, 4)
    # Of 9 people, 6 have 1, 2 have 2, 1 has 3. Group c holds 2 alone: ½ (6/9 + 7/9 + 1/9) = 7/9.
    assert (found.distinct, found.effective, found.distance) == (1, 1.0, pytest.approx(7 / 9))
    assert found.mean_distinct == pytest.approx((4 * 3 + 4 * 1 + 1) / 9)
    assert found.as_dict()["t_closeness"]["t"] == 0.78  # 0.777… is rounded up


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(1, 4)), min_size=2, max_size=60))
def test_any_table_is_as_by_counting(rows):
    found = vars(audited(rows))
    wanted = by_counting(rows)
    assert found.pop("below") == wanted.pop("below")
    assert found == pytest.approx(wanted)


def test_missing_values_and_bins_are_counted_as_they_are_published():
    rows = [("a", 1), ("a", None), ("b", 2), ("b", 2)]
    dropped = audited(rows, missing="drop")
    assert (dropped.records, dropped.unique) == (3, 1)
    kept = audited(rows, missing="value")
    assert (kept.records, kept.unique, kept.distinct) == (4, 0, 1)
    table = pa.table({"age": [21, 22, 23, 34, 35], "ill": [1, 2, 1, 1, 1]})
    with rp.read(table, sensitive="ill", public="all", bin={"age": 10}) as opened:
        found = opened.audit(rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)).classes
    assert (found.groups, found.smallest, found.one_value_records) == (2, 2, 2)


def test_one_row_of_each_person_is_counted_anew():
    table = pa.table({"id": [1, 1, 2, 3], "g": list("aaab"), "ill": [1, 2, 1, 2]})
    how = {"sensitive": "ill", "public": ["g"], "person": "id", "rows_per_person": "one"}
    with rp.read(table, **how) as opened:
        found = opened.audit(rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)).classes
        assert found.records == opened.sensitive_counts.sum() == 3


def test_the_parts_of_a_table_make_the_whole(adult):
    batch = collect(adult.batches(), adult.schema).as_batch()
    overall = shares_of(adult.sensitive_counts)
    whole = EquivalenceClasses.of([ClassPart.of(batch, overall)])
    cuts = [0, 1, 40, 41, 300, batch.groups]
    parts = [batch.slice(a, b) for a, b in itertools.pairwise(cuts)]
    joined = EquivalenceClasses.of(ClassPart.of(part, overall) for part in parts[::-1])
    audited = adult.audit(rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), columns=False).classes
    for other in (joined, audited):
        assert other.below == whole.below
        assert vars(other) | {"below": 0} == pytest.approx(vars(whole) | {"below": 0})
    fewer = EquivalenceClasses.of(ClassPart.of(part, overall) for part in parts[1:])
    assert fewer != whole


def test_figures_are_rounded_against_the_publisher():
    def rounded(effective, distance):
        sizes = dict.fromkeys(EquivalenceClasses.__dataclass_fields__, 1)
        found = EquivalenceClasses(**sizes | {"effective": effective, "distance": distance})
        return found.entropy_l, found.t

    assert rounded(2.8284, 0.2501) == (2.82, 0.26)
    assert rounded(1.9999, 0.0001) == (1.99, 0.01)
    assert rounded(2.0 - 1e-13, 0.3 + 1e-13) == (2.0, 0.3)  # sums of shares are a hair off
    assert rounded(1.0, 1.0) == (1.0, 1.0)


def test_groups_are_recognised_in_any_order_and_no_others_are(adult):
    batch = collect(adult.batches(), adult.schema).as_batch()

    def digest(*parts):
        seen = GroupsSeen(adult.schema)
        for part in parts:
            seen.add(part)
        return seen.digest

    halves = batch.slice(0, 100), batch.slice(100, batch.groups)
    assert digest(batch) == digest(*halves) == digest(*halves[::-1])
    assert digest(halves[0]) != digest(batch)
    larger = np.array(batch.count)
    larger[7] += 1
    assert digest(type(batch)(batch.public, batch.starts, batch.value, larger)) != digest(batch)
    # Who holds which value does not enter it.
    turned = np.array(batch.value[::-1])
    assert digest(type(batch)(batch.public, batch.starts, turned, batch.count)) == digest(batch)
