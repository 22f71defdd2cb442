"""Tables of DuckDB: a relation of the user's own connection, or a file attached for reading.

A file is counted within the limits of the engine, and detached at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from reconpriv.columns.schema import quote_identifier
from reconpriv.errors import InputError, ReconprivError
from reconpriv.sources.column_names import check_names
from reconpriv.sources.databases.table_names import find_table, quoted_name
from reconpriv.sources.databases.troubles import meaning
from reconpriv.sources.lazy import LazyTable

_SOURCE = "reconpriv_source"
_BATCH = 1 << 17
# Arrow or Parquet has no type for these; as bytes they can be read, though not published.
_STRANGE = re.compile(r"INTERVAL|BIT|UNION.*|VARIANT|GEOMETRY.*|TIME WITH TIME ZONE|BIGNUM")
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
        unknown = (
            f"cannot be used as a DuckDB database ({type(error).__name__})",
            "Check that the file is whole, and that its views still work.",
        )
        sentence, hint = meaning(str(error).lower(), _TROUBLES, unknown)
        raise what(f"{file.name} {sentence}.", hint=hint) from None


class LazyRelation(LazyTable):
    """A DuckDB relation of the user's own connection, which counts its cells."""

    can_count = True

    def __init__(self, relation: Any, shown: str = "the relation") -> None:
        """Only the names and types of the columns are asked for."""
        # DuckDB would quietly rename columns with the same name on their way into Arrow.
        check_names(relation.columns, shown)
        columns = zip(relation.columns, map(str, relation.types), strict=True)
        self._relation = relation
        self._expressions = {name: _readable(name, kind) for name, kind in columns}
        self.schema = self._select(relation.columns).limit(0).to_arrow_table().schema

    def _select(self, names: Sequence[str]) -> Any:
        return self._relation.project(", ".join(self._expressions[name] for name in names))

    def _errors(self) -> AbstractContextManager[None]:
        return nullcontext()

    def fetch(self, names: Sequence[str], count: str | None = None) -> Iterator[pa.RecordBatch]:
        """The records, or the cells as the relation's connection counts them."""
        with self._errors():
            found = self._select(names)
            if count is not None:
                columns = ", ".join(map(quote_identifier, names))
                counted = f"{columns}, count(*) AS {quote_identifier(count)}"
                found = found.aggregate(counted, columns)
            yield from found.to_arrow_reader(_BATCH)
        self.close()


class DuckDBFile(LazyRelation):
    """A table of a file, as a relation of the engine's connection."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, file: Path, table: str | None
    ) -> None:
        """Attach the file to the engine's connection, whose limits hold for the counting too."""
        self._file, self._connection = file, connection
        path = str(file.absolute()).replace("'", "''")
        with self._errors():
            connection.execute(f"ATTACH '{path}' AS {_SOURCE} (READ_ONLY)")
            found = find_table(table, connection.execute(_TABLES).fetchall())
            super().__init__(connection.sql(f"FROM {_SOURCE}.{quoted_name(*found)}"), "the table")

    def _errors(self) -> AbstractContextManager[None]:
        return duckdb_file_errors(self._file)

    def close(self) -> None:
        """Detach the file, so that others can write to it again."""
        with suppress(duckdb.Error):
            self._connection.execute(f"DETACH DATABASE IF EXISTS {_SOURCE}")


def _readable(name: str, kind: str) -> str:
    """The expression that reads a column of this type without loss."""
    quoted = quote_identifier(name)
    if kind.startswith("ENUM") or kind == "UUID":
        return f"{quoted}::VARCHAR AS {quoted}"
    if kind in ("HUGEINT", "UHUGEINT"):
        # DuckDB hands Arrow a different number if it has more digits than this.
        return f"{quoted}::DECIMAL(38, 0) AS {quoted}"
    if _STRANGE.fullmatch(kind):
        return f"encode({quoted}::VARCHAR) AS {quoted}"
    return quoted
