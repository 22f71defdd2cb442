"""A release with protection groups on disk: what is in it, and what its readers make of it."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.cells.cube import collect
from reconpriv.errors import ReleaseError
from reconpriv.protect.publish_cube import published_cube
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.load import load_cube
from reconpriv.release.manifest import Manifest

POLICY = rp.Policy(
    retention=0.5, tolerance=0.5, doubt=0.3, sampling="public", protect={"age": 10, "sex": "*"}
)


def records(n=3_000, seed=1):
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 50, n)
    return pa.table(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], n),
            "town": pa.array(rng.choice(["a", "b", ""], n), mask=rng.random(n) < 0.05),
            "ill": np.where(rng.random(n) < age / 60, "x", rng.choice(list("yz"), n)),
        }
    )


TABLE = records()


def publish(folder, key, *, policy=POLICY, table=TABLE, **options):
    with rp.read(table, sensitive="ill", public="all", missing="value") as opened:
        return opened.publish(policy, folder, key=key, **options)


@pytest.fixture(scope="module")
def release(key, tmp_path_factory):
    return publish(tmp_path_factory.mktemp("protected") / "release", key)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def public_rows(table):
    return sorted(table.select(["age", "sex", "town"]).to_pylist(), key=str)


def test_the_groups_file_has_one_row_per_protection_group(release):
    groups = pq.read_table(release.path / "groups.parquet")
    assert groups.column_names == ["age", "town", "records", "trials"]
    rows = groups.to_pylist()
    bands = ["20 to 29", "30 to 39", "40 to 49"]
    assert [(row["age"], row["town"]) for row in rows] == [
        (band, town) for band in bands for town in ("", "a", "b", None)
    ]
    assert release.written.groups == len(rows) == 12
    assert release.written.sampled_groups == 12
    assert release.written.trials == sum(row["trials"] for row in rows) < TABLE.num_rows / 2
    for row in rows:
        low = int(row["age"][:2])
        inside = [
            low <= one["age"] < low + 10 and one["town"] == row["town"] for one in TABLE.to_pylist()
        ]
        assert row["records"] == sum(inside)


def test_trials_are_those_of_the_table_coarsened_beforehand(release, key, tmp_path):
    coarse = pa.table(
        {
            "age": [f"{age // 10}0 to {age // 10}9" for age in TABLE["age"].to_pylist()],
            "town": TABLE["town"],
            "ill": TABLE["ill"],
        }
    )
    other = publish(tmp_path / "coarse", key, policy=replace(POLICY, protect=None), table=coarse)
    assert pq.read_table(other.path / "groups.parquet").equals(
        pq.read_table(release.path / "groups.parquet")
    )
    # The same values, too, dealt: nothing more is told than by that release.
    dealt, whole = (one.group_answerer.cube for one in (rp.open(release.path), rp.open(other.path)))
    assert np.array_equal(dealt.count, whole.count)
    assert np.array_equal(dealt.value, whole.value)


def test_the_manifest_says_how_to_coarsen_and_is_read_back(release):
    found = Manifest.read(release.path)
    assert found == release.description
    block = json.loads((release.path / "datapackage.json").read_text())["reconpriv"]
    assert block["format_version"] == 4
    assert block["protect"]["sex"] == {"declared": "ignored"}
    assert block["protect"]["age"]["borders"] == [20, 30, 40, 50]
    assert block["public"] == ["age", "sex", "town"]
    assert found.unknown == ()
    assert release.info()["protect"] == block["protect"]


def damaged(release, folder, change):
    folder.mkdir()
    for name, content in files(release.path).items():
        (folder / name).write_bytes(content)
    file = folder / "datapackage.json"
    found = json.loads(file.read_text())
    change(found["reconpriv"])
    file.write_text(json.dumps(found))
    return folder


def test_a_damaged_block_is_refused(release, tmp_path):
    def other_column(block):
        block["protect"]["height"] = block["protect"].pop("sex")

    def nothing(block):
        block["protect"] = {}

    def no_version(block):
        block["format_version"] = 3

    def no_borders(block):
        del block["protect"]["age"]["borders"]

    for i, change in enumerate((other_column, nothing, no_version, no_borders)):
        with pytest.raises(ReleaseError, match="damaged"):
            rp.open(damaged(release, tmp_path / str(i), change))


def test_a_coarsening_that_is_not_that_of_the_groups_is_refused(release, tmp_path):
    def shifted(block):
        block["protect"]["age"] |= {
            "borders": [20, 31, 40, 50],
            "labels": ["20 to 30", "31 to 39", "40 to 49"],
        }

    with pytest.raises(ReleaseError, match="groups"):
        rp.open(damaged(release, tmp_path / "shifted", shifted)).count(ill="x")

    def too_few(block):
        block["protect"]["age"] |= {"borders": [20, 30], "labels": ["20 to 29"]}

    with pytest.raises(ReleaseError, match="protection"):
        rp.open(damaged(release, tmp_path / "few", too_few)).count(ill="x")


@pytest.mark.parametrize("file_format", ["parquet", "csv", "cells"])
@pytest.mark.parametrize("sampling", ["octave", "none"])
def test_every_format_and_sampling_loads_what_was_published(file_format, sampling, key, tmp_path):
    policy = replace(POLICY, sampling=sampling)
    found = publish(tmp_path / "r", key, policy=policy, file_format=file_format)
    cube = load_cube(ReleaseFolder.open(found.path))
    with rp.read(TABLE, sensitive="ill", public="all", missing="value") as opened:
        raw = collect(opened.batches(), opened.schema)
    expected = published_cube(raw, policy, key)
    for name in ("group", "value", "count"):
        assert np.array_equal(getattr(cube, name), getattr(expected, name))
    assert np.array_equal(cube.within, expected.within)
    assert np.array_equal(cube.whole.trials, expected.whole.trials)


def test_all_columns_may_be_ignored(key, tmp_path):
    policy = replace(POLICY, protect=dict.fromkeys(["age", "sex", "town"], "*"))
    found = publish(tmp_path / "r", key, policy=policy)
    assert pq.read_table(found.path / "groups.parquet").column_names == ["records", "trials"]
    assert rp.open(found.path).count(age=30).count == (np.asarray(TABLE["age"]) == 30).sum()
    assert rp.open(found.path).count(ill="x").groups == 1


def test_the_same_key_gives_the_same_bytes_whatever_the_order(release, key, tmp_path):
    order = np.random.default_rng(2).permutation(TABLE.num_rows)
    again = publish(tmp_path / "again", key, table=TABLE.take(pa.array(order)))
    assert files(again.path) == files(release.path)


def test_another_key_gives_another_release(release, tmp_path):
    other = rp.Key(hashlib.sha256(b"another").digest())
    found = publish(tmp_path / "other", other)
    assert files(found.path)["data.parquet"] != files(release.path)["data.parquet"]
    assert files(found.path)["groups.parquet"] == files(release.path)["groups.parquet"]


def test_nothing_but_the_declared_names_is_in_the_manifest(release, key):
    text = (release.path / "datapackage.json").read_text()
    assert key.secret.hex() not in text
    assert str(release.path.parent) not in text


def test_labels_of_a_source_stay_with_the_fine_column(key, tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = TABLE.drop_columns(["town"]).to_pandas()
    source = tmp_path / "t.sav"
    pyreadstat.write_sav(
        frame,
        source,
        column_labels={"age": "Age in years"},
        variable_value_labels={"age": {20: "twenty"}},
    )
    with rp.read(source, sensitive="ill", public="all") as opened:
        found = opened.publish(replace(POLICY, protect={"age": 10}), tmp_path / "r", key=key)
    data, groups = json.loads((found.path / "datapackage.json").read_text())["resources"]
    fine, coarse = (one["schema"]["fields"][0] for one in (data, groups))
    assert {"value": 20, "label": "twenty"} in fine["categories"]
    assert coarse["title"] == "Age in years"
    assert coarse["categories"] == ["20 to 29", "30 to 39", "40 to 49"]


def test_the_promise_is_about_protection_groups(release, key, tmp_path):
    assert "who agree on all public columns after coarsening age and sex, and" in release.promise
    assert rp.open(release.path).promise == release.promise
    exact = replace(POLICY, bound="exact", doubt=0.05, exposed_above=0.4, harmless=("z",))
    found = publish(tmp_path / "exact", key, policy=exact)
    assert 'that more than 40 % of them hold, except "z", an adversary' in found.promise
    plain = publish(tmp_path / "plain", key, policy=replace(POLICY, protect=None))
    assert "coarsening" not in plain.promise


def test_what_is_exposed_is_judged_by_protection_group(key, tmp_path):
    """Everybody of 30 has x and nobody of 31: half of their protection group has it."""
    ages, ill = [30] * 200 + [31] * 200, ["x"] * 200 + ["y", "z"] * 100
    table = pa.table({"age": ages, "ill": ill})
    policy = rp.Policy(
        retention=0.5, tolerance=0.5, doubt=0.3, sampling="public", exposed_above=0.6
    )
    trials = []
    for name, protect in (("alone", None), ("together", {"age": 10})):
        found = publish(tmp_path / name, key, policy=replace(policy, protect=protect), table=table)
        trials.append(found.written.sampled_groups)
    assert trials == [2, 1]  # with `public`, size alone decides
    octave = replace(policy, sampling="octave", protect={"age": 10})
    found = publish(tmp_path / "octave", key, policy=octave, table=table)
    assert found.written.sampled_groups == 0


def test_both_reports_speak_of_protection_groups(release, tmp_path):
    pytest.importorskip("altair")
    release.report(tmp_path / "analyst.html")
    text = (tmp_path / "analyst.html").read_text()
    assert "in 12 protection groups" in text
    assert "about whole protection groups" in text
    for cell in ("<td>sex</td>", "<td>integer</td>"):  # the columns as the rows have them
        assert cell in text
    with rp.read(
        TABLE.slice(0, 400).drop_columns(["town"]), sensitive="ill", public="all"
    ) as opened:
        opened.report(POLICY, tmp_path / "internal.html")
    text = (tmp_path / "internal.html").read_text()
    assert "of 3 protection groups" in text
    assert "age (3 values), sex (ignored)" in text


def test_groups_can_be_exported_and_loaded_into_a_database(release, tmp_path):
    release.export(tmp_path / "groups.csv", groups=True)
    assert (tmp_path / "groups.csv").read_text().startswith('"age","town","records","trials"')
    names = release.to_table(tmp_path / "d.duckdb", "r")
    assert names == ("r", "r_groups", "r_manifest")


# Groups of towns mix the order of micro groups, bands of ages do not.
@pytest.mark.parametrize("protect", [{"age": 10, "sex": "*"}, {"town": {"a": "y", "*": "x"}}])
def test_a_release_too_large_for_memory_is_answered_alike(protect, key, tmp_path, monkeypatch):
    from reconpriv.release import load, stored_cells

    release = publish(tmp_path / "r", key, policy=replace(POLICY, protect=protect))
    whole = rp.open(release.path)
    monkeypatch.setattr(load, "_IN_MEMORY", 1)
    monkeypatch.setattr(stored_cells, "CELLS_PER_PART", 10)
    parted = rp.open(release.path)
    asked = [{"ill": "x"}, {"age": 30, "ill": "x"}, {"sex": "f", "ill": ["x", "y"]}, {"age": 41}]
    for query in asked:
        ours, theirs = parted.count(**query), whole.count(**query)
        for name in ("count", "low", "high", "standard_error", "groups", "trials"):
            assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-9), name
        assert ours.remarks == theirs.remarks
    assert sum(1 for _ in parted.answerer.cells.parts()) > 1
    assert parted.average("age", ill="x").value == pytest.approx(
        whole.average("age", ill="x").value, rel=1e-9
    )
