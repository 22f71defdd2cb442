"""Spark jobs: run with progress, stopped when told to, with one sentence if they fail."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from reconpriv.engines.base import Progress, no_progress
from reconpriv.engines.polling import polling
from reconpriv.engines.spark.session import CHECK_MASTER, LEAVE_OUT, Session, without_pandas_warning
from reconpriv.errors import InputError, MissingFileError, ReconprivError
from reconpriv.messages.remedies import REPLACE, Control, Remedy, either

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j")
_SILENT = logging.CRITICAL + 1


def quote(identifier: str) -> str:
    """A Spark SQL identifier that may hold anything."""
    return "`" + identifier.replace("`", "``") + "`"


def map_in_arrow(frame: Any, task: Any, schema: Any) -> Any:
    """Run a task of :mod:`reconpriv.engines.spark.tasks` over the partitions of a frame."""
    with without_pandas_warning():
        return frame.mapInArrow(task, schema)


@contextmanager
def spark_work(
    session: Session, what: str, stage: str, progress: Progress = no_progress
) -> Iterator[None]:
    """Run Spark jobs: show their progress, cancel them when stopped, one sentence on failure."""
    if session.stopped.is_set():
        session.stopped.clear()
        raise KeyboardInterrupt
    with _quiet_loggers():
        try:
            session.mark()
            with _watched(session, stage, progress):
                yield
        except ReconprivError:
            raise
        except Exception as error:
            if session.stopped.is_set():
                session.stopped.clear()
                raise KeyboardInterrupt from None
            cause = error if os.environ.get("RECONPRIV_DEBUG") else None
            raise translated(error, what) from cause
        except BaseException:
            _cancel(session)
            raise
        finally:
            with suppress(Exception):
                session.unmark()


def _cancel(session: Session) -> None:
    """Cancel the jobs of a session, which must not go on unseen.

    An interrupt makes py4j close all its connections. Java may be late to do the same, and then
    closes the new one as well: the next call gets no answer, and has to be made again.
    """
    for _ in range(_CALLS):
        with suppress(Exception):
            session.cancel()
            return
        time.sleep(_PAUSE)


def remove_for_good(
    session: Session, remove: Callable[[], None], exists: Callable[[], bool], *, cancel: bool
) -> None:
    """Remove a folder until it stays away.

    Tasks that were told to stop may still be finishing, and recreate it. With ``cancel``, so may
    a job that began just after the others were cancelled.
    """
    limit = time.monotonic() + _PATIENCE
    quiet_since = time.monotonic()
    with _quiet_loggers():
        while time.monotonic() < min(limit, quiet_since + _QUIET):
            with suppress(Exception):  # see _cancel
                if session.at_work():
                    quiet_since = time.monotonic()
                    if cancel:
                        session.cancel()
            with suppress(Exception):
                if exists():
                    quiet_since = time.monotonic()
                    remove()
            time.sleep(_PAUSE)


_PAUSE = 0.1
_CALLS = 100
_QUIET = 10.0  # Spark kills a Python worker that does not end by itself within about four seconds
_PATIENCE = 120.0  # on a busy machine everything takes longer; a second interrupt ends it


@contextmanager
def _quiet_loggers() -> Iterator[None]:
    """Silence loggers whose stack traces may quote values; a sentence says what went wrong."""
    if os.environ.get("RECONPRIV_DEBUG"):
        yield
        return
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(_SILENT)
    # An interrupt makes py4j write to the root logger.
    logging.getLogger().addFilter(_not_by_py4j)
    try:
        yield
    finally:
        logging.getLogger().removeFilter(_not_by_py4j)
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _not_by_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


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
    tracker = session.spark.sparkContext.statusTracker()

    def ask() -> None:
        stages = [tracker.getStageInfo(i) for i in tracker.getActiveStageIds()]
        running = [one for one in stages if one is not None]
        if running:
            done = sum(one.numCompletedTasks for one in running)
            progress(stage, done / max(sum(one.numTasks for one in running), 1))

    with polling(ask, every=0.5):
        yield


_MEANINGS = (
    ("No space left on device", "There is no space left on a disk that Spark writes to.",
     "Free some, or point spark.local.dir and the output elsewhere."),
    ("PATH_NOT_FOUND", "There is no such file or folder for Spark to read.",
     "Check the path as the workers see it."),
    ("OutOfMemoryError", "Spark ran out of memory.", Remedy("raise {}", Control.MEMORY)),
    ("MALFORMED_RECORD", "A line of the CSV has more or fewer fields than its header.",
     "Correct the line; a field that holds the delimiter must be quoted."),
    ("is not a Parquet file", "The Parquet file is truncated or is not a Parquet file.",
     "Fetch or export it again."),
    ("CANNOT_READ_FILE_FOOTER", "The Parquet file is truncated or is not a Parquet file.",
     "Fetch or export it again."),
    ("UNSUPPORTED_TIME_TYPE", "Spark does not read columns that hold times of day.",
     either("turn them into text", LEAVE_OUT)),
    ("UNABLE_TO_INFER_SCHEMA", "The input holds no table.", "Check the path."),
    ("CANNOT_MERGE_SCHEMAS", "The Parquet files differ in their columns or types.",
     "Give them the same schema, or read them one by one."),
    ("CSV header does not conform", "The CSV files differ in their columns.",
     "Give them the same header, or read them one by one."),
    ("PATH_ALREADY_EXISTS", "The output exists already.", REPLACE),
    ("Connection refused", "The Spark master does not answer.", CHECK_MASTER),
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
