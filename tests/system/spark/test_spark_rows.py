"""One row, one person: Spark counts people and chooses their rows as DuckDB does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import reconpriv as rp
from peoples_rows import peoples_rows
from reconpriv.errors import InputError
from spark_fixtures import PANDAS, Choice, publish, published_by_both, write

pytestmark = [pytest.mark.filterwarnings(PANDAS)]

ROLES: dict[str, Any] = {"sensitive": "result", "public": ["ward"], "person": "pid"}


def test_one_row_of_each_person_gives_the_same_bytes(
    spark: Any, tmp_path: Path, key: rp.Key
) -> None:
    """People have up to 40 rows, so that they span Spark's small batches."""
    file = write(peoples_rows([1, 5, 40], 60), tmp_path / "visits.parquet")
    roles = ROLES | {"rows_per_person": "one"}
    by_duckdb, by_spark = published_by_both(spark, file, tmp_path / "out", Choice(key), **roles)
    assert by_spark == by_duckdb
    release = rp.open(tmp_path / "out" / "spark")
    assert release.records == 180
    assert release.description.one_row_per_person
    other = publish(file, tmp_path / "other", Choice(rp.Key.test()), **roles)
    assert other["data.parquet"] != by_spark["data.parquet"]


def test_people_with_several_rows_are_refused(spark: Any, tmp_path: Path, key: rp.Key) -> None:
    file = write(peoples_rows([1, 3], 30), tmp_path / "visits.parquet")
    with pytest.raises(InputError, match=r"30 of 60 people have several rows \(up to 3\)"):
        publish(spark.read.parquet(str(file)), tmp_path / "out", Choice(key), **ROLES)
    assert not (tmp_path / "out").exists()
