"""Ask how far some work is, again and again, from a separate thread while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reconpriv.writing.scratch import uninterrupted


@contextmanager
def polling(ask: Callable[[], None], every: float) -> Iterator[None]:
    """Call ``ask`` every so many seconds until the block ends, however it ends."""
    done = threading.Event()

    def poll() -> None:
        while not done.wait(every):
            ask()

    watcher = threading.Thread(target=poll, daemon=True)
    try:
        with uninterrupted():
            watcher.start()
        yield
    finally:
        # A thread that still asks a library as Python ends would abort the process.
        with uninterrupted():
            done.set()
            if watcher.ident is not None:
                watcher.join()
