"""A failed task is retried and gives the same bytes; an abandoned job leaves nothing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.engines.spark import output as spark_output
from reconpriv.engines.spark.session import Session
from reconpriv.release import publication
from spark_fixtures import (
    PANDAS,
    Choice,
    FailOnce,
    Gate,
    be_patient,
    limit_rows_per_file,
    published_by_both,
    ship_these_tasks,
    wait_for,
    wait_until_idle,
    write,
)

pytestmark = [pytest.mark.filterwarnings(PANDAS)]

STAGES = {"SeesFile", "PublishGroups", "NumberGroups", "WriteFiles-data", "WriteFiles-groups"}


@pytest.fixture
def file(small: pa.Table, tmp_path: Path) -> Path:
    return write(small, tmp_path / "t.parquet")


def fail_once(monkeypatch: pytest.MonkeyPatch, folder: Path, *, killed: bool) -> None:
    """Every stage of a publication fails once, in the middle of its input."""
    ship_these_tasks()
    folder.mkdir()
    plain = spark_output.map_in_arrow
    monkeypatch.setattr(
        spark_output,
        "map_in_arrow",
        lambda frame, task, ddl: plain(frame, FailOnce(task, str(folder), killed), ddl),
    )


@pytest.mark.parametrize(
    ("killed", "file_format"), [(False, "csv"), (True, "parquet")], ids=["fails", "dies"]
)
def test_a_task_that_is_tried_again_writes_the_same_bytes(
    spark: Any,
    file: Path,
    tmp_path: Path,
    key: rp.Key,
    monkeypatch: pytest.MonkeyPatch,
    killed: bool,
    file_format: str,
) -> None:
    limit_rows_per_file(monkeypatch, 700)
    fail_once(monkeypatch, tmp_path / "failed", killed=killed)
    by_duckdb, by_spark = published_by_both(
        spark, file, tmp_path / "out", Choice(key, file_format=file_format), sensitive="Education"
    )
    assert {path.name for path in (tmp_path / "failed").iterdir()} >= STAGES
    assert by_spark == by_duckdb
    assert sum(name.startswith("data-") for name in by_spark) == 6


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """A folder in which tasks take note that they have come to the kernel, where they wait."""
    ship_these_tasks()
    folder = tmp_path / "gate"
    folder.mkdir()
    plain = publication.Kernel

    def closed(*, failing: bool = False) -> Path:
        be_patient(monkeypatch, 5.0)
        monkeypatch.setattr(
            publication, "Kernel", lambda *parts: Gate(plain(*parts), str(folder), failing)
        )
        return folder

    yield closed
    (folder / "go").touch()


@pytest.fixture
def at_work(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What the session said whenever it was asked whether its tasks are still at work."""
    said: list[bool] = []
    plain = Session.at_work

    def asked(session: Session) -> bool:
        said.append(plain(session))
        return said[-1]

    monkeypatch.setattr(Session, "at_work", asked)
    return said


def test_a_task_that_always_fails_leaves_nothing_and_quotes_nothing(
    spark: Any,
    file: Path,
    tmp_path: Path,
    key: rp.Key,
    gate: Callable[..., Path],
    at_work: list[bool],
) -> None:
    """Another task is at work meanwhile, and must not bring the folder back."""
    folder, desk = gate(failing=True), tmp_path / "desk"
    desk.mkdir()
    with (
        rp.read(spark.read.parquet(str(file)), sensitive="Education", public="all") as table,
        pytest.raises(rp.ReconprivError, match="Spark could not finish publishing") as caught,
    ):
        table.publish(rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), desk / "out", key=key)
    assert (folder / "holder").exists()
    assert caught.value.__cause__ is None and "\n" not in str(caught.value)
    assert "forced" not in str(caught.value) and str(tmp_path) not in str(caught.value)
    assert True in at_work and not at_work[-1]
    (folder / "go").touch()
    wait_until_idle(spark)
    assert list(desk.iterdir()) == []
    assert spark.range(3).count() == 3


@pytest.mark.parametrize("lost_calls", [0, 3])
def test_an_interrupted_publication_leaves_nothing_and_the_session_goes_on(
    spark: Any,
    file: Path,
    tmp_path: Path,
    key: rp.Key,
    gate: Callable[..., Path],
    at_work: list[bool],
    monkeypatch: pytest.MonkeyPatch,
    lost_calls: int,
) -> None:
    """As in a notebook: the tasks that were at work must not bring the folder back.

    Java may not answer right after an interrupt: py4j closes the connections.
    """
    folder = gate()
    plain, lost = Session.cancel, [ConnectionError("no answer")] * lost_calls

    def cancel(session: Session) -> None:
        if lost:
            raise lost.pop()
        plain(session)

    monkeypatch.setattr(Session, "cancel", cancel)

    def interrupt() -> None:
        wait_for(lambda: len(list(folder.glob("begun-*"))) == 2, 240, "two tasks to be at work")
        os.kill(os.getpid(), signal.SIGINT)

    desk = tmp_path / "desk"
    desk.mkdir()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    watcher = threading.Thread(target=interrupt)
    try:
        with rp.read(spark.read.parquet(str(file)), sensitive="Education", public="all") as table:
            watcher.start()
            with pytest.raises(KeyboardInterrupt):
                table.publish(
                    rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), desk / "out", key=key
                )
    finally:
        signal.signal(signal.SIGINT, before)
        watcher.join()
    assert True in at_work and not at_work[-1]
    (folder / "go").touch()
    wait_until_idle(spark)
    assert list(desk.iterdir()) == []
    assert spark.range(3).count() == 3
    assert spark.getTags() == set()
