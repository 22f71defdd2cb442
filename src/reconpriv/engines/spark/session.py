"""Spark sessions: an existing one is used as it is; otherwise one is started and ended here."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import socket
import sys
import threading
import urllib.parse
import warnings
import weakref
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconpriv.engines.base import check_threads, memory_bytes
from reconpriv.errors import InputError
from reconpriv.extras import needs
from reconpriv.messages.remedies import Control, Remedy
from reconpriv.writing.scratch import Scratch, temporary

_PACKAGE = Path(__file__).parents[2]
_shipped: weakref.WeakSet[Any] = weakref.WeakSet()

CHECK_MASTER = Remedy("check {}", Control.MASTER)
LEAVE_OUT = Remedy("leave {} out", Control.ENGINE, "spark")


@dataclass(frozen=True)
class Session:
    """A Spark session, and the folder that belongs to it if it was started here."""

    spark: Any
    scratch: Path | None
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def own(self) -> bool:
        """True if it was started here, so ending it is up to us."""
        return self.scratch is not None

    @property
    def tag(self) -> str:
        """What jobs of this engine are marked with, so that only they are stopped."""
        return f"reconpriv-{id(self.stopped):x}"

    def interrupt(self) -> None:
        """Stop the jobs that another thread waits for."""
        self.stopped.set()
        self.cancel()

    def mark(self) -> None:
        """Mark the jobs that this thread starts from now on."""
        if self.connect:
            self.spark.addTag(self.tag)
        else:
            self.spark.sparkContext.addJobTag(self.tag)

    def unmark(self) -> None:
        """Stop marking."""
        if self.connect:
            self.spark.removeTag(self.tag)
        else:
            self.spark.sparkContext.removeJobTag(self.tag)

    def cancel(self) -> None:
        """Cancel the marked jobs.

        Tags of a classic session are known only in their thread, and an interrupt leaves Python
        with another one; tags of the context are known everywhere.
        """
        if self.connect:
            self.spark.interruptTag(self.tag)
        else:
            self.spark.sparkContext.cancelJobsWithTag(self.tag)

    def at_work(self) -> bool:
        """True if a marked job is running, or a task that outlives it; Connect does not tell."""
        if self.connect:
            return False
        context = self.spark.sparkContext
        tracker = context.statusTracker()
        known = context._jsc.sc().statusTracker().getJobIdsForTag(self.tag)
        jobs = [job for job in map(tracker.getJobInfo, known) if job is not None]
        if any(job.status == "RUNNING" for job in jobs):
            return True
        stages = [tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds]
        return any(stage is not None and stage.numActiveTasks > 0 for stage in stages)

    @property
    def connect(self) -> bool:
        """True if it is a Spark Connect session, which has no JVM on this side."""
        return ".connect." in type(self.spark).__module__

    def close(self) -> None:
        """End the session with the last table that uses it; one that we did not start goes on."""
        if self.scratch is None:
            return
        users = _users.get(self.scratch, 0) - 1
        if users > 0:
            _users[self.scratch] = users
        elif users == 0:
            self.end()

    def end(self) -> None:
        """Stop Spark and its process, and remove what it had on disk."""
        assert self.scratch is not None
        _users.pop(self.scratch, None)
        try:
            with suppress(Exception):
                self.spark.stop()
            if not self.connect:
                with suppress(Exception):
                    _end_process()
        finally:
            folder = _folders.pop(self.scratch, None)
            if folder is not None:
                folder.close()


# Sessions that were started here, by their folders: how many tables use each.
_users: dict[Path, int] = {}
_folders: dict[Path, Scratch] = {}


def _end_process() -> None:
    """End Spark's process, which outlives its session: the next would inherit its memory."""
    from pyspark import SparkContext  # noqa: PLC0415 - an extra

    gateway = SparkContext._gateway
    if gateway is None or SparkContext._active_spark_context is not None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()
        process.wait(timeout=10)


def session_of(frame: Any) -> Session:
    """The session that a Spark data frame belongs to."""
    return _join(frame.sparkSession)


def _join(spark: Any) -> Session:
    """An existing session; if it was started here, one more table uses it."""
    _prepare(spark)
    scratch = getattr(spark, "_reconpriv_scratch", None)
    if scratch in _users:
        _users[scratch] += 1
        return Session(spark, scratch)
    return Session(spark, None)


def open_session(master: str | None, memory: str | None, threads: int | None) -> Session:
    """The session that is active, or a new one with these settings."""
    with without_pandas_warning():
        with needs("spark", "The Spark engine needs PySpark."):
            from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra
        active = _running_session(SparkSession)
    if active is not None:
        if master is not None or memory is not None or threads is not None:
            raise InputError(
                "A Spark session is already running; its master, memory and threads cannot change.",
                hint="Leave those settings out, or stop the session first.",
            )
        return _join(active)
    folder = temporary("spark")
    scratch = folder.path
    _users[scratch] = 1
    _folders[scratch] = folder
    try:
        spark = _start(SparkSession.builder, master, memory, threads, scratch)
    except BaseException:
        _users.pop(scratch)
        _folders.pop(scratch).close()
        raise
    session = Session(spark, scratch)
    try:
        spark._reconpriv_scratch = scratch
        _prepare(spark)
    except BaseException:
        session.end()
        raise
    return session


def _running_session(sessions: Any) -> Any:
    """The session of this process; an active one is known only in its own thread."""
    active = sessions.getActiveSession()
    if active is not None:
        return active
    from pyspark import SparkContext  # noqa: PLC0415 - an extra

    if SparkContext._active_spark_context is not None:
        return sessions.builder.getOrCreate()
    connect = sys.modules.get("pyspark.sql.connect.session")
    return None if connect is None else connect.SparkSession._get_default_session()


def _start(
    builder: Any, master: str | None, memory: str | None, threads: int | None, scratch: Path
) -> Any:
    check_threads(threads)
    submitted = any(name in os.environ for name in ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"))
    if master is not None and master.startswith("sc://"):
        if memory is not None or threads is not None:
            raise InputError("A Spark Connect server has its own memory and threads.")
        _check_answers(master)
        builder = builder.remote(master)
    elif master is not None or not submitted:
        builder = _configure(builder, master, memory, threads, scratch)
    elif memory is not None or threads is not None:
        raise InputError("spark-submit sets memory and threads.", hint="Give them to spark-submit.")
    with (
        without_pandas_warning(),
        _same_interrupt_handler(),
        _silent_child(),
        _local_environment(master),
    ):
        try:
            return builder.appName("reconpriv").getOrCreate()
        except Exception as error:
            if isinstance(error, ImportError):
                raise InputError(
                    "Spark Connect needs further packages.",
                    hint="Install them: pip install 'pyspark[connect]'.",
                ) from None
            raise InputError(
                f"No Spark session could be started ({type(error).__name__}).",
                hint="Spark needs Java 17 or newer (java on PATH or JAVA_HOME) and a master that"
                " answers.",
            ) from None


def _check_answers(url: str) -> None:
    """Refuse a server that is not there: Spark Connect would try for many minutes."""
    place = urllib.parse.urlsplit(url)
    try:
        socket.create_connection((place.hostname or "", place.port or 15002), timeout=10).close()
    except (OSError, ValueError):
        raise InputError("The Spark Connect server does not answer.", hint=CHECK_MASTER) from None


@contextmanager
def _local_environment(master: str | None) -> Iterator[None]:
    """A local session listens on loopback only and runs this Python; others are not touched."""
    wanted = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    local = master is None or master.startswith("local")
    added = [name for name in wanted if local and name not in os.environ]
    os.environ.update({name: wanted[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _configure(
    builder: Any, master: str | None, memory: str | None, threads: int | None, scratch: Path
) -> Any:
    """A quiet session without a web page, whose temporary files are ours to remove."""
    local = master is None or master.startswith("local")
    if master is not None and local and threads is not None:
        raise InputError("Give either a number of threads or a local master, not both.")
    settings = {
        "spark.master": master or f"local[{threads or '*'}]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 17),
    }
    if local:
        settings["spark.driver.bindAddress"] = settings["spark.driver.host"] = "127.0.0.1"
    elif threads is not None:
        if not str(master).startswith("spark://"):
            raise InputError("A number of threads needs a local or standalone master.")
        settings["spark.cores.max"] = str(threads)
    if memory is not None:
        megabytes = f"{max(memory_bytes(memory) // 2**20, 1)}m"
        settings["spark.driver.memory" if local else "spark.executor.memory"] = megabytes
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


@contextmanager
def without_pandas_warning() -> Iterator[None]:
    """PySpark warns about the pandas version it finds; nothing here depends on it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


@contextmanager
def _silent_child() -> Iterator[None]:
    """Start Spark's process without standard error: its log can quote values."""
    if os.environ.get("RECONPRIV_DEBUG"):
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _same_interrupt_handler() -> Iterator[None]:
    """Keep our Ctrl-C handler, which cancels the jobs; starting Spark replaces it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _prepare(spark: Any) -> None:
    """Make a session ready, once."""
    if spark not in _shipped:
        _ship_package(spark)
        _shipped.add(spark)


def _ship_package(spark: Any) -> None:
    """Send this package to the workers, so that they run the same version as this side.

    They need their own numpy, scipy, pyarrow and cryptography.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(_PACKAGE.rglob("*.py")):
            # A fixed date: the name is a hash of the content, and that must not change by itself.
            entry = zipfile.ZipInfo(f"reconpriv/{file.relative_to(_PACKAGE).as_posix()}")
            archive.writestr(entry, file.read_bytes())
    digest = hashlib.sha256(packed.getvalue()).hexdigest()[:12]
    # Workers fetch the file when they start, so it stays as long as the session.
    folder = temporary("ship")
    weakref.finalize(spark, folder.close)
    path = folder.path / f"reconpriv_{digest}.zip"
    path.write_bytes(packed.getvalue())
    spark.addArtifacts(str(path), pyfile=True)
