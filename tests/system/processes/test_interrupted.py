"""Ctrl-C and SIGTERM: the command ends at once and leaves nothing half-made."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from stopping import ENDLESS, Command, working

# What is being written.
DATA = ".reconpriv-*/new/data.parquet"
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nearly as many groups as records, for several batches of them."""
    file = tmp_path_factory.mktemp("large") / "large.parquet"
    duckdb.sql(
        "SELECT (i * 7919 % 97)::INT a, (hash(i) % 50)::INT b, (hash(i + 1) % 40)::INT c,"
        " (hash(i + 2) % 60)::INT d, chr(65 + (hash(i + 3) % 10)::INT) s"
        " FROM range(100_000) r(i)"
    ).write_parquet(str(file))
    return file


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    folder = tmp_path / "desk"
    folder.mkdir()
    return folder


def check_ended(command: Command, number: signal.Signals, code: int, *empty: Path) -> None:
    assert command.stop(number) == (code, "", "interrupted: nothing unfinished was left behind.\n")
    for folder in empty:
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("command", ["audit", "publish"])
def test_ctrl_c_while_counting(large: Path, desk: Path, scratch: Path, command: str) -> None:
    out = ["out", "--test-key"] if command == "publish" else []
    args = [command, large, *(desk / name if name == "out" else name for name in out)]
    running = Command(*args, "-s", "s", "--sql", ENDLESS, "--threads", 1, scratch=scratch)
    running.until(working(running.process.pid, lambda: any(scratch.iterdir())))
    check_ended(running, signal.SIGINT, 130, desk, scratch)


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_while_writing(
    large: Path, desk: Path, scratch: Path, number: signal.Signals, code: int
) -> None:
    args = ["publish", large, desk / "out", "-s", "s", "--test-key"]
    running = Command(*args, scratch=scratch, hold_at=desk / DATA).until_held()
    check_ended(running, number, code, desk, scratch)


def test_ctrl_c_while_waiting_for_standard_input(desk: Path, scratch: Path) -> None:
    args = ["publish", "-", desk / "out", "-s", "s"]
    running = Command(*args, scratch=scratch, stdin=subprocess.PIPE)
    running.until(lambda: any(scratch.glob("*/*")))
    check_ended(running, signal.SIGINT, 130, desk, scratch)


def test_ctrl_c_while_overwriting_keeps_the_old_release(
    large: Path, desk: Path, cli: Callable, files_of: Callable, scratch: Path
) -> None:
    args = ["publish", large, desk / "out", "-s", "s", "--test-key"]
    (desk / "small.csv").write_text("a,s\n" + "x,u\nx,v\ny,u\ny,v\n" * 30)
    assert cli("publish", desk / "small.csv", desk / "out", "-s", "s", "--test-key").code == 0
    before = files_of(desk)
    running = Command(*args, "--overwrite", scratch=scratch, hold_at=desk / DATA).until_held()
    assert files_of(desk) != before
    check_ended(running, signal.SIGINT, 130, scratch)
    assert files_of(desk) == before


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_ends_a_sqlite_query(
    tmp_path: Path, scratch: Path, number: signal.Signals, code: int
) -> None:
    connection = sqlite3.connect(tmp_path / "slow.db")
    connection.executescript(
        "CREATE VIEW slow AS WITH RECURSIVE n(y) AS (SELECT 1 UNION ALL SELECT y + 1 FROM n)"
        " SELECT y % 3 AS y FROM n"
    )
    connection.close()
    args = ["audit", tmp_path / "slow.db", "-s", "y", "--table", "slow"]
    running = Command(*args, scratch=scratch)
    running.until(working(running.process.pid, lambda: any(scratch.glob("reconpriv-*"))))
    check_ended(running, number, code, scratch)
