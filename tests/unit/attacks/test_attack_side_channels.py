"""Files reveal nothing but their rows, and one that reveals more is detected."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.attacks.attacked_table import AttackedTable
from reconpriv.attacks.side_channels import (
    attack_side_channels,
    release_channels,
    scan_release,
    shuffled_records,
)
from reconpriv.policy import Policy


def leaks(folder: Path) -> set[str]:
    return {channel.name for channel in release_channels(folder) if channel.leaks}


@pytest.fixture
def release(small, key, tmp_path) -> Path:
    with rp.read(small, sensitive="Education", public="all") as table:
        return table.publish(Policy(0.5, 0.5, 0.3), tmp_path / "release", key=key).path


@pytest.mark.parametrize("size", ["none", "paper", "octave", "public"])
def test_no_channel_of_a_release_leaks(small, size):
    with rp.read(small, sensitive="Education", public="all") as table:
        result = attack_side_channels(table, Policy(0.5, 0.5, 0.3, sample_size=size))
    assert result.success is not None and result.control is not None
    assert result.success.successes == 0
    assert result.success.trials == (8 if size in ("octave", "public") else 7)
    assert result.control.successes >= 2


@pytest.mark.parametrize("sensitive", ["Education", "Occupation"])
def test_no_channel_of_the_census_release_leaks(census_release, sensitive):
    assert leaks(census_release(sensitive, "octave").path) == set()


def test_a_csv_release_leaks_nothing_either(small, key, tmp_path):
    with rp.read(small, sensitive="Education", public="all") as table:
        made = table.publish(
            Policy(0.5, 0.5, 0.3), tmp_path / "release", key=key, file_format="csv"
        )
    result = scan_release(made.path)
    assert result.success is not None and result.success.successes == 0
    assert result.control is not None and result.control.successes >= 2


def test_two_raw_tables_with_the_same_published_cells_have_the_same_bytes(release, files_of):
    """Whatever the raw table was: the published rows, written anew, give the same files."""
    names = {channel.name: channel for channel in release_channels(release)}
    assert not names["bytes of data.parquet"].leaks
    assert not names["bytes of groups.parquet"].leaks


def test_rows_in_the_order_of_the_input_are_noticed(release):
    file = release / "data.parquet"
    table = pq.read_table(file)
    pq.write_table(table.take(list(range(table.num_rows))[::-1]), file)
    assert {"row order", "bytes of data.parquet"} <= leaks(release)


def test_metadata_of_a_data_frame_is_noticed(release):
    file = release / "data.parquet"
    table = pq.read_table(file).replace_schema_metadata({"made_on": "host.example"})
    pq.write_table(table, file)
    assert "Parquet metadata" in leaks(release)


def test_other_row_groups_are_noticed(release):
    file = release / "data.parquet"
    pq.write_table(pq.read_table(file), file, row_group_size=1_000)
    assert {"row groups", "bytes of data.parquet"} <= leaks(release)


def test_another_compression_is_noticed(release):
    """File sizes may tell about a writer's buffers."""
    file = release / "data.parquet"
    pq.write_table(pq.read_table(file), file, compression="snappy", store_schema=False)
    assert "bytes of data.parquet" in leaks(release)


def test_a_word_too_many_in_the_manifest_is_noticed(release):
    path = release / "datapackage.json"
    manifest = json.loads(path.read_text())
    manifest["reconpriv"]["source"] = "/home/me/patients.csv"
    path.write_text(json.dumps(manifest))
    assert leaks(release) == {"manifest"}


def test_a_file_too_many_is_noticed(release):
    (release / "audit.txt").write_text("internal")
    assert leaks(release) == {"other files"}


def test_the_scan_leaves_the_release_as_it_was(release, files_of):
    before = files_of(release)
    scan_release(release)
    assert files_of(release) == before


def test_shuffled_records_are_the_same_records(small, count_rows):
    with rp.read(small, sensitive="Education", public="all") as table:
        shuffled = shuffled_records(AttackedTable.of(table, Policy(0.5, 0.5, 0.3)))
    assert count_rows(shuffled) == count_rows(small)
    assert not shuffled.equals(small)


def test_missing_values_survive_the_shuffle(tmp_path):
    table = pa.table({
        "a": ["x", None, "x", "y"] * 20, "n": [1, 2, None, 4] * 20, "s": ["u", "v", None, "u"] * 20
    })  # fmt: skip
    with rp.read(table, sensitive="s", public="all", missing="value") as opened:
        result = attack_side_channels(opened, Policy(0.5, 0.5, 0.3))
    assert result.success is not None
    assert result.success.successes == 0, result.table


def test_the_side_channel_attack_reads_cells(adult, tmp_path):
    adult.publish(Policy(0.5, 0.5, 0.3), tmp_path / "r", key=rp.Key.test(), file_format="cells")
    found = scan_release(tmp_path / "r")
    assert found.success.successes == 0
    assert found.control is not None
    assert found.control.successes > 0
