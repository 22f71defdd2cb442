"""Scripts that take seconds to make and are the same for everybody, kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def cache_folder() -> Path:
    """Where they are kept: ``reconpriv`` in ``XDG_CACHE_HOME`` or ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reconpriv"


def kept(name: str, make: Callable[[], str]) -> str:
    """A script by name, made once; made again if it cannot be read or kept, or was changed.

    Its first line is the hash of the rest, so a damaged file is noticed. A file that others own or
    may write is not used: the script runs in the publisher's browser, beside the raw table.
    """
    path: Path | None = None
    with suppress(OSError, RuntimeError):  # RuntimeError: there is no home
        path = cache_folder() / name
        if (found := _read(path)) is not None:
            return found
    script = make()
    if path is not None:
        with suppress(OSError):
            _write(path, script)
    return script


def _read(path: Path) -> str | None:
    if not path.is_file():
        return None
    about = path.stat()
    if about.st_uid != os.getuid() or about.st_mode & 0o022:
        return None
    digest, _, script = path.read_bytes().partition(b"\n")
    return script.decode() if digest == _digest(script) else None


def _write(path: Path, script: str) -> None:
    """Whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, work = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_digest(script.encode()) + b"\n" + script.encode())
        Path(work).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(work).unlink()
        raise


def _digest(script: bytes) -> bytes:
    return hashlib.sha256(script).hexdigest().encode()
