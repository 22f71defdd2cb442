"""The ledger of what Spark publishes: its trials are counted as those of this machine are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.errors import RoleChangeError
from reconpriv.ledger.trials import Shown
from spark_fixtures import PANDAS

pytestmark = [pytest.mark.filterwarnings(PANDAS)]

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)


def year(file: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    ill = np.where(rng.random(3_000) < 0.55, "a", rng.choice(list("abcd"), 3_000))
    pq.write_table(pa.table({"town": rng.integers(0, 9, 3_000), "ill": ill}), file)
    return file


def publish(source: Any, out: Path, key: Path, **engine: Any) -> rp.Release:
    with rp.read(source, sensitive="ill", public=["town"], **engine) as table:
        return table.publish(POLICY, out, key=key)


def counted(key: Path) -> Shown:
    ledger = rp.Ledger(key)
    parts = ledger.trial_file.parts(ledger.file.whole().bodies)
    (shown,) = (parts.of(series) for series in parts.series)
    return shown


def test_trials_are_counted_on_the_workers(spark: Any, key: rp.Key, tmp_path: Path) -> None:
    """A series from Spark, then from here: the same count and the same words as from here alone."""
    keys = {name: tmp_path / f"{name}.key" for name in ("here", "spark")}
    for file in keys.values():
        key.write(file)
    for seed in (1, 2):
        source = year(tmp_path / f"{seed}.parquet", seed)
        here = publish(source, tmp_path / f"here-{seed}", keys["here"])
        there = publish(spark.read.parquet(str(source)), tmp_path / f"s-{seed}", keys["spark"])
    (said,) = [note for note in here.warnings if "different trials" in note]
    assert said in there.warnings and not any("not counted" in note for note in there.notes)
    mine, its = counted(keys["here"]), counted(keys["spark"])
    for name in ("group", "cell", "trials", "level"):
        assert np.array_equal(getattr(mine, name), getattr(its, name))
    last = publish(year(tmp_path / "3.parquet", 3), tmp_path / "last", keys["spark"])
    whole = publish(tmp_path / "3.parquet", tmp_path / "whole", keys["here"])
    assert last.warnings[-1] == whole.warnings[-1] and "different trials" in last.warnings[-1]


def test_a_change_of_roles_is_refused(spark: Any, key: rp.Key, tmp_path: Path) -> None:
    key.write(tmp_path / "my.key")
    source = spark.read.parquet(str(year(tmp_path / "1.parquet", 1)))
    publish(source, tmp_path / "a", tmp_path / "my.key")
    with rp.read(source, sensitive="town", public=["ill"]) as table:
        with pytest.raises(RoleChangeError, match="'ill' was sensitive"):
            table.publish(POLICY, tmp_path / "b", key=tmp_path / "my.key")
        assert not (tmp_path / "b").exists()
        made = table.publish(POLICY, tmp_path / "b", key=tmp_path / "my.key", role_change=True)
    assert any("one tells what the other hides" in note for note in made.warnings)
