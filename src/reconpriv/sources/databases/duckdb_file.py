"""A table of a DuckDB file: attached for reading, counted, and detached at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pyarrow as pa

from reconpriv.errors import InputError, ReconprivError
from reconpriv.schema import ColumnLabels, quote_identifier
from reconpriv.sources.column_names import check_names
from reconpriv.sources.databases.duckdb_types import readable_columns
from reconpriv.sources.databases.table_names import (
    no_such_table,
    no_table_named,
    parse_table_name,
    shown_name,
)

_SOURCE = "reconpriv_source"
_BATCH = 1 << 17
_TABLES = f"""
SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = '{_SOURCE}'
UNION ALL SELECT schema_name, view_name FROM duckdb_views()
WHERE database_name = '{_SOURCE}' AND NOT internal ORDER BY ALL
"""
_TROUBLES = (
    (("lock", "different configuration", "already attached"), "is open in another program",
     "Close it there; DuckDB cannot read a file while another program writes it."),
    (("newer version", "storage version", "version number"), "was written by a newer DuckDB",
     "Export the table, or install a newer duckdb."),
    (("encrypt",), "is encrypted", "Export the table."),
)  # fmt: skip


@contextmanager
def duckdb_file_errors(file: Path, what: type[ReconprivError] = InputError) -> Iterator[None]:
    """Turn DuckDB's errors about a file into one sentence without its path."""
    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.Error as error:
        message = str(error).lower()
        for signs, sentence, hint in _TROUBLES:
            if any(sign in message for sign in signs):
                raise what(f"{file.name} {sentence}.", hint=hint) from None
        raise what(
            f"{file.name} cannot be used as a DuckDB database ({type(error).__name__}).",
            hint="Check that the file is whole, and that its views still work.",
        ) from None


class DuckDBFile:
    """See :class:`reconpriv.sources.lazy.LazyTable`."""

    labels: Mapping[str, ColumnLabels] = {}

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, file: Path, table: str | None
    ) -> None:
        """Attach the file to the engine's connection, whose limits hold for the counting too."""
        if not file.is_file():
            raise InputError(f"There is no file {file.name!r}.")
        self._file = file
        self._connection = connection
        path = str(file.absolute()).replace("'", "''")
        with duckdb_file_errors(file):
            connection.execute(f"ATTACH '{path}' AS {_SOURCE} (READ_ONLY)")
            self._table = self._find(table)
            relation = connection.sql(f"FROM {self._table}")
            check_names(relation.columns, "the table")
            self._expressions = readable_columns(relation)
            self.schema = self._select(relation.columns).limit(0).to_arrow_table().schema

    def _find(self, table: str | None) -> str:
        found = self._connection.execute(_TABLES).fetchall()
        shown = [
            shown_name(name) if schema == "main" else f"{shown_name(schema)}.{shown_name(name)}"
            for schema, name in found
        ]
        if table is None:
            raise no_table_named(shown)
        asked = parse_table_name(table)
        wanted = ((asked.schema or "main").lower(), asked.table.lower())
        for schema, name in found:
            if (schema.lower(), name.lower()) == wanted:
                return f"{_SOURCE}.{quote_identifier(schema)}.{quote_identifier(name)}"
        raise no_such_table(table, shown)

    def _select(self, names: Sequence[str]) -> duckdb.DuckDBPyRelation:
        columns = ", ".join(self._expressions[name] for name in names)
        return self._connection.sql(f"SELECT {columns} FROM {self._table}")

    def rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The records, streamed."""
        with duckdb_file_errors(self._file):
            yield from self._select(names).to_arrow_reader(_BATCH)
        self.close()

    def cells(self, names: Sequence[str], count: str) -> Iterator[pa.RecordBatch]:
        """The cells, counted within the limits of the engine."""
        columns = ", ".join(map(quote_identifier, names))
        counted = f"{columns}, count(*) AS {quote_identifier(count)}"
        with duckdb_file_errors(self._file):
            yield from self._select(names).aggregate(counted, columns).to_arrow_reader(_BATCH)
        self.close()

    def close(self) -> None:
        """Detach the file, so that others can write to it again."""
        with suppress(duckdb.Error):
            self._connection.execute(f"DETACH DATABASE IF EXISTS {_SOURCE}")
