"""Writing tables into a database in one transaction: PostgreSQL, SQLite and DuckDB."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from reconpriv.columns.schema import quote_identifier
from reconpriv.errors import OutputError, ReconprivError
from reconpriv.messages.remedies import Advice, Control, Remedy
from reconpriv.sources.databases.duckdb_tables import duckdb_file_errors
from reconpriv.sources.databases.postgresql_connection import Connection
from reconpriv.sources.databases.sqlite import connect, sqlite_errors
from reconpriv.sources.databases.table_names import quoted_name
from reconpriv.sources.databases.url import (
    DUCKDB,
    POSTGRESQL,
    database_file,
    database_kind,
    postgresql_url,
)
from reconpriv.writing.file import no_folder_for


def open_writer(target: str, schema: str | None) -> DatabaseWriter:
    """Begin a transaction on the database that a path or a URL names."""
    kind = database_kind(target, must_exist=False)
    if kind == POSTGRESQL:
        return _PostgresWriter(postgresql_url(target), schema)
    file = database_file(target)
    if not file.parent.is_dir():
        raise no_folder_for(file)
    return _DuckDBWriter(file, schema) if kind == DUCKDB else _SqliteWriter(file, schema)


class DatabaseWriter:
    """A transaction that makes tables; without a commit, nothing remains.

    ``longest_name`` is the most bytes that a name may have.
    """

    longest_name: int | None = None

    def __init__(self, schema: str | None) -> None:
        """Without a schema, tables are made where the database makes them by itself."""
        self._schema = schema

    def ask(self, statement: str, *parameters: str) -> list[Any]:
        """Run a statement and return the rows that it gives."""
        raise NotImplementedError

    def exists(self, table: str) -> bool:
        """True if a table or view already has this name."""
        raise NotImplementedError

    def texts(self, table: str) -> list[str]:
        """The first column of a table, if it holds texts."""
        rows = self.ask(f"SELECT * FROM {self._name(table)} LIMIT 2")
        return [row[0] for row in rows if row and isinstance(row[0], str)]

    def drop(self, table: str) -> None:
        """Remove a table."""
        self.ask(f"DROP TABLE {self._name(table)}")

    def create(self, table: str, batches: pa.RecordBatchReader) -> None:
        """Make a table and fill it."""
        raise NotImplementedError

    def commit(self) -> None:
        """Make everything visible at once."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the database; what was not committed is discarded."""
        raise NotImplementedError

    def _name(self, table: str) -> str:
        return quoted_name(self._schema, table)


class _PostgresWriter(DatabaseWriter):
    """Tables of PostgreSQL, filled by COPY."""

    longest_name = 63  # it cuts off what is longer

    def __init__(self, url: str, schema: str | None) -> None:
        super().__init__(schema)
        self._connection = Connection(url, OutputError)
        try:
            self._check_schema()
        except BaseException:
            self._connection.close()
            raise

    def ask(self, statement: str, *parameters: str) -> list[Any]:
        return self._connection.ask(statement, parameters or None)

    def _check_schema(self) -> None:
        """Refuse a schema that takes no tables: the driver's later error has no code."""
        if self._schema is None:
            found = self.ask(
                "SELECT current_schema()::text, has_schema_privilege(current_schema(), 'CREATE')"
            )
        else:
            found = self.ask(
                "SELECT nspname::text, has_schema_privilege(oid, 'CREATE') FROM pg_namespace"
                " WHERE nspname = $1",
                self._schema,
            )
        if not found or found[0][0] is None:
            shown = "that tables are made in" if self._schema is None else self._schema
            raise _no_schema(shown)
        if not found[0][1]:
            raise OutputError(
                f"The database does not let this user create tables in the schema {found[0][0]}.",
                hint="Ask for that right, or name another schema: schema.table.",
            )

    def exists(self, table: str) -> bool:
        return bool(self.ask("SELECT to_regclass($1) IS NOT NULL", self._name(table))[0][0])

    def drop(self, table: str) -> None:
        self._connection.run(f"DROP TABLE {self._name(table)}")

    def create(self, table: str, batches: pa.RecordBatchReader) -> None:
        for name in batches.schema.names:
            if len(name.encode()) > self.longest_name:
                raise OutputError(
                    f"The name of column {name} is too long for PostgreSQL.",
                    hint=Advice(
                        f"A name has at most {self.longest_name} bytes.",
                        Remedy("rename it", Control.SQL),
                    ),
                )
        self._connection.ingest(table, self._schema, batches)

    def commit(self) -> None:
        self._connection.commit()

    def close(self) -> None:
        self._connection.close()


class _FileWriter(DatabaseWriter):
    """Tables of a file; one that was made for this is removed if it fails."""

    errors: Callable[[Path, type[ReconprivError]], AbstractContextManager[None]]

    def __init__(self, file: Path, schema: str | None, begin: str, connect: Callable[[], Any]):
        super().__init__(schema)
        self._file, self._new = file, not file.exists()
        with self._errors():
            self._connection = connect()
        try:
            self.ask(begin)
        except BaseException:
            self.close()
            raise

    def _errors(self) -> AbstractContextManager[None]:
        return type(self).errors(self._file, OutputError)

    def ask(self, statement: str, *parameters: str) -> list[Any]:
        with self._errors():
            rows: list[Any] = self._connection.execute(statement, parameters).fetchall()
        return rows

    def commit(self) -> None:
        self.ask("COMMIT")
        self._new = False

    def close(self) -> None:
        with suppress(duckdb.Error):
            self._connection.close()
        if self._new:
            for ending in ("", "-journal", "-wal", "-shm", ".wal"):
                self._file.with_name(self._file.name + ending).unlink(missing_ok=True)


class _SqliteWriter(_FileWriter):
    """Tables of a SQLite file. What SQLite has no type for is text: dates, times, decimals."""

    errors = staticmethod(sqlite_errors)
    _connection: sqlite3.Connection

    def __init__(self, file: Path, schema: str | None) -> None:
        if (schema or "main").lower() != "main":
            raise OutputError("A SQLite file has no schemas.", hint="Name the table alone.")
        super().__init__(file, None, "BEGIN IMMEDIATE", lambda: connect(file, "rwc"))

    def exists(self, table: str) -> bool:
        query = "SELECT count(*) FROM sqlite_schema WHERE lower(name) = lower(?)"
        return bool(self.ask(query, table)[0][0])

    def create(self, table: str, batches: pa.RecordBatchReader) -> None:
        fields = batches.schema
        columns = ", ".join(f"{quote_identifier(f.name)} {_sqlite_type(f.type)}" for f in fields)
        insert = f"INSERT INTO {self._name(table)} VALUES ({', '.join('?' * len(fields))})"
        self.ask(f"CREATE TABLE {self._name(table)} ({columns})")
        with self._errors():
            for batch in batches:
                values = map(_sqlite_values, batch.columns)
                self._connection.executemany(insert, zip(*values, strict=True))


def _sqlite_type(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "INTEGER"
    return "REAL" if pa.types.is_floating(kind) else "TEXT"


def _sqlite_values(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if pa.types.is_string(column.type) or _sqlite_type(column.type) != "TEXT":
        return values
    written = "{:f}".format if pa.types.is_decimal(column.type) else lambda one: one.isoformat()
    return [None if value is None else written(value) for value in values]


class _DuckDBWriter(_FileWriter):
    """Tables of a DuckDB file."""

    errors = staticmethod(duckdb_file_errors)
    _connection: duckdb.DuckDBPyConnection

    def __init__(self, file: Path, schema: str | None) -> None:
        # A moment is shown in the session's zone, and must not depend on this machine's.
        settings: dict[str, Any] = {"autoinstall_known_extensions": "false", "TimeZone": "UTC"}
        schema = schema or "main"
        super().__init__(file, schema, "BEGIN", lambda: duckdb.connect(str(file), config=settings))
        known = "SELECT count(*) FROM duckdb_schemas() WHERE schema_name = ?"
        try:
            if not self.ask(known, schema)[0][0]:
                raise _no_schema(schema)
        except BaseException:
            self.close()
            raise

    def exists(self, table: str) -> bool:
        query = (
            "SELECT count(*) FROM information_schema.tables WHERE lower(table_name) = lower(?)"
            " AND lower(table_schema) = lower(?) AND table_catalog = current_database()"
        )
        return bool(self.ask(query, table, self._schema or "main")[0][0])

    def create(self, table: str, batches: pa.RecordBatchReader) -> None:
        name = self._name(table)
        with self._errors():
            self._connection.register("arriving", batches.schema.empty_table())
            self._connection.execute(f"CREATE TABLE {name} AS FROM arriving")
            for batch in batches:
                self._connection.register("arriving", pa.Table.from_batches([batch]))
                self._connection.execute(f"INSERT INTO {name} FROM arriving")
            self._connection.unregister("arriving")


def _no_schema(shown: str) -> OutputError:
    return OutputError(f"The database has no schema {shown}.", hint="Create it first.")
