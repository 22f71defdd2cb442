"""Blocking work off the event loop, and results that know what they were computed for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from shiny import reactive

from reconpriv.studio.work.workspace import CancelledError, explain

K = TypeVar("K")
T = TypeVar("T")


class Job(Generic[T]):
    """One kind of work. While it runs, only the latest further request is kept.

    Shiny's own extended tasks queue every request; a slider would queue hundreds.
    """

    def __init__(
        self, pool: Executor, done: Callable[[T], object], failed: Callable[[BaseException], object]
    ) -> None:
        """``done`` and ``failed`` set reactive values; they run on the event loop."""
        self._pool, self._done, self._failed = pool, done, failed
        self._waiting: Callable[[], T] | None = None
        self._task: asyncio.Task[None] | None = None
        self.busy: reactive.Value[bool] = reactive.value(False)

    @property
    def superseded(self) -> bool:
        """Whether other work waits for the one that runs."""
        return self._waiting is not None

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


@dataclass(frozen=True)
class Computed(Generic[K, T]):
    """A result and what it was computed for; it is valid for nothing else."""

    key: K
    found: T


@dataclass(frozen=True)
class Failed(Generic[K]):
    """Why there is no result for a key."""

    key: K
    fault: str


class Computation(Generic[K, T]):
    """One kind of work in the background, with its latest outcome.

    ``progress`` says how far it is: steps done, of how many.
    """

    def __init__(self, pool: Executor, work: Callable[[K], T]) -> None:
        """``work`` makes the result for a key, in a thread of the pool."""
        self._work = work
        self._requested: K | None = None
        self._abandoned = False
        self.progress = (0, 0)
        self._outcome: reactive.Value[Computed[K, T] | Failed[K] | None] = reactive.value(None)
        # Cancelled work leaves the former outcome in its place.
        self._job: Job[Computed[K, T] | Failed[K]] = Job(pool, self._outcome.set, lambda _: None)
        self.busy = self._job.busy

    def request(self, key: K | None) -> None:
        """Compute the result for this key next, unless it is there or on its way."""
        if key is None:
            return
        with reactive.isolate():
            known, busy = self._outcome(), self.busy()
        there = known if known is not None and known.key == key else None
        if (busy and self._requested == key) or (there and not busy):
            return
        self._requested, self._abandoned, self.progress = key, False, (0, 0)
        # What runs for another key would take the place of the result that is there.
        self._job.start(lambda: there or self._computed(key))

    def keep(self, wanted: Callable[[K], bool]) -> None:
        """Go on with what runs only if it is still wanted: other work need not wait for it."""
        if self._requested is not None and not wanted(self._requested):
            self._requested, self._abandoned = None, True

    def step(self, done: int, steps: int) -> None:
        """For the work itself: how far it is; it is cancelled here if it is no longer wanted."""
        self.progress = (done, steps)
        if self._abandoned or self._job.superseded:
            raise CancelledError

    def _computed(self, key: K) -> Computed[K, T] | Failed[K]:
        try:
            return Computed(key, self._work(key))
        except CancelledError:
            raise
        except Exception as error:
            return Failed(key, explain(error))

    def latest(self) -> Computed[K, T] | None:
        """The latest result, for whatever key."""
        known = self._outcome()
        return known if isinstance(known, Computed) else None

    def result(self, key: K | None) -> T | None:
        """The result for this key, if it is there."""
        known = self.latest()
        return known.found if known is not None and known.key == key else None

    def failure(self) -> Failed[K] | None:
        """The latest outcome, if it is a failure."""
        known = self._outcome()
        return known if isinstance(known, Failed) else None

    def fault(self, key: K | None) -> str:
        """Why there is no result for this key; empty if nothing is known against it."""
        known = self.failure()
        return known.fault if known is not None and known.key == key else ""
