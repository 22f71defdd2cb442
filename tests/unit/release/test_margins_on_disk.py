"""A release with margins: the same bytes from everywhere, described, checked and refused."""

import json
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from margin_fixtures import margin_key
from query_fixtures import accept_hashes, edit_manifest, people
from reconpriv.errors import PolicyError, ReconprivError
from reconpriv.policy.margin_settings import NEIGHBOURS
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.manifest import Manifest
from reconpriv.release.margin_file import read_margins

KEY = margin_key(1)


def policy(**more):
    return rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, **({"margins": 0.4} | more))


def publish(source, folder, chosen=None, **read):
    layout = read.pop("file_format", "parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ReconprivWarning)
        with rp.read(source, sensitive="job", public="all", missing="value", **read) as table:
            table.publish(chosen or policy(), folder, key=KEY, file_format=layout)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return publish(people(), tmp_path_factory.mktemp("margins") / "r")


def files_of(path):
    return {file.name: file.read_bytes() for file in sorted(path.iterdir())}


# --- the same bytes -------------------------------------------------------------------------------


def shuffled(_):
    return people().take(np.random.default_rng(3).permutation(people().num_rows))


def parquet(folder):
    pq.write_table(people(), folder / "people.parquet", row_group_size=500)
    return folder / "people.parquet"


def csv(folder):
    pa.csv.write_csv(people(), folder / "people.csv")
    return folder / "people.csv"


def several_files(folder):
    (folder / "parts").mkdir()
    for i in range(3):
        pq.write_table(shuffled(folder).slice(1_000 * i, 1_000), folder / "parts" / f"{i}.parquet")
    return folder / "parts" / "*.parquet"


@pytest.mark.parametrize("source", [shuffled, parquet, csv, several_files])
def test_the_same_key_gives_the_same_bytes(folder, source, tmp_path):
    made = publish(source(tmp_path), tmp_path / "r")
    assert files_of(made) == files_of(folder)
    assert set(files_of(made)) == {
        "data.parquet", "groups.parquet", "margins.parquet", "datapackage.json"
    }  # fmt: skip


def test_small_batches_give_the_same_bytes(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("reconpriv.engines.duckdb.groups.BATCH", 40)
    monkeypatch.setattr("reconpriv.engines.duckdb.groups._LEAST_BATCH", 40)
    assert files_of(publish(people(), tmp_path / "r")) == files_of(folder)


@pytest.mark.parametrize("file_format", ["csv", "cells"])
def test_every_layout_holds_the_same_margins(folder, tmp_path, file_format):
    made = publish(people(), tmp_path / "r", file_format=file_format)
    mine, theirs = (
        read_margins(ReleaseFolder(path, Manifest.read(path))) for path in (folder, made)
    )
    assert [t.counts.tolist() for t in mine] == [t.counts.tolist() for t in theirs]
    asked = {"Sex": "F", "job": "nurse"}
    assert rp.open(made).count(**asked).count == rp.open(folder).count(**asked).count


# --- noise ----------------------------------------------------------------------------------------


def margins_in(path):
    table = pq.read_table(path / "margins.parquet").to_pylist()
    return {tuple(list(row.values())[:-1]): row["count"] for row in table}


def test_one_changed_value_redraws_all_noise(folder, tmp_path):
    """Else two releases with one key would show which counts a value was moved between."""
    rows = people().to_pylist()
    first = next(i for i, row in enumerate(rows) if row["Sex"] == "F" and row["job"] == "nurse")
    rows[first] = rows[first] | {"job": "pilot"}
    changed = publish(pa.Table.from_pylist(rows, people().schema), tmp_path / "r")
    before, after = margins_in(folder), margins_in(changed)
    both = set(before) & set(after)
    names = ("age", "Sex", "region")
    touched = {
        key for key in both
        if key[-1] in ("nurse", "pilot") and key[1 + names.index(key[0])] == rows[first][key[0]]
    }  # fmt: skip
    same = {key: before[key] == after[key] for key in both}
    # Touched or not, about as few counts stay the same by chance.
    assert len(both) > 50
    assert np.mean([same[key] for key in both - touched]) < 0.2
    assert publish(people(), tmp_path / "again") and margins_in(tmp_path / "again") == before


def test_another_rho_gives_independent_noise(folder, tmp_path):
    other = margins_in(publish(people(), tmp_path / "r", policy(margins=0.41)))
    mine = margins_in(folder)
    both = sorted(set(mine) & set(other), key=str)
    truth = dict.fromkeys(both, 0)
    for row in people().to_pylist():
        for key in both:
            names = ("age", "Sex", "region")
            if key[-1] == row["job"] and key[1 + names.index(key[0])] == row[key[0]]:
                truth[key] += 1
    one, two = (np.array([found[key] - truth[key] for key in both]) for found in (mine, other))
    assert len(both) > 50
    assert one.std() == pytest.approx(two.std(), rel=0.4)
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.35


# --- the manifest ---------------------------------------------------------------------------------


def test_the_manifest_says_how_private_the_margins_are(folder):
    block = json.loads((folder / "datapackage.json").read_text())["reconpriv"]
    said = block["margins"]
    margins = rp.Margins(0.4)
    assert block["format_version"] == 3
    assert said["rho"] == margins.rho
    assert (said["epsilon"], said["delta"]) == (margins.epsilon, 1e-9)
    assert said["variance"] == pytest.approx(3 / margins.rho)
    assert said["neighbours"] == NEIGHBOURS
    assert [table["columns"] for table in said["tables"]] == [["age"], ["Sex"], ["region"]]
    text = (folder / "datapackage.json").read_text()
    assert Manifest.read(folder).to_json() == text
    assert Manifest.read(folder).unknown == ()


def test_the_margins_are_those_of_no_true_count(folder):
    """Neither true counts nor rows that were left out are in any file."""
    truth = len(
        [row for row in people().to_pylist() if row["Sex"] == "F" and row["job"] == "nurse"]
    )
    counts = margins_in(folder)
    assert counts["Sex", None, "F", None, "nurse"] != truth
    for one in Manifest.read(folder).margins.tables:
        names = {key[0] for key in counts}
        assert one.name in names


# --- damage ---------------------------------------------------------------------------------------


def refusal(path):
    with pytest.raises(ReconprivError) as caught:
        rp.open(path).count(job="nurse")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def rewritten(path, change):
    file = path / "margins.parquet"
    pq.write_table(change(pq.read_table(file)), file)
    accept_hashes(path)


def test_a_margins_file_that_was_changed_cut_or_removed_is_refused(folder, tmp_path):
    copy = Path(shutil.copytree(folder, tmp_path / "r"))
    file = copy / "margins.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:-40])
    assert "margins.parquet" in refusal(copy)
    file.write_bytes(whole.replace(b"PAR1", b"PAR2"))
    assert "margins.parquet" in refusal(copy)
    file.unlink()
    assert "margins.parquet" in refusal(copy)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.slice(1),
        lambda table: pa.concat_tables([table, table.slice(0, 5)]),
        lambda table: table.take(list(range(table.num_rows))[::-1]),
        lambda table: table.drop_columns(["count"]),
        lambda table: table.set_column(0, "table", pa.array(["other"] * table.num_rows)),
        lambda table: table.set_column(4, "job", pa.array(["baker"] * table.num_rows)),
        lambda table: table.set_column(5, "count", pa.array([None] * table.num_rows, pa.int64())),
        lambda table: table.set_column(1, "age", pa.array([20] * table.num_rows)),
    ],
    ids=["short", "long", "order", "column", "name", "values", "no counts", "the same row twice"],
)
def test_a_margins_file_that_does_not_match_its_manifest_is_refused(folder, tmp_path, change):
    copy = Path(shutil.copytree(folder, tmp_path / "r"))
    rewritten(copy, change)
    assert "margins.parquet does not match its manifest" in refusal(copy)


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said.update(rho=0),
        lambda said: said.update(variance="much"),
        lambda said: said.update(tables=[]),
        lambda said: said["tables"][0].update(columns=["nobody"]),
        lambda said: said["tables"][0].update(columns=["job"]),
        lambda said: said["tables"][0].update(rows=0),
        lambda said: said.pop("columns"),
        lambda said: said.pop("epsilon"),
    ],
)
def test_a_damaged_block_is_refused(folder, tmp_path, change):
    copy = Path(shutil.copytree(folder, tmp_path / "r"))
    edit_manifest(copy, lambda manifest: change(manifest["reconpriv"]["margins"]))
    assert refusal(copy).startswith("The manifest of")


def test_a_manifest_without_the_file_of_its_margins_is_refused(folder, tmp_path):
    copy = Path(shutil.copytree(folder, tmp_path / "r"))
    edit_manifest(copy, lambda manifest: manifest["resources"].pop())
    assert refusal(copy).startswith("The manifest of")


# --- bad input ------------------------------------------------------------------------------------


def test_a_column_of_a_million_values_is_refused_with_the_memory_it_would_need(tmp_path):
    n = 1_000_000
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "number": rng.permutation(n).astype(np.int64) // 2,
            "town": rng.integers(0, 5, n),
            "job": rng.choice(["a", "b", "c"], n),
        }
    )
    with (
        rp.read(table, sensitive="job", public="all") as opened,
        pytest.raises(PolicyError) as caught,
    ):
        opened.publish(
            policy(margins=rp.Margins(1.0, tables=["number"])), tmp_path / "r", key=KEY,
            keep_identifier="number",
        )  # fmt: skip
    assert str(caught.value).startswith(
        "The margin table by number has too many rows: all tables together may have 6,688 for 3"
        " sensitive values, for which an analyst needs 0.5 GB of memory."
    )
    assert not (tmp_path / "r").exists()


def test_tables_by_name_are_those_that_are_published(tmp_path):
    chosen = policy(margins=rp.Margins(0.4, tables=["Sex", ("region", "Sex")]))
    path = publish(people(), tmp_path / "r", chosen)
    said = Manifest.read(path).margins
    assert [table.columns for table in said.tables] == [("Sex",), ("Sex", "region")]
    assert said.variance == pytest.approx(2 / chosen.wanted_margins.rho)
    found = rp.open(path).count(Sex="F", region=None, job="nurse")
    assert found.from_margins > 0.1


def test_a_release_without_a_row_to_publish_is_that_without_margins(tmp_path, key):
    """Every row would give a group away, so there are no margins, and a warning says so."""
    rows = {"a": [i % 3 for i in range(900)], "b": [i % 3 for i in range(900)]}
    rows["s"] = ["x" if i % 7 else "yzw"[i % 3] for i in range(900)]
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, margins=3.0)
    with rp.read(pa.table(rows), sensitive="s", public="all") as table:
        assert "every row" not in " ".join(table.warnings)
        report = table.audit(policy, columns=False)
        assert not report.margins and report.policy.margins is None
        assert any(note.startswith("No margins are published") for note in report.warnings)
        release = table.publish(policy, tmp_path / "r", key=key)
        plain = table.publish(replace(policy, margins=None), tmp_path / "plain", key=key)
        assert not any("margins" in note for note in table.audit(rp.preset("paper")).warnings)
    assert any(note.startswith("No margins are published: every row") for note in release.warnings)
    assert not any("margins" in note for note in plain.warnings)
    for file in (tmp_path / "plain").iterdir():
        assert file.read_bytes() == (tmp_path / "r" / file.name).read_bytes()
    assert len([*(tmp_path / "r").iterdir()]) == 3
