"""One row of each person: every row equally likely, whatever the order of the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy import stats

import reconpriv as rp
from peoples_rows import peoples_rows
from reconpriv.attacks.attacked_table import attack_key
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.cube import collect
from reconpriv.engines.duckdb import groups as duckdb_groups
from reconpriv.protect.group_by import GroupBy
from reconpriv.protect.row_choice import RowChoice

ROLES = {"sensitive": "result", "public": ["visit", "ward"], "person": "pid"}
LEVEL = 1e-4


@pytest.fixture(scope="module")
def visits() -> pa.Table:
    return peoples_rows([1, 2, 5], 60)


def batches_by_person(source: object, key: rp.Key) -> tuple[RowChoice, list[CellBatch]]:
    with rp.read(source, **ROLES) as table:
        choice = RowChoice(table.schema, key)
        return choice, list(table.engine.batches(GroupBy(choice.by_person)))


def chosen(source: object, key: rp.Key) -> list[tuple[object, ...]]:
    """The chosen rows, in the order of people, without their numbers."""
    choice, batches = batches_by_person(source, key)
    return rows_of(choice(iter(batches)))


def rows_of(batches: Iterator[pa.RecordBatch]) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def three_rows(people: int) -> pa.Table:
    """Everybody has the visits 0, 1, 1 and 2: the two visits 1 are equal rows."""
    return pa.table(
        {
            "pid": np.repeat(np.arange(people), 4),
            "visit": np.tile([0, 1, 1, 2], people),
            "ward": np.zeros(4 * people, dtype=np.int64),
            "result": ["a", "b", "b", "c"] * people,
        }
    )


def chance_of(counts: list[int], shares: list[float]) -> float:
    return float(stats.chisquare(counts, np.array(shares) * sum(counts)).pvalue)


def test_every_row_of_a_person_is_equally_likely(key):
    """Over people: equal rows count twice. One row 30 % too likely, or too rarely, is noticed."""
    seen = Counter(visit for visit, _, _ in chosen(three_rows(4_000), key))
    counts = [seen[visit] for visit in (0, 1, 2)]
    assert sum(counts) == 4_000
    assert chance_of(counts, [0.25, 0.5, 0.25]) > LEVEL
    for wrong in (0.7, 1.3):
        first = 0.25 * wrong
        assert chance_of(counts, [first, (1 - first) * 2 / 3, (1 - first) / 3]) < LEVEL


def test_over_keys_every_row_of_one_person_is_equally_likely():
    choice, batches = batches_by_person(three_rows(1), rp.Key.test())
    seen: Counter[object] = Counter()
    for number in range(4_000):
        other = RowChoice(choice.schema, attack_key(number))
        ((visit, _, _),) = rows_of(other(iter(batches)))
        seen[visit] += 1
    counts = [seen[visit] for visit in (0, 1, 2)]
    assert chance_of(counts, [0.25, 0.5, 0.25]) > LEVEL
    for wrong in (0.7, 1.3):
        first = 0.25 * wrong
        assert chance_of(counts, [first, (1 - first) * 2 / 3, (1 - first) / 3]) < LEVEL


def test_people_choose_independently(key):
    """What one person's row is says nothing about the next one's."""
    rows = [visit for visit, _, _ in chosen(three_rows(4_000), key)]
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (rows[::2], rows[1::2]), 1)
    assert stats.chi2_contingency(pairs).pvalue > LEVEL
    # A quarter of the pairs alike on purpose would be noticed.
    alike = np.diag(pairs.sum(axis=1) / 4)
    assert stats.chi2_contingency(0.75 * pairs + alike).pvalue < LEVEL


def test_one_row_of_everybody_and_it_is_theirs(visits, key):
    choice, batches = batches_by_person(visits, key)
    rows = rows_of(choice(iter(batches)))
    people = sorted(set(visits["pid"].to_pylist()))
    assert len(rows) == len(people) == 180
    theirs: dict[object, set[tuple[object, ...]]] = {}
    for one in visits.to_pylist():
        theirs.setdefault(one["pid"], set()).add((one["visit"], one["ward"], one["result"]))
    assert all(row in theirs[pid] for pid, row in zip(people, rows, strict=True))


def test_the_order_of_the_table_does_not_matter(visits, key):
    order = np.random.default_rng(5).permutation(visits.num_rows)
    assert chosen(visits.take(pa.array(order)), key) == chosen(visits, key)


def test_another_key_chooses_other_rows(visits, key):
    ours, theirs = chosen(visits, key), chosen(visits, rp.Key.test())
    assert ours != theirs
    assert ours == chosen(visits, key)
    different = sum(one != other for one, other in zip(ours, theirs, strict=True))
    # Of 120 people with several rows, half of those with two and four fifths of those with five.
    assert 50 < different < 110


@pytest.mark.parametrize("size", [1, 3, 7])
def test_a_person_may_span_batches(visits, key, size):
    """Groups of one person and visit that are cut anywhere give the same rows."""
    choice, batches = batches_by_person(visits, key)
    cut = [
        batch.slice(first, min(first + size, batch.groups))
        for batch in batches
        for first in range(0, batch.groups, size)
    ]
    persons = [batch.public[0].values[int(batch.public[0].codes[0])] for batch in cut]
    ends = [batch.public[0].values[int(batch.public[0].codes[-1])] for batch in cut]
    assert any(end == start for end, start in zip(ends, persons[1:], strict=False))
    assert rows_of(choice(iter(cut))) == rows_of(choice(iter(batches)))


def test_small_batches_of_the_engine_publish_the_same_bytes(visits, key, tmp_path, monkeypatch):
    whole = published(visits, tmp_path / "whole", key)
    monkeypatch.setattr(duckdb_groups, "BATCH", 7)
    monkeypatch.setattr(duckdb_groups, "_LEAST_BATCH", 7)
    assert published(visits, tmp_path / "small", key) == whole


def published(source: object, folder: object, key: rp.Key) -> dict[str, bytes]:
    with rp.read(source, rows_per_person="one", **(ROLES | {"public": ["ward"]})) as table:
        release = table.publish(rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), folder, key=key)
    return {one.name: one.read_bytes() for one in release.path.iterdir()}


def test_every_format_gives_the_same_release(visits, key, tmp_path):
    pq.write_table(visits, tmp_path / "visits.parquet")
    pyarrow.csv.write_csv(visits, tmp_path / "visits.csv")
    order = pa.array(np.random.default_rng(6).permutation(visits.num_rows))
    sources = [tmp_path / "visits.parquet", tmp_path / "visits.csv", visits.take(order)]
    first, *others = [
        published(source, tmp_path / f"r{i}", key) for i, source in enumerate(sources)
    ]
    assert all(other == first for other in others)
    assert published(visits, tmp_path / "other", attack_key(0)) != first


def test_what_is_published_is_what_the_key_chose(visits, key, tmp_path):
    """An audit before uses a key that everybody knows, and says so; publishing chooses anew."""
    with rp.read(visits, rows_per_person="one", **ROLES) as table:
        assert any("key that everybody knows" in note for note in table.warnings)
        before = Counter(chosen(visits, rp.Key.test()))
        assert sum(before.values()) == table.schema.records == 180
        assert table.count("visit = 0") == sum(n for row, n in before.items() if row[0] == 0)
        table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3),
            tmp_path / "r",
            key=key,
            max_unique=1.0,
        )
        after = Counter(chosen(visits, key))
        assert table.count("visit = 0") == sum(n for row, n in after.items() if row[0] == 0)
        assert not any("key that everybody knows" in note for note in table.warnings)


def test_the_type_of_a_persons_number_does_not_matter() -> None:
    """A data frame makes 7.0 of 7 as soon as one number is missing."""
    dice = np.random.default_rng(5)
    numbers = np.repeat(np.arange(200), 3)
    rest = {"a": dice.choice(list("xyz"), 600), "s": dice.choice(["u", "v"], 600)}
    chosen = []
    for person in (numbers, numbers.astype(float), [str(one) for one in numbers]):
        table = pa.table({"who": person, **rest})
        with rp.read(
            table, sensitive="s", public=["a"], person="who", rows_per_person="one"
        ) as read:
            chosen.append(collect(read.batches(), read.schema).count.tolist())
    assert chosen[0] == chosen[1] == chosen[2]
