"""The file of margins: one line per table, row and sensitive value, with its noisy count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from reconpriv.cells.cell_batch import Encoded, encode
from reconpriv.columns.schema import Schema
from reconpriv.engines.local import read_all
from reconpriv.engines.record_file import RecordFile
from reconpriv.errors import ReleaseError
from reconpriv.protect.margins.planned import DescribedTable, MarginPlan, PlannedTable
from reconpriv.protect.margins.tables import MarginTable
from reconpriv.release.described import DescribedMargins, Files
from reconpriv.release.folder import ReleaseFolder
from reconpriv.sources.column_names import free_name


def write_margins(folder: Path, plan: MarginPlan, schema: Schema, ending: str) -> DescribedMargins:
    """Write the published rows, and describe them."""
    described, names, files = write_tables(folder, plan.tables, schema, ending)
    return DescribedMargins(
        plan.margins.rho,
        plan.margins.epsilon,
        plan.margins.delta,
        plan.variance,
        described,
        names,
        files,
    )


def write_tables(
    folder: Path, tables: Sequence[PlannedTable], schema: Schema, ending: str
) -> tuple[tuple[DescribedTable, ...], tuple[str, str], Files]:
    """Write the file from its tables alone; a column that a table lacks is empty there."""
    taken = [column.name for column in schema.columns]
    names = free_name("table", taken), free_name("count", taken)
    published = [one.table for one in tables if one.table.rows]
    used = sorted({a for table in published for a in table.attributes})
    types = {
        a: column.values.type
        for table in published
        for a, column in zip(table.attributes, table.columns, strict=True)
    }
    public = [schema.public[a].name for a in used]
    file = RecordFile(
        folder / f"margins.{ending}", [names[0], *public, schema.sensitive.name, names[1]]
    )
    described: list[DescribedTable] = []
    try:
        for one in tables:
            if not one.table.rows:
                continue
            words = one.described(schema)
            name = free_name(words.name, [table.name for table in described])
            file.add(_columns(one.table, name, [(a, types[a]) for a in used], schema))
            described.append(replace(words, name=name))
        written = file.close()
    except BaseException:
        file.abandon()
        raise
    return tuple(described), names, Files.of(written)


def _columns(
    table: MarginTable, name: str, used: Sequence[tuple[int, pa.DataType]], schema: Schema
) -> list[Encoded | np.ndarray]:
    """The lines of one table: its rows in order, each with every sensitive value."""
    m = schema.domain_size
    rows = np.repeat(np.arange(table.rows), m)
    nothing = np.zeros(rows.size, dtype=np.int32)
    own = dict(zip(table.attributes, table.columns, strict=True))
    return [
        Encoded(nothing, pa.array([name])),
        *(
            own[a].take(rows) if a in own else Encoded(nothing, pa.nulls(1, kind))
            for a, kind in used
        ),
        Encoded(np.tile(np.arange(m, dtype=np.int32), table.rows), pa.array(schema.domain)),
        table.counts.reshape(-1),
    ]


def read_margins(stored: ReleaseFolder) -> tuple[MarginTable, ...]:
    """The published tables, checked against the manifest."""
    margins, schema = stored.manifest.margins, stored.manifest.group_schema
    if not margins:
        return ()
    columns = stored.manifest.margin_columns
    found = read_all(list(stored.margin_files), columns=columns)
    if found.column_names != [column.name for column in columns]:
        raise _unlike_manifest(stored, "columns")
    m, names = schema.domain_size, [column.name for column in schema.public]
    if found.num_rows != m * sum(one.rows for one in margins.tables):
        raise _unlike_manifest(stored, "rows")
    if found.column(margins.names[1]).null_count:
        raise _unlike_manifest(stored, "counts")
    tables, start = [], 0
    for one in margins.tables:
        lines = found.slice(start, one.rows * m)
        start += one.rows * m
        named = lines.column(0).to_pylist() == [one.name] * (one.rows * m)
        values = lines.column(schema.sensitive.name).to_pylist()
        public = lines.select(list(one.columns)).take(pa.array(np.arange(one.rows) * m))
        distinct = public.group_by(list(one.columns)).aggregate([]).num_rows
        if not named or values != list(schema.domain) * one.rows or distinct < one.rows:
            raise _unlike_manifest(stored, "tables")
        counts = lines.column(margins.names[1]).to_numpy().astype(np.int64)
        tables.append(
            MarginTable(
                tuple(names.index(name) for name in one.columns),
                tuple(encode(column) for column in public.columns),
                counts.reshape(one.rows, m),
            )
        )
    return tuple(tables)


def _unlike_manifest(stored: ReleaseFolder, what: str) -> ReleaseError:
    name = stored.margin_files[0].name
    return ReleaseError(f"The file {name} does not match its manifest ({what}).")
