"""The same census table gives the same release, byte for byte, wherever it comes from.

PostgreSQL is compared in test_databases_postgresql.py, Spark in its own tests.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pyreadstat
import pytest

import reconpriv as rp


def to_parquet(census: pa.Table, folder: Path) -> Path:
    pa.parquet.write_table(census, folder / "census.parquet", row_group_size=10_000)
    return folder / "census.parquet"


def to_csv(census: pa.Table, folder: Path) -> Path:
    pa.csv.write_csv(census, folder / "census.csv")
    return folder / "census.csv"


def to_stata(census: pa.Table, folder: Path) -> Path:
    pyreadstat.write_dta(census.to_pandas(), folder / "census.dta")
    return folder / "census.dta"


def to_stata_by_pandas(census: pa.Table, folder: Path) -> Path:
    census.to_pandas().to_stata(folder / "census.dta", write_index=False)
    return folder / "census.dta"


def to_spss(census: pa.Table, folder: Path) -> Path:
    pyreadstat.write_sav(census.to_pandas(), folder / "census.sav")
    return folder / "census.sav"


def to_sas(census: pa.Table, folder: Path) -> Path:
    pyreadstat.write_xport(census.to_pandas(), folder / "census.xpt")
    return folder / "census.xpt"


def to_pandas(census: pa.Table, _: Path) -> pandas.DataFrame:
    return census.to_pandas()


def to_pandas_categories(census: pa.Table, _: Path) -> pandas.DataFrame:
    return census.to_pandas().astype({"Race": "category", "Education": "category", "Age": "int8"})


def to_polars(census: pa.Table, _: Path) -> polars.DataFrame:
    return polars.DataFrame(census)


def to_lazy_polars(census: pa.Table, _: Path) -> polars.LazyFrame:
    return polars.LazyFrame(census).with_columns(polars.col("Race").cast(polars.Categorical))


SOURCES = (
    to_parquet, to_csv, to_stata, to_stata_by_pandas, to_spss, to_sas, to_pandas,
    to_pandas_categories, to_polars, to_lazy_polars,
)  # fmt: skip


@pytest.fixture(scope="module")
def people(census: pa.Table) -> pa.Table:
    """Every fifth person: some formats are slow to write and to read."""
    return census.take(pa.array(range(0, census.num_rows, 5)))


@pytest.fixture(scope="module")
def published(
    key: rp.Key, policy: rp.Policy, files_of: Callable, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Any], dict[str, bytes]]:
    """The files of a release of a source."""

    def files(source: Any) -> dict[str, bytes]:
        with rp.read(source, sensitive="Education", public="all") as table:
            made = table.publish(policy, tmp_path_factory.mktemp("release") / "out", key=key)
        return files_of(made.path)

    return files


@pytest.fixture(scope="module")
def expected(people: pa.Table, published: Callable) -> dict[str, bytes]:
    return published(people)


@pytest.mark.parametrize("source", SOURCES)
def test_the_census_gives_the_same_bytes(
    source: Callable[[pa.Table, Path], Any],
    people: pa.Table,
    published: Callable,
    expected: dict[str, bytes],
    tmp_path: Path,
) -> None:
    assert published(source(people, tmp_path)) == expected


def test_another_record_gives_other_bytes(
    people: pa.Table, published: Callable, expected: dict[str, bytes]
) -> None:
    assert published(people.slice(1)) != expected
