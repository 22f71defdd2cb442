"""Types of frames: no value is lost or changed on the way out; what cannot be kept is refused."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import uuid
import warnings
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.dataset
import pytest

import reconpriv as rp
from reconpriv.sources.frame_types import wide_integer

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
N = 400
G = [0, 0, 1, 1] * (N // 4)
CODES = [0, 1, 2, 1, 0] * (N // 5)
S = ["abc"[i] for i in CODES]
BIG = 2**60 + 1


def publish(source, **more):
    with pytest.warns(rp.ReconprivWarning, match="test key"):
        return rp.publish(
            source, POLICY, **{"sensitive": "s", "public": "all", "key": rp.Key.test()} | more
        )


def refusal(source, **more):
    """One sentence and its hint; nothing is left where the release would have been."""
    with pytest.raises(rp.ReconprivError) as caught:
        rp.publish(
            source, POLICY, **{"sensitive": "s", "public": "all", "key": rp.Key.test()} | more
        )
    assert "\n" not in str(caught.value)
    assert "the file" not in str(caught.value)
    return str(caught.value)


def pick(values, kind):
    return pandas.array([values[i] for i in G], dtype=kind)


# --- pandas


@pytest.mark.parametrize(
    "kind", ["Int64", "UInt64", "int64[pyarrow]", "uint64[pyarrow]", "object", "category"]
)
def test_large_whole_numbers_among_missing_ones_stay_as_they_are(kind):
    numbers = pick([BIG, None], "Int64" if kind == "category" else kind)
    frame = pandas.DataFrame({"g": numbers, "s": S}).astype({"g": kind})
    back = publish(frame)
    assert back.dtypes.equals(frame.dtypes)
    assert back["g"].dropna().tolist() == [BIG] * (N // 2)
    assert back["g"].isna().sum() == N // 2
    assert all(isinstance(value, int | np.integer) for value in back["g"].dropna())


def test_whole_numbers_beyond_64_bits_are_not_taken_for_dates():
    frame = pandas.DataFrame({"g": pick([2**63 + 1, None], object), "s": S})
    assert "cannot be turned into an Arrow table (OverflowError)" in refusal(frame)


def test_large_numbers_of_a_query_and_of_a_release_stay_whole(tmp_path):
    frame = pandas.DataFrame({"g": pick([BIG, None], "Int64"), "s": S})
    back = publish(frame, sql="FROM input", out=tmp_path / "release")
    assert back["g"].dropna().unique().tolist() == [BIG]
    with pytest.warns(rp.ReconprivWarning, match="test key"):
        release = rp.open(tmp_path / "release")
    assert release.to_pandas()["g"].dropna().unique().tolist() == [BIG]


@pytest.mark.parametrize(
    ("column", "domain", "kind"),
    [
        (pandas.Categorical(S), ["a", "b", "c", "d"], "category"),
        (np.array(CODES, "int8"), [0, 1, 2, 300], "int16"),
        (np.array(CODES, "uint8"), [0, 1, 2, -1], "int8"),
        (np.array(CODES, "int64"), [0, 1, 2, None], "Int64"),
        (np.array(CODES, "uint8"), [0, 1, 2, 300, None], "UInt16"),
        (pandas.array(CODES, "Int8"), [0, 1, 2, 300], "Int16"),
        (pandas.array(CODES, "int8[pyarrow]"), [0, 1, 2, 300], "int16[pyarrow]"),
        (np.array(CODES) > 0, [True, False, None], "boolean"),
        (pandas.Categorical(np.array(CODES, "int8")), [0, 1, 2, 300], "category"),
    ],
    ids=str,
)
def test_a_pandas_type_grows_with_the_domain(column, domain, kind):
    frame = pandas.DataFrame({"g": G, "s": column})
    values = publish(frame, domain=domain)["s"]
    assert str(values.dtype) == kind
    # With p = 1/2 every value of the domain is drawn many times among 400 records.
    assert set(values.dropna()) == {value for value in domain if value is not None}
    assert bool(values.isna().any()) == (None in domain)


def test_a_value_that_its_type_would_lose_leaves_nothing(tmp_path, monkeypatch):
    """Should a type not know a value, there is a sentence and no folder."""
    monkeypatch.setattr("reconpriv.frames.pandas_type", lambda kind, domain: kind)
    monkeypatch.setattr("reconpriv.frames.polars_type", lambda kind, domain: kind)
    monkeypatch.setattr("reconpriv.frames.arrow_type", lambda kind, domain: kind)
    text: dict[str, Any] = {"domain": ["a", "b", "c", "d"], "out": tmp_path / "release"}
    number = text | {"domain": [0, 1, 2, 300]}
    enum = polars.Enum(["a", "b", "c"])
    for source, more in (
        (pandas.DataFrame({"g": G, "s": pandas.Categorical(S)}), text),
        (pandas.DataFrame({"g": G, "s": np.array(CODES, "int8")}), number),
        (polars.DataFrame({"g": G, "s": S}, schema_overrides={"s": enum}), text),
        (pa.table({"g": G, "s": pa.array(CODES, pa.int8())}), number),
    ):
        assert "column 's' do not fit the type" in refusal(source, **more)
        assert list(tmp_path.iterdir()) == []


def test_a_domain_beyond_64_bits_is_refused():
    frame = pandas.DataFrame({"g": G, "s": CODES})
    assert (
        refusal(frame, domain=[0, 1, 2, 2**63]) == "The domain holds whole numbers beyond 64 bits."
    )


# --- Polars and Arrow


def test_a_polars_type_grows_with_the_domain():
    for kind, values, domain, wider in (
        (polars.Enum(["c", "a", "b"]), S, ["a", "b", "c", "d"], polars.Enum(["c", "a", "b", "d"])),
        (polars.Int8(), CODES, [0, 1, 2, 300, None], polars.Int16()),
        (polars.UInt8(), CODES, [0, 1, 2, -300], polars.Int16()),
    ):
        frame = polars.DataFrame({"g": G, "s": polars.Series(values, dtype=kind)})
        back = publish(frame, domain=domain)
        assert back.schema["s"] == wider
        if kind == polars.Int8():
            assert publish(frame.lazy(), domain=domain).collect().equals(back)
        assert set(back["s"].to_list()) == set(domain)


@pytest.mark.parametrize(
    ("kind", "wider"),
    [
        (pa.int8(), pa.int16()),
        (pa.uint8(), pa.uint16()),
        (pa.decimal128(2, 0), pa.decimal128(3, 0)),
        (pa.dictionary(pa.int8(), pa.int8()), pa.dictionary(pa.int8(), pa.int16())),
        (pa.run_end_encoded(pa.int32(), pa.int8()), pa.run_end_encoded(pa.int32(), pa.int16())),
    ],
    ids=str,
)
def test_an_arrow_type_grows_with_the_domain(kind, wider):
    values = pa.array(CODES, pa.int8())
    if pa.types.is_dictionary(kind):
        values = values.dictionary_encode().cast(kind)
    elif pa.types.is_run_end_encoded(kind):
        values = pa.compute.run_end_encode(values)
    else:
        numbers = map(decimal.Decimal, CODES) if pa.types.is_decimal(kind) else CODES
        values = pa.array(numbers, kind)
    back = publish(pa.table({"g": G, "s": values}), domain=[0, 1, 2, 300])
    assert back.schema.field("s").type == wider
    assert set(back["s"].to_pylist()) == {0, 1, 2, 300}


def test_the_index_of_a_dictionary_grows_with_the_domain():
    values = pa.array(S).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
    domain = ["a", "b", "c", *(f"v{i}" for i in range(900))]
    with pytest.warns(rp.ReconprivWarning, match="only perturbs"):
        policy = rp.Policy(retention=0.1, tolerance=0.5, doubt=0.3, sampling="none")
        back = rp.publish(
            pa.table({"s": pa.chunked_array([values] * 5)}),
            policy, sensitive="s", public="all", key=rp.Key.generate(), domain=domain,
        )  # fmt: skip
    assert back.schema.field("s").type == pa.dictionary(pa.int16(), pa.string())


def test_columns_that_arrow_itself_cannot_cast_come_back():
    ids = [uuid.UUID(int=i).bytes for i in G]
    table = pa.table(
        {
            "id": pa.array(ids, pa.uuid()),
            "nothing": pa.nulls(N),
            "few": pa.array([decimal.Decimal(i) for i in G], pa.decimal128(1, 0)),
            "runs": pa.compute.run_end_encode(pa.array(G)),
            "s": S,
        }
    )
    back = publish(table)
    assert back.schema == table.schema
    assert set(back["id"].to_pylist()) == {uuid.UUID(int=0), uuid.UUID(int=1)}
    assert sorted(back["runs"].to_pylist()) == sorted(G)


@pytest.mark.parametrize(
    ("name", "domain", "wider"),
    [
        ("int8", [127, -128], "int8"),
        ("int8", [128], "int16"),
        ("uint8", [255], "uint8"),
        ("uint8", [256], "uint16"),
        ("UInt8", [-129], "Int16"),
        ("Int32", [2**31 - 1, None], "Int32"),
        ("uint64", [2**64 - 1], "uint64"),
        ("int16", [], "int16"),
    ],
)
def test_the_next_integer_type(name, domain, wider):
    assert wide_integer(name, domain) == wider


# --- moments


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_of_every_unit_survive_with_and_without_a_zone(unit, zone):
    whole = pa.array([1_600_000_000, 1_600_000_001]).take(pa.array(G))
    factor = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    moments = pa.compute.multiply(whole, factor).cast(pa.timestamp(unit, zone))
    table = pa.table({"g": moments, "s": S})
    back = publish(table)
    assert back.schema == table.schema
    assert sorted(back["g"].cast(pa.int64()).to_pylist()) == sorted(
        moments.cast(pa.int64()).to_pylist()
    )
    if unit == "ns":
        frame = table.to_pandas()
        assert publish(frame).dtypes.equals(frame.dtypes)
        assert publish(polars.LazyFrame(table)).collect_schema() == polars.DataFrame(table).schema


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.time64("ns")], ids=str
)
def test_parts_of_a_microsecond_are_refused_not_rounded(kind, tmp_path):
    table = pa.table({"g": pa.array([123_456_788, 123_456_789], kind).take(pa.array(G)), "s": S})
    typed = table.to_pandas(types_mapper=pandas.ArrowDtype)
    for source in (table, typed, polars.LazyFrame(table)):
        assert "'g' holds parts of a microsecond" in refusal(source, out=tmp_path / "r")
    assert publish(polars.LazyFrame(table), drop="g").collect().columns == ["s"]
    hint = json.loads(refusal(table).split("sql=")[1].removesuffix("."))
    assert publish(table, sql=hint).num_rows == N


@pytest.mark.parametrize("day", ["20000-01-01", "0044-03-15 (BC)", "infinity", "-infinity"])
def test_a_date_that_python_cannot_hold_is_refused_by_name(day):
    query = f"SELECT CASE WHEN i % 2 = 0 THEN DATE '{day}' ELSE DATE '9999-12-31' END AS d,"
    relation = duckdb.sql(f"{query} 'abc'[1 + i % 3] AS s FROM range(400) r(i)")
    for sensitive in ("d", "s"):
        message = refusal(relation, sensitive=sensitive)
        assert message.startswith("Column 'd' holds a date outside the years 1 to 9999.")
    with pytest.raises(rp.ReconprivError, match="'d' holds a date outside the years 1 to 9999"):
        rp.audit(relation, POLICY, sensitive="s", public="all")


# --- what is no table


def test_names_that_are_not_text_are_refused():
    assert "name 0 of a column" in refusal(pandas.DataFrame({0: G, "s": S}))
    assert "name ('a', 'b')" in refusal(pandas.DataFrame({("a", "b"): G, ("s", ""): S}))
    twice = pandas.DataFrame(np.c_[G, G, CODES], columns=["g", "g", "s"])
    assert "two columns called 'g'" in refusal(twice)


@pytest.mark.parametrize(
    "source",
    [
        pandas.Series(S, name="s"),
        polars.Series("s", S),
        pa.array([{"s": x} for x in S]),
        pa.chunked_array([S]),
        np.array(CODES),
        {"s": S},
    ],
    ids=lambda source: type(source).__module__ + "." + type(source).__name__,
)
def test_what_is_no_table_is_named(source):
    assert refusal(source).startswith(f"A table cannot be read from a {type(source).__name__}.")
    with pytest.raises(rp.ReconprivError, match="A table cannot be read from"):
        rp.read(source, sensitive="s", public="all")


@pytest.mark.parametrize("source", [pandas.DataFrame(), polars.DataFrame(), pa.table({})], ids=str)
def test_a_frame_without_columns_is_refused(source):
    assert "has no columns" in refusal(source)


def test_a_period_is_not_taken_for_a_number():
    periods = pandas.PeriodIndex(["2020-01", "2020-02"], freq="M")[G]
    frame = pandas.DataFrame({"g": periods, "s": S})
    assert "'g' holds values of a type that cannot be published" in refusal(frame)
    assert publish(frame, drop="g").columns.tolist() == ["s"]
    with pytest.raises(rp.ReconprivError, match="'g' holds values of a type that cannot"):
        rp.read(frame, sensitive="g", public="all")
    table = pa.Table.from_pandas(frame)
    assert "'g' of the InMemoryDataset is of a type" in refusal(pa.dataset.dataset(table))


def test_a_type_that_duckdb_does_not_know_is_not_blamed_on_a_file():
    table = pa.table({"g": pa.array(np.float16(G)), "s": S})
    assert refusal(table).startswith("The frame cannot be read. A column of a type")


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        (lambda frame: frame.with_columns(polars.col("g").cast(polars.Int64)), "InvalidOperation"),
        (lambda frame: frame.select("nope", "s"), "ColumnNotFound"),
        (lambda _: polars.scan_parquet("/nowhere/secret77.parquet"), "FileNotFound"),
    ],
)
def test_an_error_of_polars_is_named_without_its_text(query, kind):
    frame = query(polars.LazyFrame({"g": ["secret77"] * N, "s": S}))
    for more in ({}, {"sql": "FROM input"}):
        message = refusal(frame, **more)
        assert message.startswith(f"Polars cannot compute the LazyFrame ({kind}Error).")
        assert "secret77" not in message
        assert "nope" not in message


def test_a_stream_that_was_read_already_is_not_an_empty_table():
    reader = pa.table({"g": G, "s": S}).to_reader()
    reader.read_all()
    assert "can be read only once" in refusal(reader)


# --- relations


def test_columns_of_one_name_of_a_relation_are_refused():
    with duckdb.connect() as connection:
        connection.register("people", pa.table({"g": G, "s": S}))
        relation = connection.sql("SELECT g, g, s FROM people")
        assert "two columns called 'g' in the relation" in refusal(relation)


def test_a_relation_and_a_file_read_the_same_columns(tmp_path):
    """A time with a zone is refused, and a wide number is never another one."""
    path = tmp_path / "a.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT (i % 2)::UHUGEINT AS wide, 'abc'[1 + i % 3] AS s,"
            " CASE WHEN i % 2 = 0 THEN TIMETZ '01:00:00+01' ELSE TIMETZ '01:00:00+02' END AS zoned,"
            " (2::UHUGEINT << 126) + (i % 2)::UHUGEINT AS wider FROM range(400) r(i)"
        )
    connection = duckdb.connect(str(path))
    relation = connection.sql("FROM t")
    for column, sentence in (
        ("zoned", "'zoned' holds values of a type"),
        ("wider", "read as a number"),
    ):
        assert sentence in refusal(relation, public=[column])
    back = publish(relation, public=["wide"])
    connection.close()
    with rp.read(path, table="t", sensitive="s", public="wide") as table:
        release = table.publish(POLICY, tmp_path / "release", key=rp.Key.test())
    assert release.to_arrow().select(["wide", "s"]) == back
    with pytest.raises(rp.ReconprivError, match="'zoned' holds values of a type"):
        rp.read(path, table="t", sensitive="s", public="zoned")
    with pytest.raises(rp.ReconprivError, match="ConversionException"):
        rp.read(path, table="t", sensitive="s", public="wider")


# --- warnings


@pytest.mark.parametrize("column", ["g", "s"])
def test_categories_that_the_release_does_not_hold_are_warned_of(column):
    texts = {"g": ["xy"[i] for i in G], "s": S}
    known = sorted(set(texts[column]))
    for unused in ([], ["TinyVillage"]):
        kind = pandas.CategoricalDtype([*unused, *known])
        for frame in (
            pandas.DataFrame(texts).astype({column: kind}),
            polars.DataFrame(texts).cast({column: polars.Enum([*unused, *known])}),
            polars.LazyFrame(texts).cast({column: polars.Enum([*unused, *known])}),
        ):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                rp.publish(frame, POLICY, sensitive="s", public="all", key=rp.Key.generate())
            said = [str(warning.message) for warning in caught]
            assert len(said) == len(unused)
            assert all(f"{column!r} comes back with categories" in note for note in said)
            assert "TinyVillage" not in "".join(said)


def test_warnings_point_at_the_line_that_published():
    frame = polars.DataFrame({"name": [f"P{i}" for i in range(N)], "s": S})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rp.publish(
            frame, POLICY, sensitive="s", public="all", key=rp.Key.test(), keep_identifier=["name"]
        )
        rp.audit(frame, POLICY, sensitive="s", public="all")
    assert len(caught) == 3
    assert {warning.filename for warning in caught} == {__file__}


def test_every_plain_type_comes_back_from_pandas():
    moments = pandas.to_datetime(["2020-10-25 00:30", "2020-10-25 01:30"], utc=True)
    columns = {
        "text": pick(["x", None], "string"),
        "object": pick(["x", None], object),
        "time": pick([dt.time(1, 2, 3), None], object),
        "date": pick([dt.date(2020, 1, 1), None], object),
        "moment": pick([dt.datetime(2020, 1, 1, 2), None], object),
        "decimal": pick([decimal.Decimal("1.10"), None], object),
        "flag": pick([True, None], "boolean"),
        "maybe": pick([True, None], object),
        "part": pick([1.5, None], "Float32"),
        "zoned": moments.tz_convert("Europe/Berlin")[G],
        "days": pandas.Categorical(moments[G]),
        "codes": pandas.Categorical(np.array(G, "int8")),
        "views": pandas.array([["x", "y"][i] for i in G], pandas.ArrowDtype(pa.string_view())),
    }
    frame = pandas.DataFrame(columns | {"s": S})
    back = publish(frame)
    assert back.dtypes.equals(frame.dtypes)
    for name in columns:
        expected, found = frame[name], back[name]
        assert found.isna().sum() == expected.isna().sum()
        assert set(found.dropna()) == set(expected.dropna())
        assert {type(v) for v in found.dropna()} == {type(v) for v in expected.dropna()}
