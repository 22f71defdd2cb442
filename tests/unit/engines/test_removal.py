"""A folder that Spark's tasks may bring back is removed until they have ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconpriv.engines.spark import jobs

LATE = 40.0


class Clock:
    """Stands for the module ``time``: it passes only while someone sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Working:
    """Stands for a session with a task that writes once, when it ends; the first call is lost."""

    def __init__(self, clock: Clock, folder: Path, ends: float) -> None:
        self.clock, self.folder, self.ends = clock, folder, ends
        self.calls = self.cancelled = 0

    def at_work(self) -> bool:
        self.calls += 1
        if self.calls == 1:
            raise ConnectionError("no answer")
        if self.clock.now < self.ends:
            return True
        if self.ends:
            self.folder.mkdir(exist_ok=True)
            self.ends = 0.0
        return False

    def cancel(self) -> None:
        self.cancelled += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(jobs, "time", made)
    return made


def remove(session: Any, *, cancel: bool) -> None:
    session.folder.mkdir()
    jobs.remove_for_good(session, session.folder.rmdir, session.folder.exists, cancel=cancel)


@pytest.mark.parametrize("cancel", [False, True])
def test_what_a_late_task_writes_is_removed(tmp_path: Path, clock: Clock, cancel: bool) -> None:
    session = Working(clock, tmp_path / "staging", LATE)
    remove(session, cancel=cancel)
    assert session.ends == 0.0 and clock.now > LATE
    assert not session.folder.exists()
    assert (session.cancelled > 0) is cancel


def test_a_task_that_never_ends_is_not_waited_for_without_end(tmp_path: Path, clock: Clock) -> None:
    session = Working(clock, tmp_path / "staging", float("inf"))
    remove(session, cancel=True)
    assert not session.folder.exists()
    assert clock.now == pytest.approx(jobs._PATIENCE, abs=1)


def test_a_session_that_answers_no_more_is_not_asked_for_long(tmp_path: Path, clock: Clock) -> None:
    session = Working(clock, tmp_path / "staging", LATE)
    session.at_work = session.cancel = fail  # type: ignore[method-assign]
    remove(session, cancel=True)
    assert not session.folder.exists()
    assert clock.now == pytest.approx(jobs._QUIET, abs=1)


def fail() -> Any:
    raise ConnectionError("no answer")
