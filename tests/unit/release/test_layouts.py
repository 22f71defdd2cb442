"""The layout of a release on disk: as records or as cells, in one file or in several."""

import dataclasses
import gc
import hashlib
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.engines.base import Layout
from reconpriv.release import load
from reconpriv.release import stored_cells as stored
from reconpriv.release.folder import ReleaseFolder

PUBLIC = ["age", "sex", "race"]
DESIGNS = ["none", "paper", "octave", "public"]


def policy_for(sampling):
    return rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=sampling)


def quietly(folder, **settings):
    with pytest.warns(rp.ReconprivWarning):
        return rp.open(folder, **settings)


@pytest.fixture
def small_files(monkeypatch):
    """Releases of files of 7,000 rows."""
    plain = Layout.of.__func__  # type: ignore[attr-defined]

    def of(cls, release_format, *, with_trials):
        layout = plain(cls, release_format, with_trials=with_trials)
        return dataclasses.replace(layout, rows_per_file=7_000)

    monkeypatch.setattr(Layout, "of", classmethod(of))
    return 7_000


@pytest.mark.parametrize("sampling", DESIGNS)
def test_cells_say_the_same_as_records(adult, tmp_path, sampling):
    policy = policy_for(sampling)
    for form in ("parquet", "cells"):
        adult.publish(policy, tmp_path / form, key=rp.Key.test(), file_format=form)
    records, cells = quietly(tmp_path / "parquet"), quietly(tmp_path / "cells")
    assert records.to_arrow().equals(cells.to_arrow())
    query = {"where": "age BETWEEN 30 AND 39", "occupation": "Sales"}
    assert records.count(**query) == cells.count(**query)
    assert str(records.crosstab(["sex", "race"])) == str(cells.crosstab(["sex", "race"]))


def test_cells_are_rows_with_a_count(adult, tmp_path):
    adult.publish(policy_for("none"), tmp_path / "r", key=rp.Key.test(), file_format="cells")
    table = pq.read_table(tmp_path / "r" / "data.parquet")
    assert table.column_names == [*PUBLIC, "occupation", "count"]
    counts = table.column("count").to_numpy()
    assert counts.min() >= 1
    assert counts.sum() == 48_842
    manifest = json.loads((tmp_path / "r" / "datapackage.json").read_text())
    assert manifest["reconpriv"]["cell_count"] == "count"
    assert manifest["reconpriv"]["records"] == 48_842
    assert manifest["resources"][0]["rows"] == table.num_rows


def test_a_column_called_count_is_not_in_the_way(tmp_path):
    table = pa.table(
        {"count": ["a", "b"] * 200, "Count_": ["x"] * 400, "s": ["u", "v", "w", "w"] * 100}
    )
    with rp.read(table, sensitive="s", public="all") as opened:
        opened.publish(policy_for("octave"), tmp_path / "r", key=rp.Key.test(), file_format="cells")
    names = pq.read_schema(tmp_path / "r" / "data.parquet").names
    assert names == ["count", "Count_", "s", "count__"]
    assert quietly(tmp_path / "r").count(count="a").count == 200


def test_cells_whose_counts_were_changed_are_refused(adult, tmp_path):
    adult.publish(policy_for("none"), tmp_path / "r", key=rp.Key.test(), file_format="cells")
    file = tmp_path / "r" / "data.parquet"
    table = pq.read_table(file)
    pq.write_table(table.slice(1), file)
    with pytest.raises(rp.ReconprivError, match="does not match its manifest"):
        quietly(tmp_path / "r").count(occupation="Sales")


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.usefixtures("small_files")
def test_a_large_release_is_cut_into_files_of_a_fixed_size(adult, tmp_path, form):
    adult.publish(policy_for("octave"), tmp_path / "r", key=rp.Key.test(), file_format=form)
    described = ReleaseFolder.open(tmp_path / "r")
    names = [file.name for file in described.paths("data")]
    assert names == [f"data-{i:05}.{form}" for i in range(1, 8)]
    assert [file.name for file in described.paths("groups")] == [f"groups.{form}"]
    resource = described.manifest.as_dict()["resources"][0]
    assert resource["path"] == names
    assert resource["rows"] == 48_842
    assert resource["bytes"] == sum(file.stat().st_size for file in described.paths("data"))
    assert sorted(file.name for file in (tmp_path / "r").iterdir()) == sorted(
        [*names, f"groups.{form}", "datapackage.json"]
    )
    if form == "parquet":
        rows = [pq.read_metadata(file).num_rows for file in described.paths("data")]
        assert rows == [7_000] * 6 + [48_842 - 42_000]


def test_several_files_hold_what_one_holds(adult, tmp_path, request):
    adult.publish(policy_for("octave"), tmp_path / "one", key=rp.Key.test())
    request.getfixturevalue("small_files")
    adult.publish(policy_for("octave"), tmp_path / "several", key=rp.Key.test())
    one, several = quietly(tmp_path / "one"), quietly(tmp_path / "several")
    assert one.to_arrow().equals(several.to_arrow())
    assert one.count(age=30, occupation="Sales") == several.count(age=30, occupation="Sales")


@pytest.mark.usefixtures("small_files")
def test_each_of_several_files_is_checked(adult, tmp_path):
    adult.publish(policy_for("octave"), tmp_path / "r", key=rp.Key.test())
    (tmp_path / "r" / "data-00003.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(rp.ReconprivError, match=r"data-00003\.parquet does not match"):
        quietly(tmp_path / "r").count(age=30)


@pytest.mark.usefixtures("small_files")
def test_a_file_outside_the_folder_cannot_be_named(adult, tmp_path):
    adult.publish(policy_for("octave"), tmp_path / "r", key=rp.Key.test())
    manifest = json.loads((tmp_path / "r" / "datapackage.json").read_text())
    manifest["resources"][0]["path"][0] = "../../etc/passwd"
    (tmp_path / "r" / "datapackage.json").write_text(json.dumps(manifest))
    with pytest.raises(rp.ReconprivError, match="lacks its file passwd"):
        quietly(tmp_path / "r").count(age=30)


def test_a_uri_needs_spark(adult, tmp_path):
    with pytest.raises(rp.ReconprivError, match='engine="spark"'):
        adult.publish(policy_for("octave"), "s3a://bucket/release")


@pytest.mark.parametrize("sampling", DESIGNS)
def test_cells_on_disk_answer_as_cells_in_memory_do(tmp_path, monkeypatch, sampling):
    """Missing values, every estimator, every kind of query; parts of a few hundred cells."""
    table = pa.table(
        {
            "g": [["a", "b", None, "d"][i % 4] for i in range(6_000)],
            "n": [i % 97 if i % 11 else None for i in range(6_000)],
            "s": [["u", "v", "w"][i * i % 7 % 3] for i in range(6_000)],
        }
    )
    with rp.read(table, sensitive="s", public="all") as opened:
        opened.publish(policy_for(sampling), tmp_path / "r", key=rp.Key.test())
    memory = answers(quietly(tmp_path / "r"))
    monkeypatch.setattr(load, "_IN_MEMORY", 10)
    monkeypatch.setattr(stored, "CELLS_PER_PART", 150)
    monkeypatch.setattr("reconpriv.engines.duckdb.groups.BATCH", 100)
    monkeypatch.setattr("reconpriv.engines.duckdb.groups._LEAST_BATCH", 100)
    release = quietly(tmp_path / "r")
    disk = answers(release)
    cells = release.answerer.cells
    assert isinstance(cells, stored.StoredCells)
    assert cells.number > 3
    assert len(memory) == len(disk)
    for one, other in zip(memory, disk, strict=True):
        assert one[0] == other[0]
        assert one[1] == pytest.approx(other[1], rel=1e-9, abs=1e-9)
    folder = cells.scratch.path
    assert folder.exists()
    del cells, release
    gc.collect()
    assert not folder.exists()


def answers(release):
    """Many kinds of questions; the texts of the answers and their figures."""
    singles = [
        release.count(), release.count(s="u"), release.count(g="a", s="v"),
        release.count("g IS NULL", s="v"), release.count("n > 50 OR g = 'b'", s=["u", "w"]),
        release.count(n=[1, 2, 3], s="w"), release.count(n=5, g="d"),
        release.count("n > 1000", s="u"),
        release.count(s="u", estimator="constrained"),
        *release.count_many([{"g": "a", "s": "u"}, {"g": "b", "s": "u"}, {"n": 7}, {"n": 1234}]),
    ]  # fmt: skip
    tables = [
        release.crosstab(["g"]), release.crosstab(["g", "s"], simultaneous=True),
        release.frequencies("n < 20"), release.crosstab(["s", "g"], estimator="constrained"),
        release.crosstab(["n"], "g = 'a'", s="u"),
    ]  # fmt: skip
    found = [(e.query, (e.count, e.low, e.high, e.groups, e.trials)) for e in singles]
    for table in tables:
        found += [(str(labels), (e.count, e.low, e.high, e.groups)) for labels, e in table]
    return found


def test_a_groups_file_that_goes_on_too_long_is_noticed(tmp_path, monkeypatch):
    table = pa.table({"g": [f"k{i}" for i in range(400)] * 3, "s": ["u", "v", "w"] * 400})
    with rp.read(table, sensitive="s", public="all") as opened:
        opened.publish(policy_for("octave"), tmp_path / "r", key=rp.Key.test())
    groups = pq.read_table(tmp_path / "r" / "groups.parquet")
    more = pa.concat_tables([groups, groups.slice(399)])
    pq.write_table(more, tmp_path / "r" / "groups.parquet")
    manifest = json.loads((tmp_path / "r" / "datapackage.json").read_text())
    digest = hashlib.sha256((tmp_path / "r" / "groups.parquet").read_bytes()).hexdigest()
    manifest["resources"][1] |= {"hash": f"sha256:{digest}", "rows": 401}
    (tmp_path / "r" / "datapackage.json").write_text(json.dumps(manifest))
    for limit in (10**12, 10):
        monkeypatch.setattr(load, "_IN_MEMORY", limit)
        monkeypatch.setattr(stored, "CELLS_PER_PART", 150)
        with pytest.raises(rp.ReconprivError, match=r"does not match data\.parquet"):
            quietly(tmp_path / "r").count(s="u")


def test_memory_that_cannot_be_read_is_refused(adult, tmp_path):
    adult.publish(policy_for("octave"), tmp_path / "r", key=rp.Key.test())
    with pytest.raises(rp.ReconprivError, match="2GB or 500MB"):
        quietly(tmp_path / "r", memory="much").count(age=30)
    assert quietly(tmp_path / "r", memory="500MB").count(age=30).count == 1_278
