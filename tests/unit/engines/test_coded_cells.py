"""Cells counted by number are the cells counted by value, batch for batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import reconpriv as rp
from reconpriv.engines.duckdb import coded_cells
from reconpriv.engines.duckdb import groups as duckdb_groups

_POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
_TABLE = """
    SELECT CASE WHEN i % 11 = 0 THEN NULL ELSE 'é' || (i % 5) END AS text,
           i % 3 - 1 AS whole, CASE i % 4 WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN -0.0
           WHEN 2 THEN 0.0 ELSE 1.5 END AS number, i % 2 = 0 AS flag,
           DATE '2020-01-01' + (i % 3)::INT AS day, (i % 4)::DECIMAL(9, 2) / 4 AS price,
           TIMESTAMP '2020-01-01 01:02:03' + to_days((i % 2)::INT) AS moment,
           CASE WHEN i % 97 = 0 THEN NULL ELSE (hash(i) % 4)::INT END AS sensitive
    FROM range(6000) t(i)
"""


@pytest.fixture(params=["parquet", "csv"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"t.{request.param}"
    duckdb.execute(f"COPY ({_TABLE}) TO '{path}'")
    return path


def _cells(file: Path, **settings: Any) -> Iterator[tuple[Any, ...]]:
    """Every cell of every batch, with the values of its group."""
    with rp.read(file, sensitive="sensitive", public="all", **settings) as table:
        for batch in table.batches():
            groups = [batch.public_values(g, table.schema) for g in range(batch.groups)]
            for group, value, count in zip(
                batch.group_of_cell, batch.value, batch.count, strict=True
            ):
                yield groups[group], int(value), int(count)
            assert np.all(np.diff(batch.starts) > 0)


@pytest.mark.parametrize(
    "settings",
    [
        {"missing": "drop"},
        {"missing": "value"},
        {"missing": "drop", "bin": {"whole": [-1, 0, 5]}, "drop": ["day"]},
        {"missing": "drop", "group": {"sensitive": {0: "z", 1: "b", "*": "a"}}},
    ],
)
def test_the_same_cells_in_the_same_order(
    file: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = list(_cells(file, **settings))
    used = []
    made = coded_cells.CodedCells.groups
    monkeypatch.setattr(coded_cells.CodedCells, "groups", lambda *a: (used.append(1), made(*a))[1])
    monkeypatch.setattr(coded_cells, "_FIRST", 2)
    monkeypatch.setattr(duckdb_groups, "BATCH", 7)  # so that groups span batches
    monkeypatch.setattr(duckdb_groups, "_LEAST_BATCH", 7)
    assert list(_cells(file, **settings)) == plain
    assert used


def test_the_same_release(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def publish(name: str) -> dict[str, bytes]:
        with rp.read(file, sensitive="sensitive", public="all", missing="drop") as table:
            table.publish(_POLICY, tmp_path / name, key=rp.Key.test())
        return {one.name: one.read_bytes() for one in (tmp_path / name).glob("data*")}

    plain = publish("plain")
    monkeypatch.setattr(coded_cells, "_FIRST", 2)
    assert publish("coded") == plain != {}


@pytest.mark.parametrize("sql", [None, "SELECT * FROM input"])
def test_too_many_values_and_queries_are_counted_by_value(
    file: Path, sql: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = list(_cells(file, missing="drop", sql=sql))
    monkeypatch.setattr(coded_cells, "_FIRST", 2)
    if sql is None:
        monkeypatch.setattr(coded_cells, "_MOST_VALUES", 3)
    monkeypatch.setattr(coded_cells.CodedCells, "groups", None)
    assert list(_cells(file, missing="drop", sql=sql)) == plain
