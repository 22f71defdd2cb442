"""An audit by Spark says the same as one by DuckDB; so do lists of groups and workloads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from spark_fixtures import ODD_NAME, PANDAS, VALUES, table_of, write

pytestmark = [pytest.mark.filterwarnings(PANDAS)]


def audits(
    spark: Any, file: Path, policy: rp.Policy, *, worst: int = 10, **roles: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    reports = []
    for source in (file, spark.read.parquet(str(file))):
        with rp.read(source, **{"public": "all"} | roles) as table:
            reports.append(table.audit(policy, worst=worst).as_dict())
    return reports[0], reports[1]


@pytest.mark.parametrize("public", ["all", [], ["flag", "weight", "beyond", "zoned"]])
def test_an_audit_is_the_same_whatever_the_types(
    spark: Any, tmp_path: Path, policy: rp.Policy, public: str | list[str]
) -> None:
    file = write(table_of(VALUES, 1_000, seed=7), tmp_path / "t.parquet")
    by_duckdb, by_spark = audits(spark, file, policy, sensitive="s", public=public)
    assert by_spark == by_duckdb
    assert by_spark["records"] == 1_000 and by_spark["violating_groups"] > 0


@pytest.mark.parametrize("worst", [0, 3, 1_000])
def test_among_equally_bad_groups_the_first_are_named(
    spark: Any, tmp_path: Path, policy: rp.Policy, worst: int
) -> None:
    """Sixty groups with the same counts, some of them of missing values."""
    names = [*(f"g{i:02}" for i in range(29)), None]
    rows = [(name, flag, s) for name in names for flag in (True, None) for s in "xxxxxxxxxxyyz"]
    rng = np.random.default_rng(2)
    columns = zip(*(rows[i] for i in rng.permutation(len(rows))), strict=True)
    table = pa.table(dict(zip(("name", "flag", "s"), map(list, columns), strict=True)))
    file = write(table, tmp_path / "t.parquet")
    by_duckdb, by_spark = audits(spark, file, policy, sensitive="s", worst=worst)
    assert by_spark == by_duckdb
    assert len(by_spark["worst"]) == min(worst, 60)
    if worst == 3:
        assert [entry["public"]["name"] for entry in by_spark["worst"]] == ["g00", "g00", "g01"]


def test_another_table_gives_another_audit(
    spark: Any, tmp_path: Path, policy: rp.Policy, small: pa.Table
) -> None:
    file = write(small, tmp_path / "t.parquet")
    fewer = write(small.slice(1), tmp_path / "fewer.parquet")
    by_duckdb, by_spark = audits(spark, file, policy, sensitive="Education")
    assert by_spark == by_duckdb
    assert audits(spark, fewer, policy, sensitive="Education")[1] != by_duckdb


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_command_audits_and_lists_every_group_alike(
    spark: Any, tmp_path: Path, cli: Callable, ending: str
) -> None:
    table = table_of({name: VALUES[name] for name in (ODD_NAME, "flag", "day")}, 900, seed=8)
    file = write(table, tmp_path / "t.parquet")
    outcomes = {}
    for engine in ("duckdb", "spark"):
        groups = tmp_path / f"{engine}.{ending}"
        outcomes[engine] = cli(
            "audit",
            file,
            "-s",
            "s",
            "--public=all",
            "--engine",
            engine,
            "--groups",
            groups,
            "--exact-tails",
            "--json",
        )
        assert outcomes[engine].code == 1 and outcomes[engine].err == ""
    assert json.loads(outcomes["spark"].out) == json.loads(outcomes["duckdb"].out)
    if ending == "csv":
        by_duckdb, by_spark = ((tmp_path / f"{engine}.csv").read_bytes() for engine in outcomes)
        assert by_spark == by_duckdb and by_spark.count(b"\n") > 30
    else:
        # The same rows in row groups of other sizes; the file is the publisher's own.
        tables = [pq.read_table(tmp_path / f"{engine}.parquet") for engine in outcomes]
        assert tables[0].equals(tables[1]) and tables[0].num_rows > 30


def test_a_nearly_unique_column_is_warned_of_alike(
    spark: Any, tmp_path: Path, policy: rp.Policy
) -> None:
    table = pa.table({"id": range(60), "a": [1, 2, 3] * 20, "s": list("xyzzyx") * 10})
    file = write(table, tmp_path / "t.parquet")
    with pytest.warns(rp.ReconprivWarning, match="'id' is nearly unique"):
        by_duckdb, by_spark = audits(spark, file, policy, sensitive="s")
    assert by_spark == by_duckdb and len(by_spark["warnings"]) == 1


def test_a_workload_is_the_same(spark: Any, tmp_path: Path, small: pa.Table) -> None:
    file = write(small, tmp_path / "t.parquet")
    made = []
    for source in (file, spark.read.parquet(str(file))):
        with rp.read(source, sensitive="Education", public="all") as table:
            made.append(table.workload(queries=50, seed=3))
    assert made[0].queries == made[1].queries
    assert list(made[0].answers) == list(made[1].answers)


def test_progress_is_told_while_spark_works(spark: Any, policy: rp.Policy, tmp_path: Path) -> None:
    """The tasks of the audit are held back until progress has been reported."""
    told: list[tuple[str, float]] = []
    hold = tmp_path / "hold"
    slow = spark.range(0, 60, 1, 4).selectExpr("id % 3 AS a", "IF(id % 5 = 0, 'x', 'y') AS s")

    def waiting(batches: Any) -> Any:
        import os
        import time

        for batch in batches:
            limit = time.monotonic() + 60
            while os.path.exists(path) and time.monotonic() < limit:
                time.sleep(0.05)
            yield batch

    def progress(stage: str, done: float) -> None:
        told.append((stage, done))
        hold.unlink(missing_ok=True)

    path = str(hold)
    with rp.read(slow.mapInArrow(waiting, slow.schema), sensitive="s", public="all") as table:
        hold.touch()
        table.audit(policy, progress=progress, columns=False)
    assert not hold.exists()
    assert {stage for stage, _ in told} == {"counting"}
    assert all(0 <= done <= 1 for _, done in told)
