"""Writing a folder so that it is there whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reconpriv.errors import OutputError, ReconprivError
from reconpriv.messages.redaction import URL, shown_file, shown_path
from reconpriv.messages.remedies import REPLACE
from reconpriv.release.manifest import MANIFEST


def is_release(folder: Path) -> bool:
    """Whether a folder holds a release (a manifest with our block)."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and isinstance(manifest.get("reconpriv"), dict)


def release_around(path: Path) -> Path | None:
    """The release whose folder, or a folder inside it, a path lies in."""
    inside = path.parent.resolve()
    return next((folder for folder in (inside, *inside.parents) if is_release(folder)), None)


def refuse_inside_release(path: Path, what: str) -> None:
    """Refuse to write what does not belong there into a release, which is handed out whole."""
    around = release_around(path)
    if around is not None:
        raise OutputError(
            f"{shown_file(around)!r} is a release; {what} must not lie inside it.",
            hint="Choose another folder.",
        )


def is_uri(out: str | os.PathLike[str]) -> bool:
    """Whether an output is named by a URI rather than by a path of this machine."""
    return isinstance(out, str) and URL.match(out) is not None


_NOT_OURS = {True: "not a release", False: "not an earlier run of the study"}


@contextmanager
def new_folder(
    target: Path, *, overwrite: bool, replaceable: Callable[[Path], bool] = is_release
) -> Iterator[Path]:
    """A temporary folder beside the target that takes its place when whole, or vanishes."""
    check_target(target, overwrite=overwrite, replaceable=replaceable)
    missing = [p for p in (target.parent, *target.parent.parents) if not p.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise OutputError(f"{shown_path(target)} cannot be written: {error.strerror}.") from None
    try:
        yield work
        work.chmod(0o755 & ~current_umask())
        _replace(work, target)
    except ReconprivError:
        raise
    except OSError as error:
        reason = str(error.strerror or error).rsplit("] ", 1)[-1].split(". Detail", 1)[0]
        raise OutputError(
            f"{shown_path(target)} could not be written: {reason.strip().rstrip('.')}.",
            hint="Nothing was left behind.",
        ) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if not target.exists():
            # Parents that were made for this release go with it, innermost first.
            for parent in missing:
                with suppress(OSError):
                    parent.rmdir()


def check_target(
    target: Path, *, overwrite: bool, replaceable: Callable[[Path], bool] = is_release
) -> None:
    """Refuse to write over anything that we did not make, or without being told to."""
    if is_uri(os.fspath(target)):
        raise OutputError("A folder on this machine is needed, not a URL.")
    refuse_inside_release(target, "another folder of results")
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise OutputError(f"{shown_path(target)} exists already.", hint=REPLACE)
    empty = target.is_dir() and not any(target.iterdir())
    if target.is_symlink() or not (empty or replaceable(target)):
        what = _NOT_OURS[replaceable is is_release]
        raise OutputError(
            f"{shown_path(target)} exists and is {what}; it will not be replaced.",
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


def current_umask() -> int:
    """The mask that new files get; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
