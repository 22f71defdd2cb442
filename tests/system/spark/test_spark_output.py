"""Where a Spark release is written: a full disk, a local folder, a URI."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.datasets import dataset_path
from small_disks import small_disk_at
from spark_fixtures import (
    ODD_NAME,
    PANDAS,
    SMALL_BATCH,
    VALUES,
    Choice,
    be_patient,
    hashes,
    limit_rows_per_file,
    publish,
    published_by_both,
    table_of,
    write,
)

pytestmark = [pytest.mark.filterwarnings(PANDAS)]

ROLES = ("-s", "s", "--public=all", "--engine", "spark", "--test-key")


# --- a full disk ---------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk_at(tmp_path / "disk", "400k") as place:
        yield place


def many_groups() -> pa.Table:
    """So many that the published groups alone do not fit the small disk."""
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "a": rng.integers(0, 30_000, 30_000),
            "b": [f"{text:x}" for text in rng.integers(0, 1 << 60, 30_000)],
            "s": rng.choice(list("xyz"), 30_000),
        }
    )


def many_records() -> pa.Table:
    """Few groups of so many records that these do not fit the small disk as CSV."""
    return pa.table({"a": np.tile([1, 2, 2, 2, 3], 80_000), "s": np.repeat(list("xyzw"), 100_000)})


@pytest.mark.parametrize("make", [many_groups, many_records], ids=["published", "written"])
def test_a_full_disk_keeps_the_old_release_and_leaves_nothing_else(
    spark: Any, small_disk: Path, tmp_path: Path, cli: Callable, make: Callable[[], pa.Table],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    be_patient(monkeypatch, 2.0)
    few = write(pa.table({"a": [1, 2] * 50, "s": list("xyxz") * 25}), tmp_path / "few.parquet")
    many = write(make(), tmp_path / "secret.parquet")
    assert (
        cli("publish", few, small_disk / "out", "-s", "s", "--public=all", "--test-key").code == 0
    )
    before = hashes(small_disk)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    try:
        kept = () if make is many_records else ("--keep-identifier", "a,b")
        outcome = cli(
            "publish", many, small_disk / "out", *ROLES, *kept, "--format", "csv", "--overwrite"
        )
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(SMALL_BATCH))
    assert outcome.code == 2, outcome.err
    assert outcome.err.startswith("error: ") and outcome.err.count("\n") == 1
    assert "no space left" in outcome.err.lower()
    assert "secret" not in outcome.err
    assert hashes(small_disk) == before


# --- a URI ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a public column of every type."""
    table = table_of(VALUES, 1_500, seed=9)
    return write(table, tmp_path_factory.mktemp("table") / "all.parquet")


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_a_release_at_a_uri_is_the_same_bytes(
    spark: Any,
    everything: Path,
    tmp_path: Path,
    key: rp.Key,
    file_format: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit_rows_per_file(monkeypatch, 400)
    choice = Choice(key, file_format=file_format)
    by_duckdb = publish(everything, tmp_path / "duckdb", choice, sensitive="s", public="all")
    with rp.read(spark.read.parquet(str(everything)), sensitive="s", public="all") as table:
        table.publish(choice.policy, f"file://{tmp_path}/uri", key=key, file_format=file_format)
    # Hadoop keeps checksums beside the files of a local file system.
    by_spark = {
        name: content
        for name, content in hashes(tmp_path / "uri").items()
        if not (name.startswith(".") and name.endswith(".crc"))
    }
    assert by_spark == by_duckdb
    assert f"data-00004.{file_format}" in by_spark
    assert rp.open(tmp_path / "uri").to_arrow().num_rows == 1_500
    assert sorted(path.name for path in tmp_path.iterdir()) == ["duckdb", "uri"]


def test_margins_are_the_same_bytes_in_a_folder_and_at_a_uri(
    spark: Any, everything: Path, tmp_path: Path, key: rp.Key
) -> None:
    """Columns of every type, counted in several parts by Spark and in one by DuckDB."""
    choice = Choice(key, rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, margins=1.0))
    by_duckdb, by_spark = published_by_both(spark, everything, tmp_path, choice, sensitive="s")
    assert "margins.parquet" in by_duckdb
    assert by_spark == by_duckdb
    with rp.read(spark.read.parquet(str(everything)), sensitive="s", public="all") as table:
        table.publish(choice.policy, f"file://{tmp_path}/uri", key=key)
    at_uri = {n: h for n, h in hashes(tmp_path / "uri").items() if not n.endswith(".crc")}
    assert at_uri == by_duckdb
    assert rp.open(tmp_path / "uri").description.margins


def test_the_recommended_policy_gives_the_same_bytes_on_a_real_table(
    spark: Any, tmp_path: Path, key: rp.Key
) -> None:
    """Exact tails next to margins, of which some rows are left out and some groups sampled."""
    choice = Choice(key, rp.preset("recommended"))
    by_duckdb, by_spark = published_by_both(
        spark, dataset_path("adult"), tmp_path, choice,
        sensitive="occupation", public=["age", "sex", "race"], missing="value",
    )  # fmt: skip
    assert "margins.parquet" in by_duckdb
    assert by_spark == by_duckdb
    made = rp.open(tmp_path / "spark").description
    assert made.margins
    assert sum(table.left_out for table in made.margins.tables) > 0


def test_a_release_at_a_uri_is_replaced_only_where_asked(
    spark: Any, tmp_path: Path, cli: Callable
) -> None:
    file = write(pa.table({ODD_NAME: [1, 2] * 50, "s": list("xyxz") * 25}), tmp_path / "t.parquet")
    uri = f"file://{tmp_path}/out"
    done = cli("publish", file, uri, *ROLES, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["records"] == 100
    before = hashes(tmp_path / "out")
    refused = cli("publish", file, uri, *ROLES)
    assert refused.code == 2 and "exists already" in refused.err
    assert hashes(tmp_path / "out") == before
    other = cli("publish", file, uri, *ROLES, "--overwrite", "--retention", 0.4)
    assert other.code == 0, other.err
    assert hashes(tmp_path / "out").keys() == before.keys()
    assert hashes(tmp_path / "out") != before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis").touch()
    refused = cli("publish", file, f"file://{tmp_path}/mine", *ROLES, "--overwrite")
    assert refused.code == 2 and "not a release" in refused.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "out", "t.parquet"]


def test_a_uri_that_spark_does_not_know_is_refused(
    spark: Any, tmp_path: Path, cli: Callable
) -> None:
    file = write(pa.table({"a": [1, 2] * 50, "s": list("xyxz") * 25}), tmp_path / "t.parquet")
    done = cli("publish", file, "gopher://elsewhere/out", *ROLES)
    assert done.code == 2 and done.err.startswith("error: ") and done.err.count("\n") == 1


def test_duckdb_refuses_a_uri(tmp_path: Path, cli: Callable) -> None:
    file = write(pa.table({"a": [1, 2] * 50, "s": list("xyxz") * 25}), tmp_path / "t.parquet")
    done = cli("publish", file, "s3a://bucket/out", "-s", "s", "--public=all", "--test-key")
    assert done.code == 2 and "use --engine spark" in done.err
