"""Releases of each kind, for those who count their records with another program."""

from __future__ import annotations

import datetime as dt
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import reconpriv as rp

# A missing town, an apostrophe, an accent, a boolean and codes: what scripts must get right.
PUBLIC = ("town", "sex", "age", "works")


def people(records: int = 1500, sensitive: str = "text") -> pa.Table:
    rng = np.random.default_rng(8)
    towns = np.array(["L'Aquila", "Zürich", "a, b", "NA"], dtype=object)
    age = rng.integers(20, 26, records)
    town = towns[np.where(rng.random(records) < 0.6, 0, rng.integers(0, 4, records))]
    ill = np.where(rng.random(records) < age / 40, 0, rng.integers(0, 5, records))
    kinds: dict[str, Any] = {
        "text": np.array(["Grippe à l'ancienne", "none", "x; y", "ß", "other"], dtype=object)[ill],
        "integer": ill,
        "date": pa.array([dt.date(2020, 2, 1 + int(i)) for i in ill]),
    }
    return pa.table(
        {
            "town": pa.array(town, mask=rng.random(records) < 0.05),
            "sex": rng.choice([1, 2], records),
            "age": age,
            "works": rng.random(records) < 0.7,
            "ill": kinds[sensitive],
        }
    )


KINDS: dict[str, dict[str, Any]] = {
    "none": {"sampling": "none"},
    "octave": {},
    "public": {"sampling": "public"},
    "protected": {"protect": {"age": 2}},
    "all protected": {"sampling": "public", "protect": dict.fromkeys(PUBLIC, "*")},
    "margins": {"margins": rp.Margins(0.4)},
}


def published(kind: str, folder: Path, key: rp.Key, sensitive: str = "text") -> rp.Release:
    policy = rp.Policy(retention=0.4, tolerance=0.5, doubt=0.3, **KINDS[kind])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ReconprivWarning)
        with rp.read(
            people(sensitive=sensitive), sensitive="ill", public="all", missing="value"
        ) as table:
            return table.publish(policy, folder, key=key)
