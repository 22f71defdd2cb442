"""Writing published cells as records: dictionary-encoded, in row groups of a fixed size.

Nothing in a file depends on anything but the published content: row groups have a fixed number
of rows, and their dictionaries hold just the values in them, sorted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from reconpriv.cells import CellBatch, Encoded, unify
from reconpriv.engines.base import Progress, PublishFunction, Written, WrittenFile
from reconpriv.publish import PublishedBatch
from reconpriv.schema import Schema

Ints = NDArray[np.int64]

ROWS_PER_ROW_GROUP = 1 << 20


def write_release_files(
    batches: Iterable[CellBatch],
    schema: Schema,
    publish: PublishFunction,
    folder: Path,
    file_format: str,
    with_trials: bool,
    progress: Progress,
) -> Written:
    """Publish the batches and write ``data`` and, where trials may be told, ``groups``."""
    names = [column.name for column in schema.columns]
    data = RecordFile(folder / f"data.{file_format}", names, file_format)
    groups = None
    if with_trials:
        group_names = [*names[:-1], *count_names(schema)]
        groups = RecordFile(folder / f"groups.{file_format}", group_names, file_format)
    domain = pa.array(schema.domain)
    totals = dict.fromkeys(
        ("records", "groups", "sampled_groups", "trials", "unattainable_groups",
         "unattainable_records"), 0
    )  # fmt: skip
    try:
        for batch in batches:
            for published in publish(batch):
                data.add(_cell_columns(published, domain), published.count)
                if groups is not None:
                    groups.add([*published.public, published.records, published.trials])
                _add_totals(totals, published)
                # At every piece, not at every batch: a caller may stop the work from here.
                progress("publishing", totals["records"] / max(schema.records, 1))
        data_file = data.close()
        groups_file = groups.close() if groups is not None else None
    except BaseException:
        data.abandon()
        if groups is not None:
            groups.abandon()
        raise
    return Written(data=data_file, groups_file=groups_file, **totals)


def count_names(schema: Schema) -> tuple[str, str]:
    """What the two counts of the groups file are called: not like any public attribute."""
    taken = {column.name.lower() for column in schema.public}
    names = []
    for name in ("records", "trials"):
        free = name
        while free in taken:
            free += "_"
        names.append(free)
    return names[0], names[1]


def _cell_columns(published: PublishedBatch, domain: pa.Array) -> list[Encoded]:
    sensitive = Encoded(published.value.astype(np.int32), domain)
    return [*(column.take(published.group) for column in published.public), sensitive]


def _add_totals(totals: dict[str, int], published: PublishedBatch) -> None:
    totals["records"] += int(published.records.sum())
    totals["groups"] += published.records.size
    totals["sampled_groups"] += int(published.sampled.sum())
    totals["trials"] += int(published.trials.sum())
    totals["unattainable_groups"] += int(published.unattainable.sum())
    totals["unattainable_records"] += int(published.sizes[published.unattainable].sum())


Column = Encoded | Ints


class RecordFile:
    """A file that takes rows with repetition counts; row groups are written behind the scenes."""

    def __init__(self, path: Path, names: Sequence[str], file_format: str) -> None:
        """Nothing is opened until the first row group is full."""
        self._path, self._names, self._format = path, list(names), file_format
        self._pending: list[tuple[list[Column], Ints]] = []
        self._pending_rows = 0
        self._rows = 0
        self._sink: Any = None
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._last: Future[None] | None = None

    def add(self, columns: Sequence[Column], counts: Ints | None = None) -> None:
        """Append rows, each as often as its count says (once by default)."""
        if counts is None:
            first = columns[-1]
            counts = np.ones(len(first.codes if isinstance(first, Encoded) else first), np.int64)
        self._pending.append((list(columns), counts))
        self._pending_rows += int(counts.sum())
        while self._pending_rows >= ROWS_PER_ROW_GROUP:
            self._submit(self._take(ROWS_PER_ROW_GROUP))

    def close(self) -> WrittenFile:
        """Write what is left and describe the file."""
        if self._pending_rows:
            self._submit(self._take(self._pending_rows))
        self._wait()
        self._pool.shutdown()
        if self._sink is not None:
            self._sink.close()
        with self._path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return WrittenFile(self._path.name, self._rows, self._path.stat().st_size, digest)

    def abandon(self) -> None:
        """Let go of the file without caring for what is in it."""
        self._pool.shutdown(cancel_futures=True)
        if self._sink is not None:
            with suppress(Exception):
                self._sink.close()

    def _submit(self, rows: list[tuple[list[Column], Ints]]) -> None:
        self._wait()
        self._last = self._pool.submit(self._write, rows)

    def _wait(self) -> None:
        if self._last is not None:
            self._last.result()
            self._last = None

    def _take(self, rows: int) -> list[tuple[list[Column], Ints]]:
        """Take exactly so many rows off the front, splitting a count where need be."""
        taken: list[tuple[list[Column], Ints]] = []
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

    def _write(self, rows: list[tuple[list[Column], Ints]]) -> None:
        counts = np.concatenate([part for _, part in rows])
        arrays = [
            _expand([columns[i] for columns, _ in rows], counts) for i in range(len(self._names))
        ]
        if self._format == "csv":
            arrays = [
                a.dictionary_decode() if pa.types.is_dictionary(a.type) else a for a in arrays
            ]
        table = pa.Table.from_arrays(arrays, names=self._names)
        if self._sink is None:
            self._sink = self._open(table.schema)
        if self._format == "csv":
            self._sink.write_table(table)
        else:
            self._sink.write_table(table, row_group_size=ROWS_PER_ROW_GROUP)
        self._rows += table.num_rows

    def _open(self, schema: pa.Schema) -> Any:
        if self._format == "csv":
            return pyarrow.csv.CSVWriter(str(self._path), schema)
        return pyarrow.parquet.ParquetWriter(
            str(self._path), schema, compression="zstd", compression_level=1, store_schema=False
        )


def _cut(column: Column, rows: slice) -> Column:
    if isinstance(column, Encoded):
        return Encoded(column.codes[rows], column.values)
    return column[rows]


def _expand(parts: list[Column], counts: Ints) -> pa.Array:
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
