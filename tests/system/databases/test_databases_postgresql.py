"""Tables of a real PostgreSQL server: the same releases, clear errors, and no credentials."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import signal
import subprocess
import sys
import threading
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from postgres_server import DATABASE, PASSWORD, USER, running_server
from reconpriv.columns.schema import Kind
from reconpriv.engines.duckdb.engine import DuckDBEngine
from reconpriv.errors import InputError, OutputError
from reconpriv.sources.databases.postgresql import PostgresTable

PUBLIC = ["Age", "Gender", "Marital", "Race", "Workclass", "Occupation"]


@pytest.fixture(scope="module")
def server(census, small):
    with running_server() as server:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("census", census)
            cursor.adbc_ingest("small", small)
        # Each row takes a while, so that there is a middle to do something in.
        server.run("CREATE VIEW slow AS SELECT * FROM small WHERE pg_sleep(0.05) IS NOT NULL")
        yield server


@pytest.fixture
def schema(server):
    """A schema of one test's own."""
    name = f"t{os.urandom(4).hex()}"
    server.run(f"CREATE SCHEMA {name}")
    yield name
    server.run(f"DROP SCHEMA {name} CASCADE")


def refusal(*args, **settings):
    with pytest.raises(InputError) as caught:
        rp.read(*args, **{"public": "all"} | settings).close()
    return str(caught.value)


def publish(source, out, key, policy, **settings):
    with rp.read(source, **settings) as table:
        table.publish(policy, out, key=key)
    return out


# The same bytes


@pytest.mark.parametrize("sql", [None, "FROM input"])
def test_the_census_gives_the_same_bytes_as_from_parquet(
    server, tmp_path, key, policy, census_release, files_of, sql
):
    expected = files_of(census_release("Education").path)
    made = publish(
        server.url(), tmp_path / "release", key, policy,
        table="census", sql=sql, sensitive="Education", public=PUBLIC,
    )  # fmt: skip
    assert files_of(made) == expected
    assert set(expected) == {"data.parquet", "groups.parquet", "datapackage.json"}


def typed_rows():
    """Rows as SQL texts, and the same as Arrow."""
    moment = dt.datetime(2024, 5, 6, 7, 8, 9, 123456)
    utc = moment.replace(tzinfo=dt.UTC)
    number = uuid.UUID(int=7)
    columns = {
        "small": pa.array([1, None, -3], pa.int16()),
        "big": pa.array([2**62, 5, None], pa.int64()),
        "price": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")],
                          pa.decimal128(10, 2)),
        "whole": pa.array([decimal.Decimal(7), decimal.Decimal(8), None], pa.decimal128(12, 0)),
        "Free Number": pa.array([1, 2, 3], pa.int64()),
        "real": pa.array([0.1, None, float("inf")], pa.float64()),
        "half": pa.array([0.5, 1.25, None], pa.float32()),
        "flag": pa.array([True, False, None]),
        "day": pa.array([dt.date(1999, 12, 31), None, dt.date(1, 1, 1)]),
        "at": pa.array([moment, moment, None], pa.timestamp("us")),
        "moment": pa.array([utc, None, utc], pa.timestamp("us", "UTC")),
        "clock": pa.array([dt.time(1, 2, 3, 4), None, dt.time(23, 59)], pa.time64("us")),
        "id": pa.array([str(number), None, str(number)]),
        "mood": pa.array(["sad", "glad", None]),
        "padded": pa.array(["ab", "c", None]),
        "folded": pa.array(["Ann", "ann", None]),
        "loose": pa.array(["x", "X", None]),
        "told": pa.array(["né", "", None]),
        "age in years": pa.array([30, 40, None], pa.int64()),
        'odd "name"; --': pa.array(["a", "b", "a"]),
    }  # fmt: skip
    rows = [
        f"1, {2**62}, 1.5, 7, 1.0, 0.1, 0.5, true, '1999-12-31', '{moment}', '{moment}+00',"
        f" '01:02:03.000004', '{number}', 'sad', 'ab', 'Ann', 'x', 'né', 30, 'a'",
        f"NULL, 5, NULL, 8, 2.00, 'NaN', 1.25, false, NULL, '{moment}', NULL, NULL, NULL, 'glad',"
        " 'c  ', 'ann', 'X', '', 40, 'b'",
        f"-3, NULL, -2.25, 'NaN', 3, 'Infinity', NULL, NULL, '0001-01-01', NULL,"
        f" '{moment}+00', '23:59', '{number}', NULL, NULL, NULL, NULL, NULL, NULL, 'a'",
    ]
    return rows, pa.table(columns)


def test_every_type_gives_the_same_bytes_as_from_parquet(
    server, schema, tmp_path, key, policy, files_of
):
    rows, expected = typed_rows()
    server.run(
        f"SET search_path = {schema}, public",
        "CREATE EXTENSION IF NOT EXISTS citext SCHEMA public",
        f"SET search_path = {schema}, public; CREATE TYPE mood AS ENUM ('sad', 'glad');"
        " CREATE DOMAIN years AS int CHECK (VALUE > 0); CREATE DOMAIN age AS years;"
        " CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2',"
        " deterministic = false);"
        " CREATE TABLE typed (small int2, big int8, price numeric(10, 2), whole numeric(12),"
        ' "Free Number" numeric, "real" float8, half float4, flag bool, day date, at timestamp,'
        " moment timestamptz, clock time, id uuid, mood mood, padded char(5), folded citext,"
        ' loose text COLLATE loose, told varchar(9), "age in years" age,'
        ' "odd ""name""; --" text);'
        + " ".join(f"INSERT INTO typed VALUES ({row});" for row in rows),
    )
    pq.write_table(expected, tmp_path / "typed.parquet")
    asked = {"sensitive": 'odd "name"; --', "public": "all"}
    here = publish(tmp_path / "typed.parquet", tmp_path / "file", key, policy, **asked)
    there = publish(
        server.url(), tmp_path / "server", key, policy, table=f"{schema}.typed", **asked
    )
    assert files_of(there) == files_of(here)


NUMBERS = [
    ("numeric", ["1", "2.00", "NULL"], Kind.INTEGER),
    ("numeric", ["1", "2.5", "'NaN'"], Kind.DECIMAL),
    ("numeric", ["1" + "0" * 25, "2", "3"], Kind.DECIMAL),
    ("numeric", ["1" + "0" * 39, "2", "3"], Kind.STRING),
    ("numeric", ["'Infinity'", "2", "3"], Kind.STRING),
    ("numeric(50)", ["5", "6", "NULL"], Kind.INTEGER),
    ("numeric(3, 5)", ["0.00123", "0.00456", "0"], Kind.DECIMAL),
    ("numeric(3, -2)", ["12300", "45600", "0"], Kind.INTEGER),
    ("oid", ["7", "8", "NULL"], Kind.INTEGER),
    ("inet", ["'10.0.0.1'", "'::1'", "NULL"], Kind.STRING),
    ("text", ["NULL", "NULL", "NULL"], Kind.STRING),
]


def test_a_number_is_what_all_its_values_say(server, schema):
    columns = ", ".join(f"c{i} {declared}" for i, (declared, _, _) in enumerate(NUMBERS))
    rows = zip(*(values for _, values, _ in NUMBERS), strict=True)
    filled = ", ".join(f"({', '.join(row)}, {i})" for i, row in enumerate(rows))
    server.run(
        f"CREATE TABLE {schema}.numbers ({columns}, y int);"
        f" INSERT INTO {schema}.numbers VALUES {filled}"
    )
    with rp.read(server.url(), table=f"{schema}.numbers", sensitive="y", public="all") as table:
        found = [column.kind for column in table.schema.public]
        assert found == [kind for _, _, kind in NUMBERS]
        assert table.count(c1=decimal.Decimal("2.5")) == 1 and table.count("c1 IS NULL") == 1
        assert table.count(c3="1" + "0" * 39) == 1


NESTED = [
    ("json", "'{\"a\": 1}'"), ("int[]", "'{1,2}'"), ("bytea", "'x'"), ("interval", "'1 day'"),
    ("timetz", "'10:00+02'"), ("int4range", "'[1,3)'"), ("point", "'(1,2)'"),
]  # fmt: skip


def test_nested_and_binary_values_cannot_be_published_but_stand_in_nobodys_way(server, schema):
    names = [f"c{i}" for i in range(len(NESTED))]
    columns = ", ".join(f"{n} {declared}" for n, (declared, _) in zip(names, NESTED, strict=True))
    row = ", ".join(value for _, value in NESTED)
    server.run(
        f"CREATE TABLE {schema}.odd ({columns}, y int);"
        f" INSERT INTO {schema}.odd VALUES ({row}, 1), ({row}, 2)"
    )
    asked = {"table": f"{schema}.odd", "sensitive": "y", "public": "all"}
    for name in names:
        message = refusal(server.url(), **asked | {"public": [name]})
        assert message.startswith(f"Column {name!r} holds values of a type that cannot")
    rp.read(server.url(), **asked, drop=names).close()
    with rp.read(server.url(), **asked, sql="SELECT y, decode(c1) AS x FROM input") as table:
        assert table.count(x="{1,2}") == 2
    found = rp.describe(server.url(), table=f"{schema}.odd")
    assert [c.kind for c in found.columns] == ["other"] * len(names) + ["integer"]


@pytest.mark.parametrize("declared", ["date", "timestamp", "timestamptz"])
@pytest.mark.parametrize("value", ["infinity", "0044-03-15 BC"])
def test_dates_that_python_does_not_know_are_refused(server, schema, declared, value, policy):
    server.run(
        f"CREATE TABLE {schema}.days (x {declared}, y int);"
        f" INSERT INTO {schema}.days VALUES ('{value}', 1), ('2020-01-01', 2)"
    )
    with pytest.raises(InputError, match="outside the years 1 to 9999"):
        rp.read(server.url(), table=f"{schema}.days", sensitive="y", public="all").audit(policy)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_of_another_encoding(server, encoding):
    name = f"old_{encoding.lower()}"
    server.run(
        f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0",
        database="postgres",
    )
    server.run(
        "SET client_encoding = 'UTF8'",
        "CREATE TABLE t AS SELECT 'café'::text AS x, i AS y FROM generate_series(1, 2) i",
        database=name,
    )
    with rp.read(server.url(name), table="t", sensitive="y", public="all") as table:
        assert table.count(x="café") == 2
    if encoding == "SQL_ASCII":
        server.run("SET client_encoding = 'SQL_ASCII'; UPDATE t SET x = E'\\xe9'", database=name)
        assert "not UTF-8" in refusal(server.url(name), table="t", sensitive="y")
        rp.read(server.url(name), table="t", sensitive="y", public="all", drop="x").close()


def test_a_time_that_no_day_has_is_refused(server, schema):
    server.run(
        f"CREATE TABLE {schema}.times AS SELECT '24:00'::time AS x, i AS y"
        " FROM generate_series(1, 2) i"
    )
    assert "a value out of range" in refusal(server.url(), table=f"{schema}.times", sensitive="y")


# Tables and their names


@pytest.fixture
def named(server, schema):
    odd = f'"{schema} Odd"'
    server.run(
        f'CREATE SCHEMA {odd}; CREATE TABLE {odd}."Peo.ple" (x int, y int);'
        f' INSERT INTO {odd}."Peo.ple" VALUES (1, 1), (1, 2);'
        f' CREATE VIEW {schema}.seen AS SELECT * FROM {odd}."Peo.ple";'
        f" CREATE MATERIALIZED VIEW {schema}.stored AS SELECT * FROM {schema}.seen;"
        f" CREATE TABLE {schema}.parts (x int, y int) PARTITION BY LIST (y);"
        f" CREATE TABLE {schema}.part1 PARTITION OF {schema}.parts FOR VALUES IN (1);"
        f" CREATE TABLE {schema}.part2 PARTITION OF {schema}.parts FOR VALUES IN (2);"
        f" INSERT INTO {schema}.parts VALUES (1, 1), (1, 2);"
        f' CREATE TABLE {schema}."Mixed" AS SELECT * FROM {schema}.seen;'
        f" CREATE SEQUENCE {schema}.counter; CREATE TABLE {schema}.bare ();"
    )
    yield schema
    server.run(f"DROP SCHEMA {odd} CASCADE")


@pytest.mark.parametrize(
    "name",
    ["{0}.seen", "{0}.SEEN", "{0}.stored", "{0}.parts", '"{0} Odd"."Peo.ple"', "{0}.Mixed",
     '"{0}"."Mixed"', " {0} . seen "],
)  # fmt: skip
def test_tables_views_and_partitioned_tables_are_found_by_name(server, named, name):
    with rp.read(server.url(), table=name.format(named), sensitive="y", public="all") as table:
        assert table.schema.records == 2


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (None, "Which table of the database? Name it with `table`. It has: "),
        ("{0}.sean", "The database has no table {0}.sean. Did you mean {0}.seen?"),
        ("smal", "The database has no table smal. Did you mean small?"),
        ("nowhere.small", "no table nowhere.small. Did you mean small?"),
        ('{0}."mixed"', 'Did you mean {0}."Mixed"?'),
        ("zzzzzzzz", "The database has no table zzzzzzzz. It has: "),
        ("{0}.counter", "{0}.counter is neither a table nor a view."),
        ("{0}.bare", "The table {0}.bare has no columns."),
        ("a.b.c", "'a.b.c' is not the name of a table."),
        ("a..b", "'a..b' is not the name of a table."),
        ("", "'' is not the name of a table."),
        ("x'; DROP TABLE small; --", "The database has no table x'; DROP TABLE small; --."),
    ],
)
def test_a_table_that_is_not_there(server, named, name, sentence):
    asked = None if name is None else name.format(named)
    assert sentence.format(named) in refusal(server.url(), table=asked, sensitive="y")
    assert server.ask("SELECT count(*) FROM small") == [(4000,)]


def test_the_search_path_is_followed(server, named, monkeypatch):
    monkeypatch.setenv("PGOPTIONS", f"-csearch_path={named}")
    with rp.read(server.url(), table="seen", sensitive="y", public="all") as table:
        assert table.schema.records == 2


def test_an_empty_table(server, schema):
    server.run(f"CREATE TABLE {schema}.nothing (x int, y int)")
    for sql in (None, "FROM input"):
        message = refusal(server.url(), table=f"{schema}.nothing", sensitive="y", sql=sql)
        assert message.startswith("The table is empty.")


def test_what_a_user_may_not_read(server, schema):
    role = f"{schema}_guest"
    server.run(
        f"CREATE ROLE {role} LOGIN PASSWORD 'guest-secret';"
        f" CREATE TABLE {schema}.part (x int, hidden int, y int);"
        f" INSERT INTO {schema}.part VALUES (1, 1, 1), (1, 1, 2)"
    )
    url = server.url(login=f"{role}:guest-secret@")
    try:
        asked = {"table": f"{schema}.part", "sensitive": "y", "public": "all"}
        assert refusal(url, **asked).startswith("The database does not permit it.")
        server.run(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        assert refusal(url, **asked).startswith("The database does not permit it.")
        server.run(f"GRANT SELECT (x, y) ON {schema}.part TO {role}")
        assert refusal(url, **asked).startswith("The database does not permit it.")
        rp.read(url, **asked, drop="hidden").close()
        assert "small" not in refusal(url, sensitive="y")
    finally:
        server.run(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_a_row_policy_does_not_give_a_part_for_the_whole(server, schema):
    role = f"{schema}_guest"
    server.run(
        f"CREATE ROLE {role} LOGIN PASSWORD 'guest-secret';"
        f" CREATE TABLE {schema}.t AS SELECT i % 2 AS x, i % 3 AS y, i::numeric AS n"
        f" FROM generate_series(1, 30) i; CREATE VIEW {schema}.v AS SELECT * FROM {schema}.t;"
        f" GRANT USAGE ON SCHEMA {schema} TO {role}; ALTER VIEW {schema}.v OWNER TO {role};"
        f" GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role};"
        f" CREATE POLICY few ON {schema}.t USING (x = 1);"
        f" ALTER TABLE {schema}.t ENABLE ROW LEVEL SECURITY"
    )
    url = server.url(login=f"{role}:guest-secret@")
    try:
        for name in ("t", "v"):
            for more in ({}, {"drop": "n"}, {"drop": "n", "sql": "FROM input"}):
                message = refusal(url, table=f"{schema}.{name}", sensitive="y", **more)
                assert message.startswith("A row policy hides some records from this user.")
        with rp.read(server.url(), table=f"{schema}.t", sensitive="y", public="all") as table:
            assert table.schema.records == 30  # a superuser sees all
    finally:
        server.run(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_an_address_is_as_the_server_shows_it(server, schema):
    shown = ["10.0.0.1", "10.0.0.1/24", "2001:db8::1", "2001:db8::/64"]
    values = ", ".join(f"('{one}'::inet, {i})" for i, one in enumerate(shown))
    server.run(f"CREATE TABLE {schema}.t (a, y) AS VALUES {values}")
    with rp.read(server.url(), table=f"{schema}.t", sensitive="y", public="all") as table:
        assert [table.count(a=one) for one in shown] == [1, 1, 1, 1]


def test_a_view_that_fails_is_said_without_its_values(server, schema):
    server.run(
        f"CREATE VIEW {schema}.broken AS SELECT ('secret-' || i)::int AS x, i AS y"
        " FROM generate_series(1, 3) i"
    )
    message = refusal(server.url(), table=f"{schema}.broken", sensitive="y")
    assert message.startswith("The PostgreSQL server could not do it (SQLSTATE 22P02).")
    assert "secret" not in message


def test_reading_cannot_change_anything(server, schema):
    server.run(
        f"CREATE TABLE {schema}.log (x int);"
        f" CREATE FUNCTION {schema}.spy() RETURNS int LANGUAGE plpgsql AS"
        f" 'BEGIN INSERT INTO {schema}.log VALUES (1); RETURN 1; END';"
        f" CREATE VIEW {schema}.trap AS SELECT {schema}.spy() AS x, i AS y"
        " FROM generate_series(1, 2) i"
    )
    assert "is read-only" in refusal(server.url(), table=f"{schema}.trap", sensitive="y")
    assert server.ask(f"SELECT count(*) FROM {schema}.log") == [(0,)]


def test_a_table_that_changes_meanwhile_is_read_as_it_was(server, schema):
    server.run(f"CREATE TABLE {schema}.live AS SELECT i % 2 AS y FROM generate_series(1, 10) i")
    engine = DuckDBEngine(server.url(), table=f"{schema}.live")
    try:
        server.run(f"INSERT INTO {schema}.live SELECT 7 FROM generate_series(1, 5)")
        engine.expect_columns(["y"])
        assert engine.value_counts(engine.columns()[0]) == {0: 5, 1: 5}
        assert server.ask(
            "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
        ) == [(0,)]
    finally:
        engine.close()


# Credentials


def secretless(text, server):
    return not any(secret in text for secret in server.secrets)


@pytest.mark.parametrize("place", ["url", "query", "variable", "passfile", "service"])
def test_credentials_come_from_the_usual_places(server, place, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    url = server.url(login=f"{USER}@")
    if place == "url":
        url = server.url().replace("postgresql://", "postgres://")
    elif place == "query":
        login = server.url().split("//")[1].split("@")[0].split(":")
        url = f"{server.url(login='')}?user={login[0]}&password={login[1]}"
    elif place == "variable":
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        monkeypatch.setenv("PGUSER", USER)
        monkeypatch.setenv("PGHOST", "127.0.0.1")
        monkeypatch.setenv("PGPORT", str(server.port))
        monkeypatch.setenv("PGDATABASE", DATABASE)
        url = "postgresql://"
    elif place == "passfile":
        file = tmp_path / "pgpass"
        file.write_text(
            f"127.0.0.1:{server.port}:*:{USER}:{PASSWORD.replace(':', chr(92) + ':')}\n"
        )
        file.chmod(0o600)
        monkeypatch.setenv("PGPASSFILE", str(file))
    else:
        file = tmp_path / "services"
        file.write_text(
            f"[survey]\nhost=127.0.0.1\nport={server.port}\nuser={USER}\ndbname={DATABASE}\n"
            f"password={PASSWORD}\n"
        )
        monkeypatch.setenv("PGSERVICEFILE", str(file))
        monkeypatch.setenv("PGSERVICE", "survey")
        url = "postgresql://"
    with rp.read(url, table="small", sensitive="Education", public="all") as table:
        assert table.schema.records == 4000


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("pa55-", "wrong-"), "did not accept the user and password"),
        ((":pa55-W%C3%B6rd%3Awith%2Fodd%40signs", ""), "did not accept the user and password"),
        ((USER, "nobody_at_all"), "did not accept the user and password"),
        (("/people", "/nowhere_at_all"), "has no such database"),
        (("127.0.0.1", "no-such-host.invalid"), "cannot be reached"),
        (("127.0.0.1", "[127.0.0.1"), "URL of the database is malformed"),
        (("/people", "/people?sslmode=hidden-word"), "An option of the database's URL"),
        (("/people", "/people?hidden=word"), "URL of the database is malformed"),
        (("/people", "/people?sslmode=require"), "No secure connection"),
    ],
)
def test_a_connection_that_fails_is_told_in_one_sentence_of_ours(
    server, change, sentence, cli, monkeypatch
):
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RECONPRIV_DEBUG", "1")
    url = server.url().replace(*change)
    assert url != server.url()
    done = cli("audit", url, "-s", "Education", "--public=all", "--table", "small")
    assert (done.code, done.out) == (2, "")
    error = done.err.splitlines()[-1]
    assert error.startswith("error: ") and sentence in error
    for secret in (*server.secrets, "nobody_at_all", "nowhere_at_all", "hidden", "wrong-"):
        assert secret not in done.err


def test_the_drivers_words_do_not_hang_on_our_error(server):
    with pytest.raises(InputError) as caught:
        rp.read(server.url(login=f"{USER}:wrong@"), table="small", sensitive="y", public="all")
    assert caught.value.__context__ is None and caught.value.__cause__ is None


def test_a_server_that_is_not_there(server, cli):
    done = cli(
        "audit", f"postgresql://{USER}@127.0.0.1:1/people", "-s", "y", "--public=all", "--table",
        "small",
    )  # fmt: skip
    assert done.code == 2
    assert "The PostgreSQL server cannot be reached." in done.err
    assert secretless(done.err, server)


def test_nothing_shows_a_credential(server, cli, tmp_path):
    table = (server.url(), "-s", "Education", "--public=all", "--table", "small")
    audit = cli("audit", *table)
    assert audit.code in (0, 1)
    assert "Other users of this machine can see the password" in audit.err
    made = cli(
        "publish", *table[:1], tmp_path / "out", *table[1:], "--test-key",
        "--to-table", "seen_by_all", "--report", tmp_path / "publish.html",
    )  # fmt: skip
    assert made.code == 0, made.err
    in_database = server.ask("SELECT manifest FROM seen_by_all_manifest")[0][0]
    server.run("DROP TABLE seen_by_all, seen_by_all_groups, seen_by_all_manifest")
    texts = [audit.out, audit.err, made.out, made.err, in_database]
    report = (tmp_path / "publish.html").read_text()
    assert "small" in report  # that is what it calls the table
    texts += [report, *(p.read_bytes().decode("latin1") for p in (tmp_path / "out").iterdir())]
    assert all(secretless(text, server) for text in texts)


def test_a_url_given_for_a_release_a_folder_or_to_spark_is_not_repeated(server, cli, tmp_path):
    url = server.url()
    for command in (
        ("info", url),
        ("query", url, "SELECT count(*) FROM release"),
        ("publish", "example:adult", url, "-s", "occupation", "--public=all", "--missing", "drop"),
        ("publish", "example:adult", url, "-s", "occupation", "--public=all", "--engine", "spark"),
        ("audit", url, "-s", "y", "--public=all", "--engine", "spark"),
        ("audit", url.replace("postgresql", "mysql"), "-s", "y", "--public=all"),
        ("audit", url, "-s", "y", "--public=all", "--sql", "FROM input"),
        ("audit", "example:adult", "-s", "occupation", "--public=all", "--domain", url),
        ("audit", "example:adult", url, "-s", "occupation", "--public=all"),
        ("keygen", url),
    ):
        done = cli(*command)
        assert done.code == 2, command[0]
        assert secretless(done.out + done.err, server), command[0]


def test_without_the_driver_the_extra_is_named(server, monkeypatch):
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)
    message = refusal(server.url(), table="small", sensitive="y")
    assert message.startswith(
        "PostgreSQL needs adbc-driver-postgresql, which is not installed. Install what is missing"
        " (the extra 'databases'): "
    )
    assert "-m pip install '" in message and "'adbc-driver-postgresql>=" in message


# Out


def tables_of(server, schema):
    found = server.ask(f"SELECT tablename::text FROM pg_tables WHERE schemaname = '{schema}'")
    return {row[0] for row in found}


def test_a_release_goes_into_tables_as_it_is(server, schema, small, key, policy, tmp_path):
    with rp.read(small, sensitive="Education", public="all") as table:
        release = table.publish(policy, tmp_path / "out", key=key)
    made = release.to_table(server.url(), f"{schema}.survey")
    assert made == tuple(f"{schema}.survey{end}" for end in ("", "_groups", "_manifest"))
    assert tables_of(server, schema) == {"survey", "survey_groups", "survey_manifest"}
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {schema}.survey")
        data = cursor.fetch_arrow_table()
        cursor.execute(f"SELECT * FROM {schema}.survey_groups")
        groups = cursor.fetch_arrow_table()
    assert data.to_pydict() == release.to_arrow().to_pydict()
    assert data.column_names == release.column_names()
    assert groups.to_pydict() == pq.read_table(tmp_path / "out" / "groups.parquet").to_pydict()
    assert server.ask(f"SELECT manifest FROM {schema}.survey_manifest") == [
        ((tmp_path / "out" / "datapackage.json").read_text(),)
    ]
    # And back in again: every published table is a table.
    with rp.read(
        server.url(), table=f"{schema}.survey", sensitive="Education", public="all"
    ) as table:
        assert table.schema.records == 4000


def test_every_type_goes_out(server, schema, key, policy, tmp_path):
    _, typed = typed_rows()
    with rp.read(typed, sensitive='odd "name"; --', public="all") as table:
        release = table.publish(policy, tmp_path / "out", key=key)
    release.to_table(server.url(), f'{schema}."Odd Name"')
    found = server.ask(
        "SELECT column_name::text, data_type::text FROM information_schema.columns"
        f" WHERE table_schema = '{schema}' AND table_name = 'Odd Name' ORDER BY ordinal_position"
    )
    kinds = dict(found)
    assert list(kinds) == release.column_names()
    assert {name: kinds[name] for name in ("big", "price", "real", "flag", "day", "moment")} == {
        "big": "bigint", "price": "numeric", "real": "double precision", "flag": "boolean",
        "day": "date", "moment": "timestamp with time zone",
    }  # fmt: skip
    with rp.read(
        server.url(), table=f'{schema}."Odd Name"', sensitive='odd "name"; --', public="all"
    ) as table:
        names = [column.name for column in table.schema.public]
        back = table.engine.columns()
        assert names == release.column_names()[:-1]
        assert {c.name: c.kind for c in back}["day"] is Kind.DATE


def test_only_an_earlier_release_is_replaced(server, schema, small, key, policy, tmp_path):
    with rp.read(small, sensitive="Education", public="all") as table:
        release = table.publish(policy, tmp_path / "octave", key=key)
        plain = table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none"),
            tmp_path / "none",
            key=key,
        )
    name = f"{schema}.survey"
    release.to_table(server.url(), name)
    with pytest.raises(OutputError, match=f"The table {name} exists already"):
        release.to_table(server.url(), name)
    plain.to_table(server.url(), name, overwrite=True)
    assert tables_of(server, schema) == {"survey", "survey_manifest"}
    server.run(f"CREATE VIEW {schema}.rests AS SELECT * FROM {name}")
    with pytest.raises(OutputError, match="Something else in the database depends on the table"):
        release.to_table(server.url(), name, overwrite=True)
    server.run(f"DROP VIEW {schema}.rests; CREATE TABLE {schema}.mine AS SELECT 1 AS x")
    for foreign in ("mine", "other"):
        with pytest.raises(OutputError, match="is not a release; it will not be replaced"):
            release.to_table(server.url(), f"{schema}.{foreign}", overwrite=True)
        server.run(f"CREATE TABLE IF NOT EXISTS {schema}.other_manifest AS SELECT '{{}}'::text")
    assert server.ask(f"SELECT x FROM {schema}.mine") == [(1,)]
    with pytest.raises(OutputError, match="no schema nowhere"):
        release.to_table(server.url(), "nowhere.survey")
    with pytest.raises(OutputError, match=r"The name of table x+_manifest is too long"):
        release.to_table(server.url(), f"{schema}.{'x' * 60}")
    with pytest.raises(OutputError, match="Tables can only be made in a database"):
        release.to_table(tmp_path / "x.csv", "survey")


def test_a_name_that_is_too_long_is_told_before_any_work(server, schema, cli, tmp_path):
    done = cli(
        "publish", tmp_path / "none.csv", "-s", "y", "--public=all", "--to", server.url(),
        "--to-table", f"{schema}.{'x' * 60}",
    )  # fmt: skip
    assert done.code == 2 and "is too long for the database" in done.err


def test_what_postgresql_does_not_take(server, schema, key, policy, tmp_path):
    table = pa.table({"x": ["a\0b", "c"] * 20, "y": [1, 2, 2, 1] * 10})
    with rp.read(table, sensitive="y", public="all") as opened:
        release = opened.publish(policy, tmp_path / "out", key=key)
    with pytest.raises(OutputError, match="text with a null character"):
        release.to_table(server.url(), f"{schema}.t")
    role = f"{schema}_guest"
    server.run(
        f"CREATE ROLE {role} LOGIN PASSWORD 'guest-secret'; GRANT USAGE ON SCHEMA {schema} TO"
        f" {role}"
    )
    try:
        url = server.url(login=f"{role}:guest-secret@")
        with pytest.raises(OutputError, match=f"create tables in the schema {schema}"):
            release.to_table(url, f"{schema}.t")
        with pytest.raises(OutputError, match="create tables in the schema public"):
            release.to_table(url, "t")
    finally:
        server.run(f"DROP OWNED BY {role}; DROP ROLE {role}")
    assert tables_of(server, schema) == set()


def test_a_load_that_fails_leaves_neither_tables_nor_folder(server, schema, cli, scratch, tmp_path):
    server.run(
        f"CREATE FUNCTION {schema}.refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN"
        " IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity LIKE"
        " '%survey_groups') THEN RAISE EXCEPTION 'private words'; END IF; END$$;"
        f" CREATE EVENT TRIGGER refuse ON ddl_command_end EXECUTE FUNCTION {schema}.refuse()"
    )
    try:
        done = cli(
            "publish", server.url(), tmp_path / "out", "-s", "Education", "--public=all",
            "--table", "small", "--test-key", "--to-table", f"{schema}.survey",
        )  # fmt: skip
    finally:
        server.run("DROP EVENT TRIGGER refuse")
    assert done.code == 2
    assert "The PostgreSQL server could not do it" in done.err and "private" not in done.err
    assert tables_of(server, schema) == set()
    assert not (tmp_path / "out").exists()
    assert list(scratch.iterdir()) == []


def test_without_a_folder_only_the_tables_stay(server, schema, cli, scratch, tmp_path):
    before = set(tmp_path.iterdir())
    done = cli(
        "publish", server.url(), "-s", "Education", "--public=all", "--table", "small",
        "--test-key", "--to-table", f"{schema}.Survey",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert f"Release {schema}.survey in a PostgreSQL database" in done.out
    assert secretless(done.out + done.err, server)
    tables = {"survey", "survey_groups", "survey_margins", "survey_manifest"}
    assert tables_of(server, schema) == tables
    assert set(tmp_path.iterdir()) == before and list(scratch.iterdir()) == []
    again = cli(
        "publish", server.url(), "-s", "Education", "--public=all", "--table", "small",
        "--test-key", "--to-table", f"{schema}.survey",
    )  # fmt: skip
    assert (again.code, again.out) == (2, "")
    assert f"The table {schema}.survey exists already." in again.err


# Interrupts and lost servers


def start(server, scratch, *args):
    return subprocess.Popen(
        [sys.executable, "-m", "reconpriv", *map(str, args)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=scratch.parent,
        env={**os.environ, "TMPDIR": str(scratch), "RECONPRIV_DEBUG": "1"},
    )  # fmt: skip


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_query_in_the_server_too(server, scratch, number, code):
    command = start(
        server, scratch, "audit", server.url(), "-s", "Education", "--public=all", "--table", "slow"
    )
    server.wait_for("slow", command)
    command.send_signal(number)
    out, err = command.communicate(timeout=60)
    assert (command.returncode, out) == (code, b"")
    assert b"interrupted: nothing unfinished was left behind." in err and b"Traceback" not in err
    assert list(scratch.iterdir()) == []
    assert server.running("slow") == []


@pytest.mark.parametrize("whole", [False, True])
def test_another_thread_can_interrupt_the_fetching(server, scratch, whole):
    engine = DuckDBEngine(server.url(), table="slow")
    ended: list[BaseException] = []

    def fetch():
        try:
            engine.to_arrow() if whole else engine.expect_columns(["Education"])
        except BaseException as error:
            ended.append(error)

    worker = threading.Thread(target=fetch)
    worker.start()
    server.wait_for("slow")
    engine.interrupt()
    worker.join(60)
    engine.close()
    assert [type(error) for error in ended] == [KeyboardInterrupt]
    assert list(scratch.iterdir()) == [] and server.running("slow") == []


def test_a_stream_that_is_given_up_ends_in_the_server_too(server):
    # 64 billion rows, made one by one: whoever fetched what is left would be at it for hours.
    server.run("CREATE VIEW endless AS SELECT a.*, 1 AS y FROM small a, small b, small c")
    table = PostgresTable(server.url(), "endless")
    batches = table.fetch(["Education", "y"])
    assert next(batches).num_rows > 0
    table.close()
    server.wait_until_ended("endless")


def test_a_query_that_the_server_ends(server, monkeypatch):
    monkeypatch.setenv("PGOPTIONS", "-cstatement_timeout=300")
    for sql in (None, "FROM input"):
        message = refusal(server.url(), table="slow", sensitive="Education", sql=sql)
        assert message.startswith("The server ended the query before it was done.")


def test_killing_the_server_in_the_middle_of_an_audit(small, scratch):
    with running_server() as server:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("small", small)
        server.run("CREATE VIEW slow AS SELECT * FROM small WHERE pg_sleep(0.05) IS NOT NULL")
        groups = scratch.parent / "groups.csv"
        command = start(
            server, scratch, "audit", server.url(), "-s", "Education", "--public=all", "--table",
            "slow", "--groups", groups,
        )  # fmt: skip
        server.wait_for("slow", command)
        server.kill()
        out, err = command.communicate(timeout=60)
    warning, *rest = err.decode().splitlines()
    assert (command.returncode, out) == (2, b"")
    assert rest == [
        "error: The connection to the PostgreSQL server was lost. Nothing was left behind;"
        " try again when the server is running."
    ]
    assert "password in the command" in warning and secretless(err.decode(), server)
    assert list(scratch.iterdir()) == [] and not groups.exists()


def test_killing_the_server_while_a_release_is_loaded(small, scratch, tmp_path):
    with running_server() as server:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("small", small)
        server.run(
            "CREATE FUNCTION linger() RETURNS event_trigger LANGUAGE plpgsql AS"
            " 'BEGIN PERFORM pg_sleep(120); END';"
            " CREATE EVENT TRIGGER linger ON ddl_command_end WHEN TAG IN ('CREATE TABLE')"
            " EXECUTE FUNCTION linger()"
        )
        command = start(
            server, scratch, "publish", server.url(), tmp_path / "out", "-s", "Education",
            "--public=all", "--table", "small", "--test-key", "--to-table", "survey",
        )  # fmt: skip
        server.wait_for("CREATE TABLE", command)
        os.kill(server.postmaster, signal.SIGQUIT)  # what pg_ctl stop -m immediate sends
        out, err = command.communicate(timeout=60)
    assert (command.returncode, out) == (2, b"")
    assert b"The connection to the PostgreSQL server was lost." in err
    assert b"Traceback" not in err and secretless(err.decode(), server)
    assert list(scratch.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scratch"]


def test_margins_are_the_same_bytes_as_from_parquet(server, tmp_path, key, census, files_of):
    policy = rp.Policy(
        retention=0.5,
        tolerance=0.5,
        doubt=0.3,
        margins=rp.Margins(1.0, tables=["Age", ("Race", "Gender")]),
    )
    roles = {"sensitive": "Education", "public": PUBLIC}
    expected = publish(census, tmp_path / "arrow", key, policy, **roles)
    made = publish(server.url(), tmp_path / "server", key, policy, table="census", **roles)
    assert files_of(made) == files_of(expected)
    assert "margins.parquet" in files_of(made)
