"""Private folders for what must not stay: raw cells, uploads, outputs that are not whole yet.

Such a folder is removed by whoever made it. A process that is killed cannot do that, so each holds
a lock that the system lets go of when its process ends, however it ends: the next one to work in
the same place removes what it can lock. Neither a process id nor an age would do, since containers
have process ids of their own and a publication may take days.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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


_NAME = re.compile(r"\.?reconpriv-(?:[a-z]+-)?[0-9a-f]{16}")
_LOCK, _UNLOCKED, _OLD = "lock", "unlocked", "old"
_PRIVATE = 0o700

_swept: set[tuple[int, Path]] = set()


class Scratch:
    """A new folder with mode 0700, removed by :meth:`close`, with this object or at the end."""

    def __init__(self, place: Path, kind: str = "", *, hidden: bool = False) -> None:
        """Make it in an existing folder, after removing what dead processes left there."""
        _sweep_once(place)
        prefix = ("." if hidden else "") + "reconpriv-" + (f"{kind}-" if kind else "")
        made = False
        while not made:
            self.path = place / f"{prefix}{os.urandom(8).hex()}"
            held: list[int] = []
            # Before it is made: an interrupt in between must not leave it behind.
            self._clean = weakref.finalize(self, _remove, self.path, held, os.getpid())
            try:
                self.path.mkdir(mode=_PRIVATE)
                made = _lock(self.path, held)
            except BaseException:
                self._clean()
                raise
            if not made:
                self._clean()

    def close(self) -> None:
        """Remove the folder and all that is in it."""
        with uninterrupted():
            self._clean()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()

    def lay_aside(self, folder: Path) -> None:
        """Move a folder in here; it returns if its place is empty when this one is removed."""
        aside = self.path / _OLD
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(mode=_PRIVATE)
        folder.rename(aside / folder.name)


def temporary(kind: str = "") -> Scratch:
    """A scratch folder in the system's temporary folder."""
    return Scratch(Path(tempfile.gettempdir()), kind)


def sweep(place: Path) -> None:
    """Remove the folders that dead processes of this user left in a place."""
    with suppress(OSError):
        names = [name for name in os.listdir(place) if _NAME.fullmatch(name)]
        for name in names:
            with suppress(OSError):
                _remove_if_dead(place / name)


def _sweep_once(place: Path) -> None:
    """Tables are opened often, and a temporary folder may hold many files."""
    key = (os.getpid(), place)
    if key not in _swept:
        _swept.add(key)
        sweep(place)


if sys.platform == "win32":

    def _lock(folder: Path, held: list[int]) -> bool:
        """Windows has no such lock; nothing is swept there."""
        del folder, held
        return True

    def _remove_if_dead(folder: Path) -> None:
        del folder

else:
    import fcntl

    def _lock(folder: Path, held: list[int]) -> bool:
        """Hold the lock of a new folder; False if somebody has taken it for a dead one."""
        try:
            held.append(os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(held[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks: this folder is never swept
            (folder / _LOCK).rename(folder / _UNLOCKED)
            return True
        return os.fstat(held[0]).st_nlink > 0

    def _remove_if_dead(folder: Path) -> None:
        """Remove a folder that is ours by name, kind, mode and owner, if its lock is free."""
        inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            found = os.fstat(inside)
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) != _PRIVATE:
                return
            try:
                lock = os.open(_LOCK, os.O_RDWR | os.O_NOFOLLOW, dir_fd=inside)
            except FileNotFoundError:
                folder.rmdir()  # killed before it had a lock; refused if anything is in there
                return
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(found, folder.lstat()):
                    _put_back(folder)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
        finally:
            os.close(inside)


def _put_back(folder: Path) -> None:
    """Return what was laid aside to its place, unless something new is there."""
    with suppress(FileNotFoundError):
        for name in os.listdir(folder / _OLD):
            with suppress(OSError):  # a folder that is not empty is never replaced
                (folder / _OLD / name).rename(folder.parent / name)


def _remove(folder: Path, held: list[int], maker: int) -> None:
    if os.getpid() != maker:
        return  # a copy of the process must not remove what the original works with
    with uninterrupted():
        _put_back(folder)
        shutil.rmtree(folder, ignore_errors=True)
        while held:
            os.close(held.pop())
