"""The groups of a table, counted by DuckDB: in canonical order, or in that of protection groups."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.columns.schema import Schema
from reconpriv.columns.schema import quote_identifier as quote
from reconpriv.engines.base import Engine, Layout, Progress, Written, memory_bytes, no_progress
from reconpriv.engines.duckdb.coded_cells import CodedCells, code_cells, register_codes
from reconpriv.engines.duckdb.dialect import DIALECT, literal
from reconpriv.engines.duckdb.errors import clear_errors
from reconpriv.engines.polling import polling
from reconpriv.protect.group_by import GroupBy
from reconpriv.protect.watched import PublishFunction
from reconpriv.sources.lazy import spool

NUMBERS = count()
BATCH = 1 << 17  # cells fetched at a time, at most
_LEAST_BATCH = 1 << 10
_KEEP = 8  # batches kept in memory, so an audit before a publication counts only once
_BYTES_PER_VALUE = 64  # what a value of a cell takes as it passes through the kernel
_BATCH_MEMORY = 1 << 28


class GroupCounts(Engine):
    """Counts the cells of a table; what is needed now and again is kept."""

    dialect = DIALECT
    table = "reconpriv_table"
    _connection: duckdb.DuckDBPyConnection
    _what: str
    _count_column: str | None
    _memory: str | None
    _may_code: bool
    _stopped: threading.Event
    _kept: tuple[GroupBy, list[CellBatch]] | None

    def _scratch_folder(self) -> Path:
        """Where raw data may be spilled."""
        raise NotImplementedError

    @property
    def _count(self) -> str:  # type: ignore[override]
        if self._count_column is None:
            return "count(*)"
        return f"sum({quote(self._count_column)})::BIGINT"

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with clear_errors(self._what):
            # Through Arrow: DuckDB's own rows need pytz for a time with a zone.
            found = self._connection.sql(query).to_arrow_table()
            try:
                return list(zip(*(column.to_pylist() for column in found.columns), strict=True))
            except (OverflowError, ValueError):
                # Years that Python's dates do not have; DuckDB gives such dates as text.
                return self._connection.execute(query).fetchall()

    def _distinct_values(self, query: str) -> pa.Array:
        return self._connection.sql(query).to_arrow_table().column(0).combine_chunks()

    def _known_codes(self, values: pa.Array, codes: NDArray[np.int32]) -> str:
        return register_codes(self._connection, f"reconpriv_coarse_{next(NUMBERS)}", values, codes)

    def batches(self, grouping: GroupBy, progress: Progress = no_progress) -> Iterator[CellBatch]:
        """Every micro group, in the order of protection groups; what is small is counted once."""
        if self._kept is not None and self._kept[0] == grouping:
            yield from self._kept[1]
            return
        kept: list[CellBatch] | None = []
        cells = 0
        for batch in self._count_groups(grouping, progress):
            cells += batch.count.size
            if kept is not None:
                most = _KEEP * self._batch_cells(grouping.schema)
                kept = [*kept, batch] if cells <= most else None
            yield batch
        if kept is not None:
            self._kept = grouping, kept

    def _count_groups(self, grouping: GroupBy, progress: Progress) -> Iterator[CellBatch]:
        with clear_errors(self._what):
            coded = self._coded(grouping)
            if coded is None:
                query = self._sorted_cells(grouping, "ORDER BY {order}")
            else:
                query = coded.query
            with _watched(self._connection, "counting", progress):
                most = self._batch_cells(grouping.schema)
                reader = self._connection.sql(query).to_arrow_reader(most)
            yield from grouping.batches(reader) if coded is None else coded.groups(reader)

    def _coded(self, grouping: GroupBy) -> CodedCells | None:
        if not self._may_code or grouping.coarsening.columns:
            return None
        weight = None if self._count_column is None else quote(self._count_column)
        schema = grouping.schema
        present = self._present(schema.sensitive if grouping.drop_missing else None)
        return code_cells(
            self._connection, self.table, schema, self._expressions, f"WHERE {present}", weight
        )

    def _batch_cells(self, schema: Schema) -> int:
        """How many cells the kernel takes at a time: fewer with little memory or many columns."""
        memory = _BATCH_MEMORY if self._memory is None else memory_bytes(self._memory) // 8
        fitting = memory // (_BYTES_PER_VALUE * (len(schema.columns) + 1))
        return max(_LEAST_BATCH, min(BATCH, fitting))

    def write(
        self,
        grouping: GroupBy,
        publish: PublishFunction,
        folder: Path,
        layout: Layout,
        progress: Progress = no_progress,
    ) -> Written:
        """Publish every group and write data (and groups, if asked) into an existing folder."""
        from reconpriv.engines.writer import write_release_files  # noqa: PLC0415

        batches = self.batches(grouping, progress)
        return write_release_files(
            batches, grouping, publish, folder, layout, progress, self._in_order
        )

    def _in_order(self, cells: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Cells in canonical order, sorted on disk: protection groups mix those of the table."""
        file, names = self._spooled(cells, "dealt")
        order = ", ".join(f"{quote(name)} NULLS LAST" for name in names[:-1])
        query = f"FROM read_parquet({literal(str(file))}) ORDER BY {order}"
        with clear_errors(self._what):
            yield from self._connection.sql(query).to_arrow_reader(BATCH)
        file.unlink()

    def _spooled(self, rows: Iterator[pa.RecordBatch], name: str) -> tuple[Path, list[str]]:
        """A new file of these rows, and the names of their columns."""
        first = next(rows)
        file = self._scratch_folder() / f"{name}-{next(NUMBERS)}.parquet"
        return spool(chain([first], rows), first.schema, file, self._stopped), first.schema.names


@contextmanager
def _watched(
    connection: duckdb.DuckDBPyConnection, stage: str, progress: Progress
) -> Iterator[None]:
    """Report the progress of a running query from a separate thread."""
    if progress is no_progress:
        yield
        return

    def ask() -> None:
        percent = connection.query_progress()
        if percent >= 0:
            progress(stage, percent / 100.0)

    with polling(ask, every=0.2):
        yield
