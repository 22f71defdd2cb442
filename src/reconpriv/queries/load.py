"""Loading a release into memory as cells with their design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconpriv.engines.duckdb import DuckDBEngine, memory_bytes, read_all
from reconpriv.errors import ReleaseError
from reconpriv.manifest import Description
from reconpriv.queries.cube import Cube, collect
from reconpriv.schema import Column, Kind
from reconpriv.theory.bounds import BOUNDS
from reconpriv.theory.privacy import largest_private_size
from reconpriv.theory.reconstruction import reconstruct_frequency

Floats = NDArray[np.float64]


_BYTES_PER_ROW = 160  # what a group or cell takes while it is loaded, as measured


def load_cube(description: Description, memory: str | None = None) -> Cube:
    """Count the published records; take trials from the groups file, or estimate them.

    ``memory`` bounds the counting. The cells themselves are held in memory, so a release with
    more of them than fit is refused.
    """
    _check_memory(description, memory)
    schema, name = description.schema, description.data[0].name
    columns = _stored_columns(description)
    engine = DuckDBEngine(
        description.data,
        columns=columns,
        count_column=description.cell_count,
        memory=memory,
    )
    try:
        if engine.columns() != columns:
            raise ReleaseError(f"The file {name} does not match its manifest (columns).")
        found = engine.value_counts(schema.sensitive)
        if sum(found.values()) != description.manifest["reconpriv"]["records"] or not found:
            raise ReleaseError(f"The file {name} does not match its manifest (rows).")
        if not set(found) <= set(schema.domain):
            raise ReleaseError(f"The file {name} does not match its manifest (domain).")
        cube = collect(engine.groups(schema, drop_missing=False), schema)
    finally:
        engine.close()
    if description.sample_size == "none":
        return cube
    if not description.groups:
        return replace(cube, trials=_plug_in_trials(cube, description), coins=True)
    return replace(cube, trials=_published_trials(cube, description))


def _check_memory(description: Description, memory: str | None) -> None:
    if memory is None:
        return
    rows = min(resource["rows"] for resource in description.manifest["resources"])
    needed, allowed = rows * _BYTES_PER_ROW, memory_bytes(memory)
    if needed > allowed:
        raise ReleaseError(
            f"The {rows:,} groups of this release take about {needed / 1e9:.1f} GB of memory, more"
            f" than {memory}.",
            hint="Raise --memory.",
        )


def _published_trials(cube: Cube, description: Description) -> Floats:
    """The groups file has a row a group in the same canonical order as the cells."""
    name = description.groups[0].name
    counts = [Column(count, Kind.INTEGER) for count in description.count_names]
    columns = [*description.schema.public, *counts]
    engine = DuckDBEngine(description.groups, columns=columns)
    try:
        if engine.columns() != columns:
            raise ReleaseError(f"The file {name} does not match its manifest (columns).")
        table = engine.to_arrow()
    finally:
        engine.close()
    if any(column.null_count for column in table.columns[-2:]):
        raise ReleaseError(f"The file {name} does not match its manifest (counts).")
    records, trials = (column.to_numpy() for column in table.columns[-2:])
    mine = cube.group_table()
    same = table.num_rows == cube.groups and np.array_equal(records, cube.records)
    if not same or not table.select(mine.column_names).cast(mine.schema).equals(mine):
        raise ReleaseError(f"The file {name} does not match {description.data[0].name} (groups).")
    if not ((trials >= 1).all() and (trials <= records).all()):
        raise ReleaseError(f"The file {name} does not match its manifest (trials).")
    return np.asarray(trials, dtype=np.float64)


def _plug_in_trials(cube: Cube, description: Description) -> Floats:
    """What an analyst can know of the trials in `paper` mode: s(F') of the estimated largest f.

    The largest of several noisy frequencies is too large on average, so s(F') is too small and
    the interval too wide rather than too narrow.
    """
    block = description.manifest["reconpriv"]
    m = description.schema.domain_size
    largest = np.zeros(cube.groups)
    np.maximum.at(
        largest,
        cube.group,
        reconstruct_frequency(
            cube.count, cube.records[cube.group], retention=description.retention, domain_size=m
        ),
    )
    bound = BOUNDS.get(block["bound"])
    if bound is None or bound.lattice:
        bound = BOUNDS["chernoff-full"]
    sizes = largest_private_size(
        np.clip(largest, 1.0 / m, 1.0),
        retention=description.retention,
        domain_size=m,
        epsilon=block["epsilon"],
        delta=block["delta"],
        bound=bound,
    )
    return np.minimum(np.maximum(sizes, 1.0), cube.records)


def _stored_columns(description: Description) -> list[Column]:
    columns = list(description.schema.columns)
    if description.cell_count is not None:
        columns.append(Column(description.cell_count, Kind.INTEGER))
    return columns


def load_rows(description: Description, files: Sequence[Path]) -> pa.Table:
    """The rows of data files as they are stored."""
    return read_all(list(files), columns=_stored_columns(description))


def load_records(description: Description) -> pa.Table:
    """The published records as they are; cells are repeated as often as they count."""
    cells = load_rows(description, description.data)
    if description.cell_count is None:
        return cells
    counts = cells.column(description.cell_count).to_numpy()
    rows = np.repeat(np.arange(cells.num_rows), counts)
    return cells.drop_columns([description.cell_count]).take(pa.array(rows))
