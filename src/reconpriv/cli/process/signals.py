"""Ctrl-C, SIGTERM and a closed terminal: a command ends once, in one sentence."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

INTERRUPTED = "nothing unfinished was left behind."
_CODES = {
    getattr(signal, name): code
    for name, code in {"SIGHUP": 129, "SIGINT": 130, "SIGTERM": 143}.items()
    if hasattr(signal, name)  # Windows has no SIGHUP
}
# A signal asks a command to end; so do those that follow it. Only after a while, when the first
# one must have got lost in a library, does another one count.
_LOST_AFTER = 5.0


class Interrupted(KeyboardInterrupt):
    """Told to end.

    Python kills itself with SIGINT at its end if a plain KeyboardInterrupt has passed through
    ``eval`` or ``exec``, as in an import, even if it was handled.
    """


class _State:
    """What has happened so far; a signal handler has no other place for it."""

    handling = False
    working = False
    number: int | None = None
    when = 0.0


def stop_on_signals() -> None:
    """Let the signals that ask for an end interrupt the command, which then cleans up."""
    _State.handling = True
    for number in _CODES:
        if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGINT:
            signal.signal(number, _stop)
    sys.unraisablehook = _hushed


def stopped() -> bool:
    """True if a signal has asked for an end.

    An interrupted library may raise its own error; this distinguishes that from a bug.
    """
    return _State.number is not None


def exit_code() -> int:
    """What a command exits with that was interrupted."""
    return _CODES[_State.number or signal.SIGINT]


@contextmanager
def interruptible() -> Iterator[None]:
    """The work of a command; before it nothing has begun, and after it nothing is left to stop."""
    _State.working = True
    try:
        yield
    finally:
        ignore_signals()
        _State.working = False


@contextmanager
def nothing_begun() -> Iterator[None]:
    """A long import, in which an interrupt may get lost: a signal ends the process at once."""
    before, _State.working = _State.working, False
    try:
        yield
    finally:
        _State.working = before


def ignore_signals() -> None:
    """The command is about to end by itself."""
    if _State.handling:
        for number in _CODES:
            signal.signal(number, signal.SIG_IGN)


def _stop(number: int, _: object) -> None:
    first, before = _State.number is None, _State.when
    if first:
        _State.number = number
    _State.when = time.monotonic()
    if not _State.working:
        _end_at_once()
    if first or _State.when - before > _LOST_AFTER:
        raise Interrupted


def _end_at_once() -> NoReturn:
    os.write(2, f"interrupted: {INTERRUPTED}\n".encode())
    os._exit(exit_code())


def _hushed(unraisable: sys.UnraisableHookArgs) -> None:
    """An interrupt inside a destructor cannot be raised; nobody needs to read about it."""
    if not stopped():
        sys.__unraisablehook__(unraisable)
