"""A first look at a CSV: what each column holds, from the distinct records.

Columns are asked one by one: DuckDB does not plan thousands of aggregates in one query.
"""

from __future__ import annotations

from typing import Any

import duckdb

from reconpriv.columns.schema import Column
from reconpriv.columns.schema import quote_identifier as quote
from reconpriv.engines.duckdb.csv_texts import CsvTexts, kinds_of
from reconpriv.engines.duckdb.kinds import KINDS
from reconpriv.sources.column_names import free_name

FACTS = ("filled", "distinct", "low", "high", "common")
"""What a summary says about a column."""


def summarise(
    connection: duckdb.DuckDBPyConnection, texts: CsvTexts, common: int
) -> tuple[int, list[tuple[Column, dict[str, Any]]]]:
    """How many records there are, and the facts of each column with its most common values."""
    count = free_name("count", texts.names)
    cells = texts.count_cells(connection, texts.names, count)
    kinds = kinds_of(connection, cells, texts.names)
    records = connection.execute(f"SELECT sum({quote(count)}) FROM {cells}").fetchall()[0][0]
    found = []
    for name in texts.names:
        kind = kinds.get(name, "VARCHAR")
        meaning, pattern = KINDS[kind]
        value = pattern.format(f"{quote(name)}::{kind}")
        counted = f"SELECT {value} AS v, sum({quote(count)}) AS n FROM {cells} GROUP BY ALL"
        first = f"FROM counted WHERE v IS NOT NULL ORDER BY n DESC, v LIMIT {common}"
        row = connection.execute(
            f"WITH counted AS MATERIALIZED ({counted})"
            " SELECT coalesce(sum(n) FILTER (WHERE v IS NOT NULL), 0), count(v), min(v), max(v),"
            f" (SELECT list(v ORDER BY n DESC, v) FROM ({first})) FROM counted"
        ).fetchall()[0]
        found.append((Column(name, meaning), dict(zip(FACTS, row, strict=True))))
    return records or 0, found
