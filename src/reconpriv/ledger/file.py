"""The file of a ledger: read whole, appended to under a lock, never rewritten."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from reconpriv.core.randomness import Key, ledger_key
from reconpriv.errors import LedgerError
from reconpriv.ledger.lines import Body, Lines, read_lines, written_line
from reconpriv.messages.remedies import Control, Remedy
from reconpriv.writing.uninterrupted import uninterrupted

try:
    import fcntl
except ImportError:  # not on Windows, where publishers must take turns
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".ledger"
# Neither follow a link nor wait for the other end of a pipe.
AS_A_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_READ = 1 << 20


class Beside(Protocol):
    """A file that goes with the next line: it takes its place once the line is written."""

    def commit(self) -> None:
        """The line is written."""

    def abandon(self) -> None:
        """The line could not be written."""


class LedgerFile:
    """The ledger beside a key file."""

    def __init__(self, key: Key, file: Path) -> None:
        """``file`` is the key's; the ledger may not exist yet."""
        self.key_file = file
        self.path = file.with_name(file.name + SUFFIX)
        self._secret = ledger_key(key, b"mac")

    @contextmanager
    def reading(self) -> Iterator[Lines]:
        """Its lines up to the first fault; none if there is no ledger yet.

        Nobody writes while they are looked at.
        """
        try:
            handle = os.open(self.path, os.O_RDONLY | AS_A_FILE)
        except FileNotFoundError:
            yield read_lines(self._secret, b"")
            return
        except OSError as error:
            raise self._refused("cannot be read", error) from None
        try:
            self._check_mode(handle)
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_SH)
            try:
                content = _content(handle)
            except OSError as error:
                raise self._refused("cannot be read", error) from None
            yield read_lines(self._secret, content)
        finally:
            os.close(handle)

    def whole(self) -> Lines:
        """Its lines, all of which must be as they were written."""
        with self.reading() as lines:
            return self.sound(lines)

    def check_writable(self) -> None:
        """Refuse to start a publication that could not be recorded."""
        place = self.path if self.path.exists() else self.path.parent
        if not os.access(place, os.W_OK):
            raise LedgerError(
                f"The ledger {self.path.name} beside the key cannot be written.",
                hint="Keep the key in a folder that you may write to.",
            )

    def append(self, make: Callable[[Lines], Body], beside: Beside | None = None) -> Body:
        """Add the line made from those that are there; nobody else writes in between.

        ``beside`` is a file that goes with the line.
        """
        with self._locked() as handle, uninterrupted():  # the line and the file go together
            lines = self.sound(read_lines(self._secret, _content(handle)))
            # What fails in here has prepared nothing, or forgets it by itself: the file beside may
            # still be that of the last line, left by a process that was killed.
            body = make(lines)
            try:
                self._write(handle, lines, body)
            except BaseException:
                if beside is not None:
                    beside.abandon()
                raise
            if beside is not None:
                beside.commit()
            return body

    def repair(self, make: Callable[[bool], Body]) -> bool:
        """Settle a last line that lacks its end, and record it; False if there was none.

        The line is completed if only its newline is missing, and cut off otherwise.
        """
        with self._locked() as handle:
            content = _content(handle)
            lines = read_lines(self._secret, content)
            if lines.fault is None:
                return False
            if not lines.fault.torn:
                self.sound(lines)
            completed = read_lines(self._secret, content + b"\n")
            kept = completed.fault is None
            if not kept:
                os.ftruncate(handle, lines.length)
            else:
                os.write(handle, b"\n")
                lines = completed
            self._write(handle, lines, make(kept))
            return True

    def _write(self, handle: int, lines: Lines, body: Body) -> None:
        line = written_line(self._secret, lines.mac, body)
        try:
            if os.write(handle, line) != len(line):
                raise OSError(0, "no space left on the device")
            os.fsync(handle)
        except BaseException as error:
            with suppress(OSError):
                os.ftruncate(handle, lines.length)
            if isinstance(error, OSError):
                raise self._refused("cannot be written", error) from None
            raise

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | AS_A_FILE, 0o600)
        except OSError as error:
            raise self._refused("cannot be written", error) from None
        try:
            self._check_mode(handle)
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            os.close(handle)  # and with it the lock

    def _check_mode(self, handle: int) -> None:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            raise LedgerError(f"The ledger {self.path.name} is not a regular file.")
        if os.name == "posix" and mode & 0o077:
            raise LedgerError(
                f"The ledger {self.path.name} is open to others (mode {stat.S_IMODE(mode):04o}).",
                hint=f"Make it yours alone: chmod 600 {self.path.name}.",
            )

    def sound(self, lines: Lines) -> Lines:
        """These lines, or a refusal if one is not as it was written."""
        if lines.fault is None:
            return lines
        what = "lacks its end" if lines.fault.torn else "is not as it was written"
        raise LedgerError(
            f"Line {lines.fault.line} of the ledger {self.path.name} {what}.",
            hint=see_ledger(self.key_file),
        )

    def _refused(self, what: str, error: OSError) -> LedgerError:
        why = "it is a link" if error.errno == errno.ELOOP else error.strerror
        return LedgerError(f"The ledger {self.path.name} {what}: {why}.")


def see_ledger(key_file: Path) -> Remedy:
    """What to do about a ledger that is not sound."""
    return Remedy("see what to do: {}", Control.LEDGER, typed(key_file))


def typed(file: Path) -> str:
    """A path as one would type it here."""
    here = file.is_relative_to(Path.cwd())
    return str(file.relative_to(Path.cwd()) if here else file)


def _content(handle: int) -> bytes:
    # Not through a copy of the handle: an interrupt could leave it open, and the lock with it.
    parts, done = [], 0
    while part := os.pread(handle, _READ, done):
        parts.append(part)
        done += len(part)
    return b"".join(parts)
