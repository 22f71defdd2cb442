"""Margin tables: counts against brute force, however the groups arrive."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reconpriv as rp
from margin_fixtures import batch_of, schema_of
from reconpriv.cells.cell_batch import CellBatch, python_values
from reconpriv.columns.schema import Kind, Schema
from reconpriv.errors import PolicyError
from reconpriv.policy.margin_settings import Margins
from reconpriv.protect.margins.plan import count_margins
from reconpriv.protect.margins.tables import (
    CountMargins,
    MarginTable,
    MarginTotals,
    index_rows,
    join_margins,
    most_rows,
    rows_of,
    wanted_tables,
)

NAN = float("nan")
TABLES = [["a", "b", "c"], [("b", "a"), "c"], [("a", "b", "c")], ["b"]]


def policy_of(tables: list | None, size: str = "octave") -> rp.Policy:
    return rp.Policy(
        retention=0.5, tolerance=0.5, doubt=0.3, sampling=size, margins=Margins(1.0, tables=tables)
    )


def counted(parts: list[list[CellBatch]], schema: Schema, policy: rp.Policy) -> MarginTotals:
    """The margins of groups that arrive in parts, each a list of batches."""
    margins = policy.wanted_margins
    tables = wanted_tables(margins, schema)
    count = CountMargins(schema, policy, tables)
    return join_margins([count(part) for part in parts], tables, margins, schema)


def shown(value: object) -> object:
    return "NaN" if value != value else value  # noqa: PLR0124


def as_dict(table: MarginTable, schema: Schema) -> dict[tuple, list[int]]:
    """The counts by the values of each row."""
    columns = [
        [python_values(column.values, "x")[code] for code in column.codes]
        for column in table.columns
    ]
    return {
        tuple(map(shown, values)): counts
        for values, counts in zip(zip(*columns, strict=True), table.counts.tolist(), strict=True)
    }


def brute_force(rows: list[tuple], attributes: tuple[int, ...], m: int) -> dict:
    found: dict[tuple, list[int]] = {}
    for row, count in Counter(tuple(map(shown, row)) for row in rows).items():
        counts = found.setdefault(tuple(row[a] for a in attributes), [0] * m)
        counts[row[-1]] += count
    return found


records = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 2), st.sampled_from([None, 1, 7]), st.integers(0, 3)
    ),
    min_size=1,
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(records, st.sampled_from(TABLES))
def test_counts_are_those_of_brute_force(rows: list[tuple], tables: list) -> None:
    schema, policy = schema_of(3, 4), policy_of(tables)
    totals = counted([[batch_of(rows, schema)]], schema, policy)
    for table in totals.tables:
        found = as_dict(table, schema)
        assert found == brute_force(rows, table.attributes, 4)
    assert [table.attributes for table in totals.tables] == [
        tuple(sorted("abc".index(name) for name in names)) for names in map(tuple, tables)
    ]


@settings(max_examples=40, deadline=None)
@given(records, st.sampled_from(TABLES), st.randoms(use_true_random=False))
def test_any_split_into_parts_and_any_order_gives_the_same_totals(
    rows: list[tuple], tables: list, random
) -> None:
    schema, policy = schema_of(3, 4), policy_of(tables, "public")
    groups = list(dict.fromkeys(row[:-1] for row in rows))
    random.shuffle(groups)
    parts: list[list[CellBatch]] = [[] for _ in range(random.randint(1, 4))]
    while groups:
        some = {groups.pop() for _ in range(random.randint(1, len(groups)))}
        batch = batch_of([row for row in rows if row[:-1] in some], schema)
        parts[random.randrange(len(parts))].append(batch)
    parts = [part for part in parts if part]
    whole = counted([[batch_of(rows, schema)]], schema, policy)
    split = counted(parts, schema, policy)
    for one, other in zip(whole.tables, split.tables, strict=True):
        assert list(as_dict(one, schema).items()) == list(as_dict(other, schema).items())
    assert np.allclose(whole.products, split.products)
    assert np.array_equal(np.argwhere(whole.products), np.argwhere(split.products))
    for name in ("sizes", "limits", "frequency"):
        mine, theirs = (sorted(getattr(t.candidates, name).tolist()) for t in (whole, split))
        assert mine == theirs
    lines = [np.unique(t.candidates.rows, axis=0).tolist() for t in (whole, split)]
    assert lines[0] == lines[1]


def test_products_sum_squared_sizes_over_trials() -> None:
    rows = [(0, 0, 0)] * 30 + [(0, 1, 1)] * 200 + [(1, 0, 0)] * 5 + [(1, 0, 1)] * 2
    schema, policy = schema_of(2, 2), policy_of(None, "public")
    batch = batch_of(rows, schema)
    totals = counted([[batch]], schema, policy)
    limits = policy.sampling_rule.limits(batch, policy, 2)
    trials = np.minimum(limits, batch.sizes)
    unknown = batch.sizes**2 / trials
    matrix = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 1], [0, 1, 0]])
    assert trials[1] < 200
    assert np.allclose(totals.products, matrix @ np.diag(unknown) @ matrix.T)


DAY = dt.date(2024, 2, 29)
MOMENT = dt.datetime(2024, 2, 29, 12, 30, 0, 5)


@pytest.mark.parametrize(
    ("kind", "type_", "values"),
    [
        (Kind.NUMBER, pa.float64(), [0.5, 2.5, NAN, None]),
        (Kind.DATE, pa.date32(), [DAY, dt.date(1999, 1, 1), None]),
        (Kind.DATETIME, pa.timestamp("us"), [MOMENT, None]),
        (Kind.STRING, pa.string(), ["", "nan", "ü", None]),
        (Kind.BOOLEAN, pa.bool_(), [False, True, None]),
    ],
    ids=lambda one: getattr(one, "value", ""),
)
def test_every_kind_of_public_value_has_a_row_of_its_own(
    kind: Kind, type_: pa.DataType, values: list
) -> None:
    schema = schema_of(1, 2, kind)
    rows = [(v, i % 2) for i, v in enumerate(values) for _ in range(i + 1)]
    batch = batch_of(rows, schema, [type_])
    halves = [batch.slice(0, 1), batch.slice(1, batch.groups)]
    for parts in ([[batch]], [halves], [[halves[1]], [halves[0]]]):
        (table,) = counted(parts, schema, policy_of(None)).tables
        assert as_dict(table, schema) == brute_force(rows, (0,), 2)
        (index,) = index_rows([table], schema)
        assert index.rows(batch.public, schema).tolist() == list(range(len(values)))


@settings(max_examples=40, deadline=None)
@given(records, records)
def test_an_index_finds_rows_and_says_which_there_are_not(
    rows: list[tuple], others: list[tuple]
) -> None:
    """The rows of one table, looked up for the groups of another."""
    schema = schema_of(3, 4)
    totals = counted([[batch_of(rows, schema)]], schema, policy_of([("a", "c"), "b"]))
    names, first = [], 0
    for table in totals.tables:
        names.append({values: first + i for i, values in enumerate(as_dict(table, schema))})
        first += table.rows
    asked = batch_of(others, schema)
    found = rows_of(index_rows(totals.tables, schema), asked.public, schema)
    groups = sorted(
        {row[:-1] for row in others}, key=lambda g: tuple((v is None, v or 0) for v in g)
    )
    for group, line in zip(groups, found.tolist(), strict=True):
        a, b, c = group
        assert line == [names[0].get((a, c), -1), names[1].get((b,), -1)]


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        (["s"], "Column 's' is the sensitive one: every margin table counts it already."),
        (["z"], "There can be no margin table by 'z', which is not a public column."),
        (
            [("a", "b", "c", "d")],
            "A margin table has at most three public columns; got a, b, c, d.",
        ),
    ],
)
def test_a_table_that_cannot_be_is_refused_in_one_sentence(tables: list, said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        wanted_tables(Margins(1.0, tables=tables), schema_of(4, 3))
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "Margins need one measure of privacy: ε or ρ."),
        ({"epsilon": 1.0, "rho": 0.1}, "Margins need one measure of privacy: ε or ρ."),
        ({"epsilon": -1.0}, "The ε of margins must be above 0 and at most 10; got -1."),
        ({"epsilon": 0}, "The ε of margins must be above 0 and at most 10; got 0."),
        ({"rho": 0.0}, "The ρ of margins must be above 0 and at most 1,000,000; got 0."),
        ({"epsilon": "1"}, "The ε of margins must be a number; got '1'."),
        ({"epsilon": True}, "The ε of margins must be a number; got True."),
        (
            {"epsilon": 1.0, "delta": 1.0},
            "The δ of margins must lie strictly between 0 and 1; got 1.",
        ),
        ({"epsilon": 1.0, "tables": []}, "There is no margin table to publish."),
        (
            {"epsilon": 1.0, "tables": [("a", "a")]},
            "A margin table names each column once; got a, a.",
        ),
        ({"epsilon": 1.0, "tables": ["a", ("a",)]}, "The margin table a is named twice."),
        (
            {"epsilon": 1.0, "tables": [("a", "b"), ("b", "a")]},
            "The margin table b × a is named twice.",
        ),
        ({"epsilon": 1.0, "tables": [3]}, "A margin table is named by public columns; got 3."),
        ({"epsilon": 1.0, "tables": 3}, "A margin table is named by public columns; got 3."),
        ({"epsilon": 1.0, "tables": [["a", 3]]}, "A margin table is named by public columns; got"),
    ],
)
def test_margins_that_cannot_be_are_refused_in_one_sentence(arguments: dict, said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Margins(**arguments)
    assert str(caught.value).startswith(said)


def wide(values: int) -> tuple[Schema, CellBatch]:
    """A public column of so many values, each held by two records, and one of two values."""
    rows = [(i, i % 2, s) for i in range(values) for s in (0, 1)]
    schema = schema_of(2, 2)
    return schema, batch_of(rows, schema)


def test_a_table_of_too_many_rows_is_left_out_or_refused_with_its_memory() -> None:
    assert most_rows(50) == 1638
    schema, batch = wide(300)
    many = Schema(schema.public, schema.sensitive, tuple(range(2000)))
    totals = counted([[batch]], many, policy_of(None))
    assert totals.too_large == ((0,),)
    assert [table.attributes for table in totals.tables] == [(1,)]
    with pytest.raises(PolicyError) as caught:
        counted([[batch]], many, policy_of(["a"]))
    assert str(caught.value).startswith(
        "The margin table by a has too many rows: all tables together may have 259 for 2000"
        " sensitive values, for which an analyst needs 0.5 GB of memory."
    )


def test_tables_that_are_too_large_only_together_are_counted_again_without_the_largest() -> None:
    """No matter how the groups are split; matrices of all of them would not fit into memory."""
    rows = [(i % 150, i % 140, i % 7, i % 2) for i in range(3_000)]
    narrow = schema_of(3, 2)
    many = Schema(narrow.public, narrow.sensitive, tuple(range(2000)))
    whole = batch_of(rows, narrow)
    found, times = [], []
    for pieces in ([whole], [whole.slice(i, i + 100) for i in range(0, whole.groups, 100)]):
        passes = []

        def map_groups(work, pieces=pieces, passes=passes):
            passes.append(work)
            return [work([piece]) for piece in pieces]

        found.append(count_margins(map_groups, policy_of(None), many))
        times.append(len(passes))
    assert times == [2, 1]  # in each small piece they still fit
    for totals in found:
        assert totals.too_large == ((0,),)
        assert [table.attributes for table in totals.tables] == [(1,), (2,)]
        assert np.allclose(totals.products, found[0].products)
        assert totals.products.diagonal().all()
