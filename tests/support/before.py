"""The releases in tests/data/before, which later versions must reproduce.

Version 0.1 made them, except `margins`.

To make them again, on purpose and announced in CHANGELOG.md: ``python tests/support/before.py``.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import reconpriv as rp
from repository import DATA

HOME = DATA / "before"
KEY = rp.Key(bytes(range(1, 33)))
ROLES = {"sensitive": "disease", "public": ["sex", "town", "age"]}
FLU = (HOME / "table.csv").read_text(encoding="utf-8").count(",flu\n")
FORMATS = ("parquet", "csv", "cells")
_CREATED_BY = re.compile(rb'"created_by": "reconpriv [0-9.]+"')


def policy(sampling: str, **more: Any) -> rp.Policy:
    return rp.Policy(
        retention=0.5, tolerance=0.5, doubt=0.3, sampling=sampling, unattainable="one-trial", **more
    )


CASES: dict[str, tuple[dict[str, Any], rp.Policy, str]] = {
    f"{size}-{layout}": (ROLES | {"public": ["sex", "town"]}, policy(size), layout)
    for size, layout in itertools.product(("none", "paper", "octave", "public"), FORMATS)
} | {
    "binned": (ROLES | {"bin": {"age": [0, 18, 40, 65]}}, policy("octave"), "csv"),
    "all-kinds": (
        {"sensitive": "disease", "public": ["sex", "age", "since", "weight", "town"]},
        policy("public"),
        "csv",
    ),
    "exact-bound": (ROLES | {"public": ["sex"]}, policy("paper", bound="exact"), "csv"),
    "hoeffding": (ROLES | {"public": ["town"]}, policy("octave", bound="hoeffding"), "csv"),
    "margins": (
        ROLES | {"bin": {"age": [0, 18, 40, 65]}},
        policy("octave", margins=rp.Margins(0.5, tables=["sex", ("town", "sex")])),
        "csv",
    ),
}


def publish(name: str, folder: Path, source: Any = HOME / "table.csv", **read: Any) -> rp.Release:
    roles, chosen, layout = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ReconprivWarning)
        with rp.read(source, missing="value", **roles, **read) as table:
            keep = [column.name for column in table.schema.public]
            return table.publish(
                chosen, folder, key=KEY, file_format=layout,
                keep_identifier=keep, keep_giveaway=keep, max_unique=1.0,
            )  # fmt: skip


def files_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def check_same(before: Path, now: Path) -> None:
    """CSV files and manifests are the same bytes, and Parquet files if pyarrow is the same.

    Another pyarrow may write other bytes for the same rows, so only the rows are compared then.
    The version that ``created_by`` names is no part of what a key decides.
    """
    if pa.__version__ == (HOME / "pyarrow-version.txt").read_text().strip():
        ours, theirs = (
            {name: _CREATED_BY.sub(b"", content) for name, content in files_of(one).items()}
            for one in (now, before)
        )
        assert ours == theirs
        return
    assert set(files_of(now)) == set(files_of(before))
    for file in sorted(before.iterdir()):
        if file.suffix == ".parquet":
            assert pq.read_table(now / file.name).equals(pq.read_table(file))
        elif file.suffix == ".csv":
            assert (now / file.name).read_bytes() == file.read_bytes()
    blocks = [
        json.loads((one / "datapackage.json").read_text())["reconpriv"] for one in (before, now)
    ]
    assert blocks[0] | {"created_by": ""} == blocks[1] | {"created_by": ""}


def make_anew() -> None:
    for name in CASES:
        shutil.rmtree(HOME / name, ignore_errors=True)
        publish(name, HOME / name)
    (HOME / "pyarrow-version.txt").write_text(pa.__version__ + "\n")


if __name__ == "__main__":
    make_anew()
