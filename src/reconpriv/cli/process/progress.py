"""The progress bar: on standard error, if that is a terminal, once a command takes a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# Shorter commands show no bar: it would only flicker.
QUIET_SECONDS = 1.0
# Stages in which an engine works through the records, so that a rate means something.
_BY_RECORD = ("counting", "publishing", "writing")

Later = Callable[[float, Callable[[], None]], threading.Timer]
"""What calls a function once, some seconds later: ``threading.Timer``."""


class ProgressBar:
    """What is being done, how much of it is done, and since when.

    Called with a stage in plain words and the share of it that is done; a stage without one is
    under way. Nothing is drawn before :meth:`show`.
    """

    def __init__(self, records: int | None = None, what: str = "") -> None:
        """``records`` are those of the table, once they are known; ``what`` is said first."""
        self.records, self._what = records, what
        self._stage, self._done = "reading", 0.0
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._drawn, self._kind = 0.0, (False, False)
        self._closed = False
        # Engines report from a thread of their own, and the bar appears from another.
        self._lock = threading.Lock()

    def __call__(self, stage: str, done: float) -> None:
        """Note what is done, and draw it if the bar is there."""
        with self._lock:
            self._stage, self._done = stage, done
            if self._bar is not None:
                self._draw(self._bar)

    def show(self) -> None:
        """Let the bar appear."""
        with self._lock:
            if self._bar is None and not self._closed:
                self._bar = _rich_bar()
                self._bar.start()
                self._draw(self._bar)

    def close(self) -> None:
        """Clear the line, for good."""
        with self._lock:
            self._closed = True
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

    def _draw(self, bar: Progress) -> None:
        by_record = self.records if self._stage in _BY_RECORD else None
        total = by_record or 100
        # A bar without a total moves to and fro.
        known, completed = total if self._done > 0.0 else None, round(self._done * total)
        words = f"{self._what}: {self._stage}" if self._what else self._stage
        # Steps that follow one another share a bar, and with it the time that it shows.
        begins = (bool(by_record), known is None) != self._kind or self._done < self._drawn
        self._kind, self._drawn = (bool(by_record), known is None), self._done
        if self._task is None or begins:
            if self._task is not None:
                bar.remove_task(self._task)
            self._task = bar.add_task(
                words, total=known, completed=completed, by_record=bool(by_record)
            )
        else:
            bar.update(self._task, description=words, completed=completed)


@contextmanager
def ticking(
    records: int | None = None, what: str = "", *, later: Later = threading.Timer
) -> Iterator[ProgressBar]:
    """A bar for the duration of a with statement, on work over so many records."""
    bar = ProgressBar(records, what)
    if not sys.stderr.isatty():
        yield bar
        return
    timer = later(QUIET_SECONDS, bar.show)
    timer.daemon = True
    timer.start()
    try:
        yield bar
    finally:
        timer.cancel()
        bar.close()


@contextmanager
def counting_steps(steps: int) -> Iterator[Callable[[str], None]]:
    """A bar over a known number of steps, each with its words as it ends."""
    with ticking() as bar:
        done = 0

        def step(words: str) -> None:
            nonlocal done
            done += 1
            bar(words, done / steps)

        yield step


def _rich_bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Done(TextColumn):
        """How much is done: of records also how many, and how many per second."""

        def render(self, task: Any) -> Text:
            if task.total is None:
                return Text("")
            if task.fields["by_record"]:
                return Text(f"{task.completed:,.0f} records, {task.speed or 0:,.0f}/s")
            return Text(f"{task.percentage:.0f}%")

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        Done(""),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        # What a command prints meanwhile goes where it belongs.
        redirect_stdout=False,
        redirect_stderr=False,
    )
