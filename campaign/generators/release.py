"""A release made once, that queries are asked of and manifests are edited in."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

from campaign.generators.tables import NAMES, PUBLIC, SENSITIVE, rows
from campaign.place import KEY, Place

RECORDS = 400
RETENTION = 0.5
# A file comes with a script that reads it.
EXPORTED = tuple(f"copy.{end}" for end in ("csv", "sav", "dta", "R", "sps", "do", "sas"))


def prepare(folder: Path) -> None:
    """Publish a table; it is kept beside the release."""
    with (folder / "table.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(NAMES)
        writer.writerows(rows(Random(1), RECORDS))
    key = folder / "my.key"
    key.write_text(KEY)
    key.chmod(0o600)
    subprocess.run(
        [
            sys.executable, "-m", "reconpriv", "publish", "table.csv", "release", "-s", SENSITIVE,
            "--public", ",".join(PUBLIC), "--key", "my.key", "--sampling", "none",
            "-p", str(RETENTION),
        ],
        cwd=folder, check=True, capture_output=True, env=dict(os.environ),
    )  # fmt: skip


def copy_to(place: Place) -> Path:
    """The release, on the desk."""
    return Path(shutil.copytree(place.shared / "release", place.desk / "out"))
