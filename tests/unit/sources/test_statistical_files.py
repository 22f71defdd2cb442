"""SPSS, Stata and SAS files as inputs: the same table as from Parquet, whatever the chunks."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pyreadstat
import pytest

import reconpriv as rp
from formats_fixtures import SURVEY, read_all, write, write_survey
from reconpriv.columns.schema import Column, Kind
from reconpriv.engines.duckdb.engine import DuckDBEngine
from reconpriv.sources.statistical import read as statistical
from repository import DATA

ENDINGS = [".sav", ".zsav", ".dta", ".xpt"]
IRIS = DATA / "iris.sas7bdat"


def kinds(path):
    return {column.name: column.kind for column in rp.describe(path).columns}


def published(source, out, key, policy):
    with rp.read(source, sensitive="Education", public="all") as table:
        table.publish(policy, out, key=key)
    return out


@pytest.fixture(scope="module")
def census_files(small, tmp_path_factory):
    """A thousand census records with whole numbers and missing text, in every format."""
    folder = tmp_path_factory.mktemp("census")
    rows = small.slice(0, 1000)
    age = pa.array([i % 7 for i in range(1000)], pa.int32())
    hours = pa.array([None if i % 9 == 0 else (i % 5) + 0.5 for i in range(1000)])
    race = pa.array([None if i % 11 == 0 else v.as_py() for i, v in enumerate(rows["Race"])])
    rows = rows.append_column("Age", age).append_column("Hours", hours)
    rows = rows.set_column(rows.schema.get_field_index("Race"), "Race", race)
    files = {".parquet": folder / "c.parquet", ".csv": folder / "c.csv"}
    pq.write_table(rows, files[".parquet"])
    pyarrow.csv.write_csv(rows, files[".csv"])
    for ending in ENDINGS:
        files[ending] = write(pl.DataFrame(rows), folder / f"c{ending}")
    return files


@pytest.mark.parametrize("ending", [".csv", *ENDINGS])
def test_every_format_gives_the_same_release_byte_for_byte(
    ending, census_files, tmp_path, key, policy, files_of
):
    expected = published(census_files[".parquet"], tmp_path / "parquet", key, policy)
    found = published(census_files[ending], tmp_path / "other", key, policy)
    assert files_of(found) == files_of(expected)
    assert b"categories" in (found / "datapackage.json").read_bytes()


def test_another_value_gives_another_release(census_files, tmp_path, key, policy, files_of):
    """The comparison above can fail."""
    frame = pl.read_parquet(census_files[".parquet"]).with_columns(pl.col("Age") + 1)
    write(frame, tmp_path / "c.dta")
    changed = published(tmp_path / "c.dta", tmp_path / "changed", key, policy)
    expected = published(census_files[".parquet"], tmp_path / "parquet", key, policy)
    assert files_of(changed) != files_of(expected)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("rows", [7, 80])
def test_chunks_make_no_difference(ending, rows, tmp_path, monkeypatch):
    """Also where the last chunk is full."""
    frame = pl.DataFrame(
        {
            "a": pl.Series([*range(79), 5], dtype=pl.Int32),
            "text": ["x" * (i % 5) for i in range(80)],
            "b": [i / 4 for i in range(80)],
        }
    )
    path = write(frame, tmp_path / f"t{ending}")
    whole = read_all(path)
    monkeypatch.setattr(statistical, "_LEAST_ROWS", rows)
    monkeypatch.setattr(statistical, "_CHUNK_BYTES", 1)
    chunked = read_all(path)
    assert chunked.equals(whole)
    assert chunked["a"].to_pylist() == frame["a"].to_list()
    assert chunked["text"].to_pylist() == [text or None for text in frame["text"]]


def test_a_type_depends_on_no_chunk_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(statistical, "_LEAST_ROWS", 2)
    monkeypatch.setattr(statistical, "_CHUNK_BYTES", 1)
    last = write(pl.DataFrame({"a": [1.0, 2.0, 3.0, 4.0, 5.5]}), tmp_path / "last.xpt")
    none = write(pl.DataFrame({"a": [1.0, 2.0, 3.0, 4.0, 5.0]}), tmp_path / "none.xpt")
    assert read_all(last)["a"].to_pylist() == [1.0, 2.0, 3.0, 4.0, 5.5]
    assert (kinds(last), kinds(none)) == ({"a": "number"}, {"a": "integer"})


def test_what_makes_a_number_an_integer(tmp_path):
    """Its values alone: whole numbers are doubles in most of these files, of any format."""
    frame = pl.DataFrame({"big": [1, 2], "whole": [1.0, 2.0], "part": [1.0, 2.5]})
    expected = {"big": "integer", "whole": "integer", "part": "number"}
    assert kinds(write(frame, tmp_path / "a.sav", variable_format={"big": "F8.2"})) == expected
    assert kinds(write(frame, tmp_path / "a.dta", variable_format={"big": "%9.2f"})) == expected
    assert kinds(write(frame, tmp_path / "a.xpt", variable_format={"part": "F8.0"})) == expected


def test_a_number_too_large_to_be_surely_whole_stays_a_number(tmp_path):
    assert kinds(write(pl.DataFrame({"a": [1.0, 2.0**60]}), tmp_path / "a.xpt")) == {"a": "number"}


@pytest.mark.parametrize("ending", ENDINGS)
def test_dates_moments_and_times(ending, tmp_path):
    frame = pl.DataFrame(
        {
            "day": [dt.date(2024, 2, 29), dt.date(1899, 1, 1), None],
            "moment": [dt.datetime(2020, 1, 1, 2, 3, 4, 123000), dt.datetime(1950, 1, 1), None],
            "clock": [dt.time(23, 59, 59, 500000), dt.time(0), None],
        }
    )
    path = write(frame, tmp_path / f"t{ending}")
    assert read_all(path).to_pylist() == frame.to_dicts()
    assert kinds(path) == {"day": "date", "moment": "datetime", "clock": "time"}


def test_a_day_with_a_time_is_a_moment_and_thirty_hours_are_no_time_of_day(tmp_path):
    frame = pl.DataFrame({"day": [21915.0, 21915.5], "length": [3600.0, 108000.0]})
    formats = {"day": "DATE9", "length": "TIME8"}
    found = read_all(write(frame, tmp_path / "a.xpt", variable_format=formats))
    assert found["day"].to_pylist() == [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 12)]
    assert found["length"].to_pylist() == [3600.0, 108000.0]


@pytest.mark.parametrize(
    ("form", "kind"),
    [("%tdCCYY-NN-DD", "date"), ("%d", "date"), ("%tcHH:MM", "time"), ("%tm", "integer")],
)
def test_stata_formats(form, kind, tmp_path):
    frame = pl.DataFrame({"a": pl.Series([720, 721], dtype=pl.Int32)})
    assert kinds(write(frame, tmp_path / "a.dta", variable_format={"a": form})) == {"a": kind}


@pytest.mark.parametrize(
    ("form", "kind"),
    [("MONYY7", "date"), ("DTDATE9", "datetime"), ("E8601DT19", "datetime"), ("BEST12", "integer")],
)
def test_sas_formats(form, kind, tmp_path):
    frame = pl.DataFrame({"a": [0.0, 86400.0]})
    assert kinds(write(frame, tmp_path / "a.xpt", variable_format={"a": form})) == {"a": kind}


def test_values_that_stand_for_missing_ones_are_missing(tmp_path):
    frame = pl.DataFrame({"a": pl.Series([1, 2, 98, 99], dtype=pl.Int32)})
    more: dict[str, Any] = {"missing_ranges": {"a": [{"lo": 98, "hi": 99}]}}
    labels = {"a": {1: "yes", 99: "refused"}}
    sav = write(frame, tmp_path / "a.sav", variable_value_labels=labels, **more)
    assert read_all(sav)["a"].to_pylist() == [1, 2, None, None]
    engine = DuckDBEngine(sav)
    assert engine.labels["a"].values == ((1, "yes"),)
    engine.close()
    tagged = pl.DataFrame({"a": pl.Series([1.0, "a", 2.0], dtype=pl.Object)})
    dta = write(tagged, tmp_path / "a.dta", missing_user_values={"a": ["a"]})
    assert read_all(dta)["a"].to_pylist() == [1, None, 2]


def test_an_empty_text_is_missing_and_padding_is_no_text(tmp_path):
    frame = pl.DataFrame({"a": ["x", "", "  ", None, "long " * 200 + "end"]})
    for ending in (".sav", ".xpt"):
        found = read_all(write(frame, tmp_path / f"a{ending}"))["a"].to_pylist()
        assert found == ["x", None, None, None, "long " * 200 + "end"]


def test_a_file_of_sas():
    found = read_all(IRIS)
    assert found.column_names == [
        "Sepal_Length", "Sepal_Width", "Petal_Length", "Petal_Width", "Species",
    ]  # fmt: skip
    assert found.num_rows == 150
    assert found.slice(0, 1).to_pylist()[0] == {
        "Sepal_Length": 5.1, "Sepal_Width": 3.5, "Petal_Length": 1.4, "Petal_Width": 0.2,
        "Species": "setosa",
    }  # fmt: skip


def test_a_file_of_sas_in_chunks(monkeypatch):
    whole = read_all(IRIS)
    monkeypatch.setattr(statistical, "_LEAST_ROWS", 40)
    monkeypatch.setattr(statistical, "_CHUNK_BYTES", 1)
    assert read_all(IRIS).equals(whole)


def test_only_the_columns_that_are_needed_are_read(tmp_path, monkeypatch):
    asked = []
    read = pyreadstat.read_dta

    def spy(*args, **settings):
        asked.append(settings.get("usecols"))
        return read(*args, **settings)

    monkeypatch.setattr(pyreadstat, "read_dta", spy)
    with rp.read(write_survey(tmp_path / "a.dta"), sensitive="income", public=["sex"]) as table:
        assert table.schema.public == (Column("sex", Kind.INTEGER),)
    assert asked == [None, ["sex", "income"]]


@pytest.mark.parametrize("version", [5, 8])
def test_a_transport_file_that_ends_inside_a_record_is_refused(version, tmp_path):
    """ReadStat would return the records before it without a word."""
    path = write(SURVEY, tmp_path / "a.xpt", file_format_version=version)
    whole = path.read_bytes()
    assert read_all(path).num_rows == SURVEY.height
    for lost in (90, 160):
        path.write_bytes(whole[:-lost])
        with pytest.raises(rp.errors.InputError, match="truncated"):
            read_all(path)
    path.write_bytes(whole + whole)
    with pytest.raises(rp.errors.InputError, match="more than one table"):
        read_all(path)


@pytest.mark.parametrize("version", [5, 8])
def test_the_padding_of_a_transport_file_is_no_record(version, tmp_path, monkeypatch):
    monkeypatch.setattr(statistical, "_LEAST_ROWS", 2)
    monkeypatch.setattr(statistical, "_CHUNK_BYTES", 1)
    for rows in (1, 2, 9, 10, 11):
        frame = pl.DataFrame({"a": [float(i) for i in range(rows)]})
        path = write(frame, tmp_path / f"{rows}.xpt", file_format_version=version)
        assert read_all(path)["a"].to_pylist() == frame["a"].to_list()


def test_text_in_another_encoding_than_declared_is_refused(tmp_path):
    path = write(pl.DataFrame({"a": ["Zürich", "Basel"]}), tmp_path / "a.dta")
    path.write_bytes(path.read_bytes().replace("ü".encode(), b"\xfc\xfc"))
    with pytest.raises(rp.errors.InputError, match="encoding it declares"):
        read_all(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_without_records_is_refused(ending, tmp_path):
    path = write(SURVEY.head(0), tmp_path / f"a{ending}")
    with pytest.raises(rp.errors.InputError, match="empty"):
        rp.read(path, sensitive="income", public="all")


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = write_survey(tmp_path / "a.sav")
    stamps = iter([(1, 2, 3), (1, 2, 4)])
    monkeypatch.setattr(statistical, "_stamp", lambda _: next(stamps))
    with pytest.raises(rp.errors.InputError, match="changed while it was read"):
        read_all(path)


def test_several_files_and_packed_ones_are_refused(tmp_path):
    one, two = write_survey(tmp_path / "a.sav"), write_survey(tmp_path / "b.sav")
    for source in ([one, two], str(tmp_path / "*.sav")):
        with pytest.raises(rp.errors.InputError, match="one at a time"):
            rp.read(source, sensitive="income", public="all")
    packed = one.rename(tmp_path / "a.sav.gz")
    with pytest.raises(rp.errors.InputError, match="Unpack it first"):
        rp.read(packed, sensitive="income", public="all")


def test_names_that_differ_only_in_case_are_refused(tmp_path):
    path = write(pl.DataFrame({"a": [1], "A": [2]}), tmp_path / "a.dta")
    with pytest.raises(rp.errors.InputError, match="differ only in case"):
        rp.read(path, sensitive="a", public="all")


def test_two_columns_of_one_name_are_refused(tmp_path):
    """pyreadstat would rename one of them, with a warning."""
    path = write(pl.DataFrame({"one_a": [1], "one_b": [2]}), tmp_path / "a.xpt")
    path.write_bytes(path.read_bytes().replace(b"one_b", b"one_a"))
    with pytest.raises(rp.errors.InputError, match="have the same name"):
        rp.read(path, sensitive="one_a", public="all")


def test_a_clock_with_leap_seconds_stays_a_number(tmp_path):
    frame = pl.DataFrame({"t": [1e12, 2e12]})
    path = write(frame, tmp_path / "a.dta", variable_format={"t": "%tC"})
    assert read_all(path)["t"].to_pylist() == [1e12, 2e12]


def test_labels_of_a_date_are_no_labels_of_days(tmp_path):
    frame = pl.DataFrame({"d": [dt.date(2020, 1, 1), dt.date(2021, 1, 1)], "a": ["x", "y"]})
    labels = {"d": {dt.date(2020, 1, 1): "new year"}, "a": {"x": "an x"}}
    path = write(frame, tmp_path / "a.sav", variable_value_labels=labels)
    found = read_all(path, labels="apply")
    assert found["d"].to_pylist() == frame["d"].to_list()
    assert found["a"].to_pylist() == ["an x", "y"]


def test_a_date_past_all_years_is_refused(tmp_path):
    frame = pl.DataFrame({"d": [1e9, 2.0]})
    path = write(frame, tmp_path / "a.xpt", variable_format={"d": "DATE9"})
    with pytest.raises(rp.errors.InputError, match="years 1 to 9999"):
        read_all(path)


@pytest.mark.parametrize("name", ["a.sav", "a.dta", "a.xpt", "a.sas7bdat", "a.xlsx", "a.ods"])
def test_spark_does_not_read_such_files(name, tmp_path, cli):
    done = cli("audit", tmp_path / name, "-s", "y", "--public=all", "--engine", "spark")
    assert done.code == 2
    assert f"{Path(name).suffix} files are read by DuckDB." in done.err


def test_without_the_extra_one_sentence_names_it(tmp_path, monkeypatch):
    path = write_survey(tmp_path / "a.sav")
    monkeypatch.setitem(__import__("sys").modules, "pyreadstat", None)
    with pytest.raises(rp.errors.InputError, match=r"-m pip install '.*pyreadstat>="):
        rp.read(path, sensitive="income", public="all")


def test_commands_read_such_files(tmp_path, cli):
    path = write_survey(tmp_path / "people.sav")
    done = cli("audit", path, "-s", "income", "--public=all", "--json")
    assert done.code in (0, 1), done.err
    assert cli("audit", path, "-s", "income", "--public=all", "--table", "x").code == 2


def test_an_interrupt_between_two_chunks_stops_the_reading(tmp_path, monkeypatch, scratch):
    path = write_survey(tmp_path / "a.sav")
    engine = DuckDBEngine(path)
    engine.interrupt()
    with pytest.raises(KeyboardInterrupt):
        engine.expect_columns(["sex"])
    engine.close()
    assert list(scratch.iterdir()) == []


def test_portable_files_of_spss(tmp_path):
    pyreadstat.write_por(SURVEY, tmp_path / "a.por")
    found = read_all(tmp_path / "a.por")
    assert found.column_names == ["SEX", "REGION", "INCOME"]
    assert found["SEX"].to_pylist() == SURVEY["sex"].to_list()
