"""--protect on the command line: audit, publish, query and attack."""

import json

import pyarrow.parquet as pq
import pytest

ADULT = ["example:adult", "-s", "occupation", "--public", "age,sex,race", "--missing", "value"]
PROTECT = ["--protect", "age=10", "--protect", "race=*"]


@pytest.fixture(scope="module")
def released(cli, tmp_path_factory):
    out = tmp_path_factory.mktemp("cli") / "release"
    done = cli("publish", *ADULT, out, "--test-key", *PROTECT)
    assert done.code == 0, done.err
    return out, done


def test_an_audit_judges_protection_groups_and_says_so(cli):
    done = cli("audit", *ADULT, *PROTECT, "--worst", 1, "--preset", "paper")
    assert done.code == 1
    text = " ".join(done.out.split())
    assert "Not private: 14 of 18 protection groups" in text
    assert "No record is unique on the coarsened columns" in text
    assert "age (9 values), race (ignored)" in text
    assert "Worst protection groups" in text
    assert "age=30 to 39, sex=Male" in text
    found = json.loads(cli("audit", *ADULT, *PROTECT, "--json").out)
    assert found["groups"] == 18
    assert found["policy"]["protect"] == {"age": 10, "race": "*"}
    assert found["protection"]["race"] == {"declared": "ignored"}


def test_an_audit_without_protection_says_groups(cli):
    text = cli("audit", *ADULT, "--no-columns").out
    assert "protection" not in text and "pooled" not in text


def test_the_groups_of_an_audit_are_protection_groups(cli, tmp_path):
    cli("audit", *ADULT, *PROTECT, "--groups", tmp_path / "g.parquet")
    found = pq.read_table(tmp_path / "g.parquet")
    assert found.num_rows == 18
    assert found.column_names[:3] == ["age", "sex", "size"]


def test_publish_says_what_is_pooled(released):
    out, done = released
    text = " ".join(done.out.split())
    assert "pooled over age (9 values), race (ignored)" in text
    assert "protection groups 18" in text
    assert pq.read_table(out / "groups.parquet").num_rows == 18


def test_info_explains_protection_groups(cli, released):
    text = " ".join(cli("info", released[0]).out.split())
    assert "records that differ only in age (10 to 19, 20 to 29" in text
    assert "race (ignored) form a protection group" in text


def test_a_question_that_cuts_groups_is_remarked_on(cli, released):
    sql = "SELECT count(*) FROM release WHERE occupation = 'Sales' AND age"
    text = " ".join(cli("query", released[0], f"{sql} = 33").out.split())
    assert "cuts 2 protection groups" in text
    assert "cuts" not in cli("query", released[0], f"{sql} BETWEEN 30 AND 39").out


def test_a_batch_is_remarked_on_too(cli, released, tmp_path):
    batch = tmp_path / "batch.csv"
    batch.write_text("age,occupation\n33,Sales\n33,\n")
    done = cli("query", released[0], "--batch", batch)
    cut, exact = done.out.splitlines()[1:]
    assert "cuts 2 protection groups" in cut and "cuts" not in exact


def test_a_file_of_groups_and_borders_work(cli, tmp_path):
    groups = tmp_path / "race.csv"
    groups.write_text("race,group\nWhite,white\n*,others\n")
    options = ["--protect", f"race={groups}", "--protect", "age=17,40,65"]
    done = cli("publish", *ADULT, tmp_path / "r", "--test-key", *options)
    assert done.code == 0, done.err
    found = pq.read_table(tmp_path / "r" / "groups.parquet")
    assert found.num_rows == 12
    assert set(found["age"].to_pylist()) == {"17 to 39", "40 to 64", "65 or more"}


def test_merging_is_noted_by_an_audit_and_written_into_the_manifest(cli, tmp_path):
    done = cli("audit", *ADULT, "--protect", "age=merge", "--json")
    assert "depends on the key" in done.err
    done = cli("publish", *ADULT, tmp_path / "r", "--test-key", "--protect", "age=merge")
    assert done.code == 0 and "depends on the key" not in done.err
    block = json.loads((tmp_path / "r" / "datapackage.json").read_text())["reconpriv"]
    assert 3 <= len(block["protect"]["age"]["labels"]) < 60


@pytest.mark.parametrize("name", ["micro", "granularity"])
def test_attacks_target_protection_groups(cli, released, name):
    done = cli("attack", name, *ADULT, *PROTECT, "--json", "--worst", 1)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["worst_groups_internal"][0]["group"]["age"].count(" to ") == 1
    alone = cli("attack", name, released[0], "--json", "--worst", 1)
    assert alone.code == 0, alone.err


def test_its_files_have_no_side_channel(cli, released):
    found = json.loads(cli("attack", "side-channels", released[0], "--json").out)
    assert found["success"]["share"] == 0
