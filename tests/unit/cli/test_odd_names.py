"""Names too long for a file, NUL in a name or a query, a folder: one sentence each."""

import json

import pytest

from refusals import check_sentence

TABLE = "g,s\n" + "a,x\na,y\nb,x\nb,z\n" * 20


@pytest.fixture
def desk(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TABLE)
    assert cli("keygen", "my.key").code == 0
    assert (
        cli("publish", "t.csv", "release", "-s", "s", "--public=all", "--key", "my.key").code == 0
    )
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "t.csv", "-s", "s", "--public=all", "--report", "x" * 300 + ".html"),
        ("audit", "t.csv", "-s", "s", "--public=all", "--groups", "x" * 300 + ".csv"),
        ("export", "release", "é" * 200 + ".csv"),
        ("workload", "t.csv", "-s", "s", "--public=all", "-o", "x" * 5_000),
        ("report", "release", "-o", "x" * 300 + ".html"),
    ],
)
def test_the_name_of_a_file_that_is_too_long(cli, desk, words):
    before = sorted(desk.rglob("*"))
    outcome = cli(*words)
    assert outcome.code == 2, outcome
    check_sentence(outcome.err)
    assert "too long" in outcome.err
    assert sorted(desk.rglob("*")) == before


def test_a_nul_in_the_name_of_a_file_of_a_release(cli, desk):
    manifest = json.loads((desk / "release" / "datapackage.json").read_text())
    manifest["resources"][0]["path"] = "data\0.parquet"
    (desk / "release" / "datapackage.json").write_text(json.dumps(manifest))
    outcome = cli("query", "release", "SELECT count(*) FROM release")
    assert outcome.code == 2, outcome
    check_sentence(outcome.err)
    assert "damaged" in outcome.err


def test_a_nul_in_a_batch_file(cli, desk):
    (desk / "batch.csv").write_bytes(b"g,s\na,x\n\0\0,x\n")
    outcome = cli("query", "release", "--batch", "batch.csv")
    assert outcome.code == 2, outcome
    check_sentence(outcome.err)
    assert "Line 3" in outcome.err
    assert outcome.out == ""


def test_a_usage_error_names_files_without_their_folders(cli, desk):
    folder = desk / "vault"
    outcome = cli("audit", "t.csv", folder / "raw.csv", "-s", "s", "--public=all")
    assert outcome.code == 2, outcome
    assert "raw.csv" in outcome.err
    assert "vault" not in outcome.err
