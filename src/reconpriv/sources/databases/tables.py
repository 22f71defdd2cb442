"""Tables of databases as inputs: counted where they lie, so records stay there."""

from __future__ import annotations

from typing import Any

import duckdb

from reconpriv.errors import InputError
from reconpriv.sources.databases.url import (
    DUCKDB,
    POSTGRESQL,
    database_file,
    database_kind,
    is_database,
    postgresql_url,
)
from reconpriv.sources.lazy import LazyTable


def open_database(
    connection: duckdb.DuckDBPyConnection, source: Any, table: str | None
) -> LazyTable | None:
    """The table of a database; None if the source is not a database."""
    if not is_database(source):
        return None
    kind = database_kind(source)
    if kind == POSTGRESQL:
        from reconpriv.sources.databases.postgresql import PostgresTable  # noqa: PLC0415 - needs an extra

        return PostgresTable(postgresql_url(source), table)
    file = database_file(source)
    if not file.is_file():
        raise InputError(f"There is no file {file.name!r}.")
    if kind == DUCKDB:
        from reconpriv.sources.databases.duckdb_tables import DuckDBFile  # noqa: PLC0415 - only if asked for

        return DuckDBFile(connection, file, table)
    from reconpriv.sources.databases.sqlite import SqliteTable  # noqa: PLC0415 - only if asked for

    return SqliteTable(file, table)
