"""Protection groups: how they are declared, what the kernel publishes of them, and the deal."""

import hashlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2, chisquare

import reconpriv as rp
from reconpriv.cells.cube import collect
from reconpriv.cells.randomness import Key
from reconpriv.cells.sums import sum_selections
from reconpriv.errors import InputError, PolicyError
from reconpriv.policy.protection import NO_PROTECTION, Coarsening, Protection, as_protection
from reconpriv.protect import kernel
from reconpriv.protect.coarsening import find_coarsening, pooled_cube
from reconpriv.protect.kernel import Kernel
from reconpriv.protect.publish_cube import published_cube

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="public")
LEVEL = 1e-4
TABLE = pa.table(
    {
        "age": [21, 22, 22, 29, 29, 29, 31, 31, 35, None, None, 21],
        "race": ["a", "a", "b", "a", "b", "b", "a", "c", "c", "a", "b", "a"],
        "ill": ["x", "y", "x", "z", "x", "x", "y", "y", "z", "x", "y", "x"],
    }
)


def key(number):
    return Key(hashlib.blake2b(number.to_bytes(8, "little"), digest_size=32).digest())


def raw_of(table):
    with rp.read(table, sensitive="ill", public="all", missing="value") as found:
        return collect(found.batches(), found.schema)


def settled(protect, table=TABLE):
    return settled_on(Protection.of(protect), raw_of(table))


def settled_on(protection, raw, number=1):
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, protect=protection)
    return find_coarsening(policy, raw.schema, raw.map_groups, key(number))


def histogram(cube, group):
    """{value index: count} of a group."""
    inside = cube.group == group
    return dict(zip(cube.value[inside].tolist(), cube.count[inside].tolist(), strict=True))


# --- Declarations -----------------------------------------------------------------------------


def test_what_can_be_declared_is_written_back_as_it_was_said():
    said = {
        "age": 10,
        "race": "*",
        "town": {"a": "north", "*": "rest"},
        "pay": "0,18.5",
        "b": "merge",
    }
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, protect=said)
    written = said | {"pay": [0, 18.5]}
    assert policy.as_dict()["protect"] == written
    assert f"protect={written!r}" in repr(policy)
    assert replace(policy, protect=policy.protect) == policy
    assert replace(policy, protect=written) == policy
    assert hash(policy) == hash(replace(policy, protect=written))
    assert policy.wanted_protection.merges


def test_a_policy_without_protection_does_not_mention_it():
    assert "protect" not in repr(POLICY)
    assert "protect" not in POLICY.as_dict()
    assert as_protection(None) == NO_PROTECTION


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, "no column"),
        ({"age": None}, "'age' is missing"),
        ({"age": True}, "no number"),
        ({"age": 0}, "above 0"),
        ({"age": [5]}, "two borders"),
        ({"age": "5,4"}, "ascend"),
        ({"age": "nowhere.csv"}, "no file of groups"),
        ({"": 5}, "public columns"),
        ("age", "dictionary"),
    ],
)
def test_a_bad_declaration_is_refused(said, words):
    with pytest.raises(rp.ReconprivError, match=words):
        rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, protect=said)


def test_what_protection_does_not_go_with_is_refused():
    with pytest.raises(PolicyError, match="exact totals"):
        rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="paper", protect={"age": 10})
    for size in ("octave", "public", "none"):
        rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=size, protect={"age": 10})


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"agee": 10}, "no column 'agee'"),
        ({"ill": "*"}, "no column 'ill'"),
        ({"race": 10}, "string values"),
        ({"race": {"a": "A"}}, "does not list"),
        ({"age": "30,40"}, "below the first border"),
        ({"age": 2.5}, "whole numbers"),
    ],
)
def test_a_declaration_that_does_not_fit_the_table_is_refused(said, words):
    with pytest.raises(rp.ReconprivError, match=words):
        settled(said)


# --- Coarsening -------------------------------------------------------------------------------


def test_coarse_groups_equal_a_brute_force():
    found = settled({"age": 10, "race": {"a": "A", "*": "other"}})
    pooled = pooled_cube(raw_of(TABLE), found)
    cube, within = pooled.whole, pooled.within

    def label(age):
        return None if age is None else f"{age // 10 * 10} to {age // 10 * 10 + 9}"

    rows = [
        (label(age), "A" if race == "a" else "other", ill)
        for age, race, ill in zip(
            *(TABLE[name].to_pylist() for name in TABLE.column_names), strict=True
        )
    ]
    expected = Counter(rows)
    groups = cube.group_table().to_pylist()
    assert groups == sorted(
        groups, key=lambda one: (one["age"] is None, one["age"] or "", one["race"])
    )
    cells = zip(cube.group.tolist(), cube.value.tolist(), cube.count.tolist(), strict=True)
    domain = cube.schema.domain
    assert {(groups[g]["age"], groups[g]["race"], domain[v]): n for g, v, n in cells} == expected
    raw = raw_of(TABLE)
    fine = raw.group_table().to_pylist()
    for own, coarse in zip(fine, within, strict=True):
        assert groups[coarse]["age"] == label(own["age"])
    assert cube.records.sum() == raw.records.sum() == TABLE.num_rows


def test_an_ignored_column_is_gone_and_all_may_be_ignored():
    cube = pooled_cube(raw_of(TABLE), settled({"race": "*"})).whole
    assert [column.name for column in cube.schema.public] == ["age"]
    pooled = pooled_cube(raw_of(TABLE), settled({"race": "*", "age": "*"}))
    cube = pooled.whole
    assert cube.groups == 1 and not cube.schema.public and not pooled.within.any()
    assert cube.records.tolist() == [TABLE.num_rows]


def test_bins_can_be_made_coarser_where_their_borders_meet():
    with rp.read(TABLE, sensitive="ill", public="all", missing="value", bin={"age": 5}) as table:
        raw = collect(table.batches(), table.schema)
        found = settled_on(Protection.of({"age": 10}), raw)
        assert dict(found.columns)["age"].labels == ("20 to 29", "30 to 39")
        with pytest.raises(InputError, match="cuts its bin"):
            settled_on(Protection.of({"age": 8}), raw)


def test_what_is_settled_survives_json():
    found = settled({"age": 10, "race": "*"})
    assert Coarsening.from_dict(found.as_dict(), ["age", "race"]) == found
    with pytest.raises(ValueError):
        Coarsening.from_dict(found.as_dict(), ["age"])
    with pytest.raises(ValueError):
        Coarsening.from_dict({}, ["age"])


# --- Publishing and dealing -------------------------------------------------------------------


def large_table(shift=0.0):
    """Three ages and two sexes; within a protection group the ages differ as much as possible."""
    rng = np.random.default_rng(3)
    n = 1_200
    age = rng.choice([30, 31, 39], n, p=[0.5, 0.3, 0.2])
    sex = rng.choice(["f", "m"], n)
    ill = np.where(age == 39, 2, np.where(rng.random(n) < 0.8 - shift, 0, 1))
    return pa.table({"age": age, "sex": sex, "ill": np.array(["x", "y", "z"])[ill]})


LARGE = large_table()
PROTECTED = replace(POLICY, protect={"age": 10})


def test_protection_groups_are_published_as_the_kernel_would():
    raw = raw_of(LARGE)
    found = published_cube(raw, PROTECTED, key(5)).whole
    coarse = pooled_cube(raw, settled(PROTECTED.protect.as_dict(), LARGE)).whole
    (alone,) = Kernel(coarse.schema, POLICY, key(5))(coarse.as_batch())
    for name in ("group", "value", "count", "records", "trials"):
        assert np.array_equal(getattr(found, name), getattr(alone, name))
    assert (found.trials < found.records).all()


def test_the_deal_keeps_micro_group_sizes_and_the_histogram_of_each_protection_group():
    raw = raw_of(LARGE)
    for number in range(5):
        cube = published_cube(raw, PROTECTED, key(number))
        assert np.array_equal(np.bincount(cube.group, weights=cube.count), raw.records)
        coarse = pooled_cube(raw, settled(PROTECTED.protect.as_dict(), LARGE)).whole
        (piece,) = Kernel(coarse.schema, PROTECTED, key(number))(coarse.as_batch())
        for group in range(piece.records.size):
            expected = dict(
                zip(
                    piece.value[piece.group == group].tolist(),
                    piece.count[piece.group == group].tolist(),
                    strict=True,
                )
            )
            assert histogram(cube.whole, group) == expected
        assert np.array_equal(cube.whole.trials, piece.trials)


def test_with_every_record_a_trial_and_nothing_replaced_the_true_histogram_is_dealt():
    raw = raw_of(LARGE)
    policy = rp.Policy(
        retention=1 - 1e-12, tolerance=0.5, doubt=0.3, sampling="none", protect={"age": 10}
    )
    cube = published_cube(raw, policy, key(1))
    truth = pooled_cube(raw, settled(policy.protect.as_dict(), LARGE)).whole
    for group in range(truth.groups):
        assert histogram(cube.whole, group) == histogram(truth, group)
    assert not np.array_equal(cube.count, raw.count)


def dealt_counts(keys):
    """How often each micro group of one protection group got the value x, key by key."""
    table = pa.table({"age": [30] * 3 + [31] * 2 + [35], "ill": list("xxxyyy")})
    raw = raw_of(table)
    policy = rp.Policy(
        retention=1 - 1e-12, tolerance=0.5, doubt=0.3, sampling="none", protect={"age": 10}
    )
    found = []
    for number in range(keys):
        cube = published_cube(raw, policy, key(number))
        counts = np.zeros((3, 2), dtype=int)
        counts[cube.group, cube.value] = cube.count
        found.append(tuple(counts[:, 0].tolist()))
    return Counter(found)


def hypergeometric():
    """The probability of each way to deal three x and three y to groups of 3, 2 and 1 records."""
    from math import comb

    return {
        (a, b, c): comb(3, a) * comb(2, b) * comb(1, c) / comb(6, 3)
        for a in range(4)
        for b in range(3)
        for c in range(2)
        if a + b + c == 3
    }


def departure(counts, expected):
    n = sum(counts.values())
    ways = [way for way in expected if expected[way] > 0]
    return chisquare([counts[w] for w in ways], [n * expected[w] for w in ways]).pvalue


def test_the_deal_is_uniform_and_a_biased_one_is_caught(monkeypatch):
    expected = hypergeometric()
    assert departure(dealt_counts(400), expected) > LEVEL
    words = kernel._deal_words

    def biased(randomness, ids, records):
        # The first half of the values, sorted, tends to come first.
        found = words(randomness, ids, records)
        first = np.arange(found.size) < found.size // 2
        return np.where(first, found // np.uint64(2), found)

    monkeypatch.setattr(kernel, "_deal_words", biased)
    assert departure(dealt_counts(400), expected) < LEVEL


def test_dealt_values_of_a_micro_group_do_not_depend_on_its_own():
    """Swap the values of two micro groups of one protection group: the same is published."""
    one = pa.table({"age": [30] * 40 + [31] * 40, "ill": ["x"] * 40 + ["y"] * 40})
    other = pa.table({"age": [30] * 40 + [31] * 40, "ill": ["y"] * 40 + ["x"] * 40})
    for number in range(20):
        found = [published_cube(raw_of(t), PROTECTED, key(number)) for t in (one, other)]
        for name in ("group", "value", "count"):
            assert np.array_equal(getattr(found[0], name), getattr(found[1], name))


def test_without_protection_they_do_depend_on_it():
    """The control of the test above."""
    one = pa.table({"age": [30] * 40 + [31] * 40, "ill": ["x"] * 40 + ["y"] * 40})
    cube = published_cube(raw_of(one), PROTECTED, key(3))
    held = np.bincount(cube.value[cube.group == 0], cube.count[cube.group == 0], minlength=2)
    (piece,) = Kernel(raw_of(one).schema, POLICY, key(3))(raw_of(one).as_batch())
    alone = np.bincount(piece.value[piece.group == 0], piece.count[piece.group == 0], minlength=2)
    assert alone[0] > 25 > held[0]


def test_the_same_key_deals_the_same_whatever_the_order_and_another_key_differently():
    shuffled = LARGE.take(pa.array(np.random.default_rng(1).permutation(LARGE.num_rows)))
    first, second = (published_cube(raw_of(t), PROTECTED, key(9)) for t in (LARGE, shuffled))
    other = published_cube(raw_of(LARGE), PROTECTED, key(10))
    assert np.array_equal(first.count, second.count) and np.array_equal(first.value, second.value)
    assert not np.array_equal(first.count, other.count)


def test_stretches_do_not_change_the_deal(monkeypatch):
    raw = raw_of(LARGE)
    whole = published_cube(raw, PROTECTED, key(9))
    monkeypatch.setattr(kernel, "_RECORDS_AT_ONCE", 1)
    assert np.array_equal(published_cube(raw, PROTECTED, key(9)).count, whole.count)


# --- Sums by share ----------------------------------------------------------------------------


def test_a_question_that_cuts_nothing_sums_to_that_of_the_protection_groups():
    raw = raw_of(LARGE)
    cube = published_cube(raw, PROTECTED, key(2))
    sex = cube.codes[1]
    fine = sum_selections(cube, sex.astype(np.int64), 2, None)
    coarse = sum_selections(cube.whole, cube.whole.codes[1].astype(np.int64), 2, None)
    for ours, theirs in zip(fine.columns().values(), coarse.columns().values(), strict=True):
        assert np.allclose(ours, theirs, rtol=1e-12)
    assert not fine.cut.any()


@pytest.mark.parametrize("chosen", [None, (0,), (0, 2)])
def test_a_question_that_cuts_groups_gets_its_share_of_them(chosen):
    raw = raw_of(LARGE)
    cube = published_cube(raw, PROTECTED, key(2))
    inside = np.where(cube.codes[0] == 0, 0, -1).astype(np.int64)
    found = sum_selections(cube, inside, 1, chosen)
    assert found.cut.tolist() == [2] and found.groups.tolist() == [2]
    share = [
        cube.records[(cube.within == g) & (inside == 0)].sum() / cube.whole.records[g]
        for g in range(2)
    ]
    each = sum_selections(cube.whole, np.arange(2), 2, chosen)
    linear = np.einsum("g,g...->...", share, each.observed)
    assert np.allclose(found.observed[0], linear)
    for name in ("scaled_records", "scaled_observed", "sampled_squares", "noise", "uneven"):
        squared = np.einsum("g,g...->...", np.square(share), getattr(each, name))
        assert np.allclose(getattr(found, name)[0], squared), name
    assert found.records.tolist() == [raw.records[inside == 0].sum()]


# --- Merging ----------------------------------------------------------------------------------


def test_values_that_are_alike_are_merged_and_those_that_differ_are_not():
    rng = np.random.default_rng(4)
    age = rng.integers(20, 40, 20_000)
    sick = rng.random(20_000) < np.where(age < 30, 0.9, 0.1)
    table = pa.table({"age": age, "ill": np.where(sick, "x", "y")})
    found = dict(settled({"age": "merge"}, table).columns)["age"]
    borders = [int(border) for border in found.borders]
    assert borders[0] == 20 and 30 in borders and len(borders) <= 4
    alike = pa.table({"age": age, "ill": rng.choice(["x", "y"], 20_000)})
    assert len(dict(settled({"age": "merge"}, alike).columns)["age"].labels) <= 5


def test_texts_are_merged_with_any_other():
    rng = np.random.default_rng(4)
    town = rng.choice(list("abc"), 6_000)
    sick = rng.random(6_000) < np.where(town == "b", 0.9, 0.1)
    table = pa.table({"town": town, "ill": np.where(sick, "x", "y")})
    found = dict(settled({"town": "merge"}, table).columns)["town"]
    assert found.labels == ("a or c", "b") and found.members == (("a", "c"), ("b",))


def test_a_merge_is_a_function_of_randomised_records_alone(monkeypatch):
    from reconpriv.protect import coarsening

    raw = raw_of(LARGE)
    seen = coarsening.randomised_cells(raw.as_batch(), raw.schema, 0.5, key(1))
    other = raw_of(large_table(shift=0.3))
    assert not np.array_equal(raw.count, other.count)
    monkeypatch.setattr(coarsening, "randomised_cells", lambda *_: seen)
    protection = Protection.of({"age": "merge"})
    assert settled_on(protection, raw) == settled_on(protection, other, 2)


@pytest.mark.parametrize(("factor", "fits"), [(1.0, True), (0.7, False), (1.3, False)])
def test_merging_looks_at_records_randomised_with_the_policys_retention(factor, fits):
    from reconpriv.protect.coarsening import randomised_cells

    table = pa.table({"g": ["a"] * 20_000, "ill": ["x"] * 16_000 + ["y"] * 3_000 + ["z"] * 1_000})
    raw = raw_of(table)
    found = randomised_cells(raw.as_batch(), raw.schema, 0.5, key(1))
    counts = np.bincount(found.value, weights=found.count)
    p = 0.5 * factor
    expected = 20_000 * (p * np.array([0.8, 0.15, 0.05]) + (1 - p) / 3)
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert (chi2.sf(statistic, 2) > LEVEL) == fits


def test_two_samples_are_compared_as_pearson_does():
    from reconpriv.theory.estimation.independence import pearson, two_samples

    rows = np.array([[30.0, 5, 0, 8], [10, 9, 0, 2], [3, 0, 0, 1]])
    found = two_samples(rows[0], rows[1:])
    for p, other in zip(found, rows[1:], strict=True):
        assert p == pytest.approx(pearson(np.stack([rows[0], other])).p_value, rel=1e-9)
