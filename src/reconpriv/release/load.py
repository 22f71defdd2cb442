"""Loading a release into memory as cells with their design."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconpriv.core.cells import CellBatch
from reconpriv.core.cube import Cells, Cube, collect
from reconpriv.engines.base import memory_bytes
from reconpriv.engines.local import LocalEngine, read_all
from reconpriv.errors import ReleaseError
from reconpriv.release.manifest import Description
from reconpriv.release.stored_cells import store
from reconpriv.schema import Column, Kind
from reconpriv.theory.bounds import BOUNDS
from reconpriv.theory.privacy import largest_private_size
from reconpriv.theory.reconstruction import reconstruct_frequency

Floats = NDArray[np.float64]


# What a group and a cell take while they are loaded, as measured.
_BYTES_PER_GROUP = 300
_BYTES_PER_CELL = 80
_IN_MEMORY = 1 << 31


def load_cells(description: Description, memory: str | None = None) -> Cells:
    """The cells of a release: in memory, or on disk where they would take too much of it."""
    allowed = _IN_MEMORY if memory is None else memory_bytes(memory) // 2
    if _needed_memory(description) <= allowed:
        return load_cube(description, memory)
    with _opened(description, memory) as batches:
        cells = store(batches, description.schema, coins=_by_coins(description))
    if description.groups:
        cells.set_trials(_published_trials(cells, description, memory))
    elif description.sample_size != "none":
        cells.set_trials(_plug_in_trials(part, description) for part in cells.parts())
    return cells


def load_cube(description: Description, memory: str | None = None) -> Cube:
    """Count the published records; take trials from the groups file, or estimate them.

    ``memory`` bounds the counting; the cells are held in memory.
    """
    with _opened(description, memory) as batches:
        cube = collect(batches, description.schema, coins=_by_coins(description))
    if description.sample_size == "none":
        return cube
    if not description.groups:
        return replace(cube, trials=_plug_in_trials(cube, description))
    (trials,) = _published_trials(cube, description, memory)
    return replace(cube, trials=trials)


def _by_coins(description: Description) -> bool:
    """Whether scaling and sampling were done by coin flips: Algorithm 1 to the letter."""
    return description.sample_size == "paper"


@contextmanager
def _opened(description: Description, memory: str | None) -> Iterator[Iterator[CellBatch]]:
    """The groups of a release, after a look at what its data hold."""
    schema, name = description.schema, description.data[0].name
    columns = _stored_columns(description)
    engine = LocalEngine(
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
        yield engine.groups(schema, drop_missing=False)
    finally:
        engine.close()


def _needed_memory(description: Description) -> int:
    """What the cells would take in memory, as far as the manifest tells."""
    rows = [resource["rows"] for resource in description.manifest["resources"]]
    groups = min(rows)
    cells = rows[0]
    if description.cell_count is None:
        cells = min(rows[0], groups * description.schema.domain_size)
    return int(groups * _BYTES_PER_GROUP + cells * _BYTES_PER_CELL)


def _published_trials(
    cells: Cells, description: Description, memory: str | None
) -> Iterator[Floats]:
    """The groups file has a row a group in the same canonical order as the cells."""
    name = description.groups[0].name
    counts = [Column(count, Kind.INTEGER) for count in description.count_names]
    columns = [*description.schema.public, *counts]
    engine = LocalEngine(description.groups, columns=columns, memory=memory)
    try:
        if engine.columns() != columns:
            raise ReleaseError(f"The file {name} does not match its manifest (columns).")
        reader = RowReader(engine.to_reader())
        for part in cells.parts():
            yield _trials_of(part, reader.read(part.groups), description)
        if reader.read(1).num_rows:
            raise ReleaseError(
                f"The file {name} does not match {description.data[0].name} (groups)."
            )
    finally:
        engine.close()


def _trials_of(part: Cube, table: pa.Table, description: Description) -> Floats:
    name = description.groups[0].name
    if any(column.null_count for column in table.columns[-2:]):
        raise ReleaseError(f"The file {name} does not match its manifest (counts).")
    records, trials = (column.to_numpy() for column in table.columns[-2:])
    mine = part.group_table()
    same = table.num_rows == part.groups and np.array_equal(records, part.records)
    if not same or not table.select(mine.column_names).cast(mine.schema).equals(mine):
        raise ReleaseError(f"The file {name} does not match {description.data[0].name} (groups).")
    if not ((trials >= 1).all() and (trials <= records).all()):
        raise ReleaseError(f"The file {name} does not match its manifest (trials).")
    return np.asarray(trials, dtype=np.float64)


class RowReader:
    """A stream of Arrow batches, read by a number of rows at a time."""

    def __init__(self, batches: pa.RecordBatchReader) -> None:
        """Read nothing yet."""
        self._batches = batches
        self._held = pa.Table.from_batches([], batches.schema)

    def read(self, rows: int) -> pa.Table:
        """So many rows, or as many as are left."""
        parts = [self._held]
        missing = rows - self._held.num_rows
        while missing > 0:
            batch = next(self._batches, None)
            if batch is None:
                break
            parts.append(pa.Table.from_batches([batch]))
            missing -= batch.num_rows
        table = pa.concat_tables(parts)
        self._held = table.slice(rows)
        return table.slice(0, rows)


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


def load_groups(description: Description) -> pa.Table:
    """The published groups with their records and trials."""
    counts = [Column(count, Kind.INTEGER) for count in description.count_names]
    columns = [*description.schema.public, *counts]
    return read_all(list(description.groups), columns=columns)
