"""Ctrl-C and SIGTERM: the command ends at once and leaves nothing half-made."""

import signal
import sqlite3
import subprocess
import sys

import duckdb
import pytest

from stopping import ENDLESS, Command, working

# What is being written.
DATA = ".reconpriv-*/new/data.parquet"
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Nearly as many groups as records, for several batches of them."""
    file = tmp_path_factory.mktemp("large") / "large.parquet"
    duckdb.sql(
        "SELECT (i * 7919 % 97)::INT a, (hash(i) % 50)::INT b, (hash(i + 1) % 40)::INT c,"
        " (hash(i + 2) % 60)::INT d, chr(65 + (hash(i + 3) % 10)::INT) s"
        " FROM range(100_000) r(i)"
    ).write_parquet(str(file))
    return file


@pytest.fixture
def desk(tmp_path):
    folder = tmp_path / "desk"
    folder.mkdir()
    return folder


def check_ended(command, number, code, *empty):
    assert command.stop(number) == (code, "", "interrupted: nothing unfinished was left behind.\n")
    for folder in empty:
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("command", ["audit", "publish"])
def test_ctrl_c_while_counting(large, desk, scratch, command):
    out = ["out", "--test-key"] if command == "publish" else []
    args = [command, large, *(desk / name if name == "out" else name for name in out)]
    running = Command(
        *args, "-s", "s", "--public=all", "--sql", ENDLESS, "--threads", 1, scratch=scratch
    )
    running.until(working(running.process.pid, lambda: any(scratch.iterdir())))
    check_ended(running, signal.SIGINT, 130, desk, scratch)


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_while_writing(large, desk, scratch, number, code):
    args = ["publish", large, desk / "out", "-s", "s", "--public=all", "--test-key"]
    running = Command(*args, scratch=scratch, hold_at=desk / DATA).until_held()
    check_ended(running, number, code, desk, scratch)


def test_ctrl_c_while_waiting_for_standard_input(desk, scratch):
    args = ["publish", "-", desk / "out", "-s", "s", "--public=all"]
    running = Command(*args, scratch=scratch, stdin=subprocess.PIPE)
    running.until(lambda: any(scratch.glob("*/*")))
    check_ended(running, signal.SIGINT, 130, desk, scratch)


def test_ctrl_c_while_overwriting_keeps_the_old_release(large, desk, cli, files_of, scratch):
    args = ["publish", large, desk / "out", "-s", "s", "--public=all", "--test-key"]
    (desk / "small.csv").write_text("a,s\n" + "x,u\nx,v\ny,u\ny,v\n" * 30)
    assert (
        cli(
            "publish", desk / "small.csv", desk / "out", "-s", "s", "--public=all", "--test-key"
        ).code
        == 0
    )
    before = files_of(desk)
    running = Command(*args, "--overwrite", scratch=scratch, hold_at=desk / DATA).until_held()
    assert files_of(desk) != before
    check_ended(running, signal.SIGINT, 130, scratch)
    assert files_of(desk) == before


# A command that is told to end in the middle of its work, and again while it cleans up and ends.
TWICE = """
import os, runpy, signal, sys
from reconpriv.protect.kernel import Kernel
from reconpriv.cli.process import output
from reconpriv.writing import scratch
first, second = int(sys.argv.pop(1)), int(sys.argv.pop(1))
def before(where, name, number):
    plain = getattr(where, name)
    def told(*args, **more):
        os.kill(os.getpid(), number)
        return plain(*args, **more)
    setattr(where, name, told)
before(Kernel, "draw", first)
before(scratch.shutil, "rmtree", second)
before(output, "say", second)
runpy.run_module("reconpriv", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("first", "code", "second"),
    [
        (signal.SIGINT, 130, signal.SIGINT),
        (signal.SIGTERM, 143, signal.SIGINT),
        (signal.SIGTERM, 143, signal.SIGTERM),
        (signal.SIGHUP, 129, signal.SIGTERM),
    ],
)
def test_a_second_signal_while_it_ends_changes_nothing(desk, scratch, first, code, second):
    args = ["publish", "example:census_workers", desk / "out", "-s", "Education", "--test-key"]
    done = subprocess.run(
        [sys.executable, "-c", TWICE, str(int(first)), str(int(second)), *map(str, args),
         "--public", "Gender"],
        capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr == "interrupted: nothing unfinished was left behind.\n"
    assert list(desk.iterdir()) == list(scratch.iterdir()) == []


def test_a_signal_inside_eval_does_not_change_the_status(desk, scratch, tmp_path):
    """As when a module is imported that makes a dataclass or a named tuple."""
    script = (
        "import os, sys; from reconpriv.protect.kernel import Kernel;"
        "from reconpriv.cli import main;"
        "Kernel.draw = lambda *_: eval('os.kill(os.getpid(), 15)'); main()"
    )
    (tmp_path / "told.py").write_text(script)
    args = ["publish", "example:census_workers", str(desk / "out"), "-s", "Education"]
    done = subprocess.run(
        [sys.executable, "-m", "told", *args, "--test-key", "--public", "Gender"],
        capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 143
    assert done.stderr == "interrupted: nothing unfinished was left behind.\n"
    assert list(desk.iterdir()) == list(scratch.iterdir()) == []


def test_what_libraries_print_at_the_end_of_an_interrupted_command_is_dropped():
    """DuckDB's bindings complain of objects that were still in use."""
    script = (
        "import atexit, os, signal; from reconpriv.cli import main;"
        "atexit.register(lambda: os.write(2, b'nanobind: leaked 1 instances!'));"
        "import reconpriv.doctor;"
        "reconpriv.doctor.examine = lambda *_: os.kill(os.getpid(), signal.SIGINT); main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "doctor"],
        capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "interrupted: nothing unfinished was left behind.\n"


def test_a_signal_before_anything_has_begun(scratch):
    """While the commands are imported, which a library may answer with an error of its own."""
    early = (
        "import os, signal, sys; from reconpriv.cli import main;"
        "hook = lambda event, _: event == 'import' and os.kill(os.getpid(), signal.SIGINT);"
        "import reconpriv.cli.process.signals as s; plain = s.stop_on_signals;"
        "s.stop_on_signals = lambda: (plain(), sys.addaudithook(hook)); main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", early], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "interrupted: nothing unfinished was left behind.\n"


def test_what_a_killed_publication_left_is_removed_by_the_next(large, desk, scratch, process):
    args = ["publish", large, desk / "out", "-s", "s", "--public=all", "--test-key"]
    running = Command(*args, scratch=scratch, hold_at=desk / DATA).until_held()
    running.stop(signal.SIGKILL)
    (left,) = desk.iterdir()
    (cells,) = scratch.iterdir()
    assert left.name.startswith(".reconpriv-") and cells.name.startswith("reconpriv-")
    done = process("publish", "example:adult", desk / "next", "-s", "sex", "--public", "race",
                   "--test-key")  # fmt: skip
    assert done.code == 0, done.err
    assert [path.name for path in desk.iterdir()] == ["next"]
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_ends_a_sqlite_query(tmp_path, scratch, number, code):
    connection = sqlite3.connect(tmp_path / "slow.db")
    connection.executescript(
        "CREATE VIEW slow AS WITH RECURSIVE n(y) AS (SELECT 1 UNION ALL SELECT y + 1 FROM n)"
        " SELECT y % 3 AS y FROM n"
    )
    connection.close()
    args = ["audit", tmp_path / "slow.db", "-s", "y", "--public=all", "--table", "slow"]
    running = Command(*args, scratch=scratch)
    running.until(working(running.process.pid, lambda: any(scratch.glob("reconpriv-*"))))
    check_ended(running, number, code, scratch)
