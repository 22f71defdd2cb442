"""Small files that go with a table or a release: domains, groups, questions.

They are read whole, so what has no end must not be read at all.
"""

from __future__ import annotations

import os
import select
import stat
from pathlib import Path

from reconpriv.errors import InputError, MissingFileError
from reconpriv.messages.arguments import check_path
from reconpriv.messages.redaction import shown_path
from reconpriv.messages.text_files import not_utf8

LARGEST = 100 << 20
"""In bytes; a group for each of a million values is a quarter of it."""

_PATIENCE = 5.0
"""Seconds in which somebody has to begin to write into a named pipe."""


def read_side_file(path: str | os.PathLike[str], what: str, hint: str = "") -> str:
    """The text of a file or of a pipe; ``what`` is what a sentence calls it."""
    shown = f"The {what} {shown_path(path)}"
    check_path(f"The path of the {what}", path)
    try:
        mode = Path(path).stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "a device"
            raise InputError(f"{shown} cannot be read: it is {kind}.", hint=hint)
        with open(path, "rb", opener=_opened) as stream:
            content = _begun(stream.fileno(), mode) + stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise InputError(f"{shown} is larger than {LARGEST >> 20} MB.", hint=hint)
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise MissingFileError(f"There is no {what} at {shown_path(path)}.") from None
    except UnicodeDecodeError:
        if stat.S_ISREG(mode):
            raise not_utf8(path, shown) from None
        raise InputError(f"{shown} is not UTF-8 text.", hint=hint) from None
    except TimeoutError:
        raise InputError(f"{shown} is a pipe that nobody writes into.", hint=hint) from None
    except OSError as error:
        raise InputError(f"{shown} cannot be read ({type(error).__name__}).", hint=hint) from None


def _opened(path: str, flags: int) -> int:
    """Open a file without waiting, as a pipe would, until somebody writes into it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _begun(handle: int, mode: int) -> bytes:
    """The first bytes of a pipe, if they are there; TimeoutError if nobody writes into it."""
    if not stat.S_ISFIFO(mode):
        return b""
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    ready = waiting.poll(_PATIENCE * 1000)
    try:
        first = os.read(handle, LARGEST)
    except BlockingIOError:  # there is a writer, and it is slow
        first, ready = b"", [(handle, 0)]
    if not ready:
        raise TimeoutError
    os.set_blocking(handle, True)
    return first
