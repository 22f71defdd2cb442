"""Publications with known results, for cases in which one is stopped, raced or starved."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from random import Random

from campaign.case import DONE, REFUSED, Step
from campaign.generators.tables import NAMES, PUBLIC, SENSITIVE, rows
from campaign.place import KEY, Place

SOURCES = ("table.parquet", "table.csv")
FORMATS = ("parquet", "csv", "cells")
RETENTIONS = {"old": 0.4, "new": 0.5, "other": 0.6}
RECORDS = 3_000


def prepare(shared: Path) -> None:
    """The table in two formats, and every release that a case may leave."""
    import pyarrow as pa  # noqa: PLC0415 - starts threads, which a fork would not survive
    import pyarrow.csv as pc  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    import reconpriv as rp  # noqa: PLC0415

    os.environ["TMPDIR"] = tempfile.tempdir = str(shared)
    records = rows(Random("publications"), RECORDS)
    table = pa.table(dict(zip(NAMES, map(list, zip(*records, strict=True)), strict=True)))
    pq.write_table(table, shared / "table.parquet")
    pc.write_csv(table, shared / "table.csv")
    key = rp.Key(bytes.fromhex(KEY))
    with rp.read(shared / "table.parquet", sensitive=SENSITIVE, public=list(PUBLIC)) as opened:
        for name, retention in RETENTIONS.items():
            for form in FORMATS:
                policy = rp.Policy(retention=retention, tolerance=0.5, doubt=0.3)
                opened.publish(policy, shared / f"{name}.{form}", key=key, file_format=form)


def lay_out(place: Place, source: str, *, old: str | None) -> str:
    """The table in the vault and, on the desk, an earlier release; the table's path."""
    if old is not None:
        shutil.copytree(place.shared / f"old.{old}", place.desk / "out")
    return place.source(source, (place.shared / source).read_bytes())


def publication(source: str, name: str, form: str, *more: str, out: str = "out") -> Step:
    """The command that makes one of the prepared releases."""
    return Step(
        (
            "publish", source, out, "-s", SENSITIVE, "--public", ",".join(PUBLIC),
            "--key", "my.key", "--preset", "paper", "-p", str(RETENTIONS[name]),
            "--format", form, "--second-sample", *more,
        ),
        codes=(DONE, REFUSED),
        writes=(out,),
    )  # fmt: skip


def which(place: Place, form: str, old: str | None) -> str | None:
    """Which of the prepared releases is in place: its name, "none", or None for anything else."""
    out = place.desk / "out"
    if not os.path.lexists(out):
        return "none"
    for name in RETENTIONS:
        known = place.shared / f"{name}.{(old or form) if name == 'old' else form}"
        if _contents(out) == _contents(known):
            return name
    return None


def is_out(name: str) -> bool:
    """Whether something in a snapshot is, or belongs to, the release."""
    return name.split("/")[:2] == ["desk", "out"]


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
