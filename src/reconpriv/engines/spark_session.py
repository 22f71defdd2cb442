"""Spark sessions: one that is there is used as it is, else one is started and ended here."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import warnings
import weakref
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import reconpriv
from reconpriv.engines.base import Progress, no_progress
from reconpriv.errors import InputError, MissingFileError, ReconprivError

_PACKAGE = Path(reconpriv.__file__).parent
_shipped: weakref.WeakSet[Any] = weakref.WeakSet()


@dataclass(frozen=True)
class Session:
    """A Spark session, and the folder that goes with it where it was started here."""

    spark: Any
    scratch: Path | None
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def tag(self) -> str:
        """What jobs of this engine are marked with, so that just they can be stopped."""
        return f"reconpriv-{id(self.stopped):x}"

    def interrupt(self) -> None:
        """Stop the jobs that another thread waits for."""
        self.stopped.set()
        self.spark.interruptTag(self.tag)

    @property
    def connect(self) -> bool:
        """Whether it is a Spark Connect session, which has no JVM on this side."""
        return ".connect." in type(self.spark).__module__

    def close(self) -> None:
        """End the session where it was started here; one that was there goes on."""
        if self.scratch is not None:
            self.spark.stop()
            shutil.rmtree(self.scratch, ignore_errors=True)


def session_of(frame: Any) -> Session:
    """The session that a Spark data frame belongs to."""
    session = Session(frame.sparkSession, None)
    _prepare(session.spark)
    return session


def open_session(master: str | None, memory: str | None, threads: int | None) -> Session:
    """The session that is active, or a new one with these settings."""
    with _without_pandas_warning():
        try:
            from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra
        except ImportError:
            raise InputError(
                "The Spark engine needs PySpark.",
                hint="Install it: pip install 'reconpriv[spark]'.",
            ) from None
        active = _running_session(SparkSession)
    if active is not None:
        if master is not None or memory is not None or threads is not None:
            raise InputError(
                "A Spark session is running already; its master, memory and threads stay.",
                hint="Leave those settings out, or stop the session first.",
            )
        _prepare(active)
        return Session(active, None)
    scratch = Path(tempfile.mkdtemp(prefix="reconpriv-spark-"))
    try:
        spark = _start(SparkSession.builder, master, memory, threads, scratch)
        _prepare(spark)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return Session(spark, scratch)


def _running_session(sessions: Any) -> Any:
    """The session of this process; an active one is known in its own thread only."""
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
    if threads is not None and threads < 1:
        raise InputError(f"The number of threads must be at least 1; got {threads}.")
    if memory is not None and not re.fullmatch(r"\d+ ?[kmgt]i?b?", memory.lower()):
        raise InputError(f"{memory!r} is not a memory size.", hint="Write memory as 2GB or 500MB.")
    submitted = any(name in os.environ for name in ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"))
    if master is not None and master.startswith("sc://"):
        if memory is not None or threads is not None:
            raise InputError("A Spark Connect server has its own memory and threads.")
        builder = builder.remote(master)
    elif master is not None or not submitted:
        builder = _configure(builder, master, memory, threads, scratch)
    elif memory is not None or threads is not None:
        raise InputError("spark-submit settles memory and threads.", hint="Give them to it.")
    with _without_pandas_warning(), _same_interrupt_handler(), _silent_child():
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


def _configure(
    builder: Any, master: str | None, memory: str | None, threads: int | None, scratch: Path
) -> Any:
    """A quiet session without a web page, whose temporary files are ours to remove."""
    local = master is None or master.startswith("local")
    if master is not None and local and threads is not None:
        raise InputError("Give either --threads or a local --master, not both.")
    settings = {
        "spark.master": master or f"local[{threads or '*'}]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 17),
    }
    if local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings["spark.driver.bindAddress"] = settings["spark.driver.host"] = "127.0.0.1"
    elif threads is not None:
        settings["spark.cores.max"] = str(threads)
    if memory is not None:
        spelled = memory.lower().replace(" ", "").replace("i", "").removesuffix("b")
        settings["spark.driver.memory" if local else "spark.executor.memory"] = spelled
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


@contextmanager
def _without_pandas_warning() -> Iterator[None]:
    """PySpark warns of the pandas that it finds; nothing here depends on it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def map_in_arrow(frame: Any, task: Any, schema: str) -> Any:
    """Run a task of :mod:`reconpriv.engines.spark_tasks` over the partitions of a frame."""
    with _without_pandas_warning():
        return frame.mapInArrow(task, schema)


@contextmanager
def _silent_child() -> Iterator[None]:
    """Spark's process is started without a standard error: its log can quote values."""
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
    """Starting Spark replaces the handler of Ctrl-C; ours cancels the jobs itself."""
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
    """Send this package to the workers, so that they run the very version of this side.

    They need numpy, scipy, pyarrow and cryptography of their own.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(_PACKAGE.rglob("*.py")):
            # A fixed date: the name is a hash of the content, and that must not change by itself.
            entry = zipfile.ZipInfo(f"reconpriv/{file.relative_to(_PACKAGE).as_posix()}")
            archive.writestr(entry, file.read_bytes())
    digest = hashlib.sha256(packed.getvalue()).hexdigest()[:12]
    # Workers fetch the file when they start, so it stays as long as the session.
    folder = Path(tempfile.mkdtemp(prefix="reconpriv-ship-"))
    weakref.finalize(spark, shutil.rmtree, folder, ignore_errors=True)
    path = folder / f"reconpriv_{digest}.zip"
    path.write_bytes(packed.getvalue())
    spark.addArtifacts(str(path), pyfile=True)


@contextmanager
def spark_work(
    session: Session, what: str, stage: str, progress: Progress = no_progress
) -> Iterator[None]:
    """Run Spark jobs: show their progress, cancel them when stopped, one sentence on failure."""
    session.stopped.clear()
    session.spark.addTag(session.tag)
    # Its lines hold a stack trace, and may quote values; what went wrong is said in a sentence.
    logger = logging.getLogger("SQLQueryContextLogger")
    was_disabled, logger.disabled = logger.disabled, not os.environ.get("RECONPRIV_DEBUG")
    try:
        with _watched(session, stage, progress):
            yield
    except ReconprivError:
        raise
    except Exception as error:
        if session.stopped.is_set():
            raise KeyboardInterrupt from None
        raise translated(error, what) from None
    except BaseException:
        session.spark.interruptTag(session.tag)
        raise
    finally:
        logger.disabled = was_disabled
        session.spark.removeTag(session.tag)


@contextmanager
def _watched(session: Session, stage: str, progress: Progress) -> Iterator[None]:
    if progress is no_progress:
        yield
        return
    if session.connect:

        def heard(stages: Any, *_: Any, **__: Any) -> None:
            done = sum(one.num_completed_tasks for one in stages)
            progress(stage, done / max(sum(one.num_tasks for one in stages), 1))

        session.spark.registerProgressHandler(heard)
        try:
            yield
        finally:
            session.spark.removeProgressHandler(heard)
        return
    ended = threading.Event()
    tracker = session.spark.sparkContext.statusTracker()

    def poll() -> None:
        while not ended.wait(0.5):
            stages = [tracker.getStageInfo(i) for i in tracker.getActiveStageIds()]
            running = [one for one in stages if one is not None]
            if running:
                done = sum(one.numCompletedTasks for one in running)
                progress(stage, done / max(sum(one.numTasks for one in running), 1))

    watcher = threading.Thread(target=poll, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


_MEANINGS = (
    ("No space left on device", "There is no space left on a disk that Spark writes to.",
     "Free some, or point spark.local.dir and the output elsewhere."),
    ("PATH_NOT_FOUND", "There is no such file or folder for Spark to read.",
     "Check the path as the workers see it."),
    ("OutOfMemoryError", "Spark ran out of memory.", "Raise --memory."),
    ("MALFORMED_RECORD", "A line of the CSV has more or fewer fields than its header.",
     "Mend the line; a field that holds the delimiter must be quoted."),
    ("is not a Parquet file", "The Parquet file is truncated or is no Parquet file.",
     "Fetch or export it again."),
    ("CANNOT_READ_FILE_FOOTER", "The Parquet file is truncated or is no Parquet file.",
     "Fetch or export it again."),
    ("UNABLE_TO_INFER_SCHEMA", "The input holds no table.", "Check the path."),
    ("PATH_ALREADY_EXISTS", "The output exists already.", "Use --overwrite to replace it."),
    ("Connection refused", "The Spark master does not answer.", "Check --master."),
)  # fmt: skip


def translated(error: Exception, what: str) -> ReconprivError:
    """One sentence for what Spark says; its own text may quote values of the table."""
    text = str(error)
    own = re.search(r"reconpriv\.errors\.\w+: ([^\n]+)", text)
    if own:
        return InputError(own[1].strip())
    missing = re.search(r"No module named '([\w.]+)'", text)
    if missing:
        return InputError(
            f"Spark's Python workers lack the package {missing[1].split('.')[0]}.",
            hint="They need numpy, scipy, pyarrow and cryptography; PYSPARK_PYTHON names theirs.",
        )
    for sign, sentence, hint in _MEANINGS:
        if sign in text:
            kind = MissingFileError if sign == "PATH_NOT_FOUND" else InputError
            return kind(sentence, hint=hint)
    condition = getattr(error, "getCondition", lambda: None)() or type(error).__name__
    return InputError(
        f"Spark could not finish {what} ({condition}).",
        hint="Spark's own log says why; RECONPRIV_DEBUG=1 shows it.",
    )
