"""The file of margins: one line per table, row and sensitive value, with its noisy count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from reconpriv.cells.cell_batch import Encoded, encode
from reconpriv.columns.schema import Schema
from reconpriv.engines.record_file import RecordFile
from reconpriv.policy.margin_settings import Margins
from reconpriv.protect.margins.planned import DescribedTable, PlannedTable
from reconpriv.protect.margins.tables import MarginTable
from reconpriv.release.described import DescribedMargins, Files
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.load import load_table
from reconpriv.release.manifest import MARGINS
from reconpriv.sources.column_names import free_name


def write_margins(
    folder: Path,
    tables: Sequence[PlannedTable],
    margins: Margins,
    variance: float,
    schema: Schema,
    ending: str,
) -> DescribedMargins:
    """Write the published rows, and describe them; a column that a table lacks is empty there."""
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
    files = Files.of(written)
    return DescribedMargins(
        margins.rho, margins.epsilon, margins.delta, variance, tuple(described), names, files
    )


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
    if MARGINS not in stored.manifest.resources:
        return ()
    found = load_table(stored, MARGINS)
    m, names = schema.domain_size, [column.name for column in schema.public]
    if found.column_names != [one.name for one in stored.manifest.resources[MARGINS].columns]:
        raise stored.unlike_manifest(MARGINS, "columns")
    if found.num_rows != m * sum(one.rows for one in margins.tables):
        raise stored.unlike_manifest(MARGINS, "rows")
    if found.column(margins.names[1]).null_count:
        raise stored.unlike_manifest(MARGINS, "counts")
    tables, start = [], 0
    for one in margins.tables:
        lines = found.slice(start, one.rows * m)
        start += one.rows * m
        named = lines.column(0).to_pylist() == [one.name] * (one.rows * m)
        values = lines.column(schema.sensitive.name).to_pylist()
        public = lines.select(list(one.columns)).take(pa.array(np.arange(one.rows) * m))
        distinct = public.group_by(list(one.columns)).aggregate([]).num_rows
        if not named or values != list(schema.domain) * one.rows or distinct < one.rows:
            raise stored.unlike_manifest(MARGINS, "tables")
        counts = lines.column(margins.names[1]).to_numpy().astype(np.int64)
        attributes = tuple(names.index(name) for name in one.columns)
        columns = tuple(encode(column) for column in public.columns)
        tables.append(MarginTable(attributes, columns, counts.reshape(one.rows, m)))
    return tuple(tables)
