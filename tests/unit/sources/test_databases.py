"""SQLite and DuckDB files as inputs and outputs, table names, and database URLs."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.columns.schema import Kind
from reconpriv.engines.duckdb.engine import DuckDBEngine
from reconpriv.errors import InputError, MissingFileError, OutputError
from reconpriv.sources.databases.table_names import parse_table_name
from reconpriv.sources.databases.url import has_password, is_database, postgresql_url

FILES = ["people.sqlite", "people.db", "people.duckdb", "small.db"]


def make_sqlite(path, table, name="people"):
    columns = ", ".join(f'"{column}"' for column in table.column_names)
    places = ", ".join("?" * table.num_columns)
    connection = sqlite3.connect(path)
    connection.execute(f'CREATE TABLE "{name}" ({columns})')
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    connection.executemany(f'INSERT INTO "{name}" VALUES ({places})', rows)
    connection.commit()
    connection.close()


def make_duckdb(path, **tables):
    with duckdb.connect(str(path)) as connection:
        for name, table in tables.items():
            connection.register("arriving", table)
            connection.execute(f'CREATE TABLE "{name}" AS FROM arriving')


@pytest.fixture(scope="module")
def files(small, tmp_path_factory):
    """The same small table in every kind of file; small.db is a DuckDB file with that ending."""
    folder = tmp_path_factory.mktemp("databases")
    make_sqlite(folder / "people.sqlite", small)
    shutil.copy(folder / "people.sqlite", folder / "people.db")
    make_duckdb(folder / "people.duckdb", people=small)
    shutil.copy(folder / "people.duckdb", folder / "small.db")
    pq.write_table(small, folder / "people.parquet")
    return folder


def refusal(*args, **settings):
    with pytest.raises((InputError, MissingFileError)) as caught:
        rp.read(*args, **{"public": "all"} | settings).close()
    return str(caught.value)


# In


@pytest.mark.parametrize("sql", [None, "FROM input"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_gives_the_same_bytes_as_parquet(files, tmp_path, key, policy, files_of, name, sql):
    for source, table, out in (("people.parquet", None, "a"), (name, "People", "b")):
        asked = {"table": table, "sql": sql if table else None}
        with rp.read(files / source, sensitive="Education", public="all", **asked) as opened:
            opened.publish(policy, tmp_path / out, key=key)
    assert files_of(tmp_path / "b") == files_of(tmp_path / "a")


def test_urls_of_files(files, monkeypatch):
    monkeypatch.chdir(files)
    for url in ("sqlite:///people.sqlite", f"sqlite:///{files}/people.db", "duckdb:///small.db"):
        with rp.read(url, table="main.people", sensitive="Education", public="all") as table:
            assert table.schema.records == 4000
    assert "The URL names no file" in refusal("sqlite://", table="x", sensitive="y")
    assert "The URL names no file" in refusal("sqlite://host/x.db", table="x", sensitive="y")
    assert refusal("duckdb:///none.db", table="x", sensitive="y") == "There is no file 'none.db'."


@pytest.mark.parametrize("name", FILES)
def test_a_table_that_is_not_named_or_not_there(files, name):
    path = files / name
    asked = {"sensitive": "Education", "public": "all"}
    assert refusal(path, **asked) == (
        "Which table of the database? Name it with `table`. It has: people."
    )
    assert refusal(path, table="peple", **asked) == (
        "The database has no table peple. Did you mean people?"
    )
    assert "no table other.people. Did you mean people?" in refusal(
        path, table="other.people", **asked
    )
    assert "is not the name of a table" in refusal(path, table='"people', **asked)
    with pytest.raises(InputError, match="Which table"):
        rp.describe(path)
    assert rp.describe(path, table="people").records == 4000


@pytest.mark.parametrize("name", ["gone.sqlite", "gone.db", "gone.duckdb"])
def test_a_file_that_is_not_there(tmp_path, name):
    assert refusal(tmp_path / name, table="x", sensitive="y").startswith(
        f"There is no file {name!r}."
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"no database at all, but some words of a secret"])
@pytest.mark.parametrize("name", ["x.sqlite", "x.db", "x.duckdb"])
def test_a_file_that_is_no_database(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    message = refusal(tmp_path / name, table="x", sensitive="y")
    assert message.startswith(f"{name} is neither a SQLite nor a DuckDB database.")


@pytest.mark.parametrize("name", ["people.sqlite", "people.duckdb"])
def test_a_damaged_file(files, tmp_path, name):
    content = bytearray((files / name).read_bytes())
    for part in (content[: len(content) // 3], content[:50], content[:100] + b"x" * 20_000):
        (tmp_path / name).write_bytes(part)
        message = refusal(tmp_path / name, table="people", sensitive="Education")
        assert name in message and str(tmp_path) not in message


def test_a_table_option_without_a_database(files):
    assert "Only databases and spreadsheets hold several tables" in refusal(
        files / "people.parquet", table="people", sensitive="Education"
    )


def test_spark_is_not_asked_for_a_database(files):
    assert "Only DuckDB reads" in refusal(files / "people.db", sensitive="y", engine="spark")


SQLITE_COLUMNS = {
    "whole": ([1, None, 2**60], Kind.INTEGER),
    "real": ([0.5, None, float("inf")], Kind.NUMBER),
    "both": ([1, 2.5, None], Kind.NUMBER),
    "large": ([2**60 + 1, 2.5, 1.0], Kind.STRING),
    "mixed": (["a", 1.0, 2], Kind.STRING),
    "text": (["a", "A", None], Kind.STRING),
    "empty": ([None, None, None], Kind.STRING),
    "blob": ([b"x", "y", None], Kind.OTHER),
}


def test_a_sqlite_column_is_what_all_its_values_are(tmp_path):
    table = tmp_path / "typed.sqlite"
    connection = sqlite3.connect(table)
    connection.execute(f"CREATE TABLE t ({', '.join(SQLITE_COLUMNS)}, y INTEGER)")
    rows = zip(*(values for values, _ in SQLITE_COLUMNS.values()), strict=True)
    for number, row in enumerate(rows):
        places = ", ".join("?" * (len(row) + 1))
        connection.execute(f"INSERT INTO t VALUES ({places})", (*row, number))
    connection.commit()
    connection.close()
    found = {column.name: column.kind for column in rp.describe(table, table="t").columns}
    assert found == {
        **{name: kind.value for name, (_, kind) in SQLITE_COLUMNS.items()},
        "y": "integer",
    }
    assert "'blob' holds values of a type that cannot" in refusal(table, table="t", sensitive="y")
    with rp.read(table, table="t", sensitive="y", public="all", drop="blob") as opened:
        kinds = {column.name: column.kind.value for column in opened.schema.public}
        assert kinds == {name: found[name] for name in kinds}
        assert opened.count(text="a") == 1
        assert [opened.count(mixed=value) for value in ("a", "1", "2")] == [1, 1, 1]
        assert opened.count(large=str(2**60 + 1)) == 1


def test_text_of_sqlite_is_told_apart_by_its_bytes(tmp_path):
    connection = sqlite3.connect(tmp_path / "t.db")
    connection.executescript(
        "CREATE TABLE t (name TEXT COLLATE NOCASE, y);"
        " INSERT INTO t VALUES ('N', 1), ('n', 1), ('N', 1), ('N', 2)"
    )
    connection.close()
    with rp.read(tmp_path / "t.db", table="t", sensitive="y", public="all") as table:
        assert table.count(name="N") == 3 and table.count(name="n") == 1


def test_a_sqlite_file_is_only_read_and_views_work(tmp_path):
    file = tmp_path / "v.db"
    connection = sqlite3.connect(file)
    connection.executescript(
        'CREATE TABLE "Odd ""Name" (x, y); CREATE VIEW seen AS SELECT * FROM "Odd ""Name";'
        " CREATE VIEW broken AS SELECT * FROM nowhere;"
        ' INSERT INTO "Odd ""Name" VALUES (1, 1), (1, 2);'
        " CREATE TABLE bare (x, y);"
    )
    connection.close()
    before = file.read_bytes()
    for name in ("seen", '"odd ""name"'):
        with rp.read(file, table=name, sensitive="y", public="all") as table:
            assert table.schema.records == 2
    assert "has a view that does not work" in refusal(file, table="broken", sensitive="y")
    assert refusal(file, table="bare", sensitive="y").startswith("The table is empty.")
    assert file.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["v.db"]


def test_a_sqlite_file_that_another_program_writes(files, tmp_path, monkeypatch):
    monkeypatch.setattr("reconpriv.sources.databases.sqlite._PATIENCE", 0.1)
    shutil.copy(files / "people.db", tmp_path / "busy.db")
    writer = sqlite3.connect(tmp_path / "busy.db", isolation_level=None)
    writer.execute("PRAGMA locking_mode = EXCLUSIVE")
    writer.execute("BEGIN EXCLUSIVE")
    try:
        message = refusal(tmp_path / "busy.db", table="people", sensitive="Education")
        assert message == "busy.db is locked by another program. Try again when it is done."
    finally:
        writer.close()


def test_a_sqlite_file_with_a_write_ahead_log(tmp_path):
    file = tmp_path / "logged.db"
    writer = sqlite3.connect(file)
    writer.executescript(
        "PRAGMA journal_mode = WAL; CREATE TABLE t (x, y); INSERT INTO t VALUES (1, 1), (1, 2)"
    )
    writer.close()
    before = file.read_bytes()
    rp.read(file, table="t", sensitive="y", public="all").close()
    assert file.read_bytes() == before and list(tmp_path.iterdir()) == [file]
    writer = sqlite3.connect(file)
    writer.execute("INSERT INTO t VALUES (1, 3)")
    writer.commit()
    with rp.read(file, table="t", sensitive="y", public="all") as table:
        assert table.schema.records == 3  # what is still in the log counts
    writer.close()


def test_text_of_a_sqlite_file_that_is_not_utf_8(tmp_path):
    connection = sqlite3.connect(tmp_path / "t.db")
    connection.executescript(
        "CREATE TABLE t (x, y); INSERT INTO t VALUES (CAST(x'736563726574ff' AS TEXT), 1), ('b', 2)"
    )
    connection.close()
    message = refusal(tmp_path / "t.db", table="t", sensitive="y")
    assert message.startswith("t.db holds text that is not UTF-8.") and "secret" not in message


def test_a_sqlite_query_can_be_interrupted(tmp_path, scratch):
    connection = sqlite3.connect(tmp_path / "slow.db")
    connection.executescript(
        "CREATE VIEW slow AS WITH RECURSIVE n(y) AS (SELECT 1 UNION ALL SELECT y + 1 FROM n)"
        " SELECT y % 3 AS y FROM n"
    )
    connection.close()
    engine = DuckDBEngine(tmp_path / "slow.db", table="slow")
    ended: list[BaseException] = []

    def keep():
        try:
            engine.expect_columns(["y"])
        except BaseException as error:
            ended.append(error)

    worker = threading.Thread(target=keep)
    worker.start()
    while worker.is_alive():
        engine.interrupt()
        worker.join(0.2)
    engine.close()
    assert [type(error) for error in ended] == [KeyboardInterrupt]
    assert list(scratch.iterdir()) == []


def test_duckdb_types_and_schemas(tmp_path):
    file = tmp_path / "typed.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(
            "CREATE SCHEMA other; CREATE TYPE mood AS ENUM ('b', 'a');"
            " CREATE TABLE other.t AS SELECT 'a'::mood AS mood, 1::HUGEINT AS wide,"
            " 2::UHUGEINT AS strange, uuid() AS id, INTERVAL 1 DAY AS gap, [1] AS list,"
            " 1.50::DECIMAL(9, 2) AS price, i AS y FROM range(3) r(i);"
            " CREATE VIEW seen AS SELECT * FROM other.t"
        )
    kinds = {
        "mood": "string", "wide": "integer", "strange": "integer", "id": "string", "gap": "other",
        "list": "other", "price": "decimal", "y": "integer",
    }  # fmt: skip
    for name in ("other.t", "SEEN"):
        found = rp.describe(file, table=name)
        assert {column.name: column.kind for column in found.columns} == kinds
        with rp.read(file, table=name, sensitive="y", public=["mood", "wide", "price"]) as table:
            assert table.count(mood="a", wide=1) == 3
    assert "It has: seen, other.t." in refusal(file, sensitive="y")


def test_a_duckdb_file_is_let_go_of_once_it_has_been_counted(files, tmp_path):
    file = tmp_path / "free.duckdb"
    shutil.copy(files / "people.duckdb", file)
    with rp.read(file, table="people", sensitive="Education", public="all") as table:
        with duckdb.connect(str(file)) as writer:
            writer.execute("DELETE FROM people")
        assert table.count() == 4000


def test_a_duckdb_file_that_another_program_writes(files, tmp_path):
    file = tmp_path / "busy.duckdb"
    shutil.copy(files / "people.duckdb", file)
    code = f"import duckdb; c = duckdb.connect({str(file)!r}); print('open', flush=True); input()"
    other = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert other.stdout is not None and other.stdout.readline() == b"open\n"
        message = refusal(file, table="people", sensitive="Education")
    finally:
        other.communicate(b"\n", timeout=60)
    assert message.startswith("busy.duckdb is open in another program.")
    assert str(tmp_path) not in message


# Out


@pytest.mark.parametrize("name", ["made.sqlite", "made.db", "made.duckdb", "duckdb:///made.x"])
def test_a_release_goes_into_a_file_and_out_again(small, tmp_path, key, policy, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with rp.read(small, sensitive="Education", public="all") as table:
        release = table.publish(policy, "out", key=key)
    assert release.to_table(name, "survey") == ("survey", "survey_groups", "survey_manifest")
    source = name
    assert rp.describe(source, table="survey").records == 4000
    engine = DuckDBEngine(source, table="survey")
    assert engine.to_arrow().to_pydict() == release.to_arrow().to_pydict()
    engine.close()
    groups = DuckDBEngine(source, table="survey_groups")
    assert groups.to_arrow().to_pydict() == pq.read_table("out/groups.parquet").to_pydict()
    groups.close()
    manifest = DuckDBEngine(source, table="survey_manifest")
    (text,) = manifest.to_arrow().column("manifest").to_pylist()
    manifest.close()
    assert text == Path("out/datapackage.json").read_text()
    with pytest.raises(OutputError, match=r"The table .SURVEY. exists"):
        release.to_table(name, "SURVEY")
    release.to_table(name, "survey", overwrite=True)


@pytest.mark.parametrize("file_format", ["csv", "cells"])
def test_other_formats_go_into_tables_as_they_are_stored(small, tmp_path, key, policy, file_format):
    with rp.read(small, sensitive="Education", public="all") as table:
        release = table.publish(policy, tmp_path / "out", key=key, file_format=file_format)
    release.to_table(tmp_path / "x.duckdb", "survey")
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        counted = "sum(count)" if file_format == "cells" else "count(*)"
        assert connection.execute(f"SELECT {counted} FROM survey").fetchall() == [(4000,)]


def test_what_sqlite_has_no_type_for_is_text(tmp_path, key, policy):
    moment = dt.datetime(2024, 5, 6, 7, 8, 9)
    table = pa.table(
        {
            "price": pa.array([decimal.Decimal("1.50"), None], pa.decimal128(9, 2)),
            "day": pa.array([dt.date(2024, 5, 6), None]),
            "at": pa.array([moment, None], pa.timestamp("us")),
            "flag": pa.array([True, None]),
            "real": pa.array([0.5, None]),
            "y": pa.array([1, 2]),
        }
    )
    with rp.read(table, sensitive="y", public="all") as opened:
        release = opened.publish(policy, tmp_path / "out", key=key)
    release.to_table(tmp_path / "x.db", "t")
    connection = sqlite3.connect(tmp_path / "x.db")
    first = connection.execute("SELECT price, day, at, flag, real FROM t").fetchone()
    connection.close()
    assert first == ("1.50", "2024-05-06", "2024-05-06T07:08:09", 1, 0.5)


@pytest.mark.parametrize("name", ["x.db", "x.duckdb"])
def test_only_an_earlier_release_is_replaced(small, tmp_path, key, policy, name):
    file = tmp_path / name
    with rp.read(small, sensitive="Education", public="all") as table:
        release = table.publish(policy, tmp_path / "out", key=key)
    (make_sqlite(file, small) if name == "x.db" else make_duckdb(file, people=small))
    for overwrite in (False, True):
        with pytest.raises(OutputError, match="The table people exists"):
            release.to_table(file, "people", overwrite=overwrite)
    assert rp.describe(file, table="people").records == 4000
    with pytest.raises(OutputError, match="has no schema"):
        release.to_table(file, "nowhere.survey")
    with pytest.raises(OutputError, match="There is no folder"):
        release.to_table(tmp_path / "none" / name, "survey")


@pytest.mark.parametrize("name", ["x.db", "x.duckdb"])
def test_a_table_that_the_earlier_release_did_not_make_stays(small, tmp_path, key, name):
    file = tmp_path / name
    with rp.read(small, sensitive="Education", public="all") as table:
        policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none")
        release = table.publish(policy, tmp_path / "out", key=key)
    assert release.to_table(file, "r") == ("r", "r_manifest")
    if name == "x.db":
        make_sqlite(file, small, "r_groups")
    else:
        make_duckdb(file, r_groups=small)
    with pytest.raises(OutputError, match="The table r_groups exists and is not part of the rel"):
        release.to_table(file, "r", overwrite=True)
    assert rp.describe(file, table="r_groups").records == 4000
    assert rp.describe(file, table="r").records == 4000


@pytest.mark.parametrize("name", ["new.db", "new.duckdb"])
def test_a_load_that_fails_leaves_no_file(small, tmp_path, key, policy, monkeypatch, name):
    with rp.read(small, sensitive="Education", public="all") as table:
        release = table.publish(policy, tmp_path / "out", key=key)

    def fail(self):
        assert (tmp_path / name).exists()
        raise KeyboardInterrupt

    monkeypatch.setattr("reconpriv.sources.databases.write._FileWriter.commit", fail)
    with pytest.raises(KeyboardInterrupt):
        release.to_table(tmp_path / name, "survey")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_the_command_loads_into_the_database_of_the_table_or_another(files, tmp_path, cli, scratch):
    shutil.copy(files / "people.duckdb", tmp_path / "p.duckdb")
    table = (
        tmp_path / "p.duckdb", "-s", "Education", "--public=all", "--table", "people",
        "--test-key",
    )  # fmt: skip
    done = cli("publish", *table, "--to-table", "survey")
    assert done.code == 0, done.err
    assert "Release survey in a DuckDB file" in done.out
    assert "survey, survey_groups, survey_margins, survey_manifest" in done.out
    both = cli(
        "publish", *table[:1], tmp_path / "out", *table[1:], "--to-table", "survey", "--to",
        tmp_path / "q.sqlite", "--json",
    )  # fmt: skip
    assert both.code == 0, both.err
    told = json.loads(both.out)
    assert told["tables"] == ["survey", "survey_groups", "survey_margins", "survey_manifest"]
    assert told["release"] == str(tmp_path / "out")
    assert (tmp_path / "out" / "datapackage.json").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "out", "p.duckdb", "q.sqlite", "scratch",
    ]  # fmt: skip
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "Where should the release go?"),
        (["--to", "x.db"], "--to needs --to-table"),
        (["--to-table", "t"], "Which database should --to-table load into?"),
        (["--to-table", "t", "--to", "x.csv"], "Tables can only be made in a database."),
        (["--to-table", "a.b.c", "--to", "x.db"], "'a.b.c' is not the name of a table."),
        (["--to-table", "t", "--to", "none/x.db"], "There is no folder none"),
    ],
)
def test_options_that_do_not_go_together(cli, tmp_path, monkeypatch, options, sentence):
    monkeypatch.chdir(tmp_path)
    done = cli("publish", "example:adult", "-s", "occupation", "--public=all", *options)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert list(tmp_path.iterdir()) == []


# Names and URLs


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("people", (None, "people", "people")),
        ("Survey.People", ("Survey", "People", "people")),
        ('"My Schema"."Peo.ple"', ("My Schema", "Peo.ple", "Peo.ple")),
        ('s."a ""b"""', ("s", 'a "b"', 'a "b"')),
    ],
)
def test_names_are_taken_apart_at_the_dots(text, parts):
    name = parse_table_name(text)
    assert (name.schema, name.table, name.folded_table) == parts


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a.b.c", '"a', 'a"b', '""', " "])
def test_what_is_no_name(text):
    with pytest.raises(InputError, match="is not the name of a table"):
        parse_table_name(text)


def test_urls_are_told_and_never_repeated(cli, tmp_path):
    assert is_database("postgres://h/d") and is_database(Path("postgresql://h/d"))
    assert is_database("X.SQLITE3") and not is_database("x.parquet") and not is_database(7)
    assert has_password("postgresql://u:p@h/d") and has_password("postgresql://h/d?password=p")
    assert not has_password("postgresql://u@h:5432/d") and not has_password("a:b@c.csv")
    assert postgresql_url("postgresql:/u@h/d").startswith("postgresql://u@h/d?connect_timeout=")
    for url in ("mysql://u:hidden@h/d", "mysql://u:hidden@h", "s3://u:hidden@h/x.parquet"):
        done = cli("audit", url, "-s", "y", "--public=all")
        assert done.code == 2 and "URL of this kind" in done.err and "hidden" not in done.err
    assert "one at a time" in refusal(["postgresql://u:hidden@h/d"], sensitive="y")
    assert os.listdir(tmp_path) == []


LOGINS = [
    "postgresql://bob:hidden@127.0.0.1:1/db",
    "host=127.0.0.1 user=bob password=hidden dbname=db",
    "jdbc:postgresql://127.0.0.1/db?user=bob&password=hidden",
    "bob:hidden@127.0.0.1/db",
]
COMMANDS = {
    "audit TABLE": ("audit", "URL", "-s", "s", "--public=all"),
    "audit, a word too many": ("audit", "a.csv", "URL", "-s", "s", "--public=all"),
    "audit --report": ("audit", "a.csv", "-s", "s", "--public=all", "--report", "URL/x.html"),
    "audit --groups": ("audit", "a.csv", "-s", "s", "--public=all", "--groups", "URL/x.csv"),
    "audit --groups, kind": ("audit", "a.csv", "-s", "s", "--public=all", "--groups", "URL"),
    "audit --domain": ("audit", "a.csv", "-s", "s", "--public=all", "--domain", "URL"),
    "audit -s": ("audit", "a.csv", "-s", "postgresql://bob:hidden@h/d", "--public=all"),
    "audit --worst": ("audit", "a.csv", "-s", "s", "--public=all", "--worst=URL"),
    "publish --key": ("publish", "a.csv", "out", "-s", "s", "--public=all", "--key", "URL"),
    "publish --to": (
        "publish", "a.csv", "-s", "s", "--public=all", "--to-table", "t", "--to", "URL",
    ),
    "publish --to-table": (
        "publish", "a.csv", "-s", "s", "--public=all", "--to", "x.db", "--to-table",
        "postgresql://bob:hi dden@h.x.y",
    ),
    "keygen": ("keygen", "URL/x"),
    "info": ("info", "URL"),
    "query --batch": ("query", "rel", "--batch", "URL"),
    "query -o": ("query", "rel", "--batch", "q.csv", "-o", "URL/x"),
    "export": ("export", "rel", "URL"),
    "report": ("report", "rel", "URL"),
    "report -o": ("report", "rel", "-o", "URL/x.html"),
    "workload -o": (
        "workload", "a.csv", "-s", "s", "--public=all", "--queries", "1", "-o", "URL/x",
    ),
    "tune -o": ("tune", "a.csv", "-s", "s", "--public=all", "-o", "URL/x"),
    "attack": ("attack", "micro", "URL"),
    "experiment --data": ("experiment", "distribution", "--out", "study", "--data", "URL"),
    "no command": ("URL",),
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table, a release and a batch of queries."""
    folder = tmp_path_factory.mktemp("logins")
    (folder / "a.csv").write_text("g,s\n" + "1,x\n2,y\n1,y\n" * 20)
    (folder / "q.csv").write_text("g,s\n1,x\n")
    with rp.read(folder / "a.csv", sensitive="s", public="all") as table:
        table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3),
            folder / "rel",
            key=rp.Key(bytes(range(32))),
        )
    return folder


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_no_message_repeats_a_login(command, cli, place, monkeypatch):
    monkeypatch.chdir(place)
    before = set(os.listdir(place))
    for login in LOGINS:
        done = cli(*(word.replace("URL", login) for word in command))
        assert done.code == 2 and "hidden@" not in done.err + done.out
        assert "bob" not in done.err + done.out and "=hidden" not in done.err + done.out
    assert set(os.listdir(place)) == before


def test_no_folder_is_made_of_a_url(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in (("demo", "--out"), ("experiment", "distribution", "--out")):
        done = cli(*command, LOGINS[0])
        assert done.code == 2 and "not a URL" in done.err and "bob" not in done.err
    assert os.listdir(tmp_path) == []
