"""Spark in tests: a session, tables of every type, releases to compare, and tasks that fail."""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.engines.base import Layout
from reconpriv.engines.spark import jobs
from stopping import wait_for

PANDAS = "ignore:PySpark does not yet fully support pandas:FutureWarning"
SMALL_BATCH = 50  # rows per Arrow batch, so groups are split over several
# A short session took 11 % and 30 % less CPU time in two tries without verifying Spark's classes.
QUICK_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


def require_spark() -> None:
    """In CI, PySpark and Java must be installed; elsewhere a test says what is missing."""
    missing = []
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        missing.append("Java")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            import pyspark.sql  # noqa: F401
    except ImportError:
        missing.append("PySpark")
    if missing:
        refuse = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        refuse(f"{' and '.join(missing)} not found")


def start_session(scratch: Path) -> Any:
    """A local session with small batches and a foreign time zone; four attempts per task."""
    require_spark()
    os.environ.update(LOOPBACK)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,4]").appName("tests of reconpriv")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.session.timeZone": "Asia/Kolkata",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(SMALL_BATCH),
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


# --- releases ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """How a table is published."""

    key: rp.Key
    policy: rp.Policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)  # noqa: RUF009 - it is frozen
    file_format: str = "parquet"

    def with_sampling(self, sampling: str) -> Choice:
        return replace(self, policy=replace(self.policy, sampling=sampling))


def publish(source: Any, out: Path, choice: Choice, **roles: Any) -> dict[str, str]:
    """Publish, and return every file and folder of the release with its hash.

    All other columns are public unless they are named, and may tell whatever they happen to tell.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ReconprivWarning)
        with rp.read(source, **{"public": "all"} | roles) as table:
            table.publish(
                choice.policy, out, key=choice.key, file_format=choice.file_format,
                keep_giveaway=[column.name for column in table.schema.public], max_unique=1.0,
            )  # fmt: skip
    return hashes(out)


def hashes(folder: Path) -> dict[str, str]:
    """Everything below a folder: files with their hashes."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        )
        for path in sorted(folder.rglob("*"))
    }


def published_by_both(
    spark: Any, file: Path, out: Path, choice: Choice, **roles: Any
) -> tuple[dict[str, str], dict[str, str]]:
    """A Parquet file's release by DuckDB and by Spark."""
    frame = spark.read.parquet(str(file))
    return (
        publish(file, out / "duckdb", choice, **roles),
        publish(frame, out / "spark", choice, **roles),
    )


def limit_rows_per_file(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Make releases consist of several small files."""
    plain = Layout.of

    def small(release_format: str, *, with_trials: bool) -> Layout:
        return replace(plain(release_format, with_trials=with_trials), rows_per_file=rows)

    monkeypatch.setattr(Layout, "of", staticmethod(small))


def be_patient(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """How long nothing may stir before a folder counts as removed; by default, 10 seconds.

    Where tasks are held, more than the four that Spark takes to kill them.
    """
    monkeypatch.setattr(jobs, "_QUIET", seconds)


# --- tables --------------------------------------------------------------------------------------

ODD_NAME = "a `name`, with. dots"
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    ODD_NAME: (
        pa.string(),
        ["", " ", "a", "B", "é", "\uffff", "\U0001f600", "q\"'`\\", "x\ny", None],
    ),
    "flag": (pa.bool_(), [True, False, None]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31), None]),
    "at": (
        pa.timestamp("us"),
        [dt.datetime(1900, 1, 1), dt.datetime(2024, 3, 31, 2, 30, 0, 1), None],
    ),
    "zoned": (
        pa.timestamp("us", "UTC"),
        [
            dt.datetime(1883, 11, 18, 12, tzinfo=dt.UTC),
            dt.datetime(2024, 10, 27, 1, 30, 0, 999_999, tzinfo=dt.UTC),
            None,
        ],
    ),
    "beyond": (
        pa.decimal128(38, 0),
        [decimal.Decimal("9" * 38), decimal.Decimal(-(2**63) - 1), decimal.Decimal(7), None],
    ),
    "within": (
        pa.decimal128(38, 0),
        [decimal.Decimal(2**63 - 1), decimal.Decimal(-(2**63)), decimal.Decimal(0), None],
    ),
    "price": (
        pa.decimal128(10, 2),
        [decimal.Decimal("0.10"), decimal.Decimal("-12345678.90"), decimal.Decimal("3.00"), None],
    ),
    "weight": (
        pa.float64(),
        [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 5e-324, 0.1, 12345678.5, None],
    ),
    "single": (pa.float32(), [0.1, -0.0, float("nan"), 16777216.0, None]),
    "tiny": (pa.int8(), [-128, 127, 0, None]),
    "unsigned": (pa.uint64(), [2**64 - 1, 0, None]),
    "code": (pa.uint32(), [2**32 - 1, 0]),
    "empty": (pa.string(), [None]),
}
SENSITIVE = ["", "Ärger", "cold", "flu", "\U0001f637"]


def table_of(columns: dict[str, tuple[pa.DataType, list[Any]]], records: int, seed: int,
             groups: int = 40) -> pa.Table:  # fmt: skip
    """Records in few groups of unequal size, however many columns; the sensitive one is ``s``."""
    rng = np.random.default_rng(seed)
    group = np.minimum(rng.geometric(3 / groups, records) - 1, groups - 1)
    arrays = {}
    for name, (kind, values) in columns.items():
        pick = rng.integers(len(values), size=groups)[group]
        # Not through numpy or pandas: NaN and missing are different.
        arrays[name] = pa.array([values[i] for i in pick], kind, from_pandas=False)
    likely = rng.integers(len(SENSITIVE), size=groups)[group]
    other = rng.integers(len(SENSITIVE), size=records)
    value = np.where(rng.random(records) < 0.6, likely, other)
    arrays["s"] = pa.array([SENSITIVE[i] for i in value])
    return pa.table(arrays)


def write(table: pa.Table, file: Path) -> Path:
    pq.write_table(table, file, row_group_size=max(table.num_rows // 3, 1))
    return file


# --- tasks that fail or wait ---------------------------------------------------------------------


def ship_these_tasks() -> None:
    """Send the classes below to the workers by value: they cannot import these files."""
    from pyspark import cloudpickle

    for module in (__name__, wait_for.__module__):
        cloudpickle.register_pickle_by_value(sys.modules[module])


def name_of(task: Any) -> str:
    """A task's kind, and what it writes if it writes files."""
    rows = getattr(task, "rows", None)
    return type(task).__name__ + (f"-{rows.stem}" if rows is not None else "")


@dataclass(frozen=True)
class FailOnce:
    """A task that fails after its first batch of input, the first time it runs in each stage."""

    task: Any
    folder: str
    killed: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from self.task(self._failing(batches))

    def _failing(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            if self._first():
                if self.killed:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise RuntimeError("forced to fail once")

    def _first(self) -> bool:
        try:
            (Path(self.folder) / name_of(self.task)).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


@dataclass(frozen=True)
class Gate:
    """A kernel that records each process that reaches it, and waits for a file to appear.

    If ``failing``, only the first partition waits; the others fail.
    """

    kernel: Any
    folder: str
    failing: bool = False

    @property
    def key(self) -> rp.Key:
        return self.kernel.key

    def draw(self, batch: Any) -> Any:
        (Path(self.folder) / f"begun-{os.getpid()}").touch()
        if self.failing and not self._first():
            raise RuntimeError("forced to fail")
        wait_for((Path(self.folder) / "go").exists, 600, "go")
        return self.kernel.draw(batch)

    def publish(self, batch: Any, draw: Any) -> Iterator[Any]:
        yield from self.kernel.publish(batch, draw)

    def _first(self) -> bool:
        from pyspark import TaskContext

        part, holder = str(TaskContext.get().partitionId()), Path(self.folder) / "holder"
        try:
            with holder.open("x") as stream:
                stream.write(part)
        except FileExistsError:
            return holder.read_text() == part
        return True


@dataclass(frozen=True)
class Straggler:
    """A task whose first attempt at one partition waits until a second attempt has begun."""

    task: Any
    folder: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        if context.partitionId() == 0:
            name = name_of(self.task)
            (Path(self.folder) / f"{name}-{context.attemptNumber()}").touch()
            wait_for((Path(self.folder) / f"{name}-1").exists, 240, "a second attempt")
        yield from self.task(batches)


@dataclass(frozen=True)
class SeededByPartition:
    """What not to do: a kernel whose randomness depends on where a group is processed."""

    kernel: Any

    @property
    def key(self) -> rp.Key:
        return self.kernel.key

    def draw(self, batch: Any) -> Any:
        return self.kernel.draw(batch)

    def publish(self, batch: Any, draw: Any) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        secret = hashlib.sha256(self.key.secret + bytes([part])).digest()
        yield from replace(self.kernel, key=rp.Key(secret)).publish(batch, draw)


def wait_until_idle(spark: Any) -> None:
    """Wait until no task of the session is running: even an abandoned one takes a while to end."""
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    wait_for(
        lambda: sum(one.numRunningTasks() for one in tracker.getExecutorInfos()) == 0,
        240, "all tasks to end",
    )  # fmt: skip
