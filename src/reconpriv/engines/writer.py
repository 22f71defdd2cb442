"""Writing published cells as a release: as records, or as cells with their counts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from reconpriv.core.cells import CellBatch, Encoded
from reconpriv.core.kernel import PublishedBatch
from reconpriv.core.protected import ProtectedPublication
from reconpriv.core.single_records import K
from reconpriv.engines.base import Layout, Progress, PublishFunction, Written
from reconpriv.engines.record_file import RecordFile
from reconpriv.schema import Schema
from reconpriv.sources.column_names import free_name

TOTALS = (
    "records", "groups", "sampled_groups", "trials", "unattainable_groups", "unattainable_records",
    "unique_records", "few_records",
)  # fmt: skip


def write_release_files(
    batches: Iterable[CellBatch],
    schema: Schema,
    publish: PublishFunction,
    folder: Path,
    layout: Layout,
    progress: Progress,
) -> Written:
    """Publish the batches and write ``data`` and, if trials may be published, ``groups``."""
    data, groups = open_files(folder, schema, layout)
    domain = pa.array(schema.domain)
    totals = dict.fromkeys(TOTALS, 0)
    try:
        for batch in batches:
            for published in publish(batch):
                columns = _cell_columns(published, domain)
                if layout.cells:
                    data.add([*columns, published.count])
                else:
                    data.add(columns, published.count)
                if groups is not None:
                    groups.add([*published.public, published.records, published.trials])
                for name, number in batch_totals(published).items():
                    totals[name] += number
                # At every piece, not at every batch: a caller may stop the work from here.
                progress("publishing", totals["records"] / max(schema.records, 1))
        data_files = data.close()
        groups_files = groups.close() if groups is not None else ()
    except BaseException:
        data.abandon()
        if groups is not None:
            groups.abandon()
        raise
    return Written(data=data_files, groups_files=groups_files, **totals)


def write_protected_files(
    publication: ProtectedPublication,
    schema: Schema,
    folder: Path,
    layout: Layout,
    progress: Progress,
) -> Written:
    """Write dealt records as ``data``, and the protection groups as ``groups``."""
    data, groups = open_files(folder, schema, layout, publication.schema)
    totals = dict.fromkeys(TOTALS, 0)
    try:
        progress("publishing", 0.0)
        sensitive = Encoded(publication.value.astype(np.int32), pa.array(schema.domain))
        columns = [*(column.take(publication.group) for column in publication.public), sensitive]
        if layout.cells:
            data.add([*columns, publication.count])
        else:
            data.add(columns, publication.count)
        for published in publication.groups:
            if groups is not None:
                groups.add([*published.public, published.records, published.trials])
            for name, number in batch_totals(published).items():
                totals[name] += number
        data_files = data.close()
        groups_files = groups.close() if groups is not None else ()
        progress("publishing", 1.0)
    except BaseException:
        data.abandon()
        if groups is not None:
            groups.abandon()
        raise
    return Written(data=data_files, groups_files=groups_files, **totals)


def open_files(
    folder: Path, schema: Schema, layout: Layout, group_schema: Schema | None = None
) -> tuple[RecordFile, RecordFile | None]:
    """The two series of files of a release, the second only if trials may be published.

    ``group_schema`` is that of protection groups, if the release has any.
    """
    data = RecordFile(
        folder / f"data.{layout.file_format}",
        data_names(schema, layout),
        rows_per_file=layout.rows_per_file,
    )
    if not layout.with_trials:
        return data, None
    groups = RecordFile(
        folder / f"groups.{layout.file_format}",
        group_names(group_schema or schema),
        rows_per_file=layout.rows_per_file,
    )
    return data, groups


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


def _cell_columns(published: PublishedBatch, domain: pa.Array) -> list[Encoded]:
    sensitive = Encoded(published.value.astype(np.int32), domain)
    return [*(column.take(published.group) for column in published.public), sensitive]


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
