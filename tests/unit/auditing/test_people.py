"""One row, one person: who has several rows, and what a publication does about it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from peoples_rows import peoples_rows
from reconpriv.auditing.obstacles import People
from reconpriv.engines.duckdb import groups as duckdb_groups
from reconpriv.errors import InputError

ROLES = {"sensitive": "result", "public": ["ward"], "person": "pid"}


@pytest.fixture(scope="module")
def visits():
    """150 people: 50 each with one row, two and five."""
    return peoples_rows([1, 2, 5], 50)


@pytest.fixture
def file(visits, tmp_path):
    path = tmp_path / "visits.parquet"
    pq.write_table(visits, path)
    return path


def with_column(table, name, lacking):
    """The same table with the first values of a column missing."""
    values = [None if i < lacking else v for i, v in enumerate(table[name].to_pylist())]
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def people_of(table, **more):
    with rp.read(table, **(ROLES | more)) as opened:
        return opened.checks.people


def test_people_are_counted(visits):
    assert people_of(visits) == People(people=150, several=100, most=5)
    assert people_of(visits, person=None) is None


def test_people_are_counted_across_batches(visits, monkeypatch):
    monkeypatch.setattr(duckdb_groups, "BATCH", 7)
    monkeypatch.setattr(duckdb_groups, "_LEAST_BATCH", 7)
    assert people_of(visits) == People(people=150, several=100, most=5)


def test_rows_of_nobody_are_counted_and_refused(visits, tmp_path):
    lacking = with_column(visits, "pid", 30)
    counts = (
        pa.table({"pid": lacking["pid"].drop_null()}).group_by("pid").aggregate([([], "count_all")])
    )
    sizes = counts["count_all"].to_pylist()
    expected = People(len(sizes), sum(n > 1 for n in sizes), max(sizes), unknown=30)
    assert people_of(lacking) == expected
    with rp.read(lacking, **ROLES) as table:
        with pytest.raises(InputError, match="30 records have no value in 'pid'"):
            table.publish(
                rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3),
                tmp_path / "r",
                key=rp.Key.test(),
            )
        report = table.audit(rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3))
    assert [one.about for one in report.obstacles] == ["people"]
    # Nobody can choose one row of a person who is not named.
    with pytest.raises(InputError, match="30 records have no value in 'pid'"):
        rp.read(lacking, rows_per_person="one", **ROLES)
    assert not (tmp_path / "r").exists()


def test_a_row_that_is_dropped_is_nobodys(visits):
    lacking = with_column(visits, "result", 40)
    left = lacking.filter(lacking["result"].is_valid())
    sizes = left.group_by("pid").aggregate([([], "count_all")])["count_all"].to_pylist()
    expected = People(len(sizes), sum(n > 1 for n in sizes), max(sizes))
    assert people_of(lacking, missing="drop") == expected
    assert people_of(lacking, missing="value") == People(people=150, several=100, most=5)


def test_an_audit_names_them(cli, file):
    done = cli("audit", file, "-s", "result", "--public", "ward", "--person", "pid")
    assert done.code == 1
    text = " ".join(done.out.split())
    assert "100 of 150 people have several rows (up to 5)" in text
    assert "--rows-per-person one" in text


def test_people_with_several_rows_are_refused_and_nothing_is_written(cli, file, tmp_path, key):
    out, secret = tmp_path / "release", tmp_path / "my.key"
    key.write(secret)
    given = ("publish", file, out, "-s", "result", "--public", "ward", "--key", secret)
    done = cli(*given, "--person", "pid")
    assert done.code == 2
    assert "100 of 150 people have several rows (up to 5)" in done.err
    assert "--rows-per-person one" in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my.key", "visits.parquet"]
    done = cli(*given, "--person", "pid", "--rows-per-person", "one")
    assert done.code == 0, done.err
    release = rp.open(out)
    assert release.records == 150
    assert release.description.one_row_per_person


def test_a_table_of_one_row_each_is_checked_and_another_is_not(visits, tmp_path, key):
    single = peoples_rows([1], 200)
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
    said = {}
    for person in ("pid", None):
        with rp.read(single, **(ROLES | {"person": person})) as table:
            release = table.publish(policy, tmp_path / str(person), key=key)
        said[person] = release.description.one_row_per_person
        assert ("one row each, as was checked" in release.promise) == (person is not None)
        assert ("which was not checked" in release.not_promised) == (person is None)
    assert said == {"pid": True, None: False}
    files = [(tmp_path / str(one) / "data.parquet").read_bytes() for one in said]
    assert files[0] == files[1], "the check changes no record"


@pytest.mark.parametrize("file_format", ["parquet", "csv", "cells"])
def test_the_persons_column_is_never_in_a_release(cli, file, tmp_path, key, file_format):
    out, secret = tmp_path / "release", tmp_path / "my.key"
    internal, analysts = tmp_path / "internal.html", tmp_path / "analysts.html"
    key.write(secret)
    done = cli(
        "publish", file, out, "-s", "result", "--public", "ward,visit", "--person", "pid",
        "--rows-per-person", "one", "--key", secret, "--format", file_format, "--max-unique", "1",
        "--report", internal,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert cli("report", out, "-o", analysts).code == 0
    names = [column.name for column in rp.open(out).description.schema.columns]
    assert names == ["ward", "visit", "result"]
    # Parquet packs its values, so its records are looked at as tables.
    for one in out.glob("*.parquet"):
        values = [value for column in pq.read_table(one).columns for value in column.to_pylist()]
        assert not any(str(value).startswith("p0") for value in values)
    for path in [*(one for one in out.rglob("*") if one.is_file()), analysts]:
        assert b"pid" not in path.read_bytes(), path.name
        assert b"p0000" not in path.read_bytes(), path.name
    assert b"p0000" not in internal.read_bytes()
    said = "In every group of people (one row each, as was checked) who agree"
    assert said in analysts.read_text() and said in internal.read_text()


def test_the_persons_column_has_no_other_role(visits):
    for roles in ({"public": ["ward", "pid"]}, {"sensitive": "pid"}, {"drop": ["pid"]}):
        with pytest.raises(InputError, match="'pid'"):
            rp.read(visits, **(ROLES | roles))
    with rp.read(visits, **(ROLES | {"public": "all"})) as table:
        assert [column.name for column in table.schema.public] == ["visit", "ward"]
