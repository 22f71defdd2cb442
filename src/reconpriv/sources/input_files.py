"""The files behind a source, and what identifies their contents."""

from __future__ import annotations

import glob
import hashlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reconpriv.datasets import with_bundled
from reconpriv.errors import InputError
from reconpriv.messages.redaction import shown_file
from reconpriv.sources.databases.url import is_database_url
from reconpriv.sources.formats import format_of


def files_of(path: str) -> list[str]:
    """The files of a path, of a folder of Parquet files or of a glob, sorted; none if it has none.

    Nothing that is neither a file nor a folder counts, such as a pipe.
    """
    if Path(path).is_dir():
        return sorted(str(file) for file in Path(path).rglob("*.parquet"))
    if Path(path).exists():
        return [path] if Path(path).is_file() else []
    if not glob.has_magic(path):
        return []
    return sorted(file for file in glob.iglob(path, recursive=True) if Path(file).is_file())


@dataclass(frozen=True)
class InputFile:
    """A file that a table was read from, without its name: what it says would be repeated."""

    format: str
    bytes: int
    sha256: str

    def as_dict(self) -> dict[str, Any]:
        """The file for JSON."""
        return asdict(self)


def input_files(source: Any) -> tuple[InputFile, ...]:
    """The files that a table was read from, in the order of their names.

    There are none behind a data frame, standard input, or a database that is not a file.
    """
    paths = source if isinstance(source, list | tuple) else [source]
    found: list[InputFile] = []
    for path in paths:
        if not isinstance(path, str | os.PathLike) or is_database_url(path):
            continue
        files = files_of(with_bundled(os.fspath(path)))
        found += [_described(Path(file)) for file in files]
    return tuple(found)


def _described(file: Path) -> InputFile:
    kind = format_of(str(file))
    try:
        return InputFile(
            "other" if kind is None else kind.name, file.stat().st_size, sha256_of(file)
        )
    except OSError:
        raise InputError(f"The file {shown_file(file)!r} can no longer be read.") from None


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits; an OSError if it cannot be read."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
