"""Writing tables into a database in one transaction: PostgreSQL, SQLite and DuckDB."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import duckdb
import pyarrow as pa

from reconpriv.errors import OutputError
from reconpriv.messages.remedies import Advice, Control, Remedy
from reconpriv.schema import quote_identifier
from reconpriv.sources.databases.duckdb_file import duckdb_file_errors
from reconpriv.sources.databases.postgresql_connection import Connection
from reconpriv.sources.databases.sqlite import connect, sqlite_errors
from reconpriv.sources.databases.url import (
    DUCKDB,
    POSTGRESQL,
    database_file,
    database_kind,
    postgresql_url,
)
from reconpriv.writing.file import no_folder_for


class DatabaseWriter(Protocol):
    """A transaction that makes tables; without a commit, nothing remains."""

    longest_name: int | None
    """The most bytes that a name may have."""

    def exists(self, table: str) -> bool:
        """Whether something already has this name."""
        ...

    def texts(self, table: str) -> list[str]:
        """The first column of a table, if it holds texts."""
        ...

    def drop(self, table: str) -> None:
        """Remove a table."""
        ...

    def create(self, table: str, batches: pa.RecordBatchReader) -> None:
        """Make a table and fill it."""
        ...

    def commit(self) -> None:
        """Make everything visible at once."""
        ...

    def close(self) -> None:
        """Close the database; what was not committed is discarded."""
        ...


def open_writer(target: str, schema: str | None) -> DatabaseWriter:
    """Begin a transaction on the database that a path or a URL names."""
    kind = database_kind(target, must_exist=False)
    if kind == POSTGRESQL:
        return PostgresWriter(postgresql_url(target), schema)
    file = database_file(target)
    if not file.parent.is_dir():
        raise no_folder_for(file)
    return DuckDBWriter(file, schema) if kind == DUCKDB else SqliteWriter(file, schema)


class PostgresWriter:
    """Tables of PostgreSQL, filled by COPY."""

    longest_name: int | None = 63  # it cuts off what is longer

    def __init__(self, url: str, schema: str | None) -> None:
        """Without a schema, tables are made where the search path says."""
        self._schema = schema
        self._connection = Connection(url, OutputError)
        try:
            self._check_schema()
        except BaseException:
            self._connection.close()
            raise

    def _check_schema(self) -> None:
        """Refuse a schema that takes no tables: the driver's later error has no code."""
        if self._schema is None:
            ask = "SELECT current_schema()::text, has_schema_privilege(current_schema(), 'CREATE')"
            found = self._connection.ask(ask)
        else:
            ask = (
                "SELECT nspname::text, has_schema_privilege(oid, 'CREATE') FROM pg_namespace"
                " WHERE nspname = $1"
            )
            found = self._connection.ask(ask, (self._schema,))
        if not found or found[0][0] is None:
            shown = "that tables are made in" if self._schema is None else self._schema
            raise OutputError(f"The database has no schema {shown}.", hint="Create it first.")
        if not found[0][1]:
            raise OutputError(
                f"The database does not let this user create tables in the schema {found[0][0]}.",
                hint="Ask for that right, or name another schema: schema.table.",
            )

    def _name(self, table: str) -> str:
        parts = [self._schema, table] if self._schema is not None else [table]
        return ".".join(map(quote_identifier, parts))

    def exists(self, table: str) -> bool:
        """Whether a table, view or anything else already has this name."""
        found = "SELECT to_regclass($1) IS NOT NULL"
        return bool(self._connection.ask(found, (self._name(table),))[0][0])

    def texts(self, table: str) -> list[str]:
        """The first column of a table, if it holds texts."""
        rows = self._connection.ask(f"SELECT * FROM {self._name(table)} LIMIT 2")
        return [row[0] for row in rows if row and isinstance(row[0], str)]

    def drop(self, table: str) -> None:
        """Remove a table."""
        self._connection.run(f"DROP TABLE {self._name(table)}")

    def create(self, table: str, batches: pa.RecordBatchReader) -> None:
        """Make a table and fill it."""
        for name in batches.schema.names:
            if len(name.encode()) > (self.longest_name or math.inf):
                raise OutputError(
                    f"The name of column {name} is too long for PostgreSQL.",
                    hint=Advice(
                        f"A name has at most {self.longest_name} bytes.",
                        Remedy("rename it", Control.SQL),
                    ),
                )
        self._connection.ingest(table, self._schema, batches)

    def commit(self) -> None:
        """Make everything visible at once."""
        self._connection.commit()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class _FileWriter:
    """What files have in common: one that was made for this is removed if it fails."""

    longest_name: int | None = None

    def __init__(self, file: Path) -> None:
        self._file = file
        self._new = not file.exists()

    def _remove_new(self) -> None:
        if self._new:
            for ending in ("", "-journal", "-wal", "-shm", ".wal"):
                self._file.with_name(self._file.name + ending).unlink(missing_ok=True)


class SqliteWriter(_FileWriter):
    """Tables of a SQLite file. What SQLite has no type for is text: dates, times, decimals."""

    def __init__(self, file: Path, schema: str | None) -> None:
        """SQLite has no schemas but main."""
        if (schema or "main").lower() != "main":
            raise OutputError("A SQLite file has no schemas.", hint="Name the table alone.")
        super().__init__(file)
        with sqlite_errors(file, OutputError):
            self._connection = connect(file, "rwc")
        try:
            with sqlite_errors(file, OutputError):
                self._connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            self.close()
            raise

    def exists(self, table: str) -> bool:
        """Whether a table or view already has this name, in upper or lower case."""
        query = "SELECT count(*) FROM sqlite_schema WHERE lower(name) = lower(?)"
        with sqlite_errors(self._file, OutputError):
            return bool(self._connection.execute(query, (table,)).fetchone()[0])

    def texts(self, table: str) -> list[str]:
        """The first column of a table, if it holds texts."""
        query = f"SELECT * FROM {quote_identifier(table)} LIMIT 2"
        with sqlite_errors(self._file, OutputError):
            rows = self._connection.execute(query).fetchall()
        return [row[0] for row in rows if isinstance(row[0], str)]

    def drop(self, table: str) -> None:
        """Remove a table."""
        with sqlite_errors(self._file, OutputError):
            self._connection.execute(f"DROP TABLE {quote_identifier(table)}")

    def create(self, table: str, batches: pa.RecordBatchReader) -> None:
        """Make a table and fill it."""
        fields = batches.schema
        columns = ", ".join(f"{quote_identifier(f.name)} {_sqlite_type(f.type)}" for f in fields)
        places = ", ".join("?" * len(fields))
        insert = f"INSERT INTO {quote_identifier(table)} VALUES ({places})"
        with sqlite_errors(self._file, OutputError):
            self._connection.execute(f"CREATE TABLE {quote_identifier(table)} ({columns})")
            for batch in batches:
                values = [_sqlite_values(column) for column in batch.columns]
                self._connection.executemany(insert, zip(*values, strict=True))

    def commit(self) -> None:
        """Make everything visible at once."""
        with sqlite_errors(self._file, OutputError):
            self._connection.execute("COMMIT")
        self._new = False

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
        self._remove_new()


def _sqlite_type(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "INTEGER"
    return "REAL" if pa.types.is_floating(kind) else "TEXT"


def _sqlite_values(column: pa.Array) -> list[object]:
    values: list[object] = column.to_pylist()
    if pa.types.is_string(column.type) or _sqlite_type(column.type) != "TEXT":
        return values
    if pa.types.is_decimal(column.type):
        return [None if value is None else f"{value:f}" for value in values]
    return [None if value is None else value.isoformat() for value in values]  # type: ignore[attr-defined]


class DuckDBWriter(_FileWriter):
    """Tables of a DuckDB file."""

    def __init__(self, file: Path, schema: str | None) -> None:
        """Without a schema, tables are made in main."""
        super().__init__(file)
        self._schema = schema or "main"
        with duckdb_file_errors(file, OutputError):
            self._connection = duckdb.connect(
                str(file), config={"autoinstall_known_extensions": "false"}
            )
        try:
            with duckdb_file_errors(file, OutputError):
                # A moment is shown in the session's zone, and must not depend on this machine's.
                self._connection.execute("SET TimeZone = 'UTC'")
                self._connection.execute("BEGIN")
                known = "SELECT count(*) FROM duckdb_schemas() WHERE schema_name = ?"
                found = self._connection.execute(known, [self._schema]).fetchall()
            if not found[0][0]:
                raise OutputError(
                    f"The database has no schema {self._schema}.", hint="Create it first."
                )
        except BaseException:
            self.close()
            raise

    def _name(self, table: str) -> str:
        return f"{quote_identifier(self._schema)}.{quote_identifier(table)}"

    def exists(self, table: str) -> bool:
        """Whether a table or view already has this name, in upper or lower case."""
        query = (
            "SELECT count(*) FROM information_schema.tables WHERE lower(table_name) = lower(?)"
            " AND lower(table_schema) = lower(?) AND table_catalog = current_database()"
        )
        with duckdb_file_errors(self._file, OutputError):
            found = self._connection.execute(query, [table, self._schema]).fetchall()
        return bool(found[0][0])

    def texts(self, table: str) -> list[str]:
        """The first column of a table, if it holds texts."""
        with duckdb_file_errors(self._file, OutputError):
            rows = self._connection.execute(f"FROM {self._name(table)} LIMIT 2").fetchall()
        return [row[0] for row in rows if isinstance(row[0], str)]

    def drop(self, table: str) -> None:
        """Remove a table."""
        with duckdb_file_errors(self._file, OutputError):
            self._connection.execute(f"DROP TABLE {self._name(table)}")

    def create(self, table: str, batches: pa.RecordBatchReader) -> None:
        """Make a table and fill it."""
        name = self._name(table)
        with duckdb_file_errors(self._file, OutputError):
            self._connection.register("arriving", batches.schema.empty_table())
            self._connection.execute(f"CREATE TABLE {name} AS FROM arriving")
            for batch in batches:
                self._connection.register("arriving", pa.Table.from_batches([batch]))
                self._connection.execute(f"INSERT INTO {name} FROM arriving")
            self._connection.unregister("arriving")

    def commit(self) -> None:
        """Make everything visible at once."""
        with duckdb_file_errors(self._file, OutputError):
            self._connection.execute("COMMIT")
        self._new = False

    def close(self) -> None:
        """Close the file."""
        with suppress(duckdb.Error):
            self._connection.close()
        self._remove_new()
