"""One class writes and reads the manifest: it reads what it writes, and nothing else."""

import json
from dataclasses import replace

import pytest

import reconpriv as rp
from query_fixtures import people
from reconpriv.columns.schema import Column, ColumnLabels, Kind
from reconpriv.release.described import Files
from reconpriv.release.labels import as_published
from reconpriv.release.manifest import Manifest, resource_names
from repository import DATA

BEFORE = sorted(folder for folder in (DATA / "before").iterdir() if folder.is_dir())
POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)


def reread(manifest):
    return Manifest.from_dict(json.loads(manifest.to_json()))


@pytest.fixture
def octave():
    return Manifest.read(DATA / "before" / "octave-parquet")


@pytest.mark.parametrize("folder", BEFORE, ids=lambda folder: folder.name)
def test_what_is_read_is_written_again_byte_for_byte(folder):
    text = (folder / "datapackage.json").read_text(encoding="utf-8")
    manifest = Manifest.read(folder)
    assert manifest.to_json() == text
    assert manifest.unknown == ()


@pytest.mark.parametrize("file_format", ["parquet", "csv", "cells"])
@pytest.mark.parametrize("size", ["none", "octave"])
def test_a_release_that_was_written_is_described_as_one_that_was_read(
    size, file_format, key, tmp_path
):
    with rp.read(
        people(), sensitive="job", public="all", missing="value", bin={"age": 20}
    ) as table:
        made = table.publish(
            replace(POLICY, sampling=size), tmp_path / "r", key=key, file_format=file_format
        )
    read = rp.open(tmp_path / "r")
    assert made.description == read.description
    assert made.manifest == read.manifest == json.loads(made.description.to_json())


def test_a_release_that_was_written_does_not_read_itself_back(key, tmp_path, monkeypatch):
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        release = table.publish(POLICY, tmp_path / "r", key=key)
    (tmp_path / "r" / "datapackage.json").unlink()
    assert release.count(job="nurse").count > 0
    assert release.to_arrow().num_rows == release.records
    with (tmp_path / "r" / "groups.parquet").open("ab") as stream:
        stream.write(b" ")
    with pytest.raises(rp.ReconprivError, match=r"groups\.parquet does not match .* \(hash\)"):
        release.to_arrow()


CODES = ((1, "yes"), (2, "no"))


@pytest.mark.parametrize(
    ("kind", "published"),
    [
        (Kind.INTEGER, ColumnLabels("Smokes", CODES, others=(0, 7))),
        (Kind.NUMBER, ColumnLabels("Smokes", description="1 = yes; 2 = no")),
    ],
)
def test_labels_come_back_as_they_were_published(octave, kind, published):
    column = Column("smokes", kind)
    said = as_published(column, ColumnLabels("Smokes", CODES[::-1]), {0, 1, 7})
    assert said == published
    schema = replace(octave.schema, public=(*octave.schema.public, column))
    labelled = replace(octave, schema=schema, labels={"smokes": said})
    assert reread(labelled) == labelled


def test_a_sensitive_column_may_have_the_name_of_a_count(octave):
    schema = replace(octave.schema, sensitive=Column("trials", Kind.INTEGER), domain=(1, 2))
    manifest = replace(octave, schema=schema, labels={"trials": ColumnLabels("Visits")})
    assert reread(manifest) == manifest
    groups = manifest.as_dict()["resources"][1]["schema"]["fields"]
    assert groups[-1] == {"name": "trials", "type": "integer"}


def test_several_files_come_back_with_their_hashes(octave):
    files = Files(("data-1.csv", "data-2.csv"), ("sha256:aa", "sha256:bb"), 7, 99)
    manifest = replace(octave, data_files=files)
    assert reread(manifest) == manifest
    described = manifest.as_dict()["resources"][0]
    assert described["reconpriv:hashes"] == ["sha256:aa", "sha256:bb"] and "hash" not in described


def _named(change, octave):
    manifest = octave.as_dict()
    change(manifest)
    return Manifest.from_dict(manifest).unknown


@pytest.mark.parametrize(
    ("change", "unknown"),
    [
        (lambda m: m.update(licenses=[]), ("licenses",)),
        (lambda m: m["reconpriv"].update(source="/home/me"), ("source",)),
        (lambda m: m["reconpriv"].update(rows=3), ("rows",)),
        (lambda m: m["reconpriv"].update(cell_total="n"), ("cell_total",)),
        (lambda m: m["resources"][1].update(key="ab"), ("key",)),
        (lambda m: m["resources"][0]["schema"].update(primaryKey="age"), ("primaryKey",)),
        (lambda m: m["resources"][0]["schema"]["fields"][0].update(f=0.3), ("f",)),
        (lambda m: m["resources"].append({"name": "raw"}), ("name",)),
        (lambda m: None, ()),
    ],
    ids=["package", "block", "misplaced", "like ours", "resource", "schema", "field",
         "more resources", "nothing"],
)  # fmt: skip
def test_what_a_manifest_says_beyond_ours_is_named(change, unknown, octave):
    assert _named(change, octave) == unknown


def test_the_version_is_that_which_the_content_needs(octave):
    binned = Manifest.read(DATA / "before" / "binned")
    assert (octave.format_version, binned.format_version) == (1, 2)
    for manifest, version in ((octave, 2), (binned, 1)):
        described = manifest.as_dict()
        described["reconpriv"]["format_version"] = version
        with pytest.raises(ValueError, match=r"^$"):
            Manifest.from_dict(described)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"resources": [{"name": "data"}], "reconpriv": {"format_version": 99}}', {"data"}),
        ('{"resources": [{"name": "data"}]}', set()),
        ('{"resources": [{"name": "data"}], "reconpriv": 3}', set()),
        ('{"reconpriv": {}}', set()),
        ("[]", set()),
        ("no JSON", set()),
    ],
)
def test_resources_are_named_whatever_the_version(text, names):
    assert resource_names(text) == names
