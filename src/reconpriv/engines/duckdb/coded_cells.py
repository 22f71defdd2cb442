"""Many cells, counted and sorted by one whole number each instead of by their values.

Each column gets codes in canonical order, and a cell's codes are the digits of its number. So the
numbers are in canonical order, too, and groups come whole out of a sort that moves no text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconpriv.cells.cell_batch import CellBatch, Encoded
from reconpriv.columns.schema import Column, Schema
from reconpriv.errors import InputError
from reconpriv.theory.arrays import Ints, run_starts

_FIRST = 1 << 18  # rows that tell whether there are many cells
_MOST_VALUES = 1 << 16  # of a column; each batch carries the values of its columns
_CODES = "reconpriv_codes"


@dataclass(frozen=True)
class CodedCells:
    """The values of the public columns by code, and the query that counts the cells."""

    values: tuple[pa.Array, ...]
    domain_size: int
    query: str

    def groups(self, batches: Iterable[pa.RecordBatch]) -> Iterator[CellBatch]:
        """Batches of whole groups; the last group of a batch may continue in the next one."""
        number, count = np.empty(0, np.int64), np.empty(0, np.int64)
        for batch in batches:
            if batch.column(0).null_count:
                raise InputError("The table changed while it was read.", hint="Try again.")
            number = np.concatenate([number, batch.column(0).to_numpy()])
            count = np.concatenate([count, batch.column(1).to_numpy()])
            if number.size:
                group = number // self.domain_size
                cut = int(np.searchsorted(group, group[-1]))
                if cut:
                    yield self._batch(number[:cut], count[:cut])
                number, count = number[cut:], count[cut:]
        if number.size:
            yield self._batch(number, count)

    def _batch(self, number: Ints, count: Ints) -> CellBatch:
        group, value = np.divmod(number, self.domain_size)
        starts = run_starts(group)
        rest = group[starts]
        public: list[Encoded] = []
        for values in reversed(self.values):
            rest, codes = np.divmod(rest, len(values))
            public.append(Encoded(codes.astype(np.int32), values))
        return CellBatch(tuple(reversed(public)), starts, value, count)


def code_cells(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    schema: Schema,
    expressions: Mapping[Column, str],
    where: str,
    weight: str | None,
) -> CodedCells | None:
    """Codes for the columns; None if there are few cells, or too many values for a number.

    ``weight`` is the column that says how many records a row stands for.
    """
    columns = [expressions[column] for column in schema.columns]
    if not _many(connection, table, columns):
        return None
    found: list[pa.Array] = []
    for expression in columns:
        distinct = (
            f"SELECT DISTINCT {expression} AS v FROM {table} {where} LIMIT {_MOST_VALUES + 1}"
        )
        values = connection.sql(f"FROM ({distinct}) ORDER BY v NULLS LAST").to_arrow_table()
        if not 0 < values.num_rows <= _MOST_VALUES:
            return None
        found.append(values.column(0).combine_chunks())
    *public, sensitive = found
    m = len(schema.domain)
    if math.prod([*map(len, public), m]) >= 1 << 63:
        return None
    position = {value: i for i, value in enumerate(schema.domain)}
    codes = [np.arange(len(values)) for values in public]
    codes.append(np.array([position[value] for value in sensitive.to_pylist()], dtype=np.int64))
    number = "0::BIGINT"
    for i, (values, code) in enumerate(zip(found, codes, strict=True)):
        register_codes(connection, f"{_CODES}_{i}", values, code)
        size = m if i == len(public) else len(values)
        number = f"({number}) * {size} + {_CODES}_{i}.code"
    inner = ", ".join(f"{expression} AS c{i}" for i, expression in enumerate(columns))
    joins = " ".join(
        f"LEFT JOIN {_CODES}_{i} ON {_CODES}_{i}.v IS NOT DISTINCT FROM c{i}"
        for i in range(len(columns))
    )
    total = "count(*)" if weight is None else "sum(w)::BIGINT"
    query = (
        f"SELECT {number} AS k, {total} AS n"
        f" FROM (SELECT {inner}, {weight or 1} AS w FROM {table} {where}) {joins}"
        " GROUP BY k ORDER BY k NULLS FIRST"
    )
    return CodedCells(tuple(public), m, query)


def register_codes(
    connection: duckdb.DuckDBPyConnection, name: str, values: pa.Array, codes: NDArray[Any]
) -> str:
    """Make codes of values known to the connection as a table of v and code; returns its name."""
    connection.register(f"{name}_arrow", pa.table({"v": values, "code": codes}))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM {name}_arrow")
    connection.unregister(f"{name}_arrow")
    return name


def _many(connection: duckdb.DuckDBPyConnection, table: str, columns: list[str]) -> bool:
    """True if there are many rows, and most of the first ones are cells of their own."""
    rows = f"(FROM {table} LIMIT {_FIRST})"
    cells = f"(SELECT DISTINCT {', '.join(columns)} FROM {rows})"
    return all(
        connection.execute(f"SELECT count(*) FROM {some}").fetchall()[0][0] > _FIRST // 2
        for some in (rows, cells)
    )
