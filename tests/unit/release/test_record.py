"""Records for the review board: their schema, what is in them, and what never is."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import stat

import jsonschema
import pyarrow as pa
import pyarrow.csv
import pytest

import reconpriv as rp
from reconpriv.errors import InputError, LedgerError, OutputError
from reconpriv.reading import read_as_published
from reconpriv.release.record import record_schema

SCHEMA = jsonschema.Draft202012Validator(record_schema())
PAPER = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
ROLES = {"sensitive": "Education", "public": ["Gender", "Race", "Workclass"]}
pytestmark = pytest.mark.filterwarnings("ignore::reconpriv.errors.ReconprivWarning")


def faults(record):
    """What the schema says against a record, after a round through JSON."""
    said = json.loads(record.to_json())
    assert said == record.as_dict()
    return [error.message for error in SCHEMA.iter_errors(said)]


@pytest.fixture
def key_file(key, tmp_path_factory):
    file = tmp_path_factory.mktemp("key") / "secret.key"
    key.write(file)
    return file


def without_time(record):
    return record.as_dict() | {"made": None}


POLICIES = {
    "recommended": None,
    "paper": PAPER,
    "leaks": rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="paper"),
    "none": rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none"),
    "public": rp.Policy(
        retention=0.3, tolerance=0.4, doubt=0.2, sampling="public", exposed_above=0.5
    ),
    "protected": rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, protect={"Race": "*"}),
    "merged": rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, protect={"Workclass": "merge"}),
    "one trial": rp.Policy(retention=0.8, tolerance=0.5, doubt=0.5, unattainable="one-trial"),
    "margins": rp.Policy(
        retention=0.5,
        tolerance=0.5,
        doubt=0.3,
        margins=rp.Margins(1.0, tables=[["Race", "Gender"]]),
    ),
}


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_makes_a_record_of_the_schema_now_and_afterwards(
    name, small, key_file, tmp_path
):
    policy, out, file = POLICIES[name], tmp_path / "r", tmp_path / "record.json"
    with rp.read(small, **ROLES) as table:
        release = table.publish(policy, out, key=key_file, record=file)
        after = table.record(out, key=key_file)
    assert faults(after) == []
    written = json.loads(file.read_text(encoding="utf-8"))
    assert [error.message for error in SCHEMA.iter_errors(written)] == []
    once = without_time(after)
    assert once | {"warnings": []} == written | {"made": None, "warnings": []}
    assert once["audience"] == "internal" and once["ledger"]["records"] == release.records
    assert once["promise"]["promised"] == release.promise
    alone = rp.open(out).record()
    assert faults(alone) == [] and alone.audience == "public"
    said = alone.as_dict()
    assert said["checks"]["raw_table"] is None and said["inputs"] == [] and said["ledger"] is None
    assert len(said["checks"]["needs_the_table"]) == 7
    assert said["checks"]["release"] == once["checks"]["release"]


def test_the_figures_are_those_of_the_table_and_of_the_release(small, tmp_path):
    with rp.read(small, **ROLES) as table:
        release = table.publish(PAPER, tmp_path / "r", key=rp.Key.test())
        audit = table.audit(PAPER)
        said = table.record(release).as_dict()
    raw, released = said["checks"]["raw_table"], said["checks"]["release"]
    assert raw["equivalence_classes"] == audit.classes.as_dict()
    assert raw["policy"]["violating_groups"] == audit.violating_groups > 0
    assert raw["policy"]["groups"] == audit.groups and raw["policy"]["groups_are"] == "micro groups"
    with rp.read(release.to_arrow(), **ROLES, domain=release.domain) as published:
        seen = published.audit(PAPER).classes
    assert released["equivalence_classes"] == seen.as_dict()
    assert seen != audit.classes
    assert released["independent_draws"] == release.written.trials < small.num_rows
    assert released["groups_with_fewer_draws_than_records"] == release.written.sampled_groups > 0
    roles = {one["column"]: one["role"] for one in said["roles"]}
    assert roles == dict.fromkeys(ROLES["public"], "public") | {"Education": "sensitive"}


def test_hashes_are_those_of_the_files(small, tmp_path):
    file = tmp_path / "people-of-nowhere.csv"
    pa.csv.write_csv(small, file)
    with rp.read(file, **ROLES) as table:
        release = table.publish(PAPER, tmp_path / "r", key=rp.Key.test())
        record = table.record(release)

    def sha256(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()

    said = record.as_dict()
    assert said["inputs"] == [
        {"format": "csv", "bytes": file.stat().st_size, "sha256": sha256(file)}
    ]
    found = {one["file"]: one["sha256"] for one in said["outputs"]["files"]}
    assert found == {one.name: sha256(one) for one in (tmp_path / "r").iterdir()}
    assert "people-of-nowhere" not in record.to_json() and str(tmp_path) not in record.to_json()


def test_a_folder_has_a_hash_for_each_file_and_a_frame_none(small, tmp_path):
    import pyarrow.parquet as pq

    (tmp_path / "parts").mkdir()
    for name, rows in (("b", small.slice(2000)), ("a", small.slice(0, 2000))):
        pq.write_table(rows, tmp_path / "parts" / f"{name}.parquet")
    with rp.read(tmp_path / "parts", **ROLES) as table:
        table.publish(PAPER, tmp_path / "r", key=rp.Key.test())
        said = table.record(tmp_path / "r").as_dict()
    hashes = [
        hashlib.sha256((tmp_path / "parts" / f"{name}.parquet").read_bytes()).hexdigest()
        for name in "ab"
    ]
    assert [one["sha256"] for one in said["inputs"]] == hashes
    with rp.read(small, **ROLES) as table:
        assert table.record(tmp_path / "r").as_dict()["inputs"] == []


def test_a_table_is_read_again_with_the_roles_and_bins_of_its_release(tmp_path):
    rows = [
        {"age": 20 + i % 41, "day": f"2020-0{1 + i % 9}-11", "job": "abcdef"[i % 6], "id": i // 2,
         "ill": ["x", "y", "z", None][i * i % 4 if i % 5 else 2], "note": "n"}
        for i in range(600)
    ]  # fmt: skip
    file = tmp_path / "t.csv"
    pa.csv.write_csv(pa.Table.from_pylist(rows), file)
    job = {"a": "craft", "b": "craft", "*": "other"}
    asked = {"sensitive": "ill", "public": ["age", "day", "job"], "missing": "drop"}
    key = tmp_path / "my.key"
    rp.Key.generate().write(key)
    how = {"person": "id", "rows_per_person": "one"}
    with rp.read(
        file, **asked, **how, bin={"age": 10, "day": "quarter"}, group={"job": job}
    ) as table:
        release = table.publish(PAPER, tmp_path / "r", key=key, record=tmp_path / "record.json")
    with read_as_published(file, release, **how) as again:
        record = again.record(release, key=key)
    assert faults(record) == []
    before = json.loads((tmp_path / "record.json").read_text(encoding="utf-8"))
    said = without_time(record)
    assert said["checks"] == before["checks"] and said["roles"] == before["roles"]
    assert said["checks"]["raw_table"]["persons"]["with_several_rows"] == 0
    roles = {one["column"]: (one["role"], one["recoded"]) for one in said["roles"]}
    assert roles["age"] == ("public", "width") and roles["day"] == ("public", "quarter")
    assert roles["job"] == ("public", "groups") and roles["ill"] == ("sensitive", None)
    assert roles["id"] == ("person", None) and roles["note"] == ("left out", None)
    with (
        read_as_published(file, release, **how) as again,
        pytest.raises(
            InputError, match=r"differ\. If one row of each person was kept, give the key"
        ),
    ):
        again.record(release)


def test_what_the_publisher_insisted_on_is_named_without_the_value(tmp_path):
    ill = [("flu" if i % 3 else "hiv") for i in range(90)]
    table = pa.table(
        {
            "who": [i if i < 60 else 60 + i % 5 for i in range(90)],
            "hint": [v[0] for v in ill],
            "ill": ill,
        }
    )
    with rp.read(table, sensitive="ill", public="all") as opened:
        kept = {"keep_identifier": ["who"], "keep_giveaway": ["hint"], "max_unique": 1.0}
        release = opened.publish(PAPER, tmp_path / "r", key=rp.Key.test(), **kept)
        record = opened.record(release)
    assert faults(record) == []
    raw = record.as_dict()["checks"]["raw_table"]
    assert raw["insisted_on"] == ["nearly unique columns", "giveaways", "unique records"]
    assert raw["nearly_unique_columns"] == [{"column": "who", "values": 65}]
    assert raw["giveaways"][0]["columns"] == ["hint"] and raw["giveaways"][0]["tell_share"] == 1.0
    assert "hiv" not in record.to_json() and "flu" not in record.to_json()


def numbers_in(value):
    if isinstance(value, dict):
        return [number for one in value.values() for number in numbers_in(one)]
    if isinstance(value, list):
        return [number for one in value for number in numbers_in(one)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


def test_no_key_no_count_of_a_value_and_no_frequency_of_a_group(small, key_file, tmp_path):
    with rp.read(small, **ROLES) as table:
        table.publish(PAPER, tmp_path / "r", key=key_file, record=tmp_path / "record.json")
        counts = table.sensitive_counts.tolist()
        groups = pa.concat_tables(table.audit_groups(PAPER)).to_pylist()
    text = (tmp_path / "record.json").read_text(encoding="utf-8")
    assert key_file.read_text().strip() not in text and str(key_file) not in text
    found = set(numbers_in(json.loads(text)["checks"]["raw_table"]))
    assert found.isdisjoint(n for n in counts if n > 100)
    exact = {row["largest_frequency"] for row in groups} - {1.0, 0.5}
    assert found.isdisjoint(exact | {row["largest_private_size"] for row in groups})


def test_the_schema_describes_every_field_and_refuses_what_is_not_in_it(small, tmp_path):
    with rp.read(small, **ROLES) as table:
        release = table.publish(None, tmp_path / "r", key=rp.Key.test())
        said = table.record(release).as_dict()
    jsonschema.Draft202012Validator.check_schema(record_schema())

    def nodes(node):
        yield node
        for one in node.get("properties", {}).values():
            yield from nodes(one)
        if isinstance(node.get("items"), dict):
            yield from nodes(node["items"])

    schema = record_schema()
    every = [*nodes(schema), *nodes(schema["$defs"]["equivalence_classes"])]
    objects = [
        node
        for node in every
        if "properties" in node and "record_made_by" not in node["properties"]
    ]
    assert len(objects) > 15 and all(node["additionalProperties"] is False for node in objects)
    named = [one for node in every for one in node.get("properties", {}).values()]
    assert all(one.get("description") or "$ref" in one for one in named)
    for place, name, value in (
        ((), "path", "/home/me/t.csv"),
        (("checks", "raw_table"), "value_counts", {"hiv": 3}),
        (("checks", "raw_table", "equivalence_classes"), "largest_frequency", 0.9),
        (("outputs", "files", 0), "sha256", "abc"),
        (("policy",), "retention", 1.5),
        (("ledger",), None, None),
    ):
        changed = copy.deepcopy(said)
        at = changed
        for step in place:
            at = at[step]
        if name is None:
            del changed["ledger"]
        else:
            at[name] = value
        assert not SCHEMA.is_valid(changed), name
    assert SCHEMA.is_valid(said)


def test_a_record_is_written_whole_for_its_owner_alone(small, tmp_path):
    with rp.read(small, **ROLES) as table:
        release = table.publish(PAPER, tmp_path / "r", key=rp.Key.test())
        record, file = table.record(release), tmp_path / "record.json"
        record.save(file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        with pytest.raises(OutputError, match="exists already"):
            record.save(file)
        record.save(file, overwrite=True)
        with pytest.raises(OutputError, match="must not be inside it"):
            record.save(tmp_path / "r" / "record.json")
        with pytest.raises(OutputError, match="There is no folder"):
            record.save(tmp_path / "nowhere" / "record.json")
        for wrong in (tmp_path / "q" / "record.json", file):
            with pytest.raises(OutputError):
                table.publish(PAPER, tmp_path / "q", key=rp.Key.test(), record=wrong)
            assert not (tmp_path / "q").exists()
    assert sorted(os.listdir(tmp_path)) == ["r", "record.json"]


def test_another_table_is_refused(small, tmp_path):
    with rp.read(small, **ROLES) as table:
        release = table.publish(PAPER, tmp_path / "r", key=rp.Key.test())
    fewer = small.slice(1)
    moved = small.set_column(0, "Gender", pa.array([*small["Gender"].to_pylist()[1:], "Male"]))
    renamed = small.rename_columns(["Sex", "Race", "Workclass", "Education"])
    cases = [
        (fewer, ROLES, "differ"),
        (moved, ROLES, "differ"),
        (renamed, ROLES | {"public": ["Sex", "Race", "Workclass"]}, "'Gender'"),
        (small, ROLES | {"public": ["Gender", "Race"]}, "'Workclass'"),
        (small, {"sensitive": "Race", "public": ["Gender"]}, "sensitive column"),
        (small, ROLES | {"domain": [*small["Education"].unique().to_pylist(), "x"]}, "domain"),
    ]
    for other, roles, words in cases:
        with rp.read(other, **roles) as table, pytest.raises(InputError, match=words) as refused:
            table.record(release)
        assert str(refused.value).startswith("The release was not made from this table")


def test_a_changed_release_and_another_key_are_refused(small, key_file, tmp_path):
    with rp.read(small, **ROLES) as table:
        release = table.publish(PAPER, tmp_path / "r", key=key_file)
        other = tmp_path / "other.key"
        rp.Key.generate().write(other)
        with pytest.raises(LedgerError, match="no publication like this release"):
            table.record(release, key=other)
        with pytest.raises(LedgerError, match="no publication like this release"):
            release.record(key=other)
        line = release.record(key=key_file).as_dict()["ledger"]
        assert line["second_sample"] is False and line["line"] >= 1
        (tmp_path / "r" / "groups.parquet").write_bytes(b"changed")
        for made in (lambda: table.record(release), release.record):
            with pytest.raises(rp.ReconprivError, match="does not match its manifest"):
                made()


def test_a_record_of_a_uri_is_refused_before_anything_is_done(small, tmp_path):
    with rp.read(small, **ROLES) as table, pytest.raises(InputError, match="on this machine"):
        table.publish(PAPER, "s3://bucket/r", key=rp.Key.test(), record=tmp_path / "r.json")
    assert not list(tmp_path.iterdir())


def test_the_internal_report_shows_the_same_figures(small, tmp_path):
    from reconpriv.reports.internal import find, internal_html
    from reconpriv.show.results.record import classes_grid

    with rp.read(small, **ROLES) as table:
        found = find(table, PAPER)
        release = table.publish(PAPER, tmp_path / "r", key=rp.Key.test())
        record = table.record(release)
    assert found.audit.classes == record.table.audit.classes
    html = internal_html(found)
    assert "For the review board" in html
    for name, value in classes_grid([("raw table", record.table.audit.classes)]).texts:
        assert name in html and value in html
    text = str(record)
    assert "t-closeness" in text and "raw table" in text and "release" in text
