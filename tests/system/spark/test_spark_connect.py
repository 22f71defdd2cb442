"""Spark Connect: a real server, the same bytes, from a data frame and from the command."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import reconpriv as rp
from spark_fixtures import PANDAS, Choice, hashes, publish, require_spark, write
from spark_processes import connect_server, driver, environment, processes_with, run

pytestmark = [pytest.mark.filterwarnings(PANDAS)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    require_spark()
    with connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


@pytest.fixture
def file(small: pa.Table, tmp_path: Path) -> Path:
    return write(small, tmp_path / "t.parquet")


def test_a_connect_session_writes_the_same_bytes_and_stays_as_it_is(
    server: str, file: Path, tmp_path: Path, key: rp.Key, policy: rp.Policy, scratch: Path
) -> None:
    done = driver(
        "publish_over_connect", server, file, tmp_path / "spark", key.secret.hex(),
        env=environment(TMPDIR=str(scratch)),
    )  # fmt: skip
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    for name, file_format in (("frame", "parquet"), ("path", "csv")):
        choice = Choice(key, file_format=file_format)
        expected = publish(file, tmp_path / name, choice, sensitive="Education", public="all")
        assert hashes(tmp_path / "spark" / name) == expected
    with rp.read(file, sensitive="Education", public="all") as table:
        report = table.audit(policy).as_dict()
    assert facts["report"] == json.loads(json.dumps(report))
    assert facts["groups"] == report["groups"]
    assert facts["same"] and facts["unchanged"] and facts["alive"] == 3
    assert "cannot be written to a URI" in facts["refused"]
    assert not (tmp_path / "spark" / "uri").exists()


def test_the_command_over_connect_writes_the_same_bytes(
    server: str, file: Path, tmp_path: Path, key: rp.Key, scratch: Path
) -> None:
    key.write(tmp_path / "key")
    done = run(
        sys.executable,
        "-m",
        "reconpriv",
        "publish",
        file,
        tmp_path / "spark",
        "-s",
        "Education",
        "--public=all",
        "--preset",
        "paper",
        "--key",
        tmp_path / "key",
        "--master",
        server,
        "--format",
        "cells",
        env=environment(TMPDIR=str(scratch)),
    )
    assert (done.code, done.err) == (0, "")
    expected = publish(
        file,
        tmp_path / "duckdb",
        Choice(key, file_format="cells"),
        sensitive="Education",
        public="all",
    )
    assert hashes(tmp_path / "spark") == expected
    assert processes_with(str(scratch)) == []
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("port", [1])
def test_a_connect_server_that_does_not_answer_is_named_in_one_sentence(
    file: Path, tmp_path: Path, scratch: Path, port: int
) -> None:
    require_spark()
    done = run(
        sys.executable,
        "-m",
        "reconpriv",
        "publish",
        file,
        tmp_path / "out",
        "-s",
        "Education",
        "--public=all",
        "--test-key",
        "--master",
        f"sc://127.0.0.1:{port}",
        env=environment(TMPDIR=str(scratch)),
    )
    assert done.code == 2, done.err
    assert done.err.startswith("error: ") and done.err.count("\n") == 1
    assert not (tmp_path / "out").exists() and list(scratch.iterdir()) == []
