"""Bins and groups on the command line: published, asked about, refused."""

import inspect
import json
from shlex import split

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer.main

import reconpriv as rp
from reconpriv.cli.app import app

ROLES = ("-s", "occupation", "--public", "age,sex,race", "--missing", "value")
COUNT = "SELECT count(*) FROM release WHERE "


@pytest.fixture(scope="module")
def folder(cli, tmp_path_factory):
    out = tmp_path_factory.mktemp("cli") / "release"
    done = cli("publish", "example:adult", out, *ROLES, "--test-key", "--bin", "age=10")
    assert done.code == 0, done.err
    return out


def test_a_condition_that_cuts_a_bin_is_refused_with_its_borders(cli, folder):
    done = cli("query", folder, COUNT + "age < 65")
    assert done.code == 2
    assert done.out == ""
    assert "cuts the bin '60 to 69' of 'age'. Use a border (60 or 70)" in done.err
    assert "--whole-bins" in done.err


def test_whole_bins_are_counted_on_request_and_the_answer_says_so(cli, folder):
    done = cli("query", folder, COUNT + "age < 65", "--whole-bins")
    assert done.code == 0
    assert "exact" not in done.out
    assert "note: answered for age < 70: the bin '60 to 69' is counted whole." in done.out
    shown = json.loads(cli("query", folder, COUNT + "age < 65", "--whole-bins", "--json").out)
    assert shown["exact"] is False
    assert shown["estimator"] != "exact"


def test_a_condition_at_a_border_is_the_count_of_the_raw_table(cli, folder):
    ages = pq.read_table(rp.dataset_path("adult"), columns=["age"])["age"].to_numpy()
    shown = json.loads(cli("query", folder, COUNT + "age < 70", "--json").out)
    assert (shown["count"], shown["exact"]) == ((ages < 70).sum(), True)


def test_a_batch_takes_numbers_and_bins(cli, folder, tmp_path):
    batch = tmp_path / "batch.csv"
    batch.write_text("age\n60 to 69\n65\n")
    done = cli("query", folder, "--batch", batch)
    assert (done.code, "Line 3 of 'batch.csv': The condition" in done.err) == (2, True)
    done = cli("query", folder, "--batch", batch, "--whole-bins")
    first, second = done.out.splitlines()[1:]
    assert first.split(",")[1] == second.split(",")[1]
    assert "counted whole" in second
    assert "counted whole" not in first


def test_a_number_becomes_publishable_by_its_borders(cli, tmp_path):
    file = tmp_path / "income.csv"
    rows = [f"{'mf'[i % 2]},{(i * 37) % 300 * 100 + 0.5}" for i in range(400)]
    file.write_text("\n".join(["sex,income", *rows]) + "\n")
    refused = cli("audit", file, "-s", "income", "--public=all")
    assert refused.code == 2
    assert "of your choice with --bin income=0,1000,2000." in refused.err
    common = ("-s", "income", "--public=all", "--bin", "income=0,10000,20000")
    assert cli("audit", file, *common).code in (0, 1)
    assert cli("publish", file, tmp_path / "out", *common, "--test-key").code == 0
    shown = json.loads(cli("query", tmp_path / "out", COUNT + "income < 10000", "--json").out)
    assert shown["low"] <= sum(float(row.split(",")[1]) < 10_000 for row in rows) <= shown["high"]
    info = json.loads(cli("info", tmp_path / "out", "--json").out)
    assert info["domain"] == ["0 to under 10000", "10000 to under 20000", "20000 or more"]
    assert info["recoded"]["income"]["borders"] == [0, 10_000, 20_000]


def test_groups_come_from_a_file_and_its_levels(cli, tmp_path):
    groups = tmp_path / "races.csv"
    groups.write_text("race,kind,coarse\nWhite,A,X\nBlack,B,X\n*,C,Y\n")
    for level, labels in (("", ["A", "B", "C"]), (":coarse", ["X", "Y"]), (":2", ["X", "Y"])):
        out = tmp_path / f"out{len(level)}{len(labels)}"
        done = cli(
            "publish", "example:adult", out, *ROLES, "--test-key", "--overwrite",
            "--bin", "age=0,30", "--group", f"race={groups}{level}",
        )  # fmt: skip
        assert done.code == 0, done.err
        fields = json.loads((out / "datapackage.json").read_text())["resources"][0]["schema"]
        assert fields["fields"][2]["categories"] == labels
    assert str(tmp_path) not in (out / "datapackage.json").read_text()


def test_quantiles_warn_of_what_they_tell(cli, tmp_path):
    done = cli("publish", "example:adult", tmp_path / "out", *ROLES, "--test-key",
               "--bin", "age=quantiles:4")  # fmt: skip
    assert done.code == 0
    assert "The borders of 'age' are quantiles of the table." in done.err


def test_a_column_with_an_odd_name_is_binned(cli, tmp_path):
    file = tmp_path / "odd.parquet"
    pq.write_table(pa.table({"a=b,c": [1, 12, 25] * 9, "s": ["x", "y", "z"] * 9}), file)
    done = cli(
        "publish",
        file,
        tmp_path / "out",
        *split("-s s --public=all --test-key --bin"),
        '"a=b,c"=10',
    )
    assert done.code == 0, done.err
    shown = cli("query", tmp_path / "out", COUNT + '"a=b,c" < 20', "--json")
    assert json.loads(shown.out)["count"] == 18


@pytest.mark.parametrize("command", ["audit", "publish", "attack", "tune", "workload"])
def test_every_command_that_reads_a_table_knows_the_same_options(command):
    """They have one home; only the choice of the engine is not for all."""
    from reconpriv.cli.options.table import TableOptions

    known = {parameter.name for parameter in typer.main.get_command(app).commands[command].params}
    assert set(inspect.signature(TableOptions).parameters) - known <= {"engine", "master"}


@pytest.mark.parametrize("command", ["tune", "workload", "attack"])
def test_the_other_commands_take_bins_too(cli, command):
    first = ("attack", "side-channels") if command == "attack" else (command,)
    few = () if command == "attack" else ("--queries", "20")
    done = cli(*first, "example:adult", *ROLES, "--bin", "age=0,40", *few)
    assert done.code == 0, done.err
    assert cli(*first, "example:adult", *ROLES, "--bin", "age=40,50", *few).code == 2


def test_dates_and_a_top_on_the_command_line(cli, tmp_path):
    days = [f"2020-0{i % 6 + 1}-15" for i in range(300)]
    table = pa.table(
        {
            "visit": pa.array(days).cast(pa.date32()),
            "income": [i % 50 for i in range(300)],
            "ill": ["yes" if i % 3 else "no" for i in range(300)],
        }
    )
    file, out = tmp_path / "t.parquet", tmp_path / "out"
    pq.write_table(table, file)
    roles = ("-s", "ill", "--public=all", "--test-key", "--bin", "visit=quarter")
    done = cli("publish", file, out, *roles, "--bin", "income=0,10,top:48")
    assert done.code == 2
    assert "above its top, 48" in " ".join(done.err.split())
    assert not out.exists()
    done = cli("publish", file, out, *roles, "--bin", "income=0,10,top:60")
    assert done.code == 0, done.err
    answer = json.loads(cli("query", out, COUNT + "visit < DATE '2020-04-01'", "--json").out)
    assert json.dumps(answer).count('"count": 150.0') == 1
    average = cli("query", out, "SELECT avg(income) FROM release").out
    assert "8 to 49.80" in average
