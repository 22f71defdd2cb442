"""What runs in Spark's Python workers: the kernel on Arrow batches, and the writing of files.

Each task is a frozen dataclass that can be pickled and is called with the Arrow batches of one
partition. The output of a task depends only on its rows, so a retried or speculative one produces
the same again.
"""

from __future__ import annotations

import itertools
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconpriv.cells.cell_batch import CellBatch, Encoded, encode, whole_groups
from reconpriv.columns.schema import Schema
from reconpriv.engines.base import Layout, WrittenFile
from reconpriv.engines.record_file import RecordFile, file_name
from reconpriv.protect.group_by import GroupBy
from reconpriv.protect.kernel import PublishedBatch, PublishedCells
from reconpriv.protect.row_choice import RowChoice
from reconpriv.protect.watched import PublishFunction, Watched, fresh
from reconpriv.theory.arrays import Ints
from reconpriv.writing.scratch import temporary

PUBLISHED = ("records", "trials", "sampled", "unattainable", "values", "counts", "told")
"""The columns of a published group after its public values.

The last one is for the watchers of the publication, in a row of its own for each partition.
"""

_TYPES = {
    "records": pa.int64(), "trials": pa.int64(), "sampled": pa.bool_(), "unattainable": pa.int64(),
    "values": pa.list_(pa.int32()), "counts": pa.list_(pa.int64()), "told": pa.binary(),
}  # fmt: skip

NUMBERED = ("part", "data_start", "group_start")
"""Where a published group stands: its part, and rows and groups before it in that part."""


def canonical(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Arrow types as the other engine has them: plain text, times in UTC."""
    arrays, names = [], []
    for field, array in zip(batch.schema, batch.columns, strict=True):
        arrays.append(array.cast(_canonical_type(field.type)))
        names.append(field.name)
    return pa.RecordBatch.from_arrays(arrays, names=names)


def canonical_table(table: pa.Table) -> pa.Table:
    """The same for a whole table."""
    batches = [canonical(batch) for batch in table.to_batches()]
    return pa.Table.from_batches(batches) if batches else table


def _canonical_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp("us", "UTC")
    return kind


@dataclass(frozen=True)
class MapGroups:
    """Apply a function to the whole groups of a partition; its result is one pickled value."""

    grouping: GroupBy
    work: Callable[[Iterator[CellBatch]], Any]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row for the partition, none if it is empty."""
        groups = self.grouping.batches(map(canonical, batches))
        first = next(groups, None)
        if first is not None:
            result = pickle.dumps(self.work(itertools.chain([first], groups)))
            yield pa.RecordBatch.from_arrays([pa.array([result], pa.binary())], names=["result"])


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
    """Run the kernel on a partition's groups: one row per published group, its cells in lists.

    Protection groups that are no micro groups have rows of their own, with their public values in
    columns of their own and without cells; those of micro groups then have no trials.
    """

    publish: PublishFunction
    grouping: GroupBy

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Groups in the order in which they come."""
        publish, types = fresh(self.publish), dict[str, pa.DataType]()
        for batch in self.grouping.batches(map(canonical, batches)):
            for published in publish(batch):
                groups, cells = self._groups(published), _cell_lists(published.dealt)
                types = _TYPES | {name: one.type for name, one in (groups | cells).items()}
                one = self.columns == self.micro_columns
                for rows in [groups | cells] if one else [groups, cells]:
                    yield self._batch(rows, types)
        if types and isinstance(publish, Watched) and publish.watchers:
            yield self._batch({"told": pa.array([publish.told()], pa.binary())}, types)

    def _batch(self, rows: dict[str, pa.Array], types: dict[str, pa.DataType]) -> pa.RecordBatch:
        """Rows with all columns; what they lack is missing."""
        length = len(next(iter(rows.values())))
        names = [*dict.fromkeys([*self.micro_columns, *self.columns]), *PUBLISHED]
        found = [rows[n] if n in rows else pa.nulls(length, types[n]) for n in names]
        return pa.RecordBatch.from_arrays(found, names=names)

    @property
    def micro_columns(self) -> tuple[str, ...]:
        """The columns of the micro groups' public values."""
        return tuple(f"c{i}" for i in range(len(self.grouping.schema.public)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the protection groups' public values."""
        stem = "k" if self.grouping.coarsening.columns else "c"
        return tuple(f"{stem}{i}" for i in range(len(self.grouping.group_schema.public)))

    def _groups(self, published: PublishedBatch) -> dict[str, pa.Array]:
        """What protection groups rest on."""
        return _public_columns(self.columns, published.public) | {
            "records": pa.array(published.records),
            "trials": pa.array(published.trials),
            "sampled": pa.array(published.sampled),
            "unattainable": pa.array(np.where(published.unattainable, published.sizes, 0)),
        }


def _cell_lists(cells: PublishedCells) -> dict[str, pa.Array]:
    """The cells of micro groups, a list for each."""
    groups = cells.places.size
    offsets = pa.array(np.searchsorted(cells.group, np.arange(groups + 1)).astype(np.int32))
    records = np.bincount(cells.group, weights=cells.count, minlength=groups).astype(np.int64)
    return _public_columns([f"c{i}" for i in range(len(cells.public))], cells.public) | {
        "records": pa.array(records),
        "values": pa.ListArray.from_arrays(offsets, pa.array(cells.value.astype(np.int32))),
        "counts": pa.ListArray.from_arrays(offsets, pa.array(cells.count)),
    }


def _public_columns(names: Sequence[str], public: Sequence[Encoded]) -> dict[str, pa.Array]:
    columns = zip(names, public, strict=True)
    return {name: one.values.take(pa.array(one.codes)) for name, one in columns}


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
    return {"file": number, "rows": written.rows, "bytes": written.bytes, "sha256": written.sha256}


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
