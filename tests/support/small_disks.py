"""Disks that are soon full."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk_at(place: Path, size: str) -> Iterator[Path]:
    """A disk of a size such as 64k; where we may not mount one, CI fails and a laptop skips."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        refuse = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        refuse("mounting a small disk needs more rights")
    try:
        yield place
    finally:
        # Spark may still hold a file that is no longer there.
        subprocess.run(["umount", "--lazy", str(place)], check=True)
