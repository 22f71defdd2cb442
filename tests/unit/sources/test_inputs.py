"""One table in many forms gives one release; types, names and --sql."""

from __future__ import annotations

import datetime as dt
import decimal
import gzip
import json
import string
from collections import Counter

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import reconpriv as rp

ROWS = 3_000


@pytest.fixture(scope="module")
def mixed(census):
    """Census records beside a date, a truth value, a number, and text that is hard to quote."""
    rng = np.random.default_rng(3)
    rows = census.take(pa.array(rng.choice(census.num_rows, ROWS, replace=False)))
    texts = ['say "hi"', "a,b", "two\nlines", "", None, " padded ", "naïve 数据 🎲", "NULL", "007"]
    days = [dt.date(1899, 12, 31), dt.date(2024, 2, 29)]
    return pa.table(
        {
            "Gender": rows["Gender"],
            "Code": pa.array(rng.integers(-2, 2, ROWS), pa.int64()),
            "Text": pa.array([texts[i] for i in rng.integers(0, len(texts), ROWS)]),
            "Day": pa.array([days[i] for i in rng.integers(0, 2, ROWS)], pa.date32()),
            "Flag": pa.array(rng.integers(0, 2, ROWS).astype(bool)),
            "Share": pa.array(np.array([0.1, 0.25, 2.5])[rng.integers(0, 3, ROWS)]),
            "Education": rows["Education"].cast(pa.string()),
        }
    )


@pytest.fixture(scope="module")
def publish(key, policy, files_of):
    """Publish a source and return the bytes of the release."""

    def published(source, out, **options):
        with rp.read(source, **({"sensitive": "Education", "public": "all"} | options)) as table:
            table.publish(policy, out, key=key)
        return files_of(out)

    return published


@pytest.fixture(scope="module")
def expected(mixed, publish, tmp_path_factory):
    """The release of the Parquet form."""
    folder = tmp_path_factory.mktemp("expected")
    pq.write_table(mixed, folder / "t.parquet")
    return publish(folder / "t.parquet", folder / "out")


def as_csv(table, delimiter=","):
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(delimiter=delimiter))
    return sink.getvalue().to_pybytes()


def as_json_lines(table):
    lines = (
        json.dumps(row | {"Day": row["Day"].isoformat()}, ensure_ascii=False)
        for row in table.to_pylist()
    )
    return ("\n".join(lines) + "\n").encode()


def write_folder(table, folder):
    (folder / "deeper").mkdir(parents=True)
    for i, name in enumerate(["b.parquet", "a.parquet", "deeper/c.parquet"]):
        pq.write_table(table.slice(i * 1000, 1000), folder / name)
    return folder


def write_ipc(table, file):
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=700)
    return file


def written(file, content):
    file.write_bytes(content)
    return file


FILES = {
    "csv": lambda t, d: written(d / "t.csv", as_csv(t)),
    "csv-upper-case-ending": lambda t, d: written(d / "T.CSV", as_csv(t)),
    "csv-bom": lambda t, d: written(d / "t.csv", b"\xef\xbb\xbf" + as_csv(t)),
    "csv-gz": lambda t, d: written(d / "t.csv.gz", gzip.compress(as_csv(t))),
    "csv-semicolon": lambda t, d: written(d / "t.csv", as_csv(t, ";")),
    "tsv": lambda t, d: written(d / "t.tsv", as_csv(t, "\t")),
    "json-lines": lambda t, d: written(d / "t.jsonl", as_json_lines(t)),
    "json-lines-gz": lambda t, d: written(d / "t.ndjson.gz", gzip.compress(as_json_lines(t))),
    "feather": lambda t, d: pyarrow.feather.write_feather(t, d / "t.feather") or d / "t.feather",
    "arrow": lambda t, d: write_ipc(t, d / "t.arrow"),
    "folder": lambda t, d: write_folder(t, d / "parts"),
    "glob": lambda t, d: str(write_folder(t, d / "parts") / "**" / "*.parquet"),
    "parquet-plain": lambda t, d: (
        pq.write_table(t, d / "t.pq", use_dictionary=False, compression="none") or d / "t.pq"
    ),
    "parquet-large-strings": lambda t, d: (
        pq.write_table(pl.from_arrow(t).to_arrow(), d / "t.parquet") or d / "t.parquet"
    ),
}


@pytest.mark.parametrize("form", FILES)
def test_every_file_format_gives_the_same_bytes(form, mixed, expected, publish, tmp_path):
    assert publish(FILES[form](mixed, tmp_path), tmp_path / "out") == expected


OBJECTS = {
    "pyarrow": lambda t: t,
    "pyarrow-chunked": lambda t: pa.Table.from_batches(t.to_batches(max_chunksize=17)),
    "record-batch": lambda t: t.combine_chunks().to_batches()[0],
    "record-batch-reader": lambda t: t.to_reader(max_chunksize=100),
    "pandas": lambda t: t.to_pandas(),
    "pandas-arrow-types": lambda t: t.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas-shuffled": lambda t: t.to_pandas().sample(frac=1, random_state=5),
    "pandas-filtered": lambda t: pd.concat([t.to_pandas()] * 2).iloc[: t.num_rows],
    "pandas-categories": lambda t: t.to_pandas().astype({"Education": "category"}),
    "polars": pl.from_arrow,
    "polars-lazy": lambda t: pl.from_arrow(t).lazy(),
    "polars-categories": lambda t: pl.from_arrow(t).with_columns(
        pl.col("Gender", "Education").cast(pl.Categorical)
    ),
    "duckdb": duckdb.from_arrow,
}


@pytest.mark.parametrize("form", OBJECTS)
def test_every_kind_of_data_frame_gives_the_same_bytes(form, mixed, expected, publish, tmp_path):
    assert publish(OBJECTS[form](mixed), tmp_path / "out") == expected


def test_standard_input_gives_the_same_bytes(mixed, expected, key, process, files_of, tmp_path):
    key.write(tmp_path / "key")
    outcome = process(
        "publish", "-", tmp_path / "out", "-s", "Education", "--public=all", "--preset", "paper",
        "--key", tmp_path / "key", stdin=as_csv(mixed),
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert files_of(tmp_path / "out") == expected


def test_shuffled_rows_give_the_same_bytes(mixed, expected, publish, tmp_path):
    order = np.random.default_rng(1).permutation(mixed.num_rows)
    pq.write_table(mixed.take(pa.array(order)), tmp_path / "t.parquet", row_group_size=100)
    (tmp_path / "t.csv").write_bytes(as_csv(mixed.take(pa.array(order))))
    assert publish(tmp_path / "t.parquet", tmp_path / "out") == expected
    assert publish(tmp_path / "t.csv", tmp_path / "out2") == expected


@pytest.mark.parametrize("threads", [1, 5])
def test_any_number_of_threads_gives_the_same_bytes(
    threads, census_release, key, cli, files_of, tmp_path
):
    key.write(tmp_path / "key")
    outcome = cli(
        "publish", "example:census_workers", tmp_path / "out", "-s", "Education",
        "--public", "Age,Gender,Marital,Race,Workclass,Occupation", "--key", tmp_path / "key",
        "--threads", threads, "--preset", "paper",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert files_of(tmp_path / "out") == files_of(census_release("Education").path)


def test_little_memory_gives_the_same_bytes(census_release, policy, key, files_of, tmp_path):
    public = ["Age", "Gender", "Marital", "Race", "Workclass", "Occupation"]
    source = rp.dataset_path("census_workers")
    with rp.read(source, sensitive="Education", public=public, memory="100MB") as table:
        table.publish(policy, tmp_path / "out", key=key)
    assert files_of(tmp_path / "out") == files_of(census_release("Education").path)


def test_the_order_of_public_columns_changes_no_cell(small, policy, key, count_rows, tmp_path):
    cells = []
    for i, public in enumerate((["Gender", "Race"], ["Race", "Gender"])):
        with rp.read(small, sensitive="Education", public=public) as table:
            table.publish(policy, tmp_path / str(i), key=key)
        data = pq.read_table(tmp_path / str(i) / "data.parquet")
        assert data.column_names == [*public, "Education"]
        cells.append(count_rows(data.select(["Gender", "Race", "Education"])))
    assert cells[0] == cells[1]


# --- where a file lies must not matter --------------------------------------------------------


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "feather"])
def test_the_folder_of_a_file_does_not_enter_the_release(
    ending, mixed, expected, publish, tmp_path
):
    place = tmp_path.joinpath("team=blue", "a[1]", "what?", "star*", "it's", "{x}", "ü ü")
    place.mkdir(parents=True)
    file = place / f"t.{ending}"
    match ending:
        case "parquet":
            pq.write_table(mixed, file)
        case "csv":
            file.write_bytes(as_csv(mixed))
        case "jsonl":
            file.write_bytes(as_json_lines(mixed))
        case _:
            pyarrow.feather.write_feather(mixed, file)
    assert publish(file, tmp_path / "out") == expected


def test_a_file_named_like_a_pattern_is_that_file_alone(small, publish, tmp_path):
    pq.write_table(small, tmp_path / "t[1].parquet")
    pq.write_table(small.slice(0, 1000), tmp_path / "t1.parquet")
    named = publish(tmp_path / "t[1].parquet", tmp_path / "out")
    assert named == publish(small, tmp_path / "out2")


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_files_of_a_glob_with_other_column_orders_are_read_by_name_or_refused(
    ending, small, publish, tmp_path
):
    whole = publish(small, tmp_path / "out")
    swapped = ["Race", "Education", "Gender", "Workclass"]
    for i, part in enumerate([small.slice(0, 2000), small.slice(2000).select(swapped)]):
        file = tmp_path / f"part{i}.{ending}"
        match ending:
            case "csv":
                file.write_bytes(as_csv(part))
            case "parquet":
                pq.write_table(part, file)
            case _:
                file.write_text("".join(json.dumps(row) + "\n" for row in part.to_pylist()))
    try:
        got = publish(str(tmp_path / f"part*.{ending}"), tmp_path / "out2")
    except rp.ReconprivError:
        return
    assert got == whole


# --- --sql ------------------------------------------------------------------------------------


def test_sql_bins_renames_and_filters(cli, census, tmp_path):
    query = (
        'SELECT Age // 10 * 10 AS decade, Gender AS "the sex", Education FROM input'
        " WHERE Race = 'White';"
    )
    outcome = cli(
        "publish", "example:census_workers", tmp_path / "out", "-s", "Education", "--public=all",
        "--sql", query, "--test-key",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert "cannot know what --sql did" in outcome.err
    frame = census.to_pandas().query("Race == 'White'")
    sizes = frame.groupby([frame["Age"] // 10 * 10, "Gender"]).size().to_dict()
    groups = pq.read_table(tmp_path / "out" / "groups.parquet")
    assert groups.column_names[:2] == ["decade", "the sex"]
    released = zip(*(groups[i].to_pylist() for i in range(3)), strict=True)
    assert {(age, sex): records for age, sex, records in released} == sizes


def test_sql_works_on_a_data_frame(small, policy):
    query = "SELECT Gender, Education FROM input WHERE Gender = 'Female' -- only they"
    with rp.read(small, sensitive="Education", public="all", sql=query) as table:
        report = table.audit(policy)
    assert report.groups == 1
    assert report.records == small["Gender"].to_pylist().count("Female")


def test_sql_turns_a_number_into_a_sensitive_bin(census, policy):
    query = "SELECT Gender, (Age // 20)::INT AS Age FROM input"
    with rp.read(census, sensitive="Age", public="all", sql=query) as table:
        assert table.schema.domain == tuple(sorted({a // 20 for a in census["Age"].to_pylist()}))


# --- types ------------------------------------------------------------------------------------


def group_sizes(release):
    """Public values and their exact counts, as the groups file tells them."""
    groups = pq.read_table(release / "groups.parquet")
    rows = zip(*(column.to_pylist() for column in groups.columns[:-1]), strict=True)
    return Counter({row[:-1]: row[-1] for row in rows})


UTC = dt.UTC
TYPES: dict[str, pa.Array] = {
    "null text": pa.array(["a", None, "", "b"]),
    "all null": pa.nulls(4),
    "date": pa.array([dt.date(2024, 2, 29), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "timestamp": pa.array([dt.datetime(2024, 2, 29, 12, 30, 1, 5), None] * 2),
    "timestamp s": pa.array([dt.datetime(2024, 2, 29, 12, 30, 1), None] * 2, pa.timestamp("s")),
    "timestamp zone": pa.array(
        [dt.datetime(2024, 2, 29, 12, 30, tzinfo=UTC), None] * 2, pa.timestamp("us", "UTC")
    ),
    "time": pa.array([dt.time(1, 2, 3), None, dt.time(0), dt.time(23, 59)]),
    "boolean": pa.array([True, False, None, True]),
    "unicode": pa.array(["naïve", "数据", "🎲", "e\u0301"]),
    "text with quotes": pa.array(['"', "'", "\\", "a\tb\nc"]),
    "int8": pa.array([-128, 127, None, 0], pa.int8()),
    "int64": pa.array([-(2**63), 2**63 - 1, None, 0], pa.int64()),
    "uint64": pa.array([2**64 - 1, 2**63, None, 0], pa.uint64()),
    "small uint64": pa.array([1, 2, None, 0], pa.uint64()),
    "big integer": pa.array([10**30, -(10**30), None, 0], pa.decimal128(38, 0)),
    "decimal": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-0.01")] * 2)[:4],
    "float": pa.array([0.1, float("inf"), None, -1e-300]),
    "categories": pa.array(["low", "high", None, "low"]).dictionary_encode(),
    "number categories": pa.array([3, 1, None, 3]).dictionary_encode(),
    "long text": pa.array(["x" * 10_000, "x" * 9_999, "y", None]),
    "text with nul": pa.array(["a\0b", "a", "a\0", None]),
}


def test_public_values_of_every_type_are_audited_and_survive(policy, key, tmp_path):
    repeated = pa.array(np.repeat(np.arange(4), [5, 40, 7, 3]))
    columns = {name: column.take(repeated) for name, column in TYPES.items()}
    with rp.read(pa.table(columns | {"s": [*"xyzzy"] * 11}), sensitive="s", public="all") as opened:
        report = opened.audit(policy)
        assert str(report) and report.groups == 4
        assert json.loads(json.dumps(report.as_dict()))["records"] == 55
        opened.publish(policy, tmp_path / "out", key=key)
    rows = zip(*(column.to_pylist() for column in columns.values()), strict=True)
    assert group_sizes(tmp_path / "out") == Counter(rows)


def test_nan_is_missing_and_zero_has_no_sign(policy, key, tmp_path):
    table = pa.table({"x": [float("nan"), 1.0, None, -0.0, 0.0] * 8, "s": ["u", "v"] * 20})
    with rp.read(table, sensitive="s", public="all") as opened:
        opened.publish(policy, tmp_path / "out", key=key)
    sizes = {repr(value): records for (value,), records in group_sizes(tmp_path / "out").items()}
    assert sizes == {"1.0": 8, "None": 16, "0.0": 16}


SENSITIVE: dict[str, pa.Array] = {
    "integer": pa.array([3, -1, 20, 3]),
    "boolean": pa.array([True, False, True, True]),
    "date": pa.array([dt.date(2024, 2, 29), dt.date(1999, 1, 1)] * 2),
    "unicode": pa.array(["naïve", "数据", "🎲", ""]),
    "categories": pa.array(["low", "high", "low", "mid"]).dictionary_encode(),
    "uint8": pa.array([200, 1, 7, 200], pa.uint8()),
}


@pytest.mark.parametrize("name", SENSITIVE)
def test_sensitive_values_of_several_types_survive(name, key, tmp_path):
    column = SENSITIVE[name].take(pa.array(np.arange(400) % 4))
    table = pa.table({"g": [*"abb", "a", "b"] * 80, "s": column})
    with rp.read(table, sensitive="s", public="all") as opened:
        assert opened.schema.domain == tuple(sorted(set(column.to_pylist())))
        opened.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none"),
            tmp_path / "out",
            key=key,
        )
    data = pq.read_table(tmp_path / "out" / "data.parquet")
    assert data.num_rows == 400
    assert set(data["s"].to_pylist()) == set(column.to_pylist())


def test_integers_of_any_width_give_the_same_bytes(publish, tmp_path):
    values, sensitive = [1, 2, 3, 100] * 50, ["x", "y", "z", "z", "z"] * 40
    releases = [
        publish(pa.table({"n": pa.array(values, kind), "s": sensitive}), tmp_path / str(i),
                sensitive="s", public="all")
        for i, kind in enumerate([
            pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64(),
            pa.decimal128(10, 0),
        ])
    ]  # fmt: skip
    assert all(release == releases[0] for release in releases)


def csv_columns(tmp_path, text):
    """The types and the values that the columns of a CSV get, by way of a release."""
    (tmp_path / "t.csv").write_text(text, encoding="utf-8", newline="")
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
    with rp.read(tmp_path / "t.csv", sensitive="s", public="all") as table:
        table.publish(policy, tmp_path / "out", key=rp.Key.test())
        return [c.kind.value for c in table.schema.public], group_sizes(tmp_path / "out")


FIELDS = [
    (["02139", "10001"], "string", ["02139", "10001"]),
    (["1", "-20"], "integer", [1, -20]),
    (["1", "+2"], "string", ["1", "+2"]),
    (["1", "1.5"], "string", ["1", "1.5"]),
    (["0.5", "1.5"], "number", [0.5, 1.5]),
    (["1.50", "2.25"], "string", ["1.50", "2.25"]),
    (["1e5", "2e5"], "string", ["1e5", "2e5"]),
    (["true", "false"], "boolean", [True, False]),
    (["True", "False"], "string", ["True", "False"]),
    (["2024-02-29", "1999-01-01"], "date", [dt.date(2024, 2, 29), dt.date(1999, 1, 1)]),
    (["01/02/2024", "03/02/2024"], "string", ["01/02/2024", "03/02/2024"]),
    (["9223372036854775807", "1"], "integer", [2**63 - 1, 1]),
    (["9223372036854775808", "1"], "string", ["9223372036854775808", "1"]),
    (["123456789012345678901234567890", "1"], "string",
     ["123456789012345678901234567890", "1"]),
    (['""', ""], "string", ["", None]),
    (["NULL", "null"], "string", ["NULL", "null"]),
    (["NA", "x"], "string", ["NA", "x"]),
    ([" 1", "2 "], "string", [" 1", "2 "]),
    (["1", ""], "integer", [1, None]),
    (['"1"', "2"], "integer", [1, 2]),
    (["12:30", "13:45"], "string", ["12:30", "13:45"]),
    (["0xff", "1_000"], "string", ["0xff", "1_000"]),
]  # fmt: skip


def test_csv_types_are_given_only_where_nothing_is_lost(tmp_path):
    names = [f"x{i}" for i in range(len(FIELDS))]
    lines = [
        ",".join([*row, s]) for s in "uv" for row in zip(*(f for f, *_ in FIELDS), strict=True)
    ]
    kinds, sizes = csv_columns(tmp_path, "\n".join([",".join([*names, "s"]), *lines]) + "\n")
    assert kinds == [kind for _, kind, _ in FIELDS]
    assert sizes == Counter(2 * [*zip(*(values for *_, values in FIELDS), strict=True)])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_line_ends_do_not_enter_the_values(end, tmp_path):
    _, sizes = csv_columns(tmp_path, end.join(["s,x", "u,a", "v,a", "u,b"]) + end)
    assert sizes == Counter({("a",): 2, ("b",): 1})


TEXTS = ["6B29FC40-CA47-1067-B31D-00DD010662DA", "2024-02-29T12:30:00Z", "12-11-2020", "2024-2-9",
         "20:15"]  # fmt: skip


def test_text_in_json_lines_stays_as_it_is_written(publish, tmp_path):
    written = [(*(how(text) for text in TEXTS), number)
               for how in (str, str.lower, str.upper)
               for number in ("02139", "1", "true", "")]  # fmt: skip
    rows = [dict(zip("abcdef", row, strict=True)) | {"s": s} for s in "uvw" for row in written]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows * 5))
    publish(tmp_path / "t.jsonl", tmp_path / "out", sensitive="s", public="all")
    assert group_sizes(tmp_path / "out") == Counter(15 * written)


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["2020-12-11", None], "date"),
        (["12:30:00", "12:30:00.5"], "time"),
        (["2020-12-11T12:30:00", None], "datetime"),
        (["2020-12-11 12:30:00", None], "datetime"),
        (["12-11-2020", "12-13-2020"], "string"),
    ],
)
def test_only_iso_spells_dates_in_json_lines(texts, kind, tmp_path):
    rows = [{"x": x, "it's": x, "s": s} for s in "uv" for x in texts]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with rp.read(tmp_path / "t.jsonl", sensitive="s", public="all") as table:
        assert [column.kind.value for column in table.schema.public] == [kind, kind]


# --- names ------------------------------------------------------------------------------------

NAMES = [
    "two words", 'a "quoted" name', "it's", "dot.ted", "{}", "{0}", "{x", "x}", "{{y}}", "com,ma",
    "semi;colon", "Straße 数据 🎲", "back\\slash", "per%cent", "sla/sh", "select", "table", "count",
    "n", "c0", "c1", "v", "input", "reconpriv_table", "records", "trials", "group", "value", "size",
    "rowid", "all", "key", "$1", "?", "-", "--", "NULL", "1", "Records", "x" * 300,
]  # fmt: skip


def table_of_names(small, names):
    """The public columns of a table again and again, under other names."""
    columns = [small.column(i % 3) for i in range(len(names))]
    return pa.table([*columns, small["Education"]], names=[*names, "Education"])


# Not both: they differ only in case.
MANY = [name for name in NAMES if name != "Records"]


@pytest.mark.parametrize("names", [MANY, ["Records", "Race"]], ids=["many", "few"])
def test_public_columns_may_have_any_name(names, small, cli, key, tmp_path):
    table = table_of_names(small, names)
    pq.write_table(table, tmp_path / "t.parquet")
    key.write(tmp_path / "key")
    asked = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    command = [tmp_path / "t.parquet", "-s", "Education", "--public", asked]
    audit = cli("audit", *command, "--json")
    assert audit.code == 1, audit.err
    report = json.loads(audit.out)
    assert report["public"] == list(report["worst"][0]["public"]) == names
    publish = cli("publish", *command[:1], tmp_path / "out", *command[1:], "--key",
                  tmp_path / "key")  # fmt: skip
    assert publish.code == 0, publish.err
    assert pq.read_table(tmp_path / "out" / "data.parquet").column_names == [*names, "Education"]
    columns = [table[name].to_pylist() for name in names]
    assert group_sizes(tmp_path / "out") == Counter(zip(*columns, strict=True))
    manifest = json.loads((tmp_path / "out" / "datapackage.json").read_text(encoding="utf-8"))
    assert manifest["reconpriv"]["public"] == names


@pytest.mark.parametrize("name", [*NAMES[1::3], "it's", "--", "reconpriv_table", "x" * 300])
def test_the_sensitive_column_may_have_any_name(name, small, cli, tmp_path):
    table = small.rename_columns(["Gender", "Race", "Workclass", name])
    holes = pa.array([None if i % 10 == 0 else v for i, v in enumerate(table[name].to_pylist())])
    pq.write_table(table.set_column(3, name, holes), tmp_path / "t.parquet")
    outcome = cli(
        "publish", tmp_path / "t.parquet", tmp_path / "out", f"--sensitive={name}",
        "--public=all", "--missing", "drop", "--test-key",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    data = pq.read_table(tmp_path / "out" / "data.parquet")
    assert data.column_names == ["Gender", "Race", "Workclass", name]
    assert data.num_rows == 3_600
    manifest = json.loads((tmp_path / "out" / "datapackage.json").read_text(encoding="utf-8"))
    assert manifest["reconpriv"]["sensitive"] == name


def test_a_csv_header_may_hold_any_name(small, publish, tmp_path):
    table = table_of_names(small, [name for name in MANY if name != "x" * 300])
    (tmp_path / "t.csv").write_bytes(as_csv(table))
    public = table.column_names[:-1]  # one of them is called "all"
    first = publish(tmp_path / "t.csv", tmp_path / "out", public=public)
    assert first == publish(table, tmp_path / "out2", public=public)


def with_names(small, *names):
    return small.rename_columns([*names, *small.column_names[len(names) :]])


@pytest.mark.parametrize("names", [("c2", "c0", "c1"), ("c3", "v")])
def test_names_used_inside_do_not_get_mixed_up(names, small, policy, key, tmp_path):
    with rp.read(with_names(small, *names), sensitive="Education", public="all") as table:
        table.publish(policy, tmp_path / "out", key=key)
    columns = [small[name].to_pylist() for name in small.column_names[:-1]]
    assert group_sizes(tmp_path / "out") == Counter(zip(*columns, strict=True))


@pytest.mark.parametrize("names", [("records", "trials"), ("Records", "TRIALS"),
                                   ("records", "records_")])  # fmt: skip
def test_public_columns_named_like_the_counts_of_the_groups_file(
    names, small, policy, key, tmp_path
):
    with rp.read(with_names(small, *names), sensitive="Education", public="all") as table:
        release = table.publish(policy, tmp_path / "out", key=key)
    groups = pq.read_table(tmp_path / "out" / "groups.parquet")
    counts = release.manifest["reconpriv"]["group_counts"]
    assert len({name.lower() for name in groups.column_names}) == 5
    assert sum(groups[counts["records"]].to_pylist()) == small.num_rows
    assert set(groups[names[0]].to_pylist()) == set(small["Gender"].to_pylist())


def test_names_that_differ_only_in_case_survive_or_are_refused(small, policy, key, tmp_path):
    table = with_names(small, "group", "GROUP")
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):
        try:
            with rp.read(source, sensitive="Education", public="all") as opened:
                names = [column.name for column in opened.schema.public]
        except rp.ReconprivError as error:
            assert "group" in str(error).lower()
        else:
            assert names == ["group", "GROUP", "Workclass"]


def test_a_column_without_a_name_survives_or_is_refused(small):
    try:
        with rp.read(with_names(small, ""), sensitive="Education", public="all") as opened:
            names = [column.name for column in opened.schema.public]
    except rp.ReconprivError as error:
        assert "name" in str(error)
    else:
        assert names == ["", "Race", "Workclass"]


def test_names_with_outer_spaces_can_be_asked_for(small, cli, tmp_path):
    pq.write_table(with_names(small, " left", "right "), tmp_path / "t.parquet")
    outcome = cli(
        "audit", tmp_path / "t.parquet", "-s", "Education", "--public", '" left","right "', "--json"
    )
    assert outcome.code == 1, outcome.err
    assert json.loads(outcome.out)["public"] == [" left", "right "]


def test_the_name_of_a_column_is_part_of_its_randomness(small, policy, key, count_rows, tmp_path):
    """Two columns with swapped names are two tables; a release of one says nothing of the other."""
    cells = []
    for i, name in enumerate(("Gender", "Sex")):
        with rp.read(with_names(small, name), sensitive="Education", public="all") as table:
            table.publish(policy, tmp_path / str(i), key=key)
        cells.append(count_rows(pq.read_table(tmp_path / str(i) / "data.parquet")))
    assert cells[0] != cells[1]


def test_a_table_may_have_no_public_column(small, policy, key, tmp_path):
    with rp.read(small, sensitive="Education", public=[]) as table:
        assert table.audit(policy).groups == 1
        release = table.publish(policy, tmp_path / "out", key=key)
    assert release.records == small.num_rows
    assert pq.read_table(tmp_path / "out" / "data.parquet").column_names == ["Education"]


def test_a_table_may_be_very_wide(policy, key, tmp_path):
    letters = pa.array([*string.ascii_letters] * 4)
    wide = {f"column {i}": letters for i in range(200)}
    with rp.read(pa.table(wide | {"s": sorted("wxyz" * 52)}), sensitive="s", public="all") as table:
        release = table.publish(policy, tmp_path / "out", key=key)
    assert release.records == 208
    assert len(pq.read_table(tmp_path / "out" / "data.parquet").column_names) == 201


def test_single_precision_numbers_come_with_a_word_on_what_they_count_as(tmp_path):
    column = pa.array([0.1, 0.7, 0.7, 0.3] * 5, pa.float32())
    table = pa.table({"x": column, "y": column.cast(pa.float64()), "s": list("abab") * 5})
    with pytest.warns(rp.ReconprivWarning, match=r"'x' holds single-precision.*0\.7 counts as"):
        opened = rp.read(table, sensitive="s", public="all")
    with opened:
        assert len(opened.warnings) == 1
        # The reason for the note: the 0.7 of the table is not the one of the condition.
        assert opened.count("x = 0.7") == 0 and opened.count("x > 0.69 AND x < 0.71") == 10


def test_one_column_may_be_given_as_text(tiny):
    with rp.read(tiny, sensitive="s", public="g") as opened:
        assert [column.name for column in opened.schema.public] == ["g"]
    with rp.read(tiny, sensitive="s", public="all", drop="g") as opened:
        assert opened.schema.public == ()


def test_a_list_of_paths_is_one_table(tmp_path):
    whole = pa.table({"g": ["a", "b", "a"], "s": ["x", "y", "y"]})
    for i in range(3):
        pq.write_table(whole.slice(i, 1), tmp_path / f"{i}.parquet")
    with rp.read(
        [tmp_path / f"{i}.parquet" for i in range(3)], sensitive="s", public="all"
    ) as table:
        assert table.schema.records == 3
    (tmp_path / "x.csv").write_text("g,s\na,x\n")
    with pytest.raises(rp.ReconprivError, match="different kinds"):
        rp.read([tmp_path / "0.parquet", tmp_path / "x.csv"], sensitive="s", public="all")
