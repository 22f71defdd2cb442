"""Loading a release into memory as cells with their design."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.cube import Cells, Cube, collect, with_protection
from reconpriv.engines.base import memory_bytes
from reconpriv.engines.local import LocalEngine, read_all
from reconpriv.errors import InputError, ReleaseError
from reconpriv.policy.policy import Policy
from reconpriv.policy.protection import NO_COARSENING, Coarsening
from reconpriv.protect.coarsening import coarsen
from reconpriv.protect.group_by import GroupBy
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.stored_cells import store
from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.design import mixing
from reconpriv.theory.estimation.reconstruction import reconstruct_frequency
from reconpriv.theory.tails.bounds import BOUNDS
from reconpriv.theory.tails.privacy import largest_private_size

# What a group and a cell take while they are loaded, as measured.
_BYTES_PER_GROUP = 300
_BYTES_PER_CELL = 80
_IN_MEMORY = 1 << 31


def load_cells(stored: ReleaseFolder, memory: str | None = None) -> Cells:
    """The cells of a release: in memory, or on disk if they would take too much of it.

    How many micro groups there are beside protection groups, only the data say.
    """
    allowed = _IN_MEMORY if memory is None else memory_bytes(memory) // 2
    schema, protect = stored.manifest.schema, stored.manifest.protect
    if not protect and _needed_memory(stored) <= allowed:
        return load_cube(stored, memory)
    with _opened(stored, memory, protect) as batches:
        kept: list[CellBatch] = []
        if protect:
            needed = 0
            for batch in batches:
                kept.append(batch)
                needed += batch.groups * _BYTES_PER_GROUP + batch.count.size * _BYTES_PER_CELL
                if needed > allowed:
                    break
            else:
                cube = collect(kept, schema, coins=_by_coins(stored))
                return _with_groups(cube, stored, memory)
        of_groups = stored.manifest.group_schema if protect else None
        cells = store(chain(kept, batches), schema, coins=_by_coins(stored), group_schema=of_groups)
    if stored.group_files:
        cells.whole.set_trials(_published_trials(cells.whole, stored, memory))
    elif not stored.manifest.policy.sampling.trials_known:
        cells.set_trials(plug_in_trials(part, stored.manifest.policy) for part in cells.parts())
    return cells


def load_cube(stored: ReleaseFolder, memory: str | None = None) -> Cube:
    """Count the published records; take trials from the groups file, or estimate them.

    ``memory`` bounds the counting; the cells are held in memory.
    """
    with _opened(stored, memory) as batches:
        cube = collect(batches, stored.manifest.schema, coins=_by_coins(stored))
    return _with_groups(cube, stored, memory)


def _with_groups(cube: Cube, stored: ReleaseFolder, memory: str | None) -> Cube:
    """The cells with the protection groups that they rest on, and their trials."""
    if not stored.manifest.protect:
        return _with_trials(cube, stored, memory)
    with _matching_protection(stored):
        whole, within = coarsen(cube, stored.manifest.protect)
    return with_protection(cube, _with_trials(whole, stored, memory), within)


def load_group_cube(stored: ReleaseFolder) -> Cube:
    """The groups that rest on published trials: protection groups, if there are any."""
    return load_cube(stored).whole


def _with_trials(cube: Cube, stored: ReleaseFolder, memory: str | None) -> Cube:
    """The cells with the trials that each group rests on."""
    sampling = stored.manifest.policy.sampling
    if not sampling.samples:
        return cube
    if not sampling.trials_public:
        return replace(cube, trials=plug_in_trials(cube, stored.manifest.policy))
    (trials,) = _published_trials(cube, stored, memory)
    return replace(cube, trials=trials)


def _by_coins(stored: ReleaseFolder) -> bool:
    """Whether scaling and sampling were done by coin flips: Algorithm 1 to the letter."""
    return stored.manifest.policy.sampling.coins


@contextmanager
def _matching_protection(stored: ReleaseFolder) -> Iterator[None]:
    """Says what is wrong if the data have values that protection groups do not cover."""
    try:
        yield
    except InputError:
        name = stored.data_files[0].name
        raise ReleaseError(f"The file {name} does not match its manifest (protection).") from None


@contextmanager
def _opened(
    stored: ReleaseFolder, memory: str | None, coarsening: Coarsening = NO_COARSENING
) -> Iterator[Iterator[CellBatch]]:
    """The groups of a release, once its data have been checked."""
    schema, name = stored.manifest.schema, stored.data_files[0].name
    columns = stored.manifest.data_columns
    engine = LocalEngine(
        stored.data_files, columns=columns, count_column=stored.manifest.cell_count, memory=memory
    )
    try:
        if engine.columns() != columns:
            raise ReleaseError(f"The file {name} does not match its manifest (columns).")
        found = engine.value_counts(schema.sensitive)
        if sum(found.values()) != stored.manifest.records or not found:
            raise ReleaseError(f"The file {name} does not match its manifest (rows).")
        if not set(found) <= set(schema.domain):
            raise ReleaseError(f"The file {name} does not match its manifest (domain).")
        with _matching_protection(stored) if coarsening else nullcontext():
            yield engine.batches(GroupBy(schema, coarsening=coarsening))
    finally:
        engine.close()


def _needed_memory(stored: ReleaseFolder) -> int:
    """What the cells would take in memory, as far as the manifest says."""
    manifest = stored.manifest
    cells = manifest.data_files.rows
    groups = cells if manifest.group_files is None else min(cells, manifest.group_files.rows)
    if manifest.cell_count is None:
        cells = min(cells, groups * manifest.schema.domain_size)
    return int(groups * _BYTES_PER_GROUP + cells * _BYTES_PER_CELL)


def _published_trials(cells: Cells, stored: ReleaseFolder, memory: str | None) -> Iterator[Floats]:
    """The groups file has one row per group, in the same canonical order as the cells."""
    name = stored.group_files[0].name
    columns = stored.manifest.groups_columns
    engine = LocalEngine(stored.group_files, columns=columns, memory=memory)
    try:
        if engine.columns() != columns:
            raise ReleaseError(f"The file {name} does not match its manifest (columns).")
        reader = RowReader(engine.to_reader())
        for part in cells.parts():
            yield _trials_of(part, reader.read(part.groups), stored)
        if reader.read(1).num_rows:
            raise _other_groups(stored)
    finally:
        engine.close()


def _other_groups(stored: ReleaseFolder) -> ReleaseError:
    """The error for a groups file whose groups are not those of the data."""
    groups, data = stored.group_files[0].name, stored.data_files[0].name
    return ReleaseError(f"The file {groups} does not match {data} (groups).")


def _trials_of(part: Cube, table: pa.Table, stored: ReleaseFolder) -> Floats:
    name = stored.group_files[0].name
    if any(column.null_count for column in table.columns[-2:]):
        raise ReleaseError(f"The file {name} does not match its manifest (counts).")
    records, trials = (column.to_numpy() for column in table.columns[-2:])
    mine = part.group_table()
    same = table.num_rows == part.groups and np.array_equal(records, part.records)
    if not same or not table.select(mine.column_names).cast(mine.schema).equals(mine):
        raise _other_groups(stored)
    if not ((trials >= 1).all() and (trials <= records).all()):
        raise ReleaseError(f"The file {name} does not match its manifest (trials).")
    return np.asarray(trials, dtype=np.float64)


class RowReader:
    """A stream of Arrow batches, read a given number of rows at a time."""

    def __init__(self, batches: pa.RecordBatchReader) -> None:
        """Read nothing yet."""
        self._batches = batches
        self._held = pa.Table.from_batches([], batches.schema)

    def read(self, rows: int) -> pa.Table:
        """As many rows as asked for, or as are left."""
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


def plug_in_trials(cube: Cube, policy: Policy) -> Floats:
    """What an analyst can know about the trials in `paper` mode: s(f) of the likely largest f.

    That is a standard error above the estimated one, since too many trials make an interval too
    narrow, and too few only too wide. So it is if the value is not an exposed one.
    """
    m = cube.schema.domain_size
    largest = np.zeros(cube.groups)
    np.maximum.at(
        largest,
        cube.group,
        reconstruct_frequency(
            cube.count, cube.records[cube.group], retention=policy.retention, domain_size=m
        ),
    )
    known = policy.parameters(m)
    if policy.tail_bound.exact or policy.tail_bound.name not in BOUNDS:
        known["bound"] = BOUNDS["chernoff-full"]
    holder, anybody = mixing(policy.retention, m)

    def trials(frequency: Floats) -> Floats:
        possible = np.clip(frequency, max(1.0 / m, policy.exposed_above), 1.0)
        sizes = largest_private_size(possible, **known)
        return np.minimum(np.maximum(sizes, 1.0), cube.records)

    variance = (holder * np.clip(largest, 0.0, 1.0) + anybody) / trials(largest)
    # Only a group that is private whatever its frequencies has surely not been sampled.
    surely = trials(np.ones(cube.groups)) >= cube.records
    likely = np.minimum(trials(largest + np.sqrt(variance)), cube.records - 0.5)
    return np.where(surely, cube.records, likely)


def load_rows(stored: ReleaseFolder, files: Sequence[Path]) -> pa.Table:
    """The rows of data files as they are stored."""
    return read_all(list(files), columns=stored.manifest.data_columns)


def load_records(stored: ReleaseFolder) -> pa.Table:
    """The published records as they are; cells are repeated as often as they count."""
    cells = load_rows(stored, stored.data_files)
    name = stored.manifest.cell_count
    if name is None:
        return cells
    counts = cells.column(name).to_numpy()
    rows = np.repeat(np.arange(cells.num_rows), counts)
    return cells.drop_columns([name]).take(pa.array(rows))


def load_margins(stored: ReleaseFolder) -> pa.Table:
    """The published margins, one row per count."""
    return read_all(list(stored.margin_files), columns=stored.manifest.margin_columns)


def load_groups(stored: ReleaseFolder) -> pa.Table:
    """The published groups with their records and trials."""
    return read_all(list(stored.group_files), columns=stored.manifest.groups_columns)
