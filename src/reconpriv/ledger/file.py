"""The file of a ledger: read whole, appended to under a lock, never rewritten.

A line is ``MAC JSON``. Its MAC is HMAC-SHA-256 of the previous MAC and the JSON text, under a key
derived from the secret one. So a line that is changed, removed, added or moved is noticed, except
that lines may be cut off at the end: what remains is a ledger as it once was.
"""

from __future__ import annotations

import errno
import hmac
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconpriv.cells.randomness import Key, ledger_key
from reconpriv.errors import LedgerError
from reconpriv.messages.remedies import Control, Remedy
from reconpriv.writing.scratch import uninterrupted

if TYPE_CHECKING:
    from reconpriv.ledger.trials import TrialFile


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


SUFFIX = ".ledger"
Body = dict[str, Any]

_MAC_DIGITS = 64
_START = "0" * _MAC_DIGITS


@dataclass(frozen=True)
class LineFault:
    """The first line that is not as it was written; ``torn`` if it only lacks its end."""

    line: int
    torn: bool


@dataclass(frozen=True)
class Lines:
    """The lines up to the first fault, the MAC of the last one and the length of all, in bytes."""

    bodies: tuple[Body, ...]
    mac: str
    length: int
    fault: LineFault | None = None


class LedgerFile:
    """The ledger beside a key file."""

    def __init__(self, key: Key, file: Path) -> None:
        """``file`` is the key's; the ledger may not exist yet."""
        self.key_file = file
        self.path = file.with_name(file.name + SUFFIX)
        self._shown = f"The ledger {self.path.name}"
        self._secret = ledger_key(key, b"mac")

    @contextmanager
    def reading(self) -> Iterator[Lines]:
        """Its lines up to the first fault; none if there is no ledger yet.

        Nobody writes while they are looked at.
        """
        with ExitStack() as stack:
            content = b""
            with suppress(FileNotFoundError):
                handle = stack.enter_context(private_file(self.path, self._shown))
                content = content_of(handle, self._shown)
            yield self._lines(content)

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

    def append(self, make: Callable[[Lines], Body], beside: TrialFile | None = None) -> Body:
        """Add the line made from those that are there; nobody else writes in between.

        ``beside`` is the file that goes with the line: its next state takes its place once the
        line is written, and is forgotten if it could not be.
        """
        # The line and the file go together.
        with private_file(self.path, self._shown, write=True) as handle, uninterrupted():
            lines = self.sound(self._lines(content_of(handle, self._shown)))
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
        with private_file(self.path, self._shown, write=True) as handle:
            content = content_of(handle, self._shown)
            lines = self._lines(content)
            if lines.fault is None:
                return False
            if not lines.fault.torn:
                self.sound(lines)
            completed = self._lines(content + b"\n")
            kept = completed.fault is None
            if kept:
                os.write(handle, b"\n")
            else:
                os.ftruncate(handle, lines.length)
            self._write(handle, completed if kept else lines, make(kept))
            return True

    def sound(self, lines: Lines) -> Lines:
        """These lines, or a refusal if one is not as it was written."""
        if lines.fault is None:
            return lines
        what = "lacks its end" if lines.fault.torn else "is not as it was written"
        raise LedgerError(
            f"Line {lines.fault.line} of the ledger {self.path.name} {what}.",
            hint=see_ledger(self.key_file),
        )

    def _lines(self, content: bytes) -> Lines:
        """Check the lines of a ledger, one after another."""
        bodies: list[Body] = []
        mac, length = _START, 0
        for number, line in enumerate(_split(content), start=1):
            found, text = line[:_MAC_DIGITS], line[_MAC_DIGITS + 1 :].removesuffix(b"\n")
            torn = not line.endswith(b"\n")
            genuine = hmac.compare_digest(found, self._mac(mac, text).encode())
            if torn or not genuine or line[_MAC_DIGITS : _MAC_DIGITS + 1] != b" ":
                return Lines(tuple(bodies), mac, length, LineFault(number, torn))
            bodies.append(json.loads(text))
            mac, length = found.decode(), length + len(line)
        return Lines(tuple(bodies), mac, length)

    def _write(self, handle: int, lines: Lines, body: Body) -> None:
        text = json.dumps(body, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
        line = self._mac(lines.mac, text).encode() + b" " + text + b"\n"
        try:
            if os.write(handle, line) != len(line):
                raise OSError(0, "no space left on the device")
            os.fsync(handle)
        except BaseException as error:
            with suppress(OSError):
                os.ftruncate(handle, lines.length)
            if isinstance(error, OSError):
                raise refused(self._shown, "written", error) from None
            raise

    def _mac(self, previous: str, text: bytes) -> str:
        return hmac.new(self._secret, previous.encode() + b" " + text, "sha256").hexdigest()


def unchecked_bodies(content: bytes) -> Iterator[Body]:
    """What the lines of another key's ledger say, as far as it can be read."""
    for line in _split(content):
        try:
            body = json.loads(line[_MAC_DIGITS + 1 :])
        except (ValueError, RecursionError):
            continue
        if isinstance(body, dict):
            yield body


def _split(content: bytes) -> list[bytes]:
    """The lines with their newlines; bytes.splitlines would also cut at carriage returns."""
    *lines, last = content.split(b"\n")
    return [line + b"\n" for line in lines] + ([last] if last else [])


def see_ledger(key_file: Path) -> Remedy:
    """What to do about a ledger that is not sound."""
    return Remedy("see what to do: {}", Control.LEDGER, typed(key_file))


def typed(file: Path) -> str:
    """A path as one would type it here."""
    here = file.is_relative_to(Path.cwd())
    return str(file.relative_to(Path.cwd()) if here else file)
