"""Blocking work off the event loop, with its result returned to the page."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Generic, TypeVar

from shiny import reactive

from reconpriv.studio.desk import CancelledError

T = TypeVar("T")


class Job(Generic[T]):
    """One kind of work. While it runs, only the latest further request is kept.

    Shiny's own extended tasks queue every request; a slider would queue hundreds.
    """

    def __init__(
        self,
        pool: Executor,
        done: Callable[[T], object],
        failed: Callable[[BaseException], object],
    ) -> None:
        """``done`` and ``failed`` set reactive values; they run on the event loop."""
        self._pool, self._done, self._failed = pool, done, failed
        self._waiting: Callable[[], T] | None = None
        self._task: asyncio.Task[None] | None = None
        self.busy: reactive.Value[bool] = reactive.value(False)

    def start(self, work: Callable[[], T]) -> None:
        """Run this next; call from a reactive effect."""
        self._waiting = work
        if self._task is None or self._task.done():
            self.busy.set(True)
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while (work := self._waiting) is not None:
            self._waiting = None
            outcome: Any
            report: Callable[[Any], object]
            try:
                outcome = await loop.run_in_executor(self._pool, _uninterrupted, work)
                report = self._done
            except Exception as error:
                if os.environ.get("RECONPRIV_DEBUG"):
                    traceback.print_exc()
                outcome, report = error, self._failed
            async with reactive.lock():
                with reactive.isolate():
                    report(outcome)
                if self._waiting is None:
                    self.busy.set(False)
                await reactive.flush()


def _uninterrupted(work: Callable[[], T]) -> T:
    """Run the work; an interrupted table cancels this work, not the whole studio."""
    try:
        return work()
    except KeyboardInterrupt:
        raise CancelledError from None
