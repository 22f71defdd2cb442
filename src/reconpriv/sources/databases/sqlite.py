"""A table of a SQLite file, counted by SQLite. Its values have types, its columns have none."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from reconpriv.columns.schema import Value, quote_identifier
from reconpriv.errors import InputError, ReconprivError
from reconpriv.sources.column_names import check_names
from reconpriv.sources.databases.table_names import find_table
from reconpriv.sources.databases.troubles import meaning
from reconpriv.sources.lazy import LazyTable

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
    (("decode",), "holds text that is not UTF-8", "Correct it, or leave the column out."),
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
        unknown = (
            f"cannot be used as a database ({type(error).__name__})",
            "Check that the file is complete and readable.",
        )
        sentence, hint = meaning(message, _TROUBLES, unknown)
        raise what(f"{file.name} {sentence}.", hint=hint) from None


def connect(file: Path, mode: str) -> sqlite3.Connection:
    """Open a file, to read it (ro) or to write it too (rwc); transactions are begun by hand."""
    return sqlite3.connect(
        f"file:{quote(str(file.absolute()))}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=_PATIENCE,
        check_same_thread=False,
    )


class SqliteTable(LazyTable):
    """A table of a SQLite file, which counts its cells."""

    can_count = True

    def __init__(self, file: Path, table: str | None) -> None:
        """Find the table and its columns; what they hold is seen when they are asked for."""
        self._file = file
        self._stopped = threading.Event()
        with sqlite_errors(file):
            self._connection = connect(file, _reading_mode(file))
        try:
            with sqlite_errors(file, stopped=self._stopped):
                # While SQLite works, Python sees a signal only when Python code runs.
                self._connection.set_progress_handler(self._stopped.is_set, _STEPS)
                self._connection.execute("PRAGMA query_only = ON")
                known = [("main", row[0]) for row in self._connection.execute(_TABLES)]
                self._table = quote_identifier(find_table(table, known)[1])
                found = self._connection.execute(f"PRAGMA table_xinfo({self._table})").fetchall()
            names = [row[1] for row in found if row[6] != 1]
            check_names(names, "the table")
        except BaseException:
            self._connection.close()
            raise
        self.schema = pa.schema([(name, pa.string()) for name in names])

    def fetch(self, names: Sequence[str], count: str | None = None) -> Iterator[pa.RecordBatch]:
        """The records, or the cells; text is compared by its bytes, whatever the collation."""
        query = f"SELECT {', '.join(map(quote_identifier, names))}"
        if count is None:
            query += f" FROM {self._table}"
        else:
            groups = ", ".join(f"{quote_identifier(name)} COLLATE BINARY" for name in names)
            query += f", count(*) FROM {self._table} GROUP BY {groups}"
        with sqlite_errors(self._file, stopped=self._stopped):
            self._connection.execute("BEGIN")  # one snapshot for the types and the values
            kinds = dict(zip(names, self._kinds(names), strict=True))
            if count is not None:
                kinds[count] = pa.int64(), None
            schema = pa.schema([(name, kind) for name, (kind, _) in kinds.items()])
            cursor = self._connection.execute(query)
            while rows := cursor.fetchmany(_BATCH):
                columns = zip(*rows, strict=True)
                arrays = [
                    pa.array(values if turn is None else map(turn, values), kind)
                    for values, (kind, turn) in zip(columns, kinds.values(), strict=True)
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
