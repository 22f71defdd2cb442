"""What the tests of R share: the command under test on the path, and the package installed."""

import os
import subprocess

import pytest

from programs import need_r_packages, write_command
from repository import ROOT


@pytest.fixture
def command(tmp_path, monkeypatch):
    """On the path, `reconpriv` is the one under test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    write_command(folder)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("RECONPRIV_COMMAND", raising=False)


@pytest.fixture
def r_library(tmp_path, monkeypatch):
    """A library of R packages in which ours is installed."""
    need_r_packages("jsonlite")
    folder = tmp_path / "library"
    folder.mkdir()
    words = ["R", "CMD", "INSTALL", "--no-docs", "--no-test-load", f"--library={folder}"]
    done = subprocess.run(
        [*words, str(ROOT / "r")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("R_LIBS", str(folder))
