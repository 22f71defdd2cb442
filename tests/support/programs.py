"""Statistical programs that a test runs: R, and PSPP for SPSS syntax."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def run_program(name: str, script: Path, locale: str = "C.UTF-8") -> subprocess.CompletedProcess:
    """Run a script where it lies; skip without the program, and fail if CI says it is there."""
    if shutil.which(name) is None:
        refuse = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        refuse(f"{name} is not installed")
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
