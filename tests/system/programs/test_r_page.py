"""The page for R users: its code runs and prints what it shows, with arrow and without."""

import os
import shutil
import subprocess
import sys

import pytest

from example_runner import matches
from programs import run_program
from r_page import r_page
from repository import ROOT

PAGE = r_page(ROOT / "docs" / "how-to" / "r.md")
# R cannot read Parquet by itself; where arrow is missing, this stands in for it.
AS_CSV = "import sys, pandas; pandas.read_parquet(sys.argv[1]).to_csv(sys.stdout, index=False)"


@pytest.fixture
def command(tmp_path, monkeypatch):
    """On the path, `reconpriv` is the one under test, and `as-csv` prints a Parquet file."""
    folder = tmp_path / "bin"
    folder.mkdir()
    # R's libraries must not replace Python's; for commands, the page's helper sees to that.
    hidden = "unset LD_LIBRARY_PATH\n"
    for name, before, call in (
        ("reconpriv", "", "-m reconpriv"),
        ("as-csv", hidden, f"-c '{AS_CSV}'"),
    ):
        text = f'#!/bin/sh\n{before}exec "{sys.executable}" {call} "$@"\n'
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def printed_by(script, folder):
    file = folder / "page.R"
    file.write_text(script, encoding="utf-8")
    done = run_program("Rscript", file)
    assert done.returncode == 0, done.stderr
    return "\n".join(line for line in done.stdout.splitlines() if shown(line))


def shown(line):
    """Whether R printed a line; the rest is what the commands say."""
    return line.startswith(("6000 records in", "columns:"))


def has_arrow():
    if shutil.which("Rscript") is None:
        return False
    asked = ["Rscript", "-e", 'quit(status = !requireNamespace("arrow", quietly = TRUE))']
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def test_the_page_has_code_that_reads_with_arrow():
    assert len(PAGE.code) == 7 and PAGE.needs_arrow


def test_the_code_of_the_page_runs_with_arrow(command, tmp_path):
    if not has_arrow():
        pytest.skip("R's package arrow is not installed; Debian 12 has none")
    assert matches(PAGE.printed, printed_by(PAGE.script(), tmp_path))


def test_the_code_of_the_page_runs_with_a_stand_in_for_arrow(command, tmp_path):
    assert matches(PAGE.printed, printed_by(PAGE.without_arrow(), tmp_path))
