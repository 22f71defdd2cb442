"""Writing a folder so that it is there whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from reconpriv.errors import OutputError
from reconpriv.messages.redaction import URL, shown_path
from reconpriv.messages.remedies import REPLACE
from reconpriv.writing.file import current_umask, writing_to
from reconpriv.writing.marker import is_release, refuse_inside_release


def is_uri(out: str | os.PathLike[str]) -> bool:
    """Whether an output is named by a URI rather than by a path on this machine."""
    return isinstance(out, str) and URL.match(out) is not None


@dataclass(frozen=True)
class Replaceable:
    """What a new folder may replace: how to recognise it, and what it is called."""

    is_one: Callable[[Path], bool]
    name: str


RELEASE = Replaceable(is_release, "a release")


@contextmanager
def new_folder(target: Path, *, overwrite: bool, earlier: Replaceable = RELEASE) -> Iterator[Path]:
    """A temporary folder beside the target that takes its place when whole, or vanishes."""
    check_folder(target, overwrite=overwrite, earlier=earlier)
    missing = [p for p in (target.parent, *target.parent.parents) if not p.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise OutputError(f"{shown_path(target)} cannot be written: {error.strerror}.") from None
    try:
        with writing_to(target, hint="Nothing was left behind."):
            yield work
            work.chmod(0o755 & ~current_umask())
            _replace(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if not target.exists():
            # Parents that were made for this release are removed with it, innermost first.
            for parent in missing:
                with suppress(OSError):
                    parent.rmdir()


def check_folder(target: Path, *, overwrite: bool, earlier: Replaceable = RELEASE) -> None:
    """Refuse to overwrite what we did not make, or anything without being told to."""
    if is_uri(os.fspath(target)):
        raise OutputError("A folder on this machine is needed, not a URL.")
    refuse_inside_release(target, "another folder of results")
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


def _replace(work: Path, target: Path) -> None:
    if not target.exists():
        work.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
    target.rename(old / "release")
    try:
        work.rename(target)
    except BaseException:
        (old / "release").rename(target)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
