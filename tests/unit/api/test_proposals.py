"""Proposed roles: on made tables of twelve kinds, from Python, the command line and formats."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.cli.process.output import TYPED, say_roles
from reconpriv.errors import RolesError
from steward_tables import TABLES


def proposed(made, table):
    found = rp.propose_roles(table, sensitive=made.sensitive)
    return {
        one.column: f"{one.role} {one.bins}".strip()
        for one in found.columns
        if one.role != "sensitive"
    }


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("source", ["arrow", "csv", "parquet"])
def test_every_column_gets_the_right_role(name, source, tmp_path):
    made = TABLES[name]()
    table: object = made.table
    if source != "arrow":
        table = tmp_path / f"t.{source}"
        write = pa.csv.write_csv if source == "csv" else pq.write_table
        write(made.table, table)
    found = proposed(made, table)
    assert found.keys() == made.roles.keys()
    for column, role in made.roles.items():
        if (source, column) == ("csv", "admitted"):
            assert found[column] == "drop"  # CSV keeps timestamps as texts
        elif role.endswith("*"):
            assert found[column].startswith(role[:-1]) and found[column] != role[:-2]
        else:
            assert found[column] == role, column


@pytest.mark.parametrize("name", TABLES)
def test_a_table_without_roles_is_refused_with_the_proposal(name, tmp_path, cli):
    made = TABLES[name]()
    file, out = tmp_path / "t.parquet", tmp_path / "out"
    pq.write_table(made.table, file)
    for words in (("audit", file), ("publish", file, out, "--test-key")):
        done = cli(*words, "-s", made.sensitive)
        assert done.code == 2 and not out.exists()
        for column, role in made.roles.items():
            line = next(one for one in done.err.splitlines() if one.split()[:1] == [column])
            assert line.split()[1] == role.split()[0]
    with pytest.raises(rp.ReconprivError) as refused:
        rp.read(made.table, sensitive=made.sensitive)
    assert all(column in str(refused.value) for column in made.roles)


@pytest.mark.parametrize("name", TABLES)
def test_the_proposed_roles_can_be_published(name, tmp_path):
    made = TABLES[name]()
    found = rp.propose_roles(made.table, sensitive=made.sensitive)
    people = found.named("person")
    release = rp.publish(
        made.table,
        rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3),
        sensitive=made.sensitive,
        public=found.named("public"),
        drop=found.named("drop"),
        person=people[0] if people else None,
        rows_per_person="one" if people else "refuse",
        bin=found.bins,
        key=rp.Key.generate(),
        max_unique=1.0,  # months of visits by years of birth single most people out
    )
    assert set(release.column_names) == {*found.named("public"), made.sensitive}


def test_the_command_shows_a_proposal_and_the_command_that_accepts_it(tmp_path, cli):
    file = tmp_path / "t.parquet"
    pq.write_table(TABLES["visits"]().table, file)
    done = cli("columns", file, "-s", "diagnosis")
    assert done.code == 0
    assert "--drop patient" in done.out and "--bin visit=month" in done.out
    plain = cli("columns", file)
    assert plain.code == 0 and "give its value away" in plain.out
    told = cli("columns", file, "-s", "diagnosis", "--json")
    assert '"role": "drop"' in told.out and "--public" in told.out


def test_all_others_are_public_only_if_that_is_said(tmp_path):
    table = pa.table({"a": ["x", "y"] * 20, "b": [1, 2] * 20, "s": ["u", "v"] * 20})
    with rp.read(table, sensitive="s", public="all") as every:
        assert [column.name for column in every.schema.public] == ["a", "b"]
    with rp.read(table, sensitive="s", public="all", drop="b") as some:
        assert [column.name for column in some.schema.public] == ["a"]
    with rp.read(table, sensitive="s", public=["a"]) as named:
        assert [column.name for column in named.schema.public] == ["a"]
    odd = pa.table({"all": ["x", "y"] * 20, "b": [1, 2] * 20, "s": ["u", "v"] * 20})
    with rp.read(odd, sensitive="s", public=["all"]) as called:
        assert [column.name for column in called.schema.public] == ["all"]


@pytest.mark.parametrize(
    "roles",
    [
        {"public": ["a"], "drop": ["a"]},
        {"public": ["s"]},
        {"public": "all", "drop": ["s"]},
        {"public": ["a"], "person": "a"},
        {"public": "all", "person": "s"},
        {"public": ["b"], "drop": ["a"], "person": "a"},
    ],
)
def test_no_column_has_two_roles(roles):
    table = pa.table({"a": ["x", "y"] * 20, "b": [1, 2] * 20, "s": ["u", "v"] * 20})
    with pytest.raises(rp.ReconprivError, match="two roles"):
        rp.read(table, sensitive="s", **roles)  # type: ignore[arg-type]


def people(rows, people=600):
    dice = np.random.default_rng(rows)
    return {
        "region": dice.choice(list("NESW"), people * rows),
        "s": np.repeat(dice.choice(["u", "v", "w"], people), rows),
    }


@pytest.mark.parametrize("rows", [2, 3, 5])
@pytest.mark.parametrize("number", ["pid", "who"])
def test_the_number_of_people_with_several_rows_is_the_persons(rows, number):
    named = [f"u{i}" if number == "who" else 5_000 + 7 * i for i in range(600)]
    table = pa.table({number: [one for one in named for _ in range(rows)], **people(rows)})
    assert rp.propose_roles(table, sensitive="s").named("person") == [number]


def test_no_date_area_or_measure_is_taken_for_a_person():
    dice = np.random.default_rng(3)
    days = [f"2024-{m:02}-{d:02}" for m in range(1, 13) for d in range(1, 29)]
    columns = {
        "visit": dice.choice(days, 1_800),
        "zip": [f"{one:05}" for one in dice.integers(10_000, 10_300, 1_800)],
        "height": dice.integers(1_500, 1_900, 1_800),
        "pid": np.repeat(np.arange(600), 3),
        **people(3),
    }
    found = rp.propose_roles(pa.table(columns), sensitive="s")
    assert found.named("person") == ["pid"]


def test_the_proposed_command_keeps_what_was_typed(tmp_path, cli):
    file, query = tmp_path / "t.parquet", "SELECT * FROM input WHERE region <> 'N'"
    pq.write_table(pa.table(people(1)), file)
    done = cli("columns", file, "-s", "s", "--sql", query)
    assert "WHERE region <>" in done.out and "--sql" in done.out
    assert "reconpriv audit" not in cli("columns", file).out


def test_a_password_is_hidden_whatever_it_holds(cli):
    for word in ("s3'cret", 's3"cret', "s3 cret", "s3cret"):
        error = RolesError("x", rp.Proposals(0, None, ()))
        TYPED[:] = ["audit", f"postgresql://bob:{word}@h/db", "-s", "x"]
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            say_roles(error)
        assert "cret" not in shown.getvalue() and "-s x" in shown.getvalue()


def test_a_column_called_all_is_asked_about():
    table = pa.table({"all": ["x", "y"] * 20, "b": [1, 2] * 20, "s": ["u", "v"] * 20})
    with pytest.raises(rp.ReconprivError, match="has a column 'all'"):
        rp.read(table, sensitive="s", public="all")


def test_an_audit_says_what_is_left_out_and_asks_about_people():
    table = pa.table({"pid": np.repeat(np.arange(600), 2), **people(2)})
    with rp.read(table, sensitive="s", public=["region"]) as opened:
        report = opened.audit(rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3))
    assert report.left_out == ("pid",) and "left out" in str(report)
    assert any("'pid' is left out" in hint and 'person="pid"' in hint for hint in report.hints)


@pytest.mark.parametrize("source", ["csv", "parquet", "frame", "stream"])
@pytest.mark.parametrize("rows", [1, 2])
def test_a_number_of_people_that_was_left_out_is_counted(source, rows, tmp_path, cli):
    table = pa.table({"pid": np.repeat(np.arange(600), rows), **people(rows)})
    file, given = tmp_path / f"t.{source}", table
    if source in ("csv", "parquet"):
        (pa.csv.write_csv if source == "csv" else pq.write_table)(table, file)
        done = cli("publish", file, tmp_path / "out", "-s", "s", "--public", "region", "--test-key")
        assert done.code == 0
        assert ("600 values in 1,200 records" in done.err) == (rows == 2)
        assert "--person pid" in done.err
        given = file
    elif source == "stream":
        given = table.to_reader()
    with rp.read(given, sensitive="s", public=["region"]) as opened:
        (hint,) = opened.person_hint()
        file.unlink(missing_ok=True)
        assert opened.person_hint() == (hint,)
    assert ("600 values in 1,200 records" in hint) == (rows == 2 and source != "stream")
    assert ("nothing checks" in hint) == (rows == 1 or source == "stream")


def test_a_table_that_is_gone_costs_the_hint_its_figures_and_nothing_else(tmp_path):
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"pid": np.repeat(np.arange(600), 2), **people(2)}), file)
    with rp.read(file, sensitive="s", public=["region"]) as opened:
        file.rename(tmp_path / "moved.parquet")
        assert "nothing checks" in opened.person_hint()[0]


def test_times_with_a_zone_need_no_library_beyond_the_core(monkeypatch):
    """DuckDB makes Python's times with pytz, which nothing here installs."""
    monkeypatch.setitem(sys.modules, "pytz", None)
    hours = [dt.datetime(2024, 1, 1 + i % 3, tzinfo=dt.UTC) for i in range(300)]
    table = pa.table(
        {
            "seen": pa.array(hours, pa.timestamp("us", "UTC")),
            "ill": [("flu", "cold")[i // 7 % 2] for i in range(300)],
        }
    )
    found = rp.propose_roles(table, sensitive="ill")
    assert [one.role for one in found.columns] == ["public", "sensitive"]


def of(values, **settings):
    """The proposal for one column, beside a sensitive one."""
    table = pa.table({"x": values, "s": np.resize(["u", "v", "u", "u", "v"], len(values))})
    return rp.propose_roles(table, **({"sensitive": "s"} | settings)).columns[0]


def test_numbers_that_nobody_shares_are_an_identifier_whatever_it_is_called():
    dice = np.random.default_rng(4)
    staff = dice.choice(900_000, 4_000, replace=False) + 100_000  # some would meet by chance
    assert of(staff).role == "drop" and "an identifier" in of(staff).reason
    assert of(dice.choice(90_000_000, 400, replace=False) + 10_000_000).role == "drop"
    income = dice.integers(100_000, 1_000_000, 4_000)
    assert of(income).role == "public" and of(income).bins
    few = dice.choice(9_000_000, 400, replace=False)  # of one to seven digits: a measure, perhaps
    assert of(few).role == "public" and of(few).bins


@pytest.mark.parametrize("name", ["household_id", "hhid", "HHID", "Haushalt", "family_no"])
def test_a_number_of_households_is_no_persons(name):
    columns = {name: np.repeat(np.arange(300) + 10, 2), "pid": np.arange(600) + 7, **people(1)}
    found = {one.column: one for one in rp.propose_roles(pa.table(columns), sensitive="s").columns}
    assert found[name].role == "drop" and "household" in found[name].reason
    assert found["pid"].role == "drop" and "nearly unique" in found["pid"].reason
    size = pa.table({"household_size": np.arange(600) % 60, **people(1)})
    assert rp.propose_roles(size, sensitive="s").columns[0].role == "public"


def test_values_that_differ_only_in_case_are_pointed_out():
    assert "'F' and 'f' differ only in case or blanks" in of(["F", "M", "f", "M"] * 30).reason
    assert "'New  York' and 'New York'" in of(["New York", "New  York", "B", "C"] * 30).reason
    assert of(["F", "M", "D", "M"] * 30).reason == "3 values"
    assert len(of(["f" * 9_999, "M", "F" * 9_999, "M"] * 30).reason) < 200


def test_what_must_be_said_about_the_sensitive_column_is_said_with_the_proposal(tmp_path, cli):
    dice = np.random.default_rng(5)
    pay = dice.lognormal(10.0, 0.5, 3_000).round(2)
    number = of(pay, sensitive="x")
    assert number.role == "sensitive" and "too many values" in number.reason and number.bins
    text = of([f"{one:.2f}".replace(".", ",") for one in pay], sensitive="x")
    assert "written as text" in text.reason and not text.bins
    assert "group them" in of([f"word {one}" for one in pay], sensitive="x").reason
    missing = of(["flu", None, "cold", "flu"] * 30, sensitive="x")
    assert missing.reason.startswith("missing in 30 of 120 records") and not missing.bins
    assert of(["flu", "mumps", "cold", "flu"] * 30, sensitive="x").reason == ""

    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"pay": pay, "sex": ["f", "m"] * 1_500}), file)
    words = ["audit", file, "-s", "pay"]
    assert f"--bin pay={number.bins}" in cli("columns", *words[1:]).out
    assert f"--bin pay={number.bins}" in cli(*words).err
    bins = ["--bin", f"pay={number.bins}"]
    assert cli(*words, "--public", "sex", *bins).code < 2
