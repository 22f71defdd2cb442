"""Writing a single file so that it is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reconpriv.errors import OutputError, ReconprivError
from reconpriv.messages.redaction import may_hold_password, shown_path
from reconpriv.messages.remedies import REPLACE, Remedy
from reconpriv.writing.marker import refuse_inside_release
from reconpriv.writing.scratch import Scratch, sweep

RAW = "a file that describes the raw table"


def check_file(
    path: Path, *, overwrite: bool = False, private: str = "", hint: str | Remedy = REPLACE
) -> None:
    """Refuse a name that cannot be written, before any work is done.

    ``private`` names what reveals something about the raw table, and so must not lie in a release.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:  # a name that is too long, for example
        raise OutputError(f"{shown_path(path)} cannot be written: {error.strerror}.") from None
    if private:
        refuse_inside_release(path, private)
    if path.is_dir():
        raise OutputError(f"{shown_path(path)} is a folder.", hint="Give the name of a file.")
    if os.path.lexists(path) and not overwrite:
        raise OutputError(f"{shown_path(path)} exists already.", hint=hint)
    if not path.parent.is_dir():
        raise no_folder_for(path)


def check_beside(
    path: Path, out: Path | None, what: str, *, overwrite: bool, hint: str | Remedy
) -> None:
    """The same for a private file that is written together with a release, which is not there yet.

    ``out`` is the folder of that release, ``what`` names the file in messages.
    """
    inside = path.resolve().parent
    if out is not None and (inside == out.resolve() or out.resolve() in inside.parents):
        raise OutputError(
            f"{what[0].upper()}{what[1:]} must not be inside the release.",
            hint="Choose another folder.",
        )
    check_file(path, overwrite=overwrite, private=what, hint=hint)


def no_folder_for(path: Path) -> OutputError:
    """The error for a file whose folder does not exist."""
    if may_hold_password(path):
        return OutputError(
            "There is no such folder to write into.", hint="Give a file on this machine, not a URL."
        )
    return OutputError(f"There is no folder {path.parent} to write {path.name} into.")


@contextmanager
def whole_file(
    path: Path, *, overwrite: bool = False, private: str = "", hint: str | Remedy = REPLACE
) -> Iterator[Path]:
    """A temporary file beside ``path`` that takes its place when whole, or vanishes.

    If ``private`` is given, only its owner can read the file.
    """
    check_file(path, overwrite=overwrite, private=private, hint=hint)
    with beside(path) as scratch:
        work = scratch.path / "new"
        work.touch(mode=0o600)
        yield work
        if not private:
            work.chmod(0o666 & ~current_umask())
        if overwrite or not _put_as_new(work, path, hint):
            work.replace(path)


def _put_as_new(work: Path, path: Path, hint: str | Remedy) -> bool:
    """Give a finished file its name unless that has been taken; False if there are no links."""
    try:
        path.hardlink_to(work)
    except FileExistsError:
        raise OutputError(f"{shown_path(path)} exists already.", hint=hint) from None
    except (OSError, NotImplementedError):
        return False
    return True


@contextmanager
def beside(path: Path, *, hint: str = "") -> Iterator[Scratch]:
    """A hidden folder beside an output, for what is not whole yet.

    If the system refuses to write there, the error says which output it was, and why.
    """
    sweep(path.parent)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = Scratch(path.parent, hidden=True)
    except OSError as error:
        raise OutputError(f"{shown_path(path)} cannot be written: {error.strerror}.") from None
    try:
        with scratch:
            yield scratch
    except ReconprivError:
        raise
    except OSError as error:
        # Arrow puts a position before the reason and details after it.
        reason = str(error.strerror or error).rsplit("] ", 1)[-1].split(". Detail", 1)[0]
        raise OutputError(
            f"{shown_path(path)} could not be written: {reason.strip().rstrip('.')}.", hint=hint
        ) from None


def current_umask() -> int:
    """The mask that new files get; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
