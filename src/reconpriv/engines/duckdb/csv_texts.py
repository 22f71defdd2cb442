"""A CSV as texts, read once: only its cells are kept, or its records if a query needs them.

The types depend on the texts that occur, not on how often they do, so they are settled afterwards,
on what was kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb

from reconpriv.columns.schema import quote_identifier as quote
from reconpriv.messages.text_files import is_utf8, not_utf8
from reconpriv.sources.csv_lines import on_lines_of_their_own

LOSSLESS = ("BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP")
_CELLS = "reconpriv_cells"
_RECORDS = "reconpriv_records"
_FIRST = 2048  # rows that rule out most types, so that the others are not looked at
_MANY = 50  # columns; planning a query with hundreds of sums takes minutes


@dataclass(frozen=True)
class CsvTexts:
    """Queries that read every column as text, the names of the columns, and the files as shown.

    ``in_pieces`` is quick, but only ``in_one`` reads long lines, and texts of several lines.
    """

    in_pieces: str
    in_one: str
    names: tuple[str, ...]
    files: tuple[str, ...]
    shown: str

    @property
    def no_records(self) -> str:
        """A query for the columns alone, in order; the types are not known yet."""
        columns = ", ".join(f"NULL::VARCHAR AS {quote(name)}" for name in self.names)
        return f"SELECT {columns} WHERE false"

    def count_cells(
        self, connection: duckdb.DuckDBPyConnection, names: Sequence[str], count: str
    ) -> str:
        """Count the distinct records of these columns, as texts; return the table's name."""
        columns = ", ".join(map(quote, names))
        what = f"SELECT {columns}, count(*) AS {quote(count)}"
        return self._keep(connection, _CELLS, what, f"sum({quote(count)})", "GROUP BY ALL")

    def cells(self, connection: duckdb.DuckDBPyConnection, names: Sequence[str], count: str) -> str:
        """Count the distinct records of these columns; return the query that gives them typed."""
        return _typed(connection, self.count_cells(connection, names, count), names, count)

    def records(self, connection: duckdb.DuckDBPyConnection) -> str:
        """Keep all records, in order; return the query that gives them typed."""
        # As Parquet they would be smaller, but texts take three times as long to write.
        kept = self._keep(connection, _RECORDS, "SELECT *", "count(*)")
        return _typed(connection, kept, self.names)

    def _keep(
        self,
        connection: duckdb.DuckDBPyConnection,
        table: str,
        what: str,
        total: str,
        rest: str = "",
    ) -> str:
        """Make a table, in pieces if that goes well; ``total`` gives the number of its records."""

        def read(query: str) -> None:
            connection.execute(
                f"CREATE OR REPLACE TEMP TABLE {table} AS {what} FROM ({query}) {rest}"
            )

        if not any(file.endswith(".gz") for file in self.files):
            # What is wrong with the file, the other query says better.
            with suppress(duckdb.InvalidInputException, duckdb.NotImplementedException):
                read(self.in_pieces)
                records = connection.execute(f"SELECT {total} FROM {table}").fetchall()[0][0]
                if on_lines_of_their_own(self.files, int(records or 0)):
                    return table
        try:
            read(self.in_one)
        except duckdb.InvalidInputException:
            # DuckDB does not say which of the files it is, nor what it looks like.
            other = next((file for file in self.files if not is_utf8(file)), None)
            if other is None:
                raise
            single = len(self.files) == 1
            raise not_utf8(other, self.shown if single else Path(other).name) from None
        return table


def _typed(
    connection: duckdb.DuckDBPyConnection, kept: str, names: Sequence[str], count: str | None = None
) -> str:
    kinds = kinds_of(connection, kept, names)
    columns = [
        f"{quote(name)}::{kinds[name]} AS {quote(name)}" if name in kinds else quote(name)
        for name in names
    ]
    columns += [] if count is None else [quote(count)]
    return f"SELECT {', '.join(columns)} FROM {kept}"


def kinds_of(
    connection: duckdb.DuckDBPyConnection, kept: str, names: Sequence[str]
) -> dict[str, str]:
    """The type of each column of texts that has one; the others are text."""
    find = _kinds_of_many if len(names) > _MANY else _kinds_of_few
    return find(connection, kept, names)


def _kinds_of_few(
    connection: duckdb.DuckDBPyConnection, relation: str, names: Sequence[str]
) -> dict[str, str]:
    """The type of each column of texts in which every text is that type's own spelling.

    So 02139 stays text, and the types do not depend on which rows come first.
    """
    possible: Mapping[str, Sequence[str]] = dict.fromkeys(names, LOSSLESS)
    columns = ", ".join(map(quote, names))
    first = f"(SELECT {columns} FROM {relation} LIMIT {_FIRST})"
    possible = _fitting(connection, first, possible)
    possible = _fitting(connection, relation, possible)
    if not possible:
        return {}
    filled = ", ".join(f"bool_or({quote(name)} IS NOT NULL)" for name in possible)
    found = connection.execute(f"SELECT {filled} FROM {relation}").fetchall()[0]
    return {
        name: possible[name][0] for name, any_text in zip(possible, found, strict=True) if any_text
    }


def _fitting(
    connection: duckdb.DuckDBPyConnection, relation: str, possible: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """Of the types that each column may have, those that all its texts are spelled as."""
    tried = [(name, kind) for name, kinds in possible.items() for kind in kinds]
    if not tried:
        return {}
    checks = (_fits(quote(name), kind) for name, kind in tried)
    row = connection.execute(f"SELECT {', '.join(checks)} FROM {relation}").fetchall()[0]
    fitting: dict[str, list[str]] = {}
    for (name, kind), fits in zip(tried, row, strict=True):
        if fits:
            fitting.setdefault(name, []).append(kind)
    return fitting


def _kinds_of_many(
    connection: duckdb.DuckDBPyConnection, relation: str, names: Sequence[str]
) -> dict[str, str]:
    """The same for a wide table, its columns below each other."""
    checks = ", ".join(_fits("v", kind) for kind in LOSSLESS)
    numbered = ", ".join(f"{quote(name)} AS c{i}" for i, name in enumerate(names))
    # Missing values are left out, so a column without values has no row.
    rows = connection.execute(
        f"SELECT n, {checks} FROM (UNPIVOT (SELECT {numbered} FROM {relation}) ON COLUMNS(*)"
        " INTO NAME n VALUE v) GROUP BY n"
    ).fetchall()
    found = {}
    for number, *fits in rows:
        kind = next((kind for kind, fit in zip(LOSSLESS, fits, strict=True) if fit), None)
        if kind is not None:
            found[names[int(number[1:])]] = kind
    return found


def _fits(text: str, kind: str) -> str:
    """Whether every text is the type's own spelling."""
    return (
        f"count(*) FILTER (WHERE TRY_CAST({text} AS {kind})::VARCHAR"
        f" IS DISTINCT FROM {text} AND {text} IS NOT NULL) = 0"
    )
