"""What a DuckDB connection says about the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from reconpriv.cells.cell_batch import outside_years
from reconpriv.columns.recoding import Recoding
from reconpriv.columns.schema import Column, Kind, Value
from reconpriv.columns.schema import quote_identifier as quote
from reconpriv.engines.duckdb.csv_summary import FACTS, summarise
from reconpriv.engines.duckdb.csv_texts import CsvTexts
from reconpriv.engines.duckdb.errors import clear_errors
from reconpriv.engines.duckdb.kinds import OUTSIDE_YEARS
from reconpriv.engines.duckdb.literals import literal
from reconpriv.engines.recode_sql import NUMBER, RANKED, Dialect, label_of, listed, replaced, shares

TABLE = "reconpriv_table"
DIALECT = Dialect("VARCHAR", literal)
_COMMON = 4  # values of a column that a summary shows
# Columns counted or summarised in one statement: its time grows with the square of their number,
# and with thousands DuckDB runs out of stack.
_TOGETHER = 64
_ROUGHLY_TOGETHER = 1_000  # rough counts are cheap, and so is a statement of many


class TableColumns:
    """The columns of a table, each an expression over it; see the engine that opens one."""

    _connection: duckdb.DuckDBPyConnection
    _expressions: dict[Column, str]
    _what: str
    _count_column: str | None
    _texts: CsvTexts | None
    _waiting: bool

    def _keep_all(self) -> None:
        """Fetch every column, if that has not been done."""
        raise NotImplementedError

    @property
    def _count(self) -> str:
        if self._count_column is None:
            return "count(*)"
        return f"sum({quote(self._count_column)})::BIGINT"

    def single_precision(self, names: Sequence[str]) -> list[str]:
        """Which of these columns hold 32-bit numbers that read differently as 64-bit ones."""
        relation = self._connection.sql(f"FROM {TABLE}")
        kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
        single = [name for name in names if kinds.get(name) == "FLOAT"]
        if not single:
            return []
        differ = (f"bool_or({quote(n)}::VARCHAR::DOUBLE <> {quote(n)}::DOUBLE)" for n in single)
        with clear_errors(self._what):
            query = f"SELECT {', '.join(differ)} FROM {TABLE}"
            found = self._connection.execute(query).fetchall()[0]
        return [name for name, other in zip(single, found, strict=True) if other]

    def records(self) -> int:
        """How many records there are."""
        with clear_errors(self._what):
            found = self._connection.execute(f"SELECT {self._count} FROM {TABLE}").fetchall()
        return int(found[0][0] or 0)

    def value_counts(self, column: Column, at_most: int | None = None) -> dict[Value, int]:
        """The distinct values of a column with their counts, including None."""
        outside = OUTSIDE_YEARS if column.kind is Kind.DATE else "false"
        query = (
            f"SELECT {self._expressions[column]} AS v, {self._count}, {outside} FROM {TABLE}"
            " GROUP BY ALL"
        )
        if at_most is not None:
            query += f" LIMIT {at_most}"
        with clear_errors(self._what):
            found = self._connection.execute(query).fetchall()
        if any(strange for _, _, strange in found):
            raise outside_years(column.name)
        return {value: count for value, count, _ in found}

    def as_number(self, column: Column) -> Column | None:
        """Turn a column of texts into numbers if every text spells one; otherwise return None."""
        text = self._expressions[column]
        query = f"SELECT bool_and(regexp_full_match({text}, {literal(NUMBER)})) FROM {TABLE}"
        with clear_errors(self._what):
            if not self._connection.execute(query).fetchall()[0][0]:
                return None
        return self._replace(column, Kind.NUMBER, f"CAST({text} AS DOUBLE) + 0.0")

    def _replace(self, column: Column, kind: Kind, expression: str) -> Column:
        """Replace a column's expression; the order of the columns stays the same."""
        self._expressions, new = replaced(self._expressions, column, kind, expression)
        return new

    def value_range(self, column: Column, present: Column | None) -> tuple[Value, Value] | None:
        """The lowest and the highest value among records in which ``present`` is not missing."""
        value = DIALECT.ranged(self._expressions[column], column.kind)
        query = f"SELECT min({value}), max({value}) FROM {TABLE} WHERE {self._present(present)}"
        with clear_errors(self._what):
            low, high = self._connection.execute(query).fetchall()[0]
        return None if low is None else (low, high)

    def quantiles(self, column: Column, parts: int, present: Column | None) -> list[Value]:
        """The lowest value, then the values below which 1/parts, 2/parts, … of the records lie."""
        counted = (
            f"SELECT {self._expressions[column]} AS v, {self._count} AS n FROM {TABLE}"
            f" WHERE {self._present(column)} AND {self._present(present)} GROUP BY v"
        )
        ranked = f"SELECT {', '.join(RANKED)} FROM ({counted})"
        query = f"SELECT {', '.join(shares(parts))} FROM ({ranked})"
        with clear_errors(self._what):
            found = self._connection.execute(query).fetchall()[0]
        return [one for one in found if one is not None]

    def _present(self, column: Column | None) -> str:
        return "true" if column is None else f"({self._expressions[column]}) IS NOT NULL"

    def texts(self, column: Column, recoding: Recoding, *, known: bool) -> list[str]:
        """The values that the groups list, as text, or the first one that none of them lists."""
        text, inside = listed(self._expressions[column], recoding, DIALECT)
        chosen = f"DISTINCT {text} FROM {TABLE} WHERE {inside}"
        first = f"min({text}) FROM {TABLE} WHERE NOT ({inside})"
        with clear_errors(self._what):
            rows = self._connection.execute(f"SELECT {chosen if known else first}").fetchall()
        return [str(row[0]) for row in rows if row[0] is not None]

    def recode(self, column: Column, recoding: Recoding) -> None:
        """From now on the column holds the labels of the recoding."""
        label = label_of(self._expressions[column], column.kind, recoding, DIALECT)
        self._replace(column, Kind.STRING, label)

    def distinct(
        self, columns: Sequence[Column], *, present: Column | None = None, rough: bool = False
    ) -> list[int]:
        """How many distinct values each column has, where ``present`` is not missing."""
        count = "approx_count_distinct({})" if rough else "count(DISTINCT {})"
        together = _ROUGHLY_TOGETHER if rough else _TOGETHER
        found: list[int] = []
        with clear_errors(self._what):
            for first in range(0, len(columns), together):
                some = columns[first : first + together]
                counts = ", ".join(count.format(self._expressions[column]) for column in some)
                query = f"SELECT {counts} FROM {TABLE} WHERE {self._present(present)}"
                found += self._connection.execute(query).fetchall()[0]
        return found

    def summaries(self) -> tuple[int, list[tuple[Column, dict[str, Any]]]]:
        """How many records there are; for each column its values, range and most common values."""
        if self._texts is not None and self._waiting:
            with clear_errors(self._what):
                return summarise(self._connection, self._texts, _COMMON)
        self._keep_all()
        columns = list(self._expressions.items())
        records, found = 0, []
        for i in range(0, len(columns), _TOGETHER):
            parts = ["count(*)"]
            for column, value in columns[i : i + _TOGETHER]:
                plain = column.kind is not Kind.OTHER
                parts += [f"count({value})", f"count(DISTINCT {value})" if plain else "0"]
                parts += [f"min({value})", f"max({value})"] if plain else ["NULL", "NULL"]
                parts.append(f"approx_top_k({value}, {_COMMON})" if plain else "[]")
            with clear_errors(self._what):
                query = f"SELECT {', '.join(parts)} FROM {TABLE}"
                records, *facts = self._connection.execute(query).fetchall()[0]
            found += [facts[j : j + len(FACTS)] for j in range(0, len(facts), len(FACTS))]
        rows = zip(self._expressions, found, strict=True)
        return records, [(column, dict(zip(FACTS, row, strict=True))) for column, row in rows]
