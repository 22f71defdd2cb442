"""A series of files of records: dictionary-encoded, in row groups and files of a fixed size.

Nothing in a file depends on anything but its rows: row groups and files have a fixed number of
rows, and dictionaries hold just the values that occur, sorted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from reconpriv.cells.cell_batch import Encoded, unify
from reconpriv.engines.base import ROWS_PER_FILE, WrittenFile
from reconpriv.theory.arrays import Ints
from reconpriv.writing.scratch import uninterrupted

ROWS_PER_ROW_GROUP = 1 << 20

FileColumn = Encoded | Ints


def rows_per_row_group(columns: int) -> int:
    """2^20, or fewer if there are many columns, so that a row group fits into memory."""
    rows = ROWS_PER_ROW_GROUP
    while columns > 16:
        rows, columns = rows // 2, columns // 2
    return max(rows, 1)


def file_name(stem: str, ending: str, number: int, files: int) -> str:
    """The name of file ``number`` (from 0) of ``files``; a single one has no number."""
    return f"{stem}.{ending}" if files == 1 else f"{stem}-{number + 1:05}.{ending}"


class RecordFile:
    """A file that takes rows with repetition counts; row groups are written behind the scenes.

    After ``rows_per_file`` rows the next file of the series is begun.
    """

    def __init__(
        self, path: Path, names: Sequence[str], *, rows_per_file: int = ROWS_PER_FILE
    ) -> None:
        """Nothing is opened until the first row group is full; the ending gives the format."""
        self.path, self._path = path, path
        self._names, self._format = list(names), path.suffix[1:]
        self._rows_per_file = rows_per_file
        self._rows_per_row_group = min(rows_per_row_group(len(names)), rows_per_file)
        self._finished: list[WrittenFile] = []
        self._pending: list[tuple[list[FileColumn], Ints]] = []
        self._pending_rows = 0
        self._rows = 0
        self._sink: Any = None
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._last: Future[None] | None = None

    def add(self, columns: Sequence[FileColumn], counts: Ints | None = None) -> None:
        """Append rows, each as often as its count says (once by default)."""
        if counts is None:
            first = columns[-1]
            counts = np.ones(len(first.codes if isinstance(first, Encoded) else first), np.int64)
        if counts.size == 0:
            return
        self._pending.append((list(columns), counts))
        self._pending_rows += int(counts.sum())
        while self._pending_rows >= self._rows_per_row_group:
            self._submit(self._take(self._rows_per_row_group))

    def close(self) -> tuple[WrittenFile, ...]:
        """Write what is left and describe the files."""
        if self._pending_rows:
            self._submit(self._take(self._pending_rows))
        self._wait()
        self._pool.shutdown()
        if self._sink is not None:
            self._finish()
        if len(self._finished) > 1:
            self._finished[0] = self._numbered(self._finished[0])
        return tuple(self._finished)

    def _numbered(self, alone: WrittenFile) -> WrittenFile:
        """The first file of several, named as such."""
        name = file_name(self.path.stem, self._format, 0, 2)
        self.path.rename(self.path.with_name(name))
        return WrittenFile(name, alone.rows, alone.bytes, alone.sha256)

    def _finish(self) -> None:
        self._sink.close()
        self._sink = None
        self._finished.append(describe_file(self._path, self._rows))
        name = file_name(self.path.stem, self._format, len(self._finished), 2)
        self._path, self._rows = self.path.with_name(name), 0

    def abandon(self) -> None:
        """Close the file, whatever is in it."""
        # Closing a file that the thread still writes to would crash the process.
        with uninterrupted():
            self._pool.shutdown(cancel_futures=True)
            if self._sink is not None:
                with suppress(Exception):
                    self._sink.close()

    def _submit(self, rows: list[tuple[list[FileColumn], Ints]]) -> None:
        table = self._table(rows)  # while the one before is written
        self._wait()
        # An interrupt as the pool starts its thread would let the pool forget about it, and
        # nobody would wait for its end.
        with uninterrupted():
            self._last = self._pool.submit(self._write, table)

    def _wait(self) -> None:
        if self._last is not None:
            self._last.result()
            self._last = None

    def _take(self, rows: int) -> list[tuple[list[FileColumn], Ints]]:
        """Take exactly this many rows off the front, splitting a count if need be."""
        taken: list[tuple[list[FileColumn], Ints]] = []
        missing = rows
        while missing:
            columns, counts = self._pending[0]
            running = np.cumsum(counts)
            if running[-1] <= missing:
                taken.append(self._pending.pop(0))
                missing -= int(running[-1])
                continue
            last = int(np.searchsorted(running, missing, side="left"))
            head, tail = counts[: last + 1].copy(), counts[last:].copy()
            tail[0] = running[last] - missing
            head[last] -= tail[0]
            taken.append(([_cut(column, slice(0, last + 1)) for column in columns], head))
            skip = last + (tail[0] == 0)
            self._pending[0] = (
                [_cut(column, slice(int(skip), None)) for column in columns],
                tail[int(tail[0] == 0) :],
            )
            missing = 0
        self._pending_rows -= rows
        return taken

    def _table(self, rows: list[tuple[list[FileColumn], Ints]]) -> pa.Table:
        counts = np.concatenate([part for _, part in rows])
        arrays = [
            _expand([columns[i] for columns, _ in rows], counts) for i in range(len(self._names))
        ]
        if self._format == "csv":
            arrays = [
                a.dictionary_decode() if pa.types.is_dictionary(a.type) else a for a in arrays
            ]
        return pa.Table.from_arrays(arrays, names=self._names)

    def _write(self, table: pa.Table) -> None:
        if self._sink is None:
            self._sink = self._open(table.schema)
        if self._format == "csv":
            self._sink.write_table(table)
        else:
            self._sink.write_table(table, row_group_size=self._rows_per_row_group)
        self._rows += table.num_rows
        if self._rows >= self._rows_per_file:
            self._finish()

    def _open(self, schema: pa.Schema) -> Any:
        if self._format == "csv":
            return pyarrow.csv.CSVWriter(str(self._path), schema)
        return pyarrow.parquet.ParquetWriter(
            str(self._path), schema, compression="zstd", compression_level=1, store_schema=False
        )


def describe_file(path: Path, rows: int) -> WrittenFile:
    """A finished file, with its size and hash."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return WrittenFile(path.name, rows, path.stat().st_size, digest)


def _cut(column: FileColumn, rows: slice) -> FileColumn:
    if isinstance(column, Encoded):
        return Encoded(column.codes[rows], column.values)
    return column[rows]


def _expand(parts: list[FileColumn], counts: Ints) -> pa.Array:
    """Join the parts of a column and repeat its rows; text stays dictionary-encoded."""
    if not isinstance(parts[0], Encoded):
        return pa.array(np.repeat(np.concatenate(parts), counts))  # type: ignore[arg-type]
    codes, values = unify([part for part in parts if isinstance(part, Encoded)])
    codes = np.repeat(codes, counts)
    if len(values) and not values[-1].is_valid:
        missing = codes == len(values) - 1
        values = values.slice(0, len(values) - 1)
        indices = pa.array(codes, mask=missing)
    else:
        indices = pa.array(codes)
    if pa.types.is_string(values.type):
        return pa.DictionaryArray.from_arrays(indices, values)
    return values.take(indices)
