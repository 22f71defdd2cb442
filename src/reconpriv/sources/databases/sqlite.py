"""A table of a SQLite file, counted by SQLite. Its values have types, its columns have none."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from reconpriv.errors import InputError, ReconprivError
from reconpriv.schema import ColumnLabels, Value, quote_identifier
from reconpriv.sources.column_names import check_names
from reconpriv.sources.databases.table_names import (
    no_such_table,
    no_table_named,
    parse_table_name,
    shown_name,
)

_BATCH = 1 << 16
_PATIENCE = 5.0  # seconds to wait for a program that is writing the file
_STEPS = 20_000  # of SQLite's machine between two looks at whether to stop
_TABLES = (
    "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite#_%'"
    " ESCAPE '#' ORDER BY name"
)
_WHOLE = 1 << 53  # up to here a double holds every whole number
_HAS = (
    "typeof({0}) = 'integer'",
    "typeof({0}) = 'real'",
    "typeof({0}) = 'text'",
    "typeof({0}) = 'blob'",
    f"typeof({{0}}) = 'integer' AND {{0}} NOT BETWEEN -{_WHOLE} AND {_WHOLE}",
)
_TROUBLES = (
    (("locked", "busy"), "is locked by another program", "Try again when it is done."),
    (
        ("decode",),
        "holds text that is not UTF-8",
        "Correct it, or leave the column out.",
    ),
    (
        ("malformed", "not a database", "disk I/O", "corrupt"),
        "is damaged or is not a SQLite file",
        "Fetch or export it again.",
    ),
    (("no such column", "no such table"), "has a view that does not work", "Correct the view."),
    (("readonly", "read-only"), "is read-only", "Check its permissions."),
    (("full",), "cannot grow: the disk is full", "Free some space."),
)


@contextmanager
def sqlite_errors(
    file: Path, what: type[ReconprivError] = InputError, stopped: threading.Event | None = None
) -> Iterator[None]:
    """Turn SQLite's errors into one sentence that quotes no value."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        message = str(error)
        if "interrupted" in message or (stopped is not None and stopped.is_set()):
            raise KeyboardInterrupt from None
        for signs, sentence, hint in _TROUBLES:
            if any(sign in message for sign in signs):
                raise what(f"{file.name} {sentence}.", hint=hint) from None
        raise what(
            f"{file.name} cannot be used as a database ({type(error).__name__}).",
            hint="Check that the file is complete and readable.",
        ) from None


def connect(file: Path, mode: str) -> sqlite3.Connection:
    """Open a file, to read it (ro) or to write it too (rwc); transactions are begun by hand."""
    return sqlite3.connect(
        f"file:{quote(str(file.absolute()))}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=_PATIENCE,
        check_same_thread=False,
    )


class SqliteTable:
    """See :class:`reconpriv.sources.lazy.LazyTable`."""

    labels: Mapping[str, ColumnLabels] = {}

    def __init__(self, file: Path, table: str | None) -> None:
        """Find the table and its columns; what they hold is seen when they are asked for."""
        if not file.is_file():
            raise InputError(f"There is no file {file.name!r}.")
        self._file = file
        self._stopped = threading.Event()
        with sqlite_errors(file):
            self._connection = connect(file, _reading_mode(file))
        try:
            with sqlite_errors(file, stopped=self._stopped):
                # While SQLite works, Python sees a signal only when Python code runs.
                self._connection.set_progress_handler(self._stopped.is_set, _STEPS)
                self._connection.execute("PRAGMA query_only = ON")
                self._table = quote_identifier(self._find(table))
                found = self._connection.execute(f"PRAGMA table_xinfo({self._table})").fetchall()
            names = [row[1] for row in found if row[6] != 1]
            check_names(names, "the table")
        except BaseException:
            self._connection.close()
            raise
        self.schema = pa.schema([(name, pa.string()) for name in names])

    def _find(self, table: str | None) -> str:
        tables = [row[0] for row in self._connection.execute(_TABLES)]
        if table is None:
            raise no_table_named([shown_name(name) for name in tables])
        name = parse_table_name(table)
        found = [other for other in tables if other.lower() == name.table.lower()]
        if not found or (name.schema or "main").lower() != "main":
            raise no_such_table(table, [shown_name(name) for name in tables])
        return str(found[0])

    def rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The records, some at a time."""
        columns = ", ".join(map(quote_identifier, names))
        yield from self._fetched(names, f"SELECT {columns} FROM {self._table}", [])

    def cells(self, names: Sequence[str], count: str) -> Iterator[pa.RecordBatch]:
        """The cells; text is compared by its bytes, whatever the column's collation."""
        columns = ", ".join(map(quote_identifier, names))
        groups = ", ".join(f"{quote_identifier(name)} COLLATE BINARY" for name in names)
        query = f"SELECT {columns}, count(*) FROM {self._table} GROUP BY {groups}"
        yield from self._fetched(names, query, [pa.field(count, pa.int64())])

    def _fetched(
        self, names: Sequence[str], query: str, counts: list[pa.Field]
    ) -> Iterator[pa.RecordBatch]:
        with sqlite_errors(self._file, stopped=self._stopped):
            self._connection.execute("BEGIN")  # one snapshot for the types and the values
            kinds = self._kinds(names)
            fields = [pa.field(name, kind) for name, (kind, _) in zip(names, kinds, strict=True)]
            schema = pa.schema([*fields, *counts])
            converters = [converter for _, converter in kinds] + [None] * len(counts)
            cursor = self._connection.execute(query)
            while rows := cursor.fetchmany(_BATCH):
                columns = zip(*rows, strict=True)
                arrays = [
                    pa.array(values if turn is None else map(turn, values), field.type)
                    for values, turn, field in zip(columns, converters, schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        self.close()

    def _kinds(
        self, names: Sequence[str]
    ) -> list[tuple[pa.DataType, Callable[[Value], Value] | None]]:
        parts = [f"max({has.format(quote_identifier(n))})" for n in names for has in _HAS]
        found = self._connection.execute(f"SELECT {', '.join(parts)} FROM {self._table}")
        row = found.fetchone()
        width = len(_HAS)
        return [_kind(*row[i * width : (i + 1) * width]) for i in range(len(names))]

    def interrupt(self) -> None:
        """Stop the query that another thread runs."""
        self._stopped.set()
        with suppress(sqlite3.Error):
            self._connection.interrupt()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _reading_mode(file: Path) -> str:
    """Read-only, except for a file with a write-ahead log that nobody has open.

    SQLite makes two files beside it, which only a connection that may write removes again.
    """
    with file.open("rb") as stream:
        logged = stream.read(20)[18:] == b"\2\2"
    at_rest = not file.with_name(file.name + "-wal").exists()
    return "rw" if logged and at_rest and os.access(file, os.W_OK) else "ro"


def _kind(
    integer: int, real: int, text: int, blob: int, large: int
) -> tuple[pa.DataType, Callable[[Value], Value] | None]:
    """The type that all values of a column fit without loss; text if there is no other."""
    if blob:
        return pa.binary(), _as_bytes
    if text or (real and large):
        return pa.string(), (_as_text if integer or real else None)
    if real:
        return pa.float64(), (_as_double if integer else None)
    return (pa.int64() if integer else pa.string()), None


def _as_double(value: Value) -> Value:
    return None if value is None else float(value)


def _as_text(value: Value) -> Value:
    """A value as text; 1 and 1.0, which SQLite takes for equal, have one text."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return None if value is None else str(value)


def _as_bytes(value: Value) -> Value:
    return value if value is None or isinstance(value, bytes) else str(_as_text(value)).encode()
