"""`record` and `publish --record` on the command line: what they write, and what they refuse."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from reconpriv.release.record import record_schema

TABLE = "people.csv"
ROLES = ("-s", "ill", "--public", "age,town", "--bin", "age=10", "--missing", "drop")
POLICY = ("--preset", "paper")


@pytest.fixture
def desk(tmp_path, monkeypatch, cli):
    """A folder with a table, its key, its release and the record that publishing wrote."""
    monkeypatch.chdir(tmp_path)
    ill = np.random.default_rng(7).choice(list("abc"), 400)
    rows = [
        {"age": 20 + i % 30, "town": "xyz"[i % 3], "ill": one if i % 9 else None}
        for i, one in enumerate(ill.tolist())
    ]
    pa.csv.write_csv(pa.Table.from_pylist(rows), TABLE)
    assert cli("keygen", "my.key").code == 0
    made = cli(
        "publish", TABLE, "release", *ROLES, *POLICY, "--key", "my.key", "--record", "record.json"
    )
    assert made.code == 0, made.err
    return tmp_path


def read(name):
    found = json.loads(Path(name).read_text(encoding="utf-8"))
    jsonschema.validate(found, record_schema(), cls=jsonschema.Draft202012Validator)
    return found


def test_a_record_afterwards_is_the_one_of_publishing(desk, cli):
    made = cli("record", TABLE, "release", "--key", "my.key", "-o", "later.json")
    assert made.code == 0, made.err
    assert made.out == "Record written to later.json (internal, mode 0600).\n"
    then, later = read("record.json"), read("later.json")
    for one in (then, later):
        one["made"] = one["warnings"] = None
    assert then == later and then["ledger"]["line"] == 1
    assert then["checks"]["raw_table"]["records_left_out"] == 45
    for name in ("record.json", "later.json"):
        assert stat.S_IMODE(Path(name).stat().st_mode) == 0o600
    assert TABLE not in Path("later.json").read_text(encoding="utf-8")


def test_without_a_file_it_is_printed(desk, cli):
    shown = cli("record", TABLE, "release")
    assert shown.code == 0 and "t-closeness" in shown.out and "raw table" in shown.out
    said = json.loads(cli("record", "release", "--json").out)
    jsonschema.validate(said, record_schema(), cls=jsonschema.Draft202012Validator)
    assert said["audience"] == "public" and said["checks"]["raw_table"] is None
    alone = cli("record", "release")
    assert "raw table" not in alone.out.split("Not checked")[0]
    assert "Not checked, as it needs the table: k-anonymity" in alone.out
    told = json.loads(cli("record", "release", "-o", "alone.json", "--json").out)
    assert told == {"file": "alone.json", "audience": "public"} and read("alone.json")


def test_a_release_with_its_ledger_is_internal(desk, cli):
    assert json.loads(cli("record", "release", "--key", "my.key", "--json").out)["audience"] == (
        "internal"
    )


REFUSED = {
    "no such table": ("record nowhere.csv release", "nowhere.csv"),
    "no such release": ("record people.csv nowhere", "There is no release folder nowhere"),
    "neither": ("record people.csv", "people.csv is not a release"),
    "nothing there": ("record nowhere", "nowhere is not a release"),
    "the wrong way round": ("record release people.csv", "Give the table first"),
    "two releases": ("record release release", "Give the table first"),
    "another table": ("record other.csv release", "was not made from this table"),
    "other columns": ("record third.csv release", "no column 'town'"),
    "other bins": ("record older.csv release", "outside the bins of the release"),
    "an output that is there": ("record people.csv release -o record.json", "Use --overwrite"),
    "an output inside": ("record people.csv release -o release/r.json", "must not be inside"),
    "no folder": ("record people.csv release -o no/r.json", "no folder no"),
    "no output": ("record people.csv release --overwrite", "--overwrite needs -o"),
    "a table option": ("record release --person id", "--person is about a table"),
    "the key of another": ("record people.csv release --key other.key", "no publication like"),
    "a key that is none": ("record people.csv release --key people.csv", "not a key file"),
    "a person there is not": ("record people.csv release --person who", "'who'"),
    "one row of nobody": ("record people.csv release --rows-per-person one", "who a row is about"),
    "publish over it": (
        "publish people.csv again -s ill --public town --missing drop --test-key"
        " --record record.json",
        "record.json exists already",
    ),
    "publish into it": (
        "publish people.csv again -s ill --public town --missing drop --test-key"
        " --record again/record.json",
        "must not be inside the release",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_one_sentence_and_leaves_nothing(name, desk, cli):
    other = [{"age": 20 + i % 30, "town": "xyz"[i % 3], "ill": "abc"[i % 3]} for i in range(400)]
    pa.csv.write_csv(pa.Table.from_pylist(other), "other.csv")
    pa.csv.write_csv(pa.Table.from_pylist([{"age": 20, "ill": "a"}] * 30), "third.csv")
    older = [one | {"age": 20 + i % 50} for i, one in enumerate(other)]
    pa.csv.write_csv(pa.Table.from_pylist(older), "older.csv")
    assert cli("keygen", "other.key").code == 0
    command, words = REFUSED[name]
    before = {path: path.read_bytes() for path in desk.rglob("*") if path.is_file()}
    refused = cli(*command.split())
    assert refused.code == 2 and refused.out == ""
    last = refused.err.strip().splitlines()[-1]
    assert words in last and last.startswith("error: ") and "Traceback" not in refused.err
    assert {path: path.read_bytes() for path in desk.rglob("*") if path.is_file()} == before


def test_an_output_is_replaced_if_asked_to(desk, cli):
    before = read("record.json")
    assert cli("record", TABLE, "release", "-o", "record.json", "--overwrite").code == 0
    after = read("record.json")
    assert before["ledger"] is not None and after["ledger"] is None
