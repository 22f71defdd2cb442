"""The same census table gives the same release, byte for byte, wherever it comes from.

PostgreSQL is compared in test_databases_postgresql.py, Spark in its own tests.
"""

import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pyreadstat
import pytest

import reconpriv as rp


def to_parquet(census, folder):
    pa.parquet.write_table(census, folder / "census.parquet", row_group_size=10_000)
    return folder / "census.parquet"


def to_csv(census, folder):
    pa.csv.write_csv(census, folder / "census.csv")
    return folder / "census.csv"


def to_stata(census, folder):
    pyreadstat.write_dta(census.to_pandas(), folder / "census.dta")
    return folder / "census.dta"


def to_stata_by_pandas(census, folder):
    census.to_pandas().to_stata(folder / "census.dta", write_index=False)
    return folder / "census.dta"


def to_spss(census, folder):
    pyreadstat.write_sav(census.to_pandas(), folder / "census.sav")
    return folder / "census.sav"


def to_sas(census, folder):
    pyreadstat.write_xport(census.to_pandas(), folder / "census.xpt")
    return folder / "census.xpt"


def to_pandas(census, _):
    return census.to_pandas()


def to_pandas_categories(census, _):
    return census.to_pandas().astype({"Race": "category", "Education": "category", "Age": "int8"})


def to_polars(census, _):
    return polars.DataFrame(census)


def to_lazy_polars(census, _):
    return polars.LazyFrame(census).with_columns(polars.col("Race").cast(polars.Categorical))


SOURCES = (
    to_parquet, to_csv, to_stata, to_stata_by_pandas, to_spss, to_sas, to_pandas,
    to_pandas_categories, to_polars, to_lazy_polars,
)  # fmt: skip


@pytest.fixture(scope="module")
def people(census):
    """Every fifth person: some formats are slow to write and to read."""
    return census.take(pa.array(range(0, census.num_rows, 5)))


@pytest.fixture(scope="module")
def published(key, policy, files_of, tmp_path_factory):
    """The files of a release of a source."""

    def files(source):
        with rp.read(source, sensitive="Education", public="all") as table:
            made = table.publish(policy, tmp_path_factory.mktemp("release") / "out", key=key)
        return files_of(made.path)

    return files


@pytest.fixture(scope="module")
def expected(people, published):
    return published(people)


@pytest.mark.parametrize("source", SOURCES)
def test_the_census_gives_the_same_bytes(source, people, published, expected, tmp_path):
    assert published(source(people, tmp_path)) == expected


def test_another_record_gives_other_bytes(people, published, expected):
    assert published(people.slice(1)) != expected
