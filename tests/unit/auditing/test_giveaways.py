"""Giveaways: against a guess of each person from all others, one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reconpriv as rp
from reconpriv.auditing.giveaways import ColumnsSeen, guess
from reconpriv.auditing.obstacles import Accepted

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)


def by_hand(rows, m, common):
    """Right guesses by value, and all people, guessing each person from the others."""
    right = np.zeros(m)
    for i, (group, value) in enumerate(rows):
        others = Counter(v for j, (g, v) in enumerate(rows) if g == group and j != i)
        most = max(others.values(), default=0)
        best = [v for v in others if others[v] == most] or [common]
        right[value] += (value in best) / len(best)
    return right, len(rows)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=14),
    st.integers(0, 2),
)
def test_guesses_are_those_of_everybody_in_turn(rows, common):
    group, value = (np.array(part, dtype=np.int64) for part in zip(*rows, strict=True))
    found = guess(group, value, np.ones(len(rows), dtype=np.int64), 3, common)
    right, people = by_hand(rows, 3, common)
    assert np.allclose(found.right, right)
    assert found.people.sum() == found.guessed.sum() == people


def test_cells_count_as_their_records():
    group, value = np.array([0, 0, 1]), np.array([0, 1, 1])
    one = guess(group, value, np.array([5, 3, 4]), 2, 0)
    each = guess(np.repeat(group, [5, 3, 4]), np.repeat(value, [5, 3, 4]), np.ones(12), 2, 0)
    assert np.array_equal(one.right, each.right) and one.right.tolist() == [5, 4]


def opened(**columns):
    return rp.read(pa.table(columns), sensitive="s", public="all")


def told(table, harmless=()):
    """What an audit finds, in one batch and in many, which split the values of a column."""
    whole, pieces = ColumnsSeen(table.schema), ColumnsSeen(table.schema)
    for batch in table.batches():
        whole.add(batch)
        for first in range(0, batch.groups, 7):
            pieces.add(batch.slice(first, min(first + 7, batch.groups)))
    found = whole.giveaways(harmless)
    assert found == pieces.giveaways(harmless)
    return [one.columns for one in found]


@pytest.fixture
def dice():
    return np.random.default_rng(23)


def test_a_nearly_unique_column_does_not_look_predictive(dice):
    table = opened(a=np.arange(2_000), s=dice.choice(["u", "v", "w"], 2_000))
    assert told(table) == []


def test_numbers_that_single_nobody_out_tell_by_their_neighbours(dice):
    positive = dice.random(2_000) < 0.3
    value = np.where(positive, dice.uniform(10, 44, 2_000), 45.0)
    s = np.where(positive, "yes", "no")
    assert told(opened(ct=value, s=s)) == [("ct",)]
    spelled = [f"{one:.15g}" for one in value]  # as CSV has them: 45, not 45.0
    assert told(opened(ct=spelled, s=s)) == [("ct",)]
    assert told(opened(ct=[f"no {one}" for one in spelled], s=s)) == []


@pytest.mark.parametrize(("agree", "gives_away"), [(0.9, True), (0.55, True), (0.35, False)])
def test_a_column_gives_away_what_it_tells_of_more_than_half(agree, gives_away, dice):
    """Of ten equally frequent values, a column tells a person's with this probability."""
    s = dice.integers(0, 10, 6_000)
    a = np.where(dice.random(6_000) < agree, s, dice.integers(0, 10, 6_000))
    assert told(opened(a=a, s=s)) == ([("a",)] if gives_away else [])


def test_a_column_may_give_away_one_rare_value(dice):
    s = dice.choice(["a", "b", "c", "hiv"], 4_000, p=[0.4, 0.3, 0.27, 0.03])
    drug = np.where(s == "hiv", "arv", dice.choice(["none", "other"], 4_000))
    table = opened(drug=drug, s=s)
    assert told(table) == [("drug",)]
    assert told(table, ("hiv",)) == []


def test_two_columns_may_give_away_what_neither_tells(dice):
    a, b = dice.integers(0, 2, 3_000), dice.integers(0, 2, 3_000)
    assert told(opened(a=a, b=b, s=np.where(a ^ b, "yes", "no"))) == [("a", "b")]


def test_few_people_say_nothing(dice):
    assert told(opened(a=["x"] * 30 + ["y"] * 10, s=["u"] * 30 + ["v"] * 10)) == []


@pytest.fixture
def file(tmp_path, dice):
    s = dice.choice(["neg", "pos"], 1_000, p=[0.7, 0.3])
    columns = {"code": np.where(s == "pos", 7, 1), "sex": dice.choice(["f", "m"], 1_000), "s": s}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def test_audit_names_a_giveaway_and_publish_refuses_it(file, tmp_path, cli):
    out = tmp_path / "out"
    common = ("-s", "s", "--public", "all")
    done = cli("audit", file, *common)
    assert done.code == 1 and "'code' tells 's' of 100%" in " ".join(done.out.split())
    refused = cli("publish", file, out, *common, "--test-key")
    assert refused.code == 2 and "--keep-giveaway code" in refused.err and not out.exists()
    dropped = cli("publish", file, out, *common, "--drop", "code", "--test-key")
    assert dropped.code == 0
    kept = cli("publish", file, tmp_path / "kept", *common, "--keep-giveaway", "code", "--test-key")
    assert kept.code == 0
    wrong = cli("audit", file, *common, "--keep-giveaway", "s")
    assert wrong.code == 2 and "not a public column" in wrong.err


def test_too_many_unique_records_are_refused(tmp_path, cli):
    """A panel with its number among the public columns: four rows per person, so not unique."""
    dice = np.random.default_rng(4)
    columns = {
        "id": np.repeat(np.arange(500), 4),
        "wave": np.tile([1, 2, 3, 4], 500),
        "s": dice.choice(["u", "v"], 2_000),
    }
    file, out = tmp_path / "t.parquet", tmp_path / "out"
    pq.write_table(pa.table(columns), file)
    done = cli("audit", file, "-s", "s", "--public", "all")
    words = " ".join(done.out.split())
    assert done.code == 1 and "2,000 of 2,000 records (100%) are unique" in words
    assert "0.0% without 'id'" in words
    refused = cli("publish", file, out, "-s", "s", "--public", "all", "--test-key")
    assert refused.code == 2 and "--max-unique" in refused.err and not out.exists()
    assert list(tmp_path.iterdir()) == [file]
    taken = ("publish", file, out, "-s", "s", "--public", "all", "--test-key", "--max-unique", 1)
    assert cli(*taken).code == 0
    text = " ".join(cli(*taken, "--overwrite").out.split())
    assert "unique records 2,000 of 2,000 records (100%) in groups below 5 2,000" in text
    percent = cli("audit", file, "-s", "s", "--public", "all", "--max-unique", 50)
    assert percent.code == 2 and "did you mean 0.5?" in percent.err


def test_a_kept_identifier_says_that_records_are_unique_unless_a_limit_is_set(tmp_path, cli):
    dice = np.random.default_rng(6)
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"nr": np.arange(400), "s": dice.choice(["u", "v"], 400)}), file)
    words = ("audit", file, "-s", "s", "--public", "nr", "--keep-identifier", "nr")
    assert "Not ready" not in cli(*words).out
    assert "are unique on the public columns" in cli(*words, "--max-unique", 0.1).out


def test_the_share_of_unique_records_is_the_stewards_to_set():
    schema = opened(a=["x", "y"] * 20, s=["u", "v"] * 20).schema
    assert Accepted.of(schema, max_unique=0.1).max_unique == 0.1
    for wrong in (-0.1, 1.5, "x", None, True):
        with pytest.raises(rp.ReconprivError):
            Accepted.of(schema, max_unique=wrong)  # type: ignore[arg-type]


def test_hints_say_what_would_help_and_what_it_gains(tmp_path, cli):
    dice = np.random.default_rng(5)
    n = 4_000
    sex, result = dice.choice(["f", "m"], n), dice.choice(["neg", "pos"], n, p=[0.92, 0.08])
    with rp.read(pa.table({"sex": sex, "s": result}), sensitive="s", public="all") as table:
        (dominant,) = table.audit(POLICY).hints
    assert dominant.startswith("92% of the records hold 'neg'") and 'harmless=["neg"]' in dominant
    before, after = dominant.split("error from ")[1].split("%")[:2]
    assert float(after.removeprefix(" to ")) < 0.95 * float(before)
    income = [f"{one * 1_000:,}" for one in dice.integers(1, 90, n).tolist()]
    numbers = {"income": income, "s": dice.choice(["u", "v"], n)}
    with rp.read(pa.table(numbers), sensitive="s", public="all") as table:
        (text,) = table.audit(POLICY).hints
    assert "'income' holds numbers written as text" in text
    many = {"sex": sex, "s": dice.integers(0, 300, n)}
    with rp.read(pa.table(many), sensitive="s", public="all") as table:
        (large,) = table.audit(POLICY).hints
    assert "has 300 values" in large
