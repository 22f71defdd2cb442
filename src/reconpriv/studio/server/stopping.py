"""Ctrl-C, SIGTERM and a closed terminal, from the first moment of a studio to its last."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator

_SIGNALS = [
    getattr(signal, name) for name in ("SIGHUP", "SIGTERM", "SIGINT") if hasattr(signal, name)
]


class Stopping:
    """Whether the studio has been asked to end.

    An error raised while a server starts or a folder is removed leaves a mess, so a signal is only
    noted, except where it may interrupt.
    """

    def __init__(self) -> None:
        self.asked = False
        self._interrupts = False
        self._then: Callable[[], None] = lambda: None

    def ask(self, *_: object) -> None:
        """Handle a signal."""
        self.asked = True
        self._then()
        if self._interrupts:
            raise KeyboardInterrupt

    def then(self, act: Callable[[], None]) -> None:
        """What to do when asked, even if that was a moment ago."""
        self._then = act
        if self.asked:
            act()

    @contextlib.contextmanager
    def may_interrupt(self) -> Iterator[None]:
        """Long work that a signal cuts short; a library may swallow the error, so look at asked."""
        with contextlib.suppress(KeyboardInterrupt):
            self._interrupts = True
            try:
                yield
            finally:
                self._interrupts = False


@contextlib.contextmanager
def stopping() -> Iterator[Stopping]:
    """Note signals until the end of the block."""
    stop = Stopping()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    # What nohup ignores stays ignored.
    taken = {n: handler for n, handler in before.items() if handler not in (None, signal.SIG_IGN)}
    try:
        for number in taken:
            signal.signal(number, stop.ask)
        yield stop
    finally:
        for number, handler in taken.items():
            signal.signal(number, handler)
