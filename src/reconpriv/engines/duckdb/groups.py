"""The groups of a table, counted by DuckDB: in canonical order, or in that of protection groups."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path

import duckdb
import pyarrow as pa

from reconpriv.cells.cell_batch import CellBatch, whole_groups
from reconpriv.columns.schema import Schema
from reconpriv.columns.schema import quote_identifier as quote
from reconpriv.engines.base import Layout, Progress, T, Written, memory_bytes, no_progress
from reconpriv.engines.duckdb.coded_cells import CodedCells, code_cells, register_codes
from reconpriv.engines.duckdb.columns import TABLE, TableColumns
from reconpriv.engines.duckdb.errors import clear_errors
from reconpriv.engines.duckdb.literals import literal
from reconpriv.engines.polling import polling
from reconpriv.policy.protection import NO_COARSENING, Coarsening
from reconpriv.protect.coarsening import coarse_column, coarse_columns, pooled
from reconpriv.protect.watched import PublishFunction
from reconpriv.sources.lazy import spool

NUMBERS = count()
BATCH = 1 << 17  # cells fetched at a time, at most
_COARSE = "reconpriv_coarse"
_LEAST_BATCH = 1 << 10
_KEEP = 8  # batches kept in memory, so an audit before a publication counts only once
_BYTES_PER_VALUE = 64  # what a value of a cell takes as it passes through the kernel
_BATCH_MEMORY = 1 << 28


class GroupCounts(TableColumns):
    """Counts the cells of a table; what is needed now and again is kept."""

    _memory: str | None
    _may_code: bool
    _stopped: threading.Event
    _kept: tuple[tuple[Schema, bool, Coarsening], list[CellBatch]] | None

    def _scratch_folder(self) -> Path:
        """Where raw data may be spilled."""
        raise NotImplementedError

    def batches(
        self,
        schema: Schema,
        *,
        drop_missing: bool,
        coarsening: Coarsening = NO_COARSENING,
        progress: Progress = no_progress,
    ) -> Iterator[CellBatch]:
        """Every micro group in canonical order, in batches of bounded size.

        With a coarsening, in the order of protection groups, which are whole as well.
        """
        if self._kept is not None and self._kept[0] == (schema, drop_missing, coarsening):
            yield from self._kept[1]
            return
        kept: list[CellBatch] | None = []
        cells = 0
        for batch in self._count_groups(schema, drop_missing, coarsening, progress):
            cells += batch.count.size
            if kept is not None:
                kept = [*kept, batch] if cells <= _KEEP * self._batch_cells(schema) else None
            yield batch
        if kept is not None:
            self._kept = ((schema, drop_missing, coarsening), kept)

    def _count_groups(
        self, schema: Schema, drop_missing: bool, coarsening: Coarsening, progress: Progress
    ) -> Iterator[CellBatch]:
        # Inside the query columns are c0, c1, …, so no column name can get in the way.
        names = [f"c{i}" for i in range(len(schema.columns))]
        columns = ", ".join(
            f"{self._expressions[column]} AS {name}"
            for column, name in zip(schema.columns, names, strict=True)
        )
        where = f"WHERE {self._present(schema.sensitive)}" if drop_missing else ""
        order = [f"{name} NULLS LAST" for name in names]
        query = f"SELECT {columns}, {self._count} AS n FROM {TABLE} {where} GROUP BY ALL"
        with clear_errors(self._what):
            coded = None
            if coarsening:
                keys, joins = self._coarse_keys(schema, coarsening, where)
                query = f"SELECT c.* FROM ({query}) c {joins} ORDER BY {', '.join([*keys, *order])}"
            else:
                coded = self._coded(schema, where)
                query = f"{query} ORDER BY {', '.join(order)}" if coded is None else coded.query
            with _watched(self._connection, "counting", progress):
                reader = self._connection.sql(query).to_arrow_reader(self._batch_cells(schema))
            if coded is not None:
                yield from coded.groups(reader)
                return
            for batch in whole_groups(reader, schema, coarse_columns(schema, coarsening)):
                yield pooled(batch, schema, coarsening)

    def _coarse_keys(
        self, schema: Schema, coarsening: Coarsening, where: str
    ) -> tuple[list[str], str]:
        """What protection groups are sorted by, and the joins that make it known."""
        keys: list[str] = []
        joins = ""
        for i, column in enumerate(schema.public):
            if column.name not in coarsening.names:
                keys.append(f"c{i} NULLS LAST")
                continue
            value = f"SELECT DISTINCT {self._expressions[column]} AS v FROM {TABLE} {where}"
            values = self._connection.sql(value).to_arrow_table().column(0).combine_chunks()
            labels = coarse_column(column, schema, coarsening, values)
            if labels is not None:
                name = f"{_COARSE}_{i}"
                register_codes(self._connection, name, values, labels.codes)
                joins += f" LEFT JOIN {name} ON {name}.v IS NOT DISTINCT FROM c.c{i}"
                keys.append(f"{name}.code")
        return keys, joins

    def _coded(self, schema: Schema, where: str) -> CodedCells | None:
        if not self._may_code:
            return None
        weight = None if self._count_column is None else quote(self._count_column)
        return code_cells(self._connection, TABLE, schema, self._expressions, where, weight)

    def _batch_cells(self, schema: Schema) -> int:
        """How many cells the kernel takes at a time: fewer with little memory or many columns."""
        memory = _BATCH_MEMORY if self._memory is None else memory_bytes(self._memory) // 8
        fitting = memory // (_BYTES_PER_VALUE * (len(schema.columns) + 1))
        return max(_LEAST_BATCH, min(BATCH, fitting))

    def map_groups(
        self,
        schema: Schema,
        work: Callable[[Iterator[CellBatch]], T],
        *,
        drop_missing: bool,
        coarsening: Coarsening = NO_COARSENING,
        progress: Progress = no_progress,
    ) -> list[T]:
        """Apply a function to all groups at once."""
        found = self.batches(
            schema, drop_missing=drop_missing, coarsening=coarsening, progress=progress
        )
        return [work(found)]

    def write(
        self,
        schema: Schema,
        publish: PublishFunction,
        folder: Path,
        *,
        layout: Layout,
        drop_missing: bool,
        coarsening: Coarsening = NO_COARSENING,
        progress: Progress = no_progress,
    ) -> Written:
        """Publish every group and write data (and groups, if asked) into an existing folder."""
        from reconpriv.engines.writer import write_release_files  # noqa: PLC0415

        batches = self.batches(
            schema, drop_missing=drop_missing, coarsening=coarsening, progress=progress
        )
        of_groups = coarsening.coarse(schema)
        in_order = self._in_order if coarsening else None
        return write_release_files(
            batches, schema, publish, folder, layout, progress, of_groups, in_order
        )

    def _in_order(self, cells: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Cells in canonical order, sorted on disk: protection groups mix those of the table."""
        first = next(cells)
        file = self._scratch_folder() / f"dealt-{next(NUMBERS)}.parquet"
        spool(chain([first], cells), first.schema, file, self._stopped)
        order = ", ".join(f"{quote(name)} NULLS LAST" for name in first.schema.names[:-1])
        query = f"FROM read_parquet({literal(str(file))}) ORDER BY {order}"
        with clear_errors(self._what):
            yield from self._connection.sql(query).to_arrow_reader(BATCH)
        file.unlink()


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
