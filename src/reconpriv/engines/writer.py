"""Writing published cells as a release: as records, or as cells with their counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from reconpriv.auditing.single_records import K
from reconpriv.cells.cell_batch import CellBatch, Encoded, encode
from reconpriv.columns.schema import Schema
from reconpriv.engines.base import Layout, Progress, Written
from reconpriv.engines.record_file import RecordFile
from reconpriv.protect.group_by import GroupBy
from reconpriv.protect.kernel import PublishedBatch, PublishedCells
from reconpriv.protect.watched import PublishFunction
from reconpriv.sources.column_names import free_name
from reconpriv.theory.arrays import Ints

TOTALS = (
    "records", "groups", "sampled_groups", "trials", "unattainable_groups", "unattainable_records",
    "unique_records", "few_records",
)  # fmt: skip


InOrder = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Sorts cells by all their columns but the last, their count."""


def write_release_files(
    batches: Iterable[CellBatch],
    grouping: GroupBy,
    publish: PublishFunction,
    folder: Path,
    layout: Layout,
    progress: Progress,
    in_order: InOrder | None = None,
) -> Written:
    """Publish the batches and write ``data`` and, if trials may be published, ``groups``.

    The micro groups of protection groups are sorted by ``in_order`` before they are written.
    """
    schema, group_schema = grouping.schema, grouping.group_schema
    data = _series(folder, "data", data_names(schema, layout), layout)
    groups = None
    if layout.with_trials:
        groups = _series(folder, "groups", group_names(group_schema), layout)
    totals = dict.fromkeys(TOTALS, 0)

    def published_cells() -> Iterator[PublishedCells]:
        for batch in batches:
            for published in publish(batch):
                yield published.dealt
                if groups is not None:
                    groups.add([*published.public, published.records, published.trials])
                for name, number in batch_totals(published).items():
                    totals[name] += number
                # At every piece, not at every batch: a caller may stop the work from here.
                progress("publishing", totals["records"] / max(schema.records, 1))

    def rows() -> Iterator[tuple[list[Encoded], Ints]]:
        if in_order is None or group_schema == schema:
            for cells in published_cells():
                value = Encoded(cells.value.astype(np.int32), domain)
                yield [*(column.take(cells.group) for column in cells.public), value], cells.count
            return
        for batch in in_order(map(_batch_of, published_cells())):
            *public, values, count = batch.columns
            value = Encoded(values.to_numpy(), domain)
            yield [*map(encode, public), value], count.to_numpy()

    domain = pa.array(schema.domain)
    try:
        for columns, count in rows():
            if layout.cells:
                data.add([*columns, count])
            else:
                data.add(columns, count)
        data_files = data.close()
        groups_files = groups.close() if groups is not None else ()
    except BaseException:
        data.abandon()
        if groups is not None:
            groups.abandon()
        raise
    return Written(data=data_files, groups_files=groups_files, **totals)


def _batch_of(cells: PublishedCells) -> pa.RecordBatch:
    """PublishedCells as an Arrow batch: public values, place in the domain, count."""
    columns = [column.values.take(pa.array(column.codes[cells.group])) for column in cells.public]
    columns += [pa.array(cells.value.astype(np.int32)), pa.array(cells.count)]
    return pa.RecordBatch.from_arrays(columns, [f"c{i}" for i in range(len(columns))])


def _series(folder: Path, stem: str, names: Sequence[str], layout: Layout) -> RecordFile:
    path = folder / f"{stem}.{layout.file_format}"
    return RecordFile(path, names, rows_per_file=layout.rows_per_file)


def data_names(schema: Schema, layout: Layout) -> list[str]:
    """The columns of the data file."""
    names = [column.name for column in schema.columns]
    return [*names, cell_count_name(schema)] if layout.cells else names


def group_names(schema: Schema) -> list[str]:
    """The columns of the groups file."""
    return [*(column.name for column in schema.public), *count_names(schema)]


def count_names(schema: Schema) -> tuple[str, str]:
    """Names for the two counts of the groups file that no public attribute has."""
    taken = [column.name for column in schema.public]
    return free_name("records", taken), free_name("trials", taken)


def cell_count_name(schema: Schema) -> str:
    """A name for the count of a cell that no column has."""
    return free_name("count", [column.name for column in schema.columns])


def batch_totals(published: PublishedBatch) -> dict[str, int]:
    """What a publication counts for its publisher."""
    unattainable = published.unattainable
    return {
        "records": int(published.records.sum()),
        "groups": published.records.size,
        "sampled_groups": int(published.sampled.sum()),
        "trials": int(published.trials.sum()),
        "unattainable_groups": int(unattainable.sum()),
        "unattainable_records": int(published.sizes[unattainable].sum()),
        "unique_records": int((published.records == 1).sum()),
        "few_records": int(published.records[published.records < K].sum()),
    }
