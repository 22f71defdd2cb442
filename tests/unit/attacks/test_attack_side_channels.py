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
    guess_from_release,
    release_channels,
    shuffled_records,
)
from reconpriv.policy.policy import Policy
from reconpriv.release.folder import ReleaseFolder


def leaks(folder: Path) -> set[str]:
    return {channel.name for channel in release_channels(folder) if channel.leaks}


@pytest.fixture
def release(small, key, tmp_path) -> Path:
    with rp.read(small, sensitive="Education", public="all") as table:
        return table.publish(
            Policy(retention=0.5, tolerance=0.5, doubt=0.3), tmp_path / "release", key=key
        ).path


@pytest.mark.parametrize("size", ["none", "paper", "octave", "public"])
def test_no_channel_of_a_release_leaks(small, size):
    with rp.read(small, sensitive="Education", public="all") as table:
        result = attack_side_channels(
            table, Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=size)
        )
    assert result.success is not None and result.control is not None
    assert result.success.successes == 0
    assert result.success.trials == (8 if size in ("octave", "public") else 7)
    assert result.control.successes >= 2


@pytest.mark.parametrize("sensitive", ["Education", "Occupation"])
def test_no_channel_of_the_census_release_leaks(census_release, sensitive):
    assert leaks(census_release(sensitive, "octave").path) == set()


@pytest.mark.parametrize("file_format", ["csv", "cells"])
def test_other_formats_leak_nothing_either(adult, key, tmp_path, file_format):
    adult.publish(
        Policy(retention=0.5, tolerance=0.5, doubt=0.3),
        tmp_path / "r",
        key=key,
        file_format=file_format,
    )
    result = guess_from_release(ReleaseFolder.open(tmp_path / "r"))
    assert result.success.successes == 0
    assert result.control.successes >= 1


def reversed_rows(file):
    table = pq.read_table(file)
    pq.write_table(table.take(list(range(table.num_rows))[::-1]), file)


def with_metadata(file):
    table = pq.read_table(file).replace_schema_metadata({"made_on": "host.example"})
    pq.write_table(table, file)


def other_row_groups(file):
    pq.write_table(pq.read_table(file), file, row_group_size=1_000)


def other_compression(file):
    """File sizes may tell about a writer's buffers."""
    pq.write_table(pq.read_table(file), file, compression="snappy", store_schema=False)


def manifest_of_the_source(file):
    path = file.parent / "datapackage.json"
    manifest = json.loads(path.read_text())
    manifest["reconpriv"]["source"] = "/home/me/patients.csv"
    path.write_text(json.dumps(manifest))


def one_file_more(file):
    (file.parent / "audit.txt").write_text("internal")


@pytest.mark.parametrize(
    ("spoil", "noticed"),
    [
        (reversed_rows, {"row order", "bytes of data.parquet"}),
        (with_metadata, {"Parquet metadata"}),
        (other_row_groups, {"row groups", "bytes of data.parquet"}),
        (other_compression, {"bytes of data.parquet"}),
        (manifest_of_the_source, {"manifest"}),
        (one_file_more, {"other files"}),
    ],
)
def test_what_reveals_more_than_the_rows_is_noticed(release, spoil, noticed):
    assert not leaks(release)
    spoil(release / "data.parquet")
    found = leaks(release)
    assert noticed <= found
    if spoil in (manifest_of_the_source, one_file_more):
        assert found == noticed


def test_the_scan_leaves_the_release_as_it_was(release, files_of):
    before = files_of(release)
    guess_from_release(ReleaseFolder.open(release))
    assert files_of(release) == before


def test_shuffled_records_are_the_same_records(small, count_rows):
    with rp.read(small, sensitive="Education", public="all") as table:
        shuffled = shuffled_records(
            AttackedTable.of(table, Policy(retention=0.5, tolerance=0.5, doubt=0.3))
        )
    assert count_rows(shuffled) == count_rows(small)
    assert not shuffled.equals(small)


def test_missing_values_survive_the_shuffle(tmp_path):
    table = pa.table({
        "a": ["x", None, "x", "y"] * 20, "n": [1, 2, None, 4] * 20, "s": ["u", "v", None, "u"] * 20
    })  # fmt: skip
    with rp.read(table, sensitive="s", public="all", missing="value") as opened:
        result = attack_side_channels(opened, Policy(retention=0.5, tolerance=0.5, doubt=0.3))
    assert result.success is not None
    assert result.success.successes == 0, result.table
