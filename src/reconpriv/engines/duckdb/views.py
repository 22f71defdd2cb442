"""Opening an input: files, folders, globs, standard input and data frames, as a DuckDB view.

Messages name a file by its last part only, and never quote a line of it.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet

from reconpriv.columns.schema import Column
from reconpriv.columns.schema import quote_identifier as quote
from reconpriv.datasets import with_bundled
from reconpriv.engines.duckdb.csv_texts import CsvTexts
from reconpriv.engines.duckdb.dialect import file_list
from reconpriv.engines.duckdb.json_lines import json_lines
from reconpriv.errors import InputError, MissingFileError
from reconpriv.messages.redaction import may_hold_password, shown_file
from reconpriv.messages.remedies import Control, Remedy
from reconpriv.messages.text_files import STANDARD_INPUT
from reconpriv.sources.arrow_files import open_arrow
from reconpriv.sources.column_names import check_names
from reconpriv.sources.databases.tables import open_database
from reconpriv.sources.formats import Opening, ending_of, format_of, local_formats, with_endings
from reconpriv.sources.frames import is_dataset, open_frame
from reconpriv.sources.input_files import files_of
from reconpriv.sources.lazy import LazyTable
from reconpriv.writing.marker import is_release

VIEW = "input"


def open_source(
    connection: duckdb.DuckDBPyConnection,
    source: Any,
    scratch: Callable[[], Path],
    columns: Sequence[Column] | None = None,
    table: str | None = None,
    labels: str = "describe",
) -> LazyTable | None:
    """Make the input known to the connection as the view ``input``, or return it if it is lazy.

    ``columns`` declares the kinds of a CSV's columns; otherwise it is returned as texts, to be read
    once it is known what is needed. ``table`` names a table of a database or a sheet of a
    spreadsheet. ``labels`` says what becomes of the value labels of a statistical file.
    """
    database = open_database(connection, source, table)
    if database is not None:
        return database
    lazy = _open_lazy_file(source, scratch, table, labels)
    if lazy is not None:
        return lazy
    if table is not None:
        raise InputError(
            "Only databases and spreadsheets hold several tables to choose from.",
            hint=Remedy("leave {} out", Control.TABLE),
        )
    if labels == "apply":
        raise InputError(
            "Only SPSS and Stata files have value labels to apply.",
            hint=Remedy("leave {} out", Control.LABELS, "apply"),
        )
    if isinstance(source, str | os.PathLike):
        return _open_path(connection, os.fspath(source), scratch, columns)
    if _are_paths(source):
        files = [file for path in source for file in _resolve(os.fspath(path))[0]]
        return _open_files(connection, "", files, f"{len(files)} files", columns)
    frame = open_frame(source)
    if isinstance(frame, pa.Table) or is_dataset(frame):
        connection.register(VIEW, frame)
        return None
    return frame


def _open_lazy_file(
    source: Any, scratch: Callable[[], Path], table: str | None, labels: str
) -> LazyTable | None:
    """The file as a lazy table if its format has its own opener; otherwise None."""
    single = isinstance(source, str | os.PathLike)
    paths = [source] if single else source if _are_paths(source) else []
    formats = [format_of(os.fspath(path)) for path in paths]
    openers = {one.open if one is not None else None for one in formats}
    if openers <= {None} or any(Path(path).is_dir() for path in paths):
        return None
    files = [file for path in paths for file in _resolve(os.fspath(path))[0]]
    known = [one for one in formats if one is not None]
    if len(openers) > 1 or (table is not None and not all(one.has_sheets for one in known)):
        return None
    if labels == "apply" and not all(one.has_labels for one in known):
        return None
    opener = openers.pop()
    assert opener is not None
    return opener(files, Opening(scratch, table, labels))


def reads_columns(source: Any, columns: Sequence[Column] | None) -> bool:
    """True if a column can be read without the others: not from text, which is parsed each time."""
    paths = [source] if isinstance(source, str | os.PathLike) else source
    formats = [format_of(os.fspath(path)) for path in paths] if _are_paths(paths) else []
    parsed = {"json"} if columns is None else {"json", "csv"}
    return not any(one is not None and one.name in parsed for one in formats)


def _are_paths(source: Any) -> bool:
    several = isinstance(source, list | tuple) and bool(source)
    return several and all(isinstance(path, str | os.PathLike) for path in source)


def _open_path(
    connection: duckdb.DuckDBPyConnection,
    path: str,
    scratch: Callable[[], Path],
    columns: Sequence[Column] | None,
) -> LazyTable | None:
    if path == "-":
        spooled = scratch() / "stdin.csv"
        with spooled.open("wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
        return CsvTexts([str(spooled)], STANDARD_INPUT)
    path = with_bundled(path)
    files, shown = _resolve(path)
    return _open_files(connection, path, files, shown, columns)


def _open_files(
    connection: duckdb.DuckDBPyConnection,
    path: str,
    files: list[str],
    shown: str,
    columns: Sequence[Column] | None,
) -> LazyTable | None:
    if len({ending_of(file) for file in files}) > 1:
        raise InputError(f"The files of {shown!r} are of different kinds.")
    found = format_of(files[0])
    kind = None if found is None else found.name
    if kind == "parquet":
        _view(connection, _parquet(path, files, shown))
    elif kind == "csv":
        texts = CsvTexts(files, shown)
        if columns is None:
            return texts
        _view(connection, texts.declared(connection, columns))
    elif kind == "json":
        _view(connection, json_lines(connection, files))
    elif kind == "arrow":
        connection.register(VIEW, open_arrow(files, shown))
    else:
        raise InputError(
            f"The kind of file {shown!r} is not known.",
            hint=f"Known: {', '.join(with_endings(local_formats()))}.",
        )
    return None


def _resolve(path: str) -> tuple[list[str], str]:
    """The files behind a path, folder or glob, sorted, and the name to show for them."""
    if may_hold_password(path) and not Path(path).exists():
        raise InputError(
            "A table cannot be read from a URL of this kind.",
            hint="Give postgresql://…, sqlite:///… or duckdb:///…, one at a time.",
        )
    shown = shown_file(path)
    files = files_of(path)
    if Path(path).is_dir():
        if not files:
            raise InputError(f"The folder {shown!r} holds no Parquet file.")
        _refuse_releases(files, shown)
        return files, shown
    if Path(path).exists():
        if not files:
            raise InputError(
                f"{shown!r} is not a regular file but a pipe or a device.",
                hint="Give CSV on standard input instead, as the table -.",
            )
        return files, shown
    if glob.has_magic(path):
        if not files:
            raise MissingFileError(f"No file matches {shown!r}.")
        return files, shown
    raise MissingFileError(f"There is no file {shown!r}.", hint="Check the name and the folder.")


def _refuse_releases(files: Sequence[str], shown: str) -> None:
    """A release inside the folder of a table would be read as a part of it."""
    for folder in sorted({Path(file).parent for file in files}):
        if is_release(folder):
            raise InputError(
                f"The folder {shown!r} holds not only a table but also the release"
                f" {folder.name!r}.",
                hint="Move the release to another folder.",
            )


def _view(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS {query}")


def _parquet(path: str, files: list[str], shown: str) -> str:
    """Parquet files; name=value folders are columns only below the folder that was given."""
    try:
        described = pyarrow.parquet.ParquetFile(files[0])
        names = described.schema_arrow.names
        old_times = {
            column.path
            for column in map(described.schema.column, range(len(described.schema)))
            if column.physical_type == "INT96"
        }
    except (pa.ArrowException, OSError):
        raise InputError(
            "The Parquet file is truncated or is not a Parquet file.",
            hint="Fetch or export it again.",
        ) from None
    check_names(names, shown)
    root = Path(path)
    parts = [part for file in files for part in _parents_below(Path(file), root)]
    # INT96 is how Spark and Impala store moments, in UTC; DuckDB would take them for local times.
    zoned = ", ".join(f"{quote(n)} AT TIME ZONE 'UTC' AS {quote(n)}" for n in sorted(old_times))
    replaced = f" REPLACE ({zoned})" if zoned else ""
    if not root.is_dir() or not any("=" in part for part in parts):
        return f"SELECT *{replaced} FROM read_parquet({file_list(files)}, hive_partitioning=false)"
    # DuckDB also reads name=value folders above the given one; they are not part of the table.
    above = {part.split("=")[0] for part in root.absolute().parts if "=" in part}
    below = {part.split("=")[0] for part in parts if "=" in part}
    hidden = ", ".join(quote(name) for name in sorted(above - below))
    columns = (f"* EXCLUDE ({hidden})" if hidden else "*") + replaced
    return f"SELECT {columns} FROM read_parquet({file_list(files)}, hive_partitioning=true)"


def _parents_below(file: Path, root: Path) -> tuple[str, ...]:
    return file.relative_to(root).parent.parts if file.is_relative_to(root) else ()
