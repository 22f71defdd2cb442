"""Writing a folder so that it is there whole or not at all."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from reconpriv.errors import OutputError
from reconpriv.messages.redaction import URL, shown_path
from reconpriv.messages.remedies import REPLACE
from reconpriv.writing.file import beside, current_umask
from reconpriv.writing.marker import is_release, refuse_inside_release
from reconpriv.writing.scratch import Scratch, uninterrupted


def is_uri(out: str | os.PathLike[str]) -> bool:
    """True if an output is named by a URI rather than by a path on this machine."""
    return isinstance(out, str) and URL.match(out) is not None


@dataclass(frozen=True)
class Replaceable:
    """What a new folder may replace: how to recognise it, and what it is called."""

    is_one: Callable[[Path], bool]
    name: str


RELEASE = Replaceable(is_release, "a release")
# What Linux and macOS call the working folder, and the exchange of two names.
_HERE, _EXCHANGED = -100, 2


@contextmanager
def new_folder(target: Path, *, overwrite: bool, earlier: Replaceable = RELEASE) -> Iterator[Path]:
    """A temporary folder beside the target that takes its place when whole, or vanishes."""
    check_folder(target, overwrite=overwrite, earlier=earlier)
    missing = [p for p in (target.parent, *target.parent.parents) if not p.exists()]
    try:
        with beside(target, hint="Nothing was left behind.") as scratch:
            work = scratch.path / "new"
            work.mkdir(mode=0o700)
            yield work
            work.chmod(0o755 & ~current_umask())
            with uninterrupted():
                _put(work, target, scratch, overwrite=overwrite, earlier=earlier)
    finally:
        if not os.path.lexists(target):
            # Parents that were made for this release are removed with it, innermost first.
            for parent in missing:
                with suppress(OSError):
                    parent.rmdir()


def check_name(target: Path) -> None:
    """Refuse a name that nothing can have, before any work is done."""
    try:
        target.lstat()
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no file can be called that"
        raise OutputError(f"{shown_path(target)} cannot be written: {why}.") from None


def check_folder(target: Path, *, overwrite: bool, earlier: Replaceable = RELEASE) -> None:
    """Refuse to overwrite what we did not make, or anything without being told to."""
    if is_uri(os.fspath(target)):
        raise OutputError("A folder on this machine is needed, not a URL.")
    refuse_inside_release(target, "another folder of results")
    check_name(target)
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise OutputError(f"{shown_path(target)} exists already.", hint=REPLACE)
    empty = target.is_dir() and not any(target.iterdir())
    if target.is_symlink() or not (empty or earlier.is_one(target)):
        raise OutputError(
            f"{shown_path(target)} exists and is not {earlier.name}; it will not be replaced.",
            hint="Choose another name, or remove it yourself.",
        )


def _put(
    work: Path, target: Path, scratch: Scratch, *, overwrite: bool, earlier: Replaceable
) -> None:
    """Put a finished folder in its place, whoever else does so at the same time.

    What was there ends up in the scratch folder. Where two folders cannot be exchanged in one
    step, the place is empty for a moment; whoever removes the scratch folder looks after that.
    """
    while True:
        try:
            work.rename(target)  # a folder that is not empty is never replaced
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        # Whatever is there now may have come since the first check.
        check_folder(target, overwrite=overwrite, earlier=earlier)
        if exchange(work, target):
            return
        with suppress(FileNotFoundError):  # another publisher has just moved it
            scratch.lay_aside(target)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, so that neither name is ever missing.

    False if the system has no such call, or the folders are not on one file system.
    """
    names = os.fsencode(one), os.fsencode(other)
    try:
        system = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            failed = system.renamex_np(*names, _EXCHANGED)
        else:
            failed = system.renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGED)
    except (AttributeError, OSError, TypeError):
        return False
    return not failed
