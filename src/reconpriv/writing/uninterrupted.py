"""Work that a signal must not cut in two: putting an output in place, and cleaning up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Ctrl-C comes last: it is the one whose usual handler raises an error.
_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGHUP", "SIGTERM", "SIGINT") if hasattr(signal, name)
)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off signals that ask for an end until the block has ended; then they act as before."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python handles signals in its main thread only
        return
    waiting: list[int] = []
    before = {}

    def put_off(number: int, _: object) -> None:
        waiting.append(number)

    try:
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if handler is not None and handler != signal.SIG_IGN:
                before[number] = handler
                signal.signal(number, put_off)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for first in dict.fromkeys(waiting):
            signal.raise_signal(first)
