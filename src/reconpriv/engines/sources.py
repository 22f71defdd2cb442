"""Opening an input: files, folders, globs, standard input and data frames, as a DuckDB view.

Messages name a file by its last part only, and never quote a line of it.
"""

from __future__ import annotations

import csv
import glob
import gzip
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset

from reconpriv.datasets import dataset_path
from reconpriv.errors import InputError, MissingFileError

VIEW = "input"

_EXAMPLE = "example:"
_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".tsv", ".txt")
_JSON = (".jsonl", ".ndjson", ".json")
_ARROW = (".arrow", ".feather", ".ipc")
_ENDINGS = (
    "Parquet (.parquet), CSV (.csv, .tsv, also .gz), JSON lines (.jsonl, .ndjson, also .gz),"
    " Arrow (.arrow, .feather)"
)


def quote(identifier: str) -> str:
    """An SQL identifier that may hold anything."""
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"


def open_source(
    connection: duckdb.DuckDBPyConnection, source: Any, scratch: Callable[[], Path]
) -> None:
    """Make the input known to the connection as the view ``input``."""
    if isinstance(source, str | os.PathLike):
        _open_path(connection, os.fspath(source), scratch)
        return
    if hasattr(source, "collect") and not hasattr(source, "__arrow_c_stream__"):
        source = source.collect()
    if not (hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")):
        raise InputError(
            f"A table cannot be read from a {type(source).__name__}.",
            hint="Give a path, or a pandas, Polars, PyArrow or DuckDB table.",
        )
    try:
        table = pa.table(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"The {type(source).__name__} cannot be turned into an Arrow table"
            f" ({type(error).__name__}).",
            hint="A column of mixed types is the usual cause.",
        ) from None
    names = table.column_names
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise InputError(f"The table has two columns called {repeated[0]!r}.")
    connection.register(VIEW, table)


def _open_path(
    connection: duckdb.DuckDBPyConnection, path: str, scratch: Callable[[], Path]
) -> None:
    if path == "-":
        spooled = scratch() / "stdin.csv"
        with spooled.open("wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
        _view(connection, _typed_csv(connection, [str(spooled)], "standard input"))
        return
    if path.startswith(_EXAMPLE):
        path = str(dataset_path(path.removeprefix(_EXAMPLE)))
    files, shown = _resolve(path)
    ending = _ending(files[0])
    if ending in _PARQUET:
        _view(connection, f"SELECT * FROM read_parquet({_list(files)}, union_by_name=false)")
    elif ending in _CSV:
        _view(connection, _typed_csv(connection, files, shown))
    elif ending in _JSON:
        _view(
            connection,
            f"SELECT * FROM read_json({_list(files)}, format='newline_delimited', sample_size=-1)",
        )
    elif ending in _ARROW:
        connection.register(VIEW, pyarrow.dataset.dataset(files, format="ipc"))
    else:
        raise InputError(f"The kind of file {shown!r} is not known.", hint=f"Known: {_ENDINGS}.")


def _resolve(path: str) -> tuple[list[str], str]:
    """The files behind a path, folder or glob, sorted, and the name to show for them."""
    shown = Path(path).name or path
    if Path(path).is_dir():
        files = sorted(str(file) for file in Path(path).rglob("*.parquet"))
        if not files:
            raise InputError(f"The folder {shown!r} holds no Parquet file.")
        return files, shown
    if Path(path).exists():
        return [path], shown
    if glob.has_magic(path):
        files = sorted(file for file in glob.iglob(path, recursive=True) if Path(file).is_file())
        if not files:
            raise MissingFileError(f"No file matches {shown!r}.")
        endings = {_ending(file) for file in files}
        if len(endings) > 1:
            raise InputError(f"The files that match {shown!r} are of different kinds.")
        return files, shown
    raise MissingFileError(
        f"There is no file {shown!r}.", hint="Check the name and the folder it is looked for in."
    )


def _ending(file: str) -> str:
    name = Path(file).name.lower().removesuffix(".gz")
    return Path(name).suffix


def _list(files: list[str]) -> str:
    return "[" + ", ".join(literal(file) for file in files) + "]"


def _view(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS {query}")


def _csv(files: list[str], shown: str) -> str:
    """A CSV as text, nothing guessed: the header names the columns, a ragged row is refused."""
    delimiter, names = _header(files[0], shown)
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    return (
        f"SELECT * FROM read_csv({_list(files)}, auto_detect=false, header=true,"
        f" delim={literal(delimiter)}, quote='\"', escape='\"', allow_quoted_nulls=false,"
        f" columns={{{columns}}})"
    )


def _header(file: str, shown: str) -> tuple[str, list[str]]:
    opener: Callable[..., IO[str]] = gzip.open if file.endswith(".gz") else open
    try:
        with opener(file, "rt", encoding="utf-8-sig", newline="") as stream:
            first = stream.readline()
            while first.count('"') % 2 and (more := stream.readline()):
                first += more
    except UnicodeDecodeError:
        raise InputError(
            f"{shown} is not UTF-8 text.", hint="Convert it first: iconv -t utf-8."
        ) from None
    except (OSError, EOFError) as error:
        raise InputError(f"{shown} cannot be read ({type(error).__name__}).") from None
    if not first.strip():
        raise InputError(f"{shown} is empty.", hint="A CSV starts with a line of column names.")
    outside = "".join(part for i, part in enumerate(first.split('"')) if i % 2 == 0)
    delimiter = max(",;\t|", key=outside.count)
    names = next(csv.reader([first.rstrip("\r\n")], delimiter=delimiter))
    repeated = [name for i, name in enumerate(names) if name.lower() in map(str.lower, names[:i])]
    if repeated:
        raise InputError(f"{shown} has two columns called {repeated[0]!r}.")
    if "" in names:
        raise InputError(f"Column {names.index('') + 1} of {shown} has no name.")
    return delimiter, names


_LOSSLESS = ("BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP")


def _typed_csv(connection: duckdb.DuckDBPyConnection, files: list[str], shown: str) -> str:
    """Give a column a type only where every text is that type's own spelling.

    So 02139 stays text, and the types do not depend on which rows come first.
    """
    text = _csv(files, shown)
    _, names = _header(files[0], shown)
    checks = [
        f"count(*) FILTER (WHERE TRY_CAST({quote(name)} AS {kind})::VARCHAR"
        f" IS DISTINCT FROM {quote(name)} AND {quote(name)} IS NOT NULL) = 0"
        for name in names
        for kind in _LOSSLESS
    ]
    filled = [f"count({quote(name)}) > 0" for name in names]
    row = connection.execute(f"SELECT {', '.join(checks + filled)} FROM ({text})").fetchall()[0]
    chosen = []
    for i, name in enumerate(names):
        fits = row[i * len(_LOSSLESS) : (i + 1) * len(_LOSSLESS)]
        kind = next((k for k, fit in zip(_LOSSLESS, fits, strict=True) if fit), None)
        typed = kind is not None and row[len(checks) + i]
        chosen.append(f"{quote(name)}::{kind} AS {quote(name)}" if typed else quote(name))
    return f"SELECT {', '.join(chosen)} FROM ({text})"
