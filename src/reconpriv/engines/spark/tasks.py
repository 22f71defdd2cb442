"""What runs in Spark's Python workers: the kernel on Arrow batches, and the writing of files.

Each task is a frozen dataclass that can be pickled and is called with the Arrow batches of one
partition. The output of a task depends only on its rows, so a retried or speculative one produces
the same again.
"""

from __future__ import annotations

import itertools
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconpriv.core.cells import CellBatch, Encoded, encode, whole_groups
from reconpriv.core.kernel import PublishedBatch
from reconpriv.core.row_choice import RowChoice
from reconpriv.engines.base import Layout, PublishFunction, WrittenFile
from reconpriv.engines.record_file import RecordFile, file_name
from reconpriv.schema import Schema
from reconpriv.theory.arrays import Ints
from reconpriv.writing.scratch import temporary

PUBLISHED = ("records", "trials", "sampled", "unattainable", "values", "counts")
"""The columns of a published group after its public values."""

NUMBERED = ("part", "data_start", "group_start")
"""Where a published group stands: its part, and rows and groups before it in that part."""


def canonical(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Arrow types as the other engine has them: plain text, times in UTC."""
    arrays, names = [], []
    for field, array in zip(batch.schema, batch.columns, strict=True):
        arrays.append(array.cast(_canonical_type(field.type)))
        names.append(field.name)
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _canonical_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp("us", "UTC")
    return kind


@dataclass(frozen=True)
class MapGroups:
    """Apply a function to the whole groups of a partition; its result is one pickled value."""

    schema: Schema
    work: Callable[[Iterator[CellBatch]], Any]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row for the partition, none if it is empty."""
        groups = whole_groups(map(canonical, batches), self.schema)
        first = next(groups, None)
        if first is not None:
            result = pickle.dumps(self.work(_chain(first, groups)))
            yield pa.RecordBatch.from_arrays([pa.array([result], pa.binary())], names=["result"])


def _chain(first: CellBatch, rest: Iterator[CellBatch]) -> Iterator[CellBatch]:
    yield first
    yield from rest


@dataclass(frozen=True)
class ChooseRows:
    """Choose one row of each person in a partition, which holds all rows of a person."""

    choose: RowChoice

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The chosen rows."""
        yield from self.choose(whole_groups(map(canonical, batches), self.choose.by_person))


@dataclass(frozen=True)
class SpelledNumbers:
    """Whether every text in a column is the shortest spelling of a number."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row of truth values for each batch."""
        for batch in batches:
            fits = [all(map(_is_spelled, pc.unique(c).to_pylist())) for c in batch.columns]
            yield pa.RecordBatch.from_arrays(
                [pa.array([fit]) for fit in fits], names=batch.schema.names
            )


def _is_spelled(text: str | None) -> bool:
    try:
        return text is None or repr(float(text)) == text
    except ValueError:
        return False


@dataclass(frozen=True)
class PackBatches:
    """Each batch of sorted cells as one row that holds it in Arrow's stream format."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row per batch."""
        for batch in map(canonical, batches):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            packed = pa.array([sink.getvalue().to_pybytes()], pa.binary())
            yield pa.RecordBatch.from_arrays([packed], names=["batch"])


def unpack_batch(packed: bytes) -> pa.RecordBatch:
    """The batch that such a row holds."""
    return pa.ipc.open_stream(packed).read_next_batch()


@dataclass(frozen=True)
class PublishGroups:
    """Run the kernel on a partition's groups: one row per published group, its cells in lists."""

    publish: PublishFunction
    schema: Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Groups in the order in which they come."""
        for batch in whole_groups(map(canonical, batches), self.schema):
            for published in self.publish(batch):
                yield _group_rows(published)


def _group_rows(published: PublishedBatch) -> pa.RecordBatch:
    groups = published.records.size
    offsets = np.searchsorted(published.group, np.arange(groups + 1)).astype(np.int32)
    columns = [column.values.take(pa.array(column.codes)) for column in published.public]
    columns += [
        pa.array(published.records),
        pa.array(published.trials),
        pa.array(published.sampled),
        pa.array(np.where(published.unattainable, published.sizes, 0)),
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(published.value.astype(np.int32))),
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(published.count)),
    ]
    names = [*(f"c{i}" for i in range(len(published.public))), *PUBLISHED]
    return pa.RecordBatch.from_arrays(columns, names=names)


@dataclass(frozen=True)
class NumberGroups:
    """Add to each published group its place in its sorted partition."""

    layout: Layout

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The groups as they are, with their places."""
        from pyspark import TaskContext  # noqa: PLC0415 - there is one on a worker only

        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        rows_before = groups_before = 0
        for batch in batches:
            rows = group_row_counts(batch, self.layout)
            places = [
                np.full(rows.size, part, dtype=np.int64),
                rows_before + np.cumsum(rows) - rows,
                groups_before + np.arange(rows.size),
            ]
            rows_before += int(rows.sum())
            groups_before += rows.size
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *map(pa.array, places)], names=[*batch.schema.names, *NUMBERED]
            )


def group_row_counts(batch: pa.RecordBatch, layout: Layout) -> Ints:
    """How many rows of the data file each group makes."""
    if layout.cells:
        return np.asarray(_list_lengths(batch.column("counts")), dtype=np.int64)
    return np.asarray(batch.column("records").to_numpy(), dtype=np.int64)


def _list_lengths(lists: pa.ListArray) -> Ints:
    return np.asarray(np.diff(lists.offsets.to_numpy()), dtype=np.int64)


@dataclass(frozen=True)
class FileRows:
    """The rows of a release's data or groups files, on their way into files.

    They come sorted by (file, start): the file's number, and the place of the group's first row
    in the whole series. A file holds the rows from number x rows_per_file on.
    """

    stem: str
    files: int
    names: tuple[str, ...]
    schema: Schema
    layout: Layout

    def write(
        self, batches: Iterable[pa.RecordBatch], folder: Path
    ) -> Iterator[tuple[int, WrittenFile, Path]]:
        """Write these rows to their files, each in a new folder below the given one."""
        current, sink = -1, None
        try:
            for batch in map(canonical, batches):
                numbers = batch.column("file").to_numpy()
                borders = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), numbers.size]
                for low, high in itertools.pairwise(borders):
                    if high > low and int(numbers[low]) != current:
                        if sink is not None:
                            yield current, sink.close()[0], sink.path
                        current = int(numbers[low])
                        sink = self._open(folder)
                    if sink is not None:
                        self._add(sink, current, batch.slice(low, high - low))
            if sink is not None:
                last, sink = sink, None
                yield current, last.close()[0], last.path
        finally:
            if sink is not None:
                sink.abandon()

    def _open(self, folder: Path) -> RecordFile:
        # Two attempts at a task may run at once; each writes its own file, and all are the same.
        passing = Path(tempfile.mkdtemp(prefix="writing-", dir=folder))
        return RecordFile(
            passing / f"{self.stem}.{self.layout.file_format}",
            self.names,
            rows_per_file=self.layout.rows_per_file,
        )

    def _add(self, sink: RecordFile, number: int, batch: pa.RecordBatch) -> None:
        public = [encode(batch.column(f"c{i}")) for i in range(len(self.schema.public))]
        if self.stem == "groups":
            sink.add([*public, _numpy(batch, "records"), _numpy(batch, "trials")])
            return
        low = number * self.layout.rows_per_file
        high = low + self.layout.rows_per_file
        group, value, count = _cells(batch)
        rows = np.ones_like(count) if self.layout.cells else count
        begin = _place_of_cells(group, rows, batch.column("start").to_numpy())
        kept = np.minimum(begin + rows, high) - np.maximum(begin, low)
        inside = np.flatnonzero(kept > 0)
        domain = pa.array(self.schema.domain)
        columns: list[Any] = [column.take(group[inside]) for column in public]
        columns.append(Encoded(value[inside], domain))
        if self.layout.cells:
            sink.add([*columns, count[inside]])
        else:
            sink.add(columns, kept[inside])


@dataclass(frozen=True)
class WriteFiles:
    """Write files into a folder that all machines share; made elsewhere, so they appear whole."""

    rows: FileRows
    scratch: str
    folder: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row per file: its number, rows, bytes and hash."""
        for number, written, path in self.rows.write(batches, Path(self.scratch)):
            name = file_name(self.rows.stem, self.rows.layout.file_format, number, self.rows.files)
            path.replace(Path(self.folder) / name)
            yield pa.RecordBatch.from_pylist([_description(number, written)])


@dataclass(frozen=True)
class FileContents:
    """The bytes of files, for Spark to write where it likes: all but their endings.

    A Parquet file is one piece. A CSV is cut at ends of lines, since it may be large.
    """

    rows: FileRows

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row per piece: the file's description, the piece's number and its bytes."""
        with temporary("files") as scratch:
            for number, written, path in self.rows.write(batches, scratch):
                for piece, content in enumerate(self._pieces(path)):
                    row = _description(number, written) | {"piece": piece, "content": content}
                    yield pa.RecordBatch.from_pylist([row])
                path.unlink()

    def _pieces(self, path: Path) -> Iterator[bytes]:
        ending = ENDINGS[self.rows.layout.file_format].encode()
        with path.open("rb") as stream:
            if self.rows.layout.file_format != "csv":
                yield stream.read().removesuffix(ending)
                return
            while piece := stream.read(_PIECE):
                # Lines are short; one that is cut is read to its end.
                piece += stream.readline() if not piece.endswith(ending) else b""
                yield piece.removesuffix(ending)


ENDINGS = {"parquet": "PAR1", "csv": "\n"}
"""What the files of a format end with."""

_PIECE = 1 << 24


def _description(number: int, written: WrittenFile) -> dict[str, Any]:
    return {
        "file": number,
        "rows": written.rows,
        "bytes": written.bytes,
        "sha256": written.sha256,
    }


@dataclass(frozen=True)
class SeesFile:
    """Whether a worker sees a file: the proof that a folder is shared."""

    path: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row for the partition."""
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pylist([{"seen": Path(self.path).is_file()}])


def _cells(batch: pa.RecordBatch) -> tuple[Ints, NDArray[np.int32], Ints]:
    """The group, value and count of every cell in the lists of a batch of groups."""
    values, counts = batch.column("values"), batch.column("counts")
    group = np.repeat(np.arange(batch.num_rows), _list_lengths(values))
    return group, values.flatten().to_numpy(), counts.flatten().to_numpy()


def _numpy(batch: pa.RecordBatch, name: str) -> Ints:
    return np.asarray(batch.column(name).to_numpy(), dtype=np.int64)


def _place_of_cells(group: Ints, rows: Ints, starts: Ints) -> Ints:
    """Where each cell's first row stands in the whole series."""
    before = np.cumsum(rows) - rows
    first = np.searchsorted(group, np.arange(starts.size))
    return np.asarray(starts[group] + before - before[first[group]], dtype=np.int64)
