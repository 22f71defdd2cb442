"""Files beside a key: regular files that their owner alone can read, locked while they are used."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reconpriv.errors import LedgerError

try:
    import fcntl
except ImportError:  # not on Windows, where publishers must take turns
    fcntl = None  # type: ignore[assignment]

_READ = 1 << 20


@contextmanager
def private_file(path: Path, shown: str, *, write: bool = False) -> Iterator[int]:
    """The handle of a file, which nobody else writes meanwhile, and nobody reads if it is written.

    To be written it is made if need be; to be read, it must be there, or a FileNotFoundError says
    that it is not. ``shown`` is what a sentence calls it.
    """
    # Neither follow a link nor wait for the other end of a pipe.
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    flags |= os.O_RDWR | os.O_CREAT | os.O_APPEND if write else os.O_RDONLY
    try:
        handle = os.open(path, flags, 0o600)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not write:
            raise
        raise refused(shown, "written" if write else "read", error) from None
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            raise LedgerError(f"{shown} is not a regular file.")
        if os.name == "posix" and mode & 0o077:
            raise LedgerError(
                f"{shown} is open to others (mode {stat.S_IMODE(mode):04o}).",
                hint=f"Make it yours alone: chmod 600 {path.name}.",
            )
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX if write else fcntl.LOCK_SH)
        yield handle
    finally:
        os.close(handle)  # and with it the lock


def content_of(handle: int, shown: str) -> bytes:
    """All that a file holds."""
    # Not through a copy of the handle: an interrupt could leave it open, and the lock with it.
    parts, done = [], 0
    try:
        while part := os.pread(handle, _READ, done):
            parts.append(part)
            done += len(part)
    except OSError as error:
        raise refused(shown, "read", error) from None
    return b"".join(parts)


def refused(shown: str, verb: str, error: OSError) -> LedgerError:
    """The error for a file that the system does not let us read or write."""
    why = "it is a link" if error.errno == errno.ELOOP else error.strerror
    return LedgerError(f"{shown} cannot be {verb}: {why}.")
