"""Small releases to query, and slow answers that share no code with the code under test."""

from __future__ import annotations

import atexit
import hashlib
import json
import math
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import reconpriv as rp
from reconpriv.cells.cell_batch import CellBatch, unify
from reconpriv.cells.cube import Cube
from reconpriv.columns.schema import Schema
from reconpriv.protect.kernel import Kernel

JOBS = ("baker", "clerk", "nurse", "pilot", None)
PUBLIC = ("age", "Sex", "region")
SAMPLING_RULES = ("none", "paper", "octave", "public")
_RELEASES = Path(tempfile.mkdtemp(prefix="reconpriv-query-tests-"))
atexit.register(shutil.rmtree, _RELEASES, ignore_errors=True)


def numbered_key(number: int) -> rp.Key:
    return rp.Key(hashlib.sha256(f"query tests {number}".encode()).digest())


@cache
def people() -> pa.Table:
    """3,000 records in 90 groups, the larger of them sampled; missing values in two columns."""
    rng = np.random.default_rng(7)
    n = 3_000
    age = rng.choice(np.arange(20, 35), n, p=np.arange(15, 0, -1) / 120)
    sex = rng.choice(["F", "M"], n, p=[0.6, 0.4])
    region = rng.choice(np.array(["North", "O'Hara", None], dtype=object), n, p=[0.5, 0.3, 0.2])
    likely = np.where(sex == "F", 0.75, 0.4)
    job = np.where(
        rng.random(n) < likely,
        "nurse",
        rng.choice(np.array(JOBS, dtype=object), n, p=[0.3, 0.3, 0.1, 0.2, 0.1]),
    )
    return pa.table({"age": age, "Sex": sex, "region": region.tolist(), "job": job.tolist()})


@cache
def people_release(sampling: str) -> rp.Release:
    """A release of :func:`people`, made once and opened as an analyst would."""
    folder = _RELEASES / sampling
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=sampling)
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        table.publish(policy, folder, key=numbered_key(1))
    return rp.open(folder)


def copy_release(sampling: str, target: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(people_release(sampling).path, target))


def edit_manifest(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    file = folder / "datapackage.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    change(manifest)
    file.write_text(json.dumps(manifest), encoding="utf-8")


def accept_hashes(folder: Path) -> None:
    """Write the true hashes into the manifest, so the later checks are reached."""

    def change(manifest: dict[str, Any]) -> None:
        for resource in manifest["resources"]:
            digest = hashlib.sha256((folder / resource["path"]).read_bytes()).hexdigest()
            resource["hash"] = f"sha256:{digest}"

    edit_manifest(folder, change)


def publish_quietly(table: pa.Table, folder: Path, **options: Any) -> rp.Release:
    """Publish a table whose sensitive column is job and open the release."""
    policy = rp.Policy(
        retention=0.5, tolerance=0.5, doubt=0.3, sampling=options.pop("sampling", "octave")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ReconprivWarning)
        with rp.read(table, sensitive="job", public="all", missing="value") as opened:
            opened.publish(policy, folder, key=numbered_key(2), **options)
        return rp.open(folder)


@dataclass(frozen=True)
class SlowAnswer:
    count: float
    standard_error: float
    records: int
    groups: int
    trials: int


class Slow:
    """Answers computed group by group in plain Python from the files of a release."""

    def __init__(self, folder: Path) -> None:
        block = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))["reconpriv"]
        self.p, self.domain = block["retention"], block["domain"]
        data = _records(pd.read_parquet(folder / "data.parquet"))
        self.groups: dict[tuple, Counter] = {}
        for *public, sensitive in data:
            self.groups.setdefault(tuple(public), Counter())[sensitive] += 1
        self.trials = {group: counts.total() for group, counts in self.groups.items()}
        if block["sample_size"] in ("octave", "public"):
            listed = _records(pd.read_parquet(folder / "groups.parquet"))
            self.trials = {tuple(public): trials for *public, _, trials in listed}

    def count(
        self, where: Callable[..., bool] = lambda **_: True, values: tuple | None = None
    ) -> SlowAnswer:
        """(O - k t |S|) / p, and the design variance with rounding and duplication."""
        m, p = len(self.domain), self.p
        chosen = self.domain if values is None else values
        k = len(set(chosen))
        t = k * (1 - p) / m
        r = p + t
        total, variance, records, groups, trials = 0, 0.0, 0, 0, 0
        for group, counts in self.groups.items():
            if not where(**dict(zip(PUBLIC, group, strict=True))):
                continue
            size, n = counts.total(), self.trials[group]
            observed = sum(counts[value] for value in set(chosen))
            b = size / n
            held = (observed / b - n * t) / p
            variance += b**2 * (held * r * (1 - r) + (n - held) * t * (1 - t)) / p**2
            if n < size:
                part, share = b - math.floor(b), observed / size
                uneven = part * (1 - part) * n**2 / max(n - 1, 1) * share * (1 - share)
                variance += uneven / p**2 + self._runs(chosen) / 6 * b**2
            total, records = total + observed, records + size
            groups, trials = groups + 1, trials + n
        if values is None:
            return SlowAnswer(records, 0.0, records, groups, trials)
        estimate = (total - t * records) / p
        return SlowAnswer(estimate, math.sqrt(max(variance, 0.0)), records, groups, trials)

    def _runs(self, chosen: tuple) -> int:
        """Runs of neighbours on the circle of the domain: each is rounded once."""
        inside = [value in chosen for value in self.domain]
        return sum(inside[i] and not inside[i - 1] for i in range(len(inside)))


def _records(frame: pd.DataFrame) -> list[tuple]:
    rows = frame.itertuples(index=False, name=None)
    return [tuple(None if pd.isna(value) else value for value in row) for row in rows]


@cache
def slow_people(sampling: str) -> Slow:
    return Slow(people_release(sampling).path)


def published_cube(
    batches: list[CellBatch], schema: Schema, policy: rp.Policy, key: rp.Key
) -> Cube:
    """Publish in memory: the cells an analyst would count, with the published trials."""
    kernel = Kernel(schema, policy, key)
    parts = [part for batch in batches for part in kernel(batch)]
    columns = [unify([part.public[i] for part in parts]) for i in range(len(schema.public))]
    first = np.cumsum([0, *(part.records.size for part in parts[:-1])])
    return Cube(
        schema=schema,
        codes=tuple(codes for codes, _ in columns),
        values=tuple(values for _, values in columns),
        records=np.concatenate([part.records for part in parts]),
        trials=np.concatenate([part.trials for part in parts]).astype(np.float64),
        group=np.concatenate(
            [part.group + start for part, start in zip(parts, first, strict=True)]
        ),
        value=np.concatenate([part.value for part in parts]),
        count=np.concatenate([part.count for part in parts]),
    )
