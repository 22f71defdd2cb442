"""With one key, a release by Spark is the release by DuckDB, byte for byte."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import before
import reconpriv as rp
from reconpriv.release import publication
from spark_fixtures import (
    ODD_NAME,
    PANDAS,
    SENSITIVE,
    SMALL_BATCH,
    VALUES,
    Choice,
    SeededByPartition,
    hashes,
    limit_rows_per_file,
    publish,
    published_by_both,
    ship_these_tasks,
    table_of,
    write,
)

pytestmark = [pytest.mark.filterwarnings(PANDAS)]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a public column of every type."""
    return write(table_of(VALUES, 1_500, seed=1), tmp_path_factory.mktemp("table") / "all.parquet")


@pytest.fixture
def large_batches(spark: Any) -> Iterator[None]:
    """Spark's own size of batches, where there is much to do."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(name, "10000")
    yield
    spark.conf.set(name, str(SMALL_BATCH))


@pytest.fixture
def choice(key: rp.Key) -> Choice:
    return Choice(key)


@pytest.mark.parametrize(
    ("sampling", "file_format"),
    [
        ("octave", "parquet"),
        ("octave", "csv"),
        ("octave", "cells"),
        ("none", "parquet"),
        ("paper", "cells"),
        ("public", "csv"),
    ],
)
def test_every_type_of_public_column_gives_the_same_bytes(
    spark: Any, everything: Path, tmp_path: Path, key: rp.Key, sampling: str, file_format: str
) -> None:
    choice = Choice(key, file_format=file_format).with_sampling(sampling)
    by_duckdb, by_spark = published_by_both(spark, everything, tmp_path, choice, sensitive="s")
    assert by_spark == by_duckdb
    ending = "csv" if file_format == "csv" else "parquet"
    expected = {f"data.{ending}", "datapackage.json"}
    expected |= {f"groups.{ending}"} if sampling in ("octave", "public") else set()
    assert set(by_spark) == expected


@pytest.mark.parametrize(
    ("protect", "file_format"),
    [
        ({"flag": "*", "day": "*", "within": "*", "single": "*"}, "parquet"),
        ({"day": "merge", "at": "merge", "price": "merge", "zoned": "merge", "flag": "*"}, "csv"),
        ({ODD_NAME: {"": "none", "*": "some"}, "price": [-12345679, 0, 3], "beyond": "*"}, "cells"),
    ],
)
def test_protection_groups_of_every_type_give_the_same_bytes(
    spark: Any, everything: Path, tmp_path: Path, key: rp.Key, protect: Any, file_format: str
) -> None:
    choice = Choice(
        key, rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, protect=protect), file_format
    )
    by_duckdb, by_spark = published_by_both(spark, everything, tmp_path, choice, sensitive="s")
    assert by_spark == by_duckdb
    groups = next((tmp_path / "spark").glob("groups.*"))
    assert rp.open(tmp_path / "spark").description.protect and groups.exists()


@pytest.mark.parametrize(
    ("sampling", "file_format"), [("none", "csv"), ("paper", "parquet"), ("public", "cells")]
)
def test_a_part_of_the_census_gives_the_same_bytes(
    spark: Any, small: pa.Table, tmp_path: Path, key: rp.Key, sampling: str, file_format: str
) -> None:
    file = write(small, tmp_path / "small.parquet")
    choice = Choice(key, file_format=file_format).with_sampling(sampling)
    by_duckdb, by_spark = published_by_both(
        spark, file, tmp_path / "out", choice, sensitive="Education"
    )
    assert by_spark == by_duckdb


def test_the_whole_census_gives_the_same_bytes(
    spark: Any, tmp_path: Path, choice: Choice, large_batches: None
) -> None:
    source = "example:census_workers"
    roles = {"sensitive": "Occupation", "public": "all", "drop": ["Age"]}
    by_duckdb = publish(source, tmp_path / "duckdb", choice, **roles)
    by_spark = publish(source, tmp_path / "spark", choice, engine="spark", **roles)
    assert by_spark == by_duckdb
    assert rp.open(tmp_path / "spark").records == 148_318


def test_a_table_without_public_columns_gives_the_same_bytes(
    spark: Any, everything: Path, tmp_path: Path, choice: Choice
) -> None:
    by_duckdb, by_spark = published_by_both(
        spark, everything, tmp_path, choice, sensitive="s", public=[]
    )
    assert by_spark == by_duckdb


@pytest.mark.parametrize("name", ["paper-csv", "public-cells", "binned"])
def test_spark_gives_the_same_bytes_as_before(spark: Any, tmp_path: Path, name: str) -> None:
    before.publish(name, tmp_path / "now", engine="spark")
    before.check_same(before.HOME / name, tmp_path / "now")


@pytest.mark.parametrize("missing", ["drop", "value"])
def test_missing_sensitive_values_give_the_same_bytes(
    spark: Any, tmp_path: Path, choice: Choice, missing: str
) -> None:
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "day": pa.array(rng.integers(0, 4, 800), pa.int32()).cast(pa.date32()),
            "s": pa.array([None if i == 3 else int(i) for i in rng.integers(-2, 4, 800)]),
        }
    )
    file = write(table, tmp_path / "t.parquet")
    by_duckdb, by_spark = published_by_both(
        spark, file, tmp_path / "out", choice, sensitive="s", missing=missing
    )
    assert by_spark == by_duckdb


def test_missing_sensitive_values_are_refused(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("a", "x"), ("a", None), ("b", "y")], "a string, s string")
    with pytest.raises(rp.ReconprivError, match="missing in some records"):
        rp.read(frame, sensitive="s", public="all")


@pytest.mark.parametrize("sensitive", ["flag", "day"])
def test_a_sensitive_column_of_another_type_gives_the_same_bytes(
    spark: Any, everything: Path, tmp_path: Path, choice: Choice, sensitive: str
) -> None:
    by_duckdb, by_spark = published_by_both(
        spark, everything, tmp_path, choice, sensitive=sensitive, public=["s", ODD_NAME],
        missing="value",
    )  # fmt: skip
    assert by_spark == by_duckdb


# --- sizes ---------------------------------------------------------------------------------------


def test_batches_are_small_here(spark: Any) -> None:
    """Else the next test would show nothing."""

    def sizes(batches: Any) -> Any:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"rows": pa.array([batch.num_rows], pa.int64())})

    rows = spark.range(0, 300, 1, 2).mapInArrow(sizes, "rows bigint").toArrow()
    assert rows.column("rows").to_pylist() == [50, 50, 50] * 2
    assert SMALL_BATCH == 50


def test_a_group_larger_than_a_batch_gives_the_same_bytes(
    spark: Any, tmp_path: Path, choice: Choice
) -> None:
    rng = np.random.default_rng(4)
    table = pa.table(
        {
            "region": rng.choice(["a", "b", "c", "d"], 6_000, p=[0.7, 0.2, 0.09, 0.01]),
            "income": rng.integers(0, 5 * SMALL_BATCH, 6_000),
        }
    )
    file = write(table, tmp_path / "t.parquet")
    by_duckdb, by_spark = published_by_both(
        spark, file, tmp_path / "out", choice, sensitive="income"
    )
    assert by_spark == by_duckdb


def test_more_records_than_a_row_group_give_the_same_bytes(
    spark: Any, tmp_path: Path, choice: Choice, large_batches: None
) -> None:
    values = np.repeat(["x", "y", "z"], 400_000)
    table = pa.table({"a": np.tile([1, 2, 2, 2, 3], 240_000), "s": values})
    file = write(table, tmp_path / "t.parquet")
    by_duckdb, by_spark = published_by_both(spark, file, tmp_path / "out", choice, sensitive="s")
    assert by_spark == by_duckdb


@pytest.mark.parametrize(("file_format", "rows"), [("parquet", 97), ("csv", 500), ("cells", 20)])
def test_several_files_are_the_same_files(
    spark: Any,
    everything: Path,
    tmp_path: Path,
    key: rp.Key,
    file_format: str,
    rows: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit_rows_per_file(monkeypatch, rows)
    choice = Choice(key, file_format=file_format)
    by_duckdb, by_spark = published_by_both(
        spark, everything, tmp_path, choice, sensitive="s", public=["flag", "day", "weight"]
    )
    assert by_spark == by_duckdb
    numbered = [name for name in by_spark if name.startswith("data-")]
    assert len(numbered) > 3 if file_format == "cells" else len(numbered) == -(-1_500 // rows)
    opened = [rp.open(tmp_path / engine) for engine in ("spark", "duckdb")]
    assert opened[0].to_arrow().equals(opened[1].to_arrow())
    assert opened[0].to_arrow().num_rows > 0
    assert opened[0].count("flag", s="flu") == opened[1].count("flag", s="flu")


# --- any table -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_a_random_table_gives_the_same_bytes(
    spark: Any, tmp_path: Path, key: rp.Key, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng([20, seed])
    names = rng.permutation(list(VALUES))[: rng.integers(1, 6)]
    table = table_of(
        {str(name): VALUES[name] for name in names},
        records=int(rng.integers(1, 2_000)),
        seed=seed,
        groups=int(rng.integers(1, 400)),
    )
    file = write(table, tmp_path / "t.parquet")
    limit_rows_per_file(monkeypatch, int(rng.integers(30, 3_000)))
    policy = rp.Policy(
        retention=float(rng.uniform(0.2, 0.8)), tolerance=0.4, doubt=0.2, unattainable="one-trial",
        sampling=str(rng.choice(["none", "paper", "octave", "public"])),
        exposed_above=(0.0, 0.2, 0.4, 0.0)[seed],
        harmless=((), SENSITIVE[:1], (), SENSITIVE[1:3])[seed],
        bound=("chernoff", "chernoff", "exact", "exact")[seed],
    )  # fmt: skip
    choice = Choice(key, policy, str(rng.choice(["parquet", "csv", "cells"])))
    by_duckdb, by_spark = published_by_both(
        spark, file, tmp_path / "out", choice, sensitive="s", domain=SENSITIVE
    )
    assert by_spark == by_duckdb


def test_neither_order_nor_partitions_of_the_input_matter(
    spark: Any, everything: Path, tmp_path: Path, choice: Choice
) -> None:
    from pyspark.sql import functions

    frame = spark.read.parquet(str(everything))
    shuffled = frame.orderBy(functions.rand(5)).repartition(7)
    roles: dict[str, Any] = {"sensitive": "s", "public": [ODD_NAME, "flag"]}
    first = publish(frame, tmp_path / "a", choice, **roles)
    assert publish(shuffled, tmp_path / "b", choice, **roles) == first


# --- tests that must be able to fail -------------------------------------------------------------


def test_another_key_or_another_p_gives_another_release(
    spark: Any, small: pa.Table, tmp_path: Path, choice: Choice
) -> None:
    frame = spark.createDataFrame(small.to_pandas())
    others = {
        "key": Choice(rp.Key(bytes(range(32)))),
        "p": Choice(choice.key, rp.Policy(retention=0.5 * 1.3, tolerance=0.5, doubt=0.3)),
    }
    first = publish(frame, tmp_path / "first", choice, sensitive="Education", public="all")
    for name, other in others.items():
        release = publish(frame, tmp_path / name, other, sensitive="Education", public="all")
        assert release["data.parquet"] != first["data.parquet"]


def test_a_kernel_that_is_seeded_by_partition_would_be_found_out(
    spark: Any, small: pa.Table, tmp_path: Path, choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship_these_tasks()
    plain = publication.Kernel
    file = write(small, tmp_path / "t.parquet")
    monkeypatch.setattr(publication, "Kernel", lambda *parts: SeededByPartition(plain(*parts)))
    by_duckdb, by_spark = published_by_both(
        spark, file, tmp_path / "out", choice, sensitive="Education"
    )
    assert by_duckdb["groups.parquet"] == by_spark["groups.parquet"]
    assert by_duckdb["data.parquet"] != by_spark["data.parquet"]


# --- what is there already -----------------------------------------------------------------------


def test_a_release_is_replaced_only_where_asked(
    spark: Any, everything: Path, tmp_path: Path, choice: Choice
) -> None:
    frame = spark.read.parquet(str(everything)).select("flag", "s")
    first = publish(frame, tmp_path / "out", choice, sensitive="s", public="all")
    with pytest.raises(rp.ReconprivError, match="exists already"):
        publish(frame, tmp_path / "out", choice, sensitive="s", public="all")
    assert hashes(tmp_path / "out") == first
    with rp.read(frame.where("flag"), sensitive="s", public="all") as table:
        table.publish(choice.policy, tmp_path / "out", key=choice.key, overwrite=True)
    assert hashes(tmp_path / "out") != first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_groups_that_cannot_be_private_are_refused_and_nothing_stays(
    spark: Any, tmp_path: Path, key: rp.Key
) -> None:
    frame = spark.createDataFrame([(i % 2, "xyz"[i % 3]) for i in range(90)], "a int, s string")
    strict = rp.Policy(retention=0.9, tolerance=0.9, doubt=0.9)
    with (
        rp.read(frame, sensitive="s", public="all") as table,
        pytest.raises(rp.ReconprivError, match="not even one trial is private"),
    ):
        table.publish(strict, tmp_path / "out", key=key)
    assert list(tmp_path.iterdir()) == []


def test_two_columns_of_one_name_are_refused(spark: Any) -> None:
    frame = spark.sql("SELECT 1 AS a, 2 AS A, 'x' AS s")
    with pytest.raises(rp.ReconprivError, match="differ only in case"):
        rp.read(frame, sensitive="s", public="all")


def test_nested_columns_are_refused_unless_left_out(spark: Any) -> None:
    frame = spark.sql("SELECT array(1) AS a, IF(id > 0, 'x', 'y') AS s FROM range(2)")
    with pytest.raises(rp.ReconprivError, match="'a' holds values of a type that cannot be"):
        rp.read(frame, sensitive="s", public="all")
    rp.read(frame, sensitive="s", public="all", drop="a").close()


def test_bins_and_groups_give_the_same_bytes(
    spark: Any, tmp_path: Path, choice: Choice, small: pa.Table
) -> None:
    """Numbers of every type, texts that spell numbers, quotes in labels, and a binned sensitive."""
    draw = np.random.default_rng(3)
    rows = 2_000
    texts = draw.choice(["it's", 'a "b"', "ü\\n", "{0}", "plain"], rows)
    table = pa.table({
        "whole": pa.array(draw.integers(-50, 120, rows), pa.int32()),
        "real": pa.array(np.where(draw.random(rows) < 0.1, np.nan, draw.normal(0, 10, rows))),
        "exact": pa.array([decimal.Decimal(int(n)) / 100 for n in draw.integers(0, 900, rows)]),
        "spelled": pa.array([f"{n:.2f}" for n in draw.random(rows) * 30]),
        "text": pa.array(texts),
        "income": pa.array(draw.gamma(2, 8_000, rows)),
    })  # fmt: skip
    file = write(table, tmp_path / "people.parquet")
    roles = {
        "sensitive": "income", "public": "all",
        "bin": {"whole": 50, "real": "quantiles:3", "exact": "0,0.5,5", "spelled": [0, 10],
                "income": [0, 10_000, 100_000, 10**6]},
        "group": {"text": {"it's": "it's o'clock", "ü\\n": 'a "b"\\', 'a "b"': 'a "b"\\',
                           "*": "{rest}"}},
    }  # fmt: skip
    by_duckdb, by_spark = published_by_both(spark, file, tmp_path / "out", choice, **roles)
    assert by_spark == by_duckdb
    release = rp.open(tmp_path / "out" / "spark")
    assert [row["text"] for row, _ in release.crosstab(["text"])] == [
        "it's o'clock", 'a "b"\\', "{rest}"
    ]  # fmt: skip
    assert release.count("whole < 50").count == (table["whole"].to_numpy() < 50).sum()
    with pytest.raises(rp.ReconprivError, match="do not list, for example"):
        frame = spark.read.parquet(str(file))
        rp.read(frame, **{**roles, "group": {"text": {"plain": "x"}}})


@pytest.mark.parametrize("period", ["month", "quarter", "year"])
def test_periods_of_dates_and_times_give_the_same_bytes(
    spark: Any, tmp_path: Path, choice: Choice, period: str
) -> None:
    rng = np.random.default_rng(8)
    seconds = rng.integers(1_570_000_000, 1_590_000_000, 900)
    table = pa.table(
        {
            "day": pa.array(seconds // 86_400, pa.int32()).cast(pa.date32()),
            "time": pa.array(seconds * 1_000_000, pa.timestamp("us")),
            "zoned": pa.array(seconds[::-1] * 1_000_000, pa.timestamp("us", "UTC")),
            "amount": rng.random(900) * 50,
            "s": rng.choice(["a", "b", "c"], 900),
        }
    )
    bins = dict.fromkeys(("day", "time", "zoned"), period) | {"amount": "0,10,20,top:50"}
    by_duckdb, by_spark = published_by_both(
        spark, write(table, tmp_path / "t.parquet"), tmp_path / "out", choice,
        sensitive="s", bin=bins,
    )  # fmt: skip
    assert by_spark == by_duckdb
