"""Terminals that lack characters, streams that are full, folders that are gone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import reconpriv as rp


def run(*args, **more):
    return subprocess.run(
        [sys.executable, "-m", "reconpriv", *map(str, args)],
        stdin=subprocess.DEVNULL, check=False, timeout=60,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    rows = "".join(f"é😀{i % 4},v{i * i % 3}\n" for i in range(200))
    (folder / "t.csv").write_text("a,s\n" + rows, encoding="utf-8")
    with rp.read(folder / "t.csv", sensitive="s", public="all") as table:
        table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3),
            folder / "out",
            key=rp.Key(bytes(range(32))),
        )
    return folder


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "ascii"])
def test_a_character_that_the_terminal_lacks_is_spelled_out(release, encoding):
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    audit = run("audit", release / "t.csv", "-s", "s", "--public=all", "--preset=paper", env=env)
    assert (audit.returncode, audit.stderr) == (1, b"")  # not private
    # Typer takes ASCII for a mistake, and writes UTF-8.
    assert "é" in audit.stdout.decode("utf-8" if encoding == "ascii" else encoding)
    assert run("audit", "--help", env=env).returncode == 0
    asked = "SELECT a, count(*) FROM release GROUP BY a"
    answer = run("query", release / "out", asked, "--json", env=env)
    rows = json.loads(answer.stdout.decode(encoding))["rows"]
    assert [row["labels"]["a"] for row in rows] == [f"é😀{i}" for i in range(4)]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("words", [("--help",), ("--version",), ("audit", "--help"), ("nonsense",)])
def test_help_on_a_full_disk(words):
    with open("/dev/full", "wb") as full:
        done = run(*words, stdout=full)
        assert done.returncode == 2 and b"Traceback" not in done.stderr
        assert run(*words, stdout=full, stderr=full).returncode == 2


def test_the_current_folder_is_gone(release, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    script = 'rmdir "$PWD"; exec "$0" -m reconpriv "$@"'
    done = run_in(
        here, script, "publish", release / "t.csv", "out", "-s", "s", "--public=all", "--test-key"
    )
    assert done.returncode == 2
    assert done.stderr == b"error: The current folder no longer exists. Change to another one.\n"


def run_in(folder, script, *args):
    return subprocess.run(
        ["sh", "-c", script, sys.executable, *map(str, args)],
        cwd=folder, capture_output=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_a_name_that_no_folder_can_have(release, tmp_path):
    """Refused before the ledger gets a line for it."""
    key = tmp_path / "my.key"
    rp.Key(bytes(range(32))).write(key)
    done = run(
        "publish", release / "t.csv", "x" * 300, "-s", "s", "--public=all", "--key", key,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2 and b"cannot be written: File name too long" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["my.key"]
    assert run("info", "x" * 300, cwd=tmp_path).returncode == 2
