"""Data frames in, data frames of the same kind out; lazy ones are not collected."""

from __future__ import annotations

import datetime as dt
import gc
import tempfile
from typing import Any

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import reconpriv as rp
from reconpriv.attacks import attack
from reconpriv.frames import WITHOUT_MARGINS
from reconpriv.sources import frames

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
COLUMNS = ["age", "occupation", "sex"]
ROLES: dict[str, Any] = {"sensitive": "occupation", "public": "all", "missing": "value"}


@pytest.fixture(scope="module")
def adult():
    return pa.parquet.read_table(rp.dataset_path("adult"), columns=COLUMNS)


@pytest.fixture(scope="module")
def published(adult, tmp_path_factory):
    with rp.read(adult, **ROLES) as table:
        folder = tmp_path_factory.mktemp("frames") / "release"
        return table.publish(POLICY, folder, key=rp.Key.test()).to_arrow().select(COLUMNS)


def publish(source, **more):
    with pytest.warns(rp.ReconprivWarning, match="test key"):
        return rp.publish(source, POLICY, key=rp.Key.test(), **{**ROLES, **more})


def rows(table):
    return pa.table(table).to_pylist()


def test_arrow_comes_back_as_arrow(adult, published):
    typed = adult.set_column(2, "sex", adult["sex"].dictionary_encode())
    typed = typed.set_column(0, "age", adult["age"].cast(pa.int8()).dictionary_encode())
    back = publish(typed)
    assert isinstance(back, pa.Table)
    assert back.schema == typed.schema.remove_metadata()
    assert rows(back) == rows(published)


def test_a_stream_comes_back_as_a_stream(adult, published):
    back = publish(adult.to_reader(max_chunksize=1_000))
    assert isinstance(back, pa.RecordBatchReader)
    assert rows(back.read_all()) == rows(published)


def test_a_dataset_comes_back_as_a_table(adult, published):
    assert rows(publish(pa.dataset.dataset(adult))) == rows(published)


def test_pandas_comes_back_as_pandas_with_its_types(adult, published):
    frame = adult.to_pandas().astype({"age": "int8", "occupation": "category"})
    sexes = pandas.CategoricalDtype(["Male", "Unknown", "Female"], ordered=True)
    frame["sex"] = frame["sex"].astype(sexes)
    frame.index = frame.index + 1_000
    with pytest.warns(rp.ReconprivWarning, match="'sex' comes back with categories"):
        back = publish(frame)
    assert isinstance(back, pandas.DataFrame)
    assert dict(back.dtypes) == dict(frame.dtypes)
    assert list(back.index[:3]) == [0, 1, 2]
    plain = back.astype({"age": "int64", "sex": "object", "occupation": "object"})
    assert rows(pa.Table.from_pandas(plain, preserve_index=False)) == rows(published)


def test_polars_comes_back_as_polars_with_its_types(adult, published):
    frame = polars.DataFrame(adult).cast(
        {
            "age": polars.UInt8,
            "sex": polars.Enum(["Male", "Unknown", "Female"]),
            "occupation": polars.Categorical,
        }
    )
    with pytest.warns(rp.ReconprivWarning, match="'sex' comes back with categories"):
        back = publish(frame)
    assert isinstance(back, polars.DataFrame)
    assert back.schema == frame.schema
    plain = {"age": polars.Int64, "sex": polars.String, "occupation": polars.String}
    assert rows(back.cast(plain)) == rows(published)


def test_dates_times_and_nullable_types_survive():
    day, moment = dt.date(2024, 2, 29), dt.datetime(2024, 3, 31, 2, 30)
    table = pa.table(
        {
            "day": pa.array([day, None] * 400, pa.date32()),
            "moment": pa.array([moment, moment, None, None] * 200, pa.timestamp("ms")),
            "small": pa.array([1, None] * 400, pa.int16()),
            "part": pa.array([0.5, 0.25] * 400, pa.float32()),
            "flag": pa.array([True, None] * 400),
            "s": pa.array(["x", "y", "y", "x", "x"] * 160),
        }
    )
    roles: dict[str, Any] = {"sensitive": "s", "public": "all", "key": rp.Key.test()}
    with pytest.warns(rp.ReconprivWarning):
        assert rp.publish(table, POLICY, **roles).schema == table.schema
        frame = polars.DataFrame(table)
        assert rp.publish(frame, POLICY, **roles).schema == frame.schema
        nullable = table.to_pandas(types_mapper=pandas.ArrowDtype).astype({"small": "Int16"})
        assert dict(rp.publish(nullable, POLICY, **roles).dtypes) == dict(nullable.dtypes)


def test_a_lazy_polars_frame_is_counted_by_polars_and_comes_back_lazy(
    adult, published, monkeypatch
):
    """A frame with an identifier and a nested column, neither of which is asked for."""
    numbers = pa.array(range(adult.num_rows))
    wide = adult.append_column("id", numbers).append_column(
        "nested", pa.array([[1]] * adult.num_rows)
    )
    fetched = watched(monkeypatch, frames.LazyPolars)
    back = publish(polars.LazyFrame(wide), drop=["id", "nested"])
    assert isinstance(back, polars.LazyFrame)
    assert rows(back.collect()) == rows(published)
    assert fetched == [number_of_cells(adult)]


def test_a_duckdb_relation_is_counted_by_its_own_connection(adult, published, monkeypatch):
    connection = duckdb.connect()
    connection.register("people", adult)
    fetched = watched(monkeypatch, frames.LazyRelation)
    relation = connection.sql("SELECT *, row_number() OVER () AS id FROM people")
    back = publish(relation, public=["age", "sex"])
    assert isinstance(back, pa.Table)
    assert rows(back.select(COLUMNS)) == rows(published)
    assert fetched == [number_of_cells(adult)]


def watched(monkeypatch, kind):
    """How many rows are fetched of a lazy frame, call by call; its records are not to be had."""
    fetched: list[int] = []
    whole = kind.fetch  # type: ignore[attr-defined]

    def fetch(self, names, count=None):
        assert count is not None, "its records were asked for"
        batches = list(whole(self, names, count))
        fetched.append(sum(batch.num_rows for batch in batches))
        return iter(batches)

    monkeypatch.setattr(kind, "fetch", fetch)
    return fetched


def number_of_cells(table):
    return int(table.group_by(COLUMNS).aggregate([]).num_rows)


@pytest.mark.parametrize("lazy", [polars.LazyFrame, duckdb.from_arrow, pa.Table.to_reader])
def test_a_query_over_a_lazy_frame_sees_its_records(adult, lazy, tmp_path):
    query = "SELECT age // 10 AS decade, sex, occupation FROM input WHERE age >= 20"
    tables = []
    for number, source in enumerate((adult, lazy(adult))):
        with rp.read(source, sql=query, **ROLES) as table:
            release = table.publish(POLICY, tmp_path / str(number), key=rp.Key.test())
        tables.append(release.to_arrow())
    assert tables[0] == tables[1]


def test_a_query_gives_the_types_it_makes(adult):
    frame = polars.DataFrame(adult).cast({"age": polars.Int8})
    query = "SELECT (age // 10)::VARCHAR AS age, occupation FROM input"
    assert publish(frame, sql=query).schema["age"] == polars.String


def test_a_first_look_at_a_lazy_frame_counts_records(adult):
    for lazy in (polars.LazyFrame(adult), duckdb.from_arrow(adult), adult.to_reader()):
        assert rp.describe(lazy).records == adult.num_rows


def test_a_column_that_is_not_there_is_named_before_anything_is_fetched(adult):
    with pytest.raises(rp.ReconprivError, match="Did you mean 'occupation'"):
        rp.read(polars.LazyFrame(adult), sensitive="ocupation", public="all")


def test_the_kind_of_a_wide_number_is_settled_by_what_is_fetched(tmp_path):
    """A HUGEINT column that fits 64 bits is an integer, a wider one a decimal."""
    small = duckdb.sql("SELECT (i % 3)::HUGEINT AS a, i % 2 AS s FROM range(600) r(i)")
    large = duckdb.sql("SELECT (i % 3)::HUGEINT << 80 AS a, i % 2 AS s FROM range(600) r(i)")
    kinds = []
    for relation in (small, large):
        with rp.read(relation, sensitive="s", public="all") as table:
            kinds.append(table.schema.public[0].kind.value)
    assert kinds == ["integer", "decimal"]


def test_with_a_folder_the_release_is_written_too(adult, tmp_path):
    back = publish(polars.DataFrame(adult), out=tmp_path / "release", file_format="csv")
    with pytest.warns(rp.ReconprivWarning, match="test key"):
        release = rp.open(tmp_path / "release")
    assert rows(release.to_arrow().select(COLUMNS)) == rows(back)


def test_a_path_needs_a_folder_and_gives_a_release(tmp_path):
    path = rp.dataset_path("adult")
    roles: dict[str, Any] = {**ROLES, "public": ["sex"], "key": rp.Key.generate()}
    with pytest.raises(rp.ReconprivError, match="no folder to write"):
        rp.publish(path, POLICY, **roles)
    assert isinstance(rp.publish(path, POLICY, out=tmp_path / "r", **roles), rp.Release)


def test_nothing_is_left_behind_in_the_temporary_folder(adult, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    publish(adult)
    assert list(tmp_path.iterdir()) == []


def test_an_audit_in_one_call_is_the_audit_of_the_table(adult):
    with rp.read(adult, **ROLES) as table:
        expected = table.audit(POLICY)
    assert rp.audit(adult.to_pandas(), POLICY, **ROLES).as_dict() == expected.as_dict()


def test_without_a_key_it_says_what_that_means(adult):
    with pytest.warns(rp.ReconprivWarning, match="No key was given"):
        rp.publish(adult, POLICY, **ROLES)


def test_a_frame_without_its_margins_says_how_to_get_them(adult, tmp_path):
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, margins=1.0)
    with pytest.warns(rp.ReconprivWarning) as said:
        back = rp.publish(adult, policy, key=rp.Key.test(), **ROLES)
    assert [str(one.message) for one in said].count(WITHOUT_MARGINS) == 1
    with pytest.warns(rp.ReconprivWarning) as said:
        beside = rp.publish(adult, policy, key=rp.Key.test(), out=tmp_path / "release", **ROLES)
    assert any("test key" in str(one.message) for one in said)
    assert not any(str(one.message) == WITHOUT_MARGINS for one in said)
    assert rows(back) == rows(beside)
    assert (tmp_path / "release" / "margins.parquet").is_file()


@pytest.mark.filterwarnings("ignore::reconpriv.ReconprivWarning")
def test_a_release_without_a_folder_answers_like_one_on_disk(adult, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for source in (adult.to_pandas(), str(rp.dataset_path("adult"))):
        roles = ROLES | ({"public": ["age", "sex"]} if isinstance(source, str) else {})
        kept = rp.publish(source, key=rp.Key.test(), returns="release", **roles)
        on_disk = rp.publish(
            source, "recommended", key=rp.Key.test(), returns="release",
            out=tmp_path / "release", overwrite=True, **roles,
        )  # fmt: skip
        assert kept.description == on_disk.description
        asked = {"sex": "Female", "occupation": "Sales"}
        assert kept.count(**asked) == on_disk.count(**asked)
        assert kept.count(**asked).from_margins > 0
        assert kept.margins().equals(on_disk.margins())
        assert kept.to_pandas().equals(on_disk.to_pandas())
        assert kept.place == kept.as_dict()["release"] == "(not saved)"
        saved = kept.save(tmp_path / "saved", overwrite=True)
        assert sorted(p.name for p in saved.path.iterdir()) == sorted(
            p.name for p in on_disk.path.iterdir()
        )
        assert rp.open(saved.path).count(**asked) == saved.count(**asked) == kept.count(**asked)
        private = kept.path
        assert private.is_dir()
        del kept
        gc.collect()
        assert not private.parent.exists()
    assert {p.name for p in tmp_path.iterdir()} == {"release", "saved"}


def test_what_publish_returns_is_one_of_two_things(adult):
    with pytest.raises(rp.ReconprivError, match="one of frame, release; got 'table'"):
        rp.publish(adult, returns="table", **ROLES)


def test_without_a_policy_it_is_the_recommended_one(adult, tmp_path):
    expected = rp.preset("recommended")
    assert rp.audit(adult, **ROLES).policy == expected
    assert rp.audit(adult, "paper", **ROLES).policy == rp.preset("paper")
    with rp.read(adult, **ROLES) as table:
        made = table.publish(out=tmp_path / "r", key=rp.Key.test()).description
        assert (made.policy.bound, made.policy.doubt) == (expected.bound, expected.doubt)
        assert made.margins
        assert next(table.audit_groups()).equals(next(table.audit_groups(expected)))
        found, same = attack("micro", table), attack("micro", table, "recommended")
        assert found.as_dict() == same.as_dict() == attack("micro", table, expected).as_dict()
        with pytest.raises(rp.ReconprivError, match=r"no folder .* Give one: publish\(out="):
            table.publish("release", key=rp.Key.test())
        with pytest.raises(rp.ReconprivError, match=r"no file .* Give one: report\(path="):
            table.report("report.html")
        with pytest.raises(rp.ReconprivError, match="no preset called 'mine'"):
            table.audit("mine")


def test_what_the_recommended_policy_changes_for_a_table_is_a_warning(tmp_path):
    table = pa.table({"a": ["x", "y"] * 400, "s": ["p", "p", "q", "p", "q"] * 160})
    with pytest.warns(rp.ReconprivWarning) as said:
        release = rp.publish(
            table, sensitive="s", public="all", key=rp.Key.test(), returns="release"
        )
    notes = [str(one.message) for one in said]
    for words in ("p = 0.49", "No margins are published"):
        assert sum(words in note for note in notes) == 1
        assert sum(words in note for note in release.warnings) == 1
    assert release.description.policy.retention == 0.49
    assert not release.description.margins
