"""Exports that cannot be misread: the design in the file, the correction in labels and scripts."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyreadstat
import pytest

import reconpriv as rp
from export_fixtures import KINDS, people, published
from reconpriv.columns.schema import Column, Kind
from reconpriv.engines.duckdb.engine import read_all
from reconpriv.release.export_design import comparable, corrected_title, design_names
from repository import ROOT

SCRIPTS = {".csv": ".R", ".parquet": ".R", ".dta": ".do", ".sav": ".sps", ".xpt": ".sas"}
DESIGN = ["rp_group", "rp_records", "rp_trials", "rp_weight"]
GOLDEN = ROOT / "tests" / "data" / "scripts"


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    made: dict[str, rp.Release] = {}

    def give(kind):
        if kind not in made:
            made[kind] = published(kind, tmp_path_factory.mktemp("e") / "release", rp.Key.test())
        return made[kind]

    return give


@pytest.mark.parametrize("kind", KINDS)
def test_records_carry_the_trials_of_their_group(kind, releases, tmp_path, count_rows):
    release = releases(kind)
    release.export(tmp_path / "a.parquet")
    found = read_all(tmp_path / "a.parquet")
    assert found.column_names == [*release.to_arrow().column_names, *DESIGN]
    plain = found.drop_columns(DESIGN)
    assert plain.schema.equals(release.to_arrow().schema)
    assert count_rows(plain) == count_rows(release.to_arrow())
    rows = Counter(zip(*(found[name].to_pylist() for name in DESIGN), strict=True))
    assert len({group for group, *_ in rows}) == len(rows)
    for (_, records, trials, weight), counted in rows.items():
        assert counted == records
        assert weight == records / trials
    assert sum(trials for _, _, trials, _ in rows) == release.count(ill="none").trials


@pytest.mark.parametrize("kind", KINDS)
def test_the_answers_in_a_script_are_those_of_the_release(kind, releases, tmp_path):
    release = releases(kind)
    release.export(tmp_path / "a.dta")
    text = (tmp_path / "a.do").read_text()
    found = [float(x) for x in re.findall(r"assert \S+(?: == |, )([\d.e+-]+)", text)]
    asked = {"ill": "Grippe à l'ancienne"}
    among = {} if kind == "all protected" else {"town": "L'Aquila"}
    third = {"ill": "none"} if kind == "all protected" else asked | among
    expected = [release.count(**among).count]
    for question in (asked, third):
        answer = release.count(estimator="records", **question)
        assert not any("cuts" in remark for remark in answer.remarks)
        expected += [answer.count, answer.standard_error]
    assert found == pytest.approx(expected, rel=1e-9)


def test_a_protected_release_warns_of_the_columns_that_are_pooled(releases, tmp_path):
    releases("protected").export(tmp_path / "a.csv")
    text = (tmp_path / "a.R").read_text()
    assert "Groups are pooled over age: choose records by other" in text
    releases("octave").export(tmp_path / "b.csv")
    assert "pooled" not in (tmp_path / "b.R").read_text()


def test_a_release_with_margins_says_that_they_are_left_aside(releases, tmp_path):
    releases("margins").export(tmp_path / "a.csv")
    assert "also has margins" in (tmp_path / "a.R").read_text()


def test_secret_trials_cannot_be_carried(tmp_path):
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="paper")
    with rp.read(people(), sensitive="ill", public="all", missing="value") as table:
        release = table.publish(policy, tmp_path / "release", key=rp.Key.generate())
    with pytest.raises(rp.ReconprivError) as refusal:
        release.export(tmp_path / "a.csv")
    assert str(refusal.value) == (
        "A release of sampling rule 'paper' keeps its trials secret, so a file cannot carry them."
        " Write the records alone with plain=True."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["release"]
    release.export(tmp_path / "a.csv", plain=True)
    assert read_all(tmp_path / "a.csv").num_rows == release.records


@pytest.mark.parametrize("ending", [".sav", ".dta", ".xpt"])
def test_labels_say_what_the_columns_are(ending, releases, tmp_path):
    releases("octave").export(tmp_path / f"a{ending}")
    read = {".sav": pyreadstat.read_sav, ".dta": pyreadstat.read_dta, ".xpt": pyreadstat.read_xport}
    _, about = read[ending](tmp_path / f"a{ending}", output_format="dict")
    labels = about.column_names_to_labels
    assert labels["ill"] == "ill (randomised: estimate = (n - N*(1-0.4)/5)/0.4)"
    assert labels["rp_trials"] == "Independent trials that the records of the group rest on"
    assert labels["rp_weight"] == "Design weight: records per trial"
    if ending != ".xpt":
        assert about.file_label == "Randomised release (reconpriv): correct its counts"


def test_a_long_title_is_cut_and_the_correction_is_not(releases):
    manifest = releases("octave").description
    title = corrected_title("ü" * 100, manifest, 80)
    assert len(title.encode()) <= 80
    assert title.startswith("üüü")
    assert title.endswith("ü (randomised: estimate = (n - N*(1-0.4)/5)/0.4)")
    assert corrected_title("ü" * 100, manifest, None).startswith("ü" * 100)


def test_names_of_the_design_begin_like_no_column():
    assert design_names(["age", "group"]) == tuple(DESIGN)
    assert design_names(["RP_group", "rp2_"])[2] == "rp3_trials"


@pytest.mark.parametrize("ending", SCRIPTS)
def test_scripts_are_as_they_were(ending, releases, tmp_path):
    """To renew them after a change: export the release and look at each difference."""
    releases("octave").export(tmp_path / f"people{ending}")
    written = (tmp_path / f"people{SCRIPTS[ending]}").read_text(encoding="utf-8")
    name = f"people{ending}{SCRIPTS[ending]}"
    assert written == (GOLDEN / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_the_queries_for_sas_give_the_answers_that_they_expect(kind, releases, tmp_path):
    """SQLite stands in for PROC SQL: the statements are plain enough for both."""
    releases(kind).export(tmp_path / "a.xpt")
    text = (tmp_path / "a.sas").read_text(encoding="utf-8")
    sql = text.split("proc sql;")[1].split("quit;")[0].replace("work.dataset", "dataset")
    database = sqlite3.connect(":memory:")
    database.create_function("mod", 2, math.fmod)
    database.create_function("sqrt", 1, math.sqrt)
    values, about = pyreadstat.read_xport(tmp_path / "a.xpt", output_format="dict")
    database.execute(f"create table dataset ({', '.join(about.column_names)})")
    marks = ", ".join("?" * len(values))
    rows = list(zip(*values.values(), strict=True))
    database.executemany(f"insert into dataset values ({marks})", rows)
    compared = 0
    for statement in re.sub(
        r"drop table (\w+), (\w+), (\w+);", r"drop table \1; drop table \2; drop table \3;", sql
    ).split(";"):
        for row in database.execute(statement).fetchall():
            compared += len(row)
            assert list(row[::2]) == pytest.approx(list(row[1::2]))
    assert compared == 2 + 4 + 4
    assert about.table_name == "DATASET"


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (Kind.STRING, "L'Aquila", True),
        (Kind.STRING, 'say "so"', False),
        (Kind.STRING, "$5", False),
        (Kind.STRING, "a`b", False),
        (Kind.STRING, "a\\b", False),
        (Kind.STRING, "two\nlines", False),
        (Kind.STRING, " x", False),
        (Kind.STRING, "", False),
        (Kind.STRING, "x" * 81, False),
        (Kind.STRING, None, False),
        (Kind.INTEGER, -5, True),
        (Kind.INTEGER, 2**40, False),
        (Kind.NUMBER, 0.1, False),
        (Kind.BOOLEAN, True, True),
    ],
)
def test_only_plain_values_are_asked_about(kind, value, expected):
    assert comparable(Column("x", kind), value) is expected


def test_a_column_without_a_plain_value_is_refused_in_one_sentence(tmp_path):
    table = pa.table({"a": ["x"] * 400, "s": ['"1"', '"2"'] * 200})
    with rp.read(table, sensitive="s", public="all") as opened:
        release = opened.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3),
            tmp_path / "r",
            key=rp.Key.generate(),
        )
    with pytest.raises(rp.ReconprivError, match=r"No value of column 's' can be written in a"):
        release.export(tmp_path / "a.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_both_files_are_written_or_neither(releases, tmp_path):
    (tmp_path / "a.R").write_text("mine")
    with pytest.raises(rp.errors.OutputError, match=r"a\.R exists already"):
        releases("octave").export(tmp_path / "a.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["a.R"]
    releases("octave").export(tmp_path / "a.csv", overwrite=True)
    assert "reconpriv" in (tmp_path / "a.R").read_text()


def test_a_file_that_cannot_hold_a_value_leaves_no_script(tmp_path):
    table = pa.table({"a": [2**60, 1] * 200, "s": ["x", "y", "y", "x", "x"] * 80})
    with rp.read(table, sensitive="s", public="all") as opened:
        release = opened.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3),
            tmp_path / "r",
            key=rp.Key.generate(),
        )
    with pytest.raises(rp.errors.OutputError, match="beyond 2\\^53"):
        release.export(tmp_path / "a.dta")
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


@pytest.mark.parametrize("other", ["groups", "margins"])
def test_only_records_are_plain(other, releases, tmp_path, cli):
    release = releases("margins")
    with pytest.raises(rp.ReconprivError, match="Only records can be written plain"):
        release.export(tmp_path / "a.csv", plain=True, **{other: True})
    done = cli("export", release.path, tmp_path / "a.csv", "--plain", f"--{other}")
    assert (done.code, done.out) == (2, "")
    assert "--plain is for records" in done.err
    assert list(tmp_path.iterdir()) == []


def test_the_command_names_both_files(releases, tmp_path, cli):
    file, script = tmp_path / "a.csv", tmp_path / "a.R"
    done = cli("export", releases("octave").path, file)
    assert (done.code, done.out) == (
        0,
        f"Records written to {file}.\n{script} shows how to count in it.\n",
    )
    done = cli("export", releases("octave").path, file, "--overwrite", "--json")
    assert json.loads(done.out)["script"] == str(script)
    done = cli("export", releases("octave").path, tmp_path / "b.csv", "--plain", "--json")
    assert "script" not in json.loads(done.out)
    assert not Path(tmp_path / "b.R").exists()
