"""A table of PostgreSQL: the server counts its cells, in one read-only snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from reconpriv.columns.schema import quote_identifier
from reconpriv.errors import InputError
from reconpriv.sources.column_names import check_names
from reconpriv.sources.databases.postgresql_connection import Connection
from reconpriv.sources.databases.postgresql_types import (
    PostgresColumn,
    describe_column,
    fitted_numbers,
)
from reconpriv.sources.databases.table_names import (
    no_such_table,
    no_table_named,
    parse_table_name,
    quoted_name,
)
from reconpriv.sources.lazy import LazyTable

# One snapshot for all queries, and they cannot change anything, whatever a view calls.
_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
# Row policies would quietly return part of the table; with this, the server refuses instead.
_WHOLE = "SET LOCAL row_security = off"
_TABLES = """
SELECT CASE WHEN pg_table_is_visible(c.oid) THEN quote_ident(c.relname)
       ELSE quote_ident(n.nspname) || '.' || quote_ident(c.relname) END AS shown
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND NOT c.relispartition
  AND n.nspname !~ '^(pg_|information_schema$)' AND has_schema_privilege(n.oid, 'USAGE')
  AND has_any_column_privilege(c.oid, 'SELECT')
"""
_FIND = """
SELECT c.oid::int8, c.relkind::text, quote_ident(n.nspname) || '.' || quote_ident(c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass($1)
"""
# A domain is what it is made of, however often it was wrapped.
_COLUMNS = """
WITH RECURSIVE resolved(attnum, name, type, modifier) AS (
  SELECT attnum, attname, atttypid, atttypmod FROM pg_attribute
  WHERE attrelid = $1::int8::oid AND attnum > 0 AND NOT attisdropped
  UNION ALL
  SELECT r.attnum, r.name, t.typbasetype, t.typtypmod
  FROM resolved r JOIN pg_type t ON t.oid = r.type WHERE t.typtype = 'd'
)
SELECT r.name::text, t.typname::text, t.typtype::text, t.typcategory::text, r.modifier::int8
FROM resolved r JOIN pg_type t ON t.oid = r.type WHERE t.typtype <> 'd' ORDER BY r.attnum
"""


class PostgresTable(LazyTable):
    """A table of PostgreSQL, which counts its cells."""

    can_count = True

    def __init__(self, url: str, table: str | None) -> None:
        """Find the table and its columns; no record is read yet."""
        self._connection = Connection(url)
        try:
            self._connection.run(_SNAPSHOT)
            self._connection.run(_WHOLE)
            self._relation, self._columns = self._find(table)
            self.schema = pa.schema([(c.name, c.kind) for c in self._columns.values()])
            check_names(self.schema.names, "the table")
        except BaseException:
            self._connection.close()
            raise

    def _find(self, table: str | None) -> tuple[str, dict[str, PostgresColumn]]:
        if table is None:
            raise no_table_named(self._tables())
        name = parse_table_name(table)
        # As PostgreSQL reads it, in lower case unless quoted; then as it is written.
        folded = quoted_name(name.folded_schema, name.folded_table)
        for candidate in dict.fromkeys((folded, quoted_name(name.schema, name.table))):
            found = self._connection.ask(_FIND, (candidate,))
            if found:
                break
        else:
            raise no_such_table(table, self._tables())
        number, kind, relation = found[0]
        if kind not in "rvmfp":
            raise InputError(f"{table} is neither a table nor a view.")
        columns = [describe_column(*row) for row in self._connection.ask(_COLUMNS, (number,))]
        if not columns:
            raise InputError(f"The table {table} has no columns.")
        return relation, {column.name: column for column in columns}

    def _tables(self) -> list[str]:
        return sorted(row[0] for row in self._connection.ask(_TABLES))

    def fetch(self, names: Sequence[str], count: str | None = None) -> Iterator[pa.RecordBatch]:
        """The records, streamed by COPY, or the cells, counted by the server in one statement."""
        chosen = [self._columns[name] for name in names]
        columns = fitted_numbers(chosen, self._relation, self._connection)
        selected = [f"{c.expression} AS {quote_identifier(c.name)}" for c in columns]
        fields = [(c.name, c.kind) for c in columns]
        groups = ""
        if count is not None:
            selected.append(f"count(*) AS {quote_identifier(count)}")
            fields.append((count, pa.int64()))
            groups = f" GROUP BY {', '.join(str(i + 1) for i in range(len(columns)))}"
        query = f"SELECT {', '.join(selected)} FROM {self._relation}{groups}"
        for batch in self._connection.stream(query):
            yield _as_asked(batch, pa.schema(fields))
        # A transaction that stays open keeps the server from tidying up.
        self.close()

    def interrupt(self) -> None:
        """Have the server end the query that another thread waits for."""
        self._connection.interrupt()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _as_asked(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch without the driver's notes; numbers come as text, for they may have any length."""
    try:
        # A database of encoding SQL_ASCII hands out whatever bytes it was given.
        batch.validate(full=True)
        arrays = [
            array if array.type == field.type else array.cast(field.type)
            for array, field in zip(batch.columns, schema, strict=True)
        ]
    except pa.ArrowInvalid as error:
        text = "UTF8" in str(error)
        what = "text that is not UTF-8" if text else "a value out of range, such as a time of 24:00"
        raise InputError(
            f"The table holds {what}.", hint="Correct it, or leave the column out."
        ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
