"""Statistical programs that a test runs: R, and PSPP for SPSS syntax."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def run_program(name: str, script: Path, locale: str = "C.UTF-8") -> subprocess.CompletedProcess:
    """Run a script where it lies; skip without the program, and fail if CI says it is there."""
    if shutil.which(name) is None:
        not_there(name)
    return subprocess.run(
        [name, script.name],
        cwd=script.parent,
        env=os.environ | {"LC_ALL": locale},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )


def not_there(what: str) -> None:
    """Skip a test for want of a program or a package of it; in CI, fail."""
    refuse = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
    refuse(f"{what} is not installed")


def need_r_packages(*names: str) -> None:
    """Skip without R or one of these packages of it; in CI, fail."""
    if shutil.which("Rscript") is None:
        not_there("R")
    for name in names:
        asked = ["Rscript", "-e", f'quit(status = !requireNamespace("{name}", quietly = TRUE))']
        if subprocess.run(asked, capture_output=True, check=False).returncode != 0:
            not_there(f"R's package {name}")


def write_command(folder: Path) -> None:
    """A program `reconpriv` in this folder: the one under test."""
    file = folder / "reconpriv"
    file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m reconpriv "$@"\n', encoding="utf-8")
    file.chmod(0o755)
