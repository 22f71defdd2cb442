"""Loading a release into memory as cells with their design."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.cube import Cells, Cube, collect, resting_on
from reconpriv.engines.base import memory_bytes
from reconpriv.engines.local import LocalEngine, read_all
from reconpriv.errors import InputError, ReleaseError
from reconpriv.policy.policy import Policy
from reconpriv.policy.protection import NO_COARSENING, Coarsening
from reconpriv.protect.coarsening import pooled_cube
from reconpriv.protect.group_by import GroupBy
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.manifest import DATA, GROUPS
from reconpriv.release.stored_cells import store
from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.design import trial_variance
from reconpriv.theory.estimation.reconstruction import reconstruct_frequency
from reconpriv.theory.tails.bounds import BOUNDS
from reconpriv.theory.tails.privacy import largest_private_size

# What a group and a cell take while they are loaded, as measured.
_BYTES_PER_GROUP = 300
_BYTES_PER_CELL = 80
_IN_MEMORY = 1 << 31


def load_cells(stored: ReleaseFolder, memory: str | None = None) -> Cells:
    """The cells of a release: in memory, or on disk if they would take too much of it."""
    allowed = _IN_MEMORY if memory is None else memory_bytes(memory) // 2
    manifest = stored.manifest
    rule, coin_flips = manifest.policy.sampling_rule, manifest.policy.sampling_rule.coin_flips
    with _opened(stored, memory, manifest.protect) as batches:
        kept: list[CellBatch] = []
        needed = 0
        for batch in batches:
            kept.append(batch)
            needed += batch.groups * _BYTES_PER_GROUP + batch.count.size * _BYTES_PER_CELL
            if needed > allowed:
                break
        else:
            return _with_groups(
                collect(kept, manifest.schema, coin_flips=coin_flips), stored, memory
            )
        every = chain(kept, batches)
        cells = store(
            every, manifest.schema, coin_flips=coin_flips, group_schema=manifest.group_schema
        )
    if rule.trials_public:
        cells.whole.set_trials(_published_trials(cells.whole, stored, memory))
    elif not rule.trials_known:
        cells.set_trials(plug_in_trials(part, manifest.policy) for part in cells.parts())
    return cells


def load_cube(stored: ReleaseFolder, memory: str | None = None) -> Cube:
    """The cells of a release in memory; ``memory`` bounds the counting alone."""
    with _opened(stored, memory) as batches:
        coin_flips = stored.manifest.policy.sampling_rule.coin_flips
        cube = collect(batches, stored.manifest.schema, coin_flips=coin_flips)
    return _with_groups(cube, stored, memory)


def _with_groups(cube: Cube, stored: ReleaseFolder, memory: str | None) -> Cube:
    """The cells with the protection groups that they rest on, and their trials."""
    with _matching_protection(stored):
        cube = pooled_cube(cube, stored.manifest.protect)
    return resting_on(cube, _with_trials(cube.whole, stored, memory))


def _with_trials(cube: Cube, stored: ReleaseFolder, memory: str | None) -> Cube:
    """The cells with the trials that each group rests on."""
    rule = stored.manifest.policy.sampling_rule
    if not rule.samples:
        return cube
    if not rule.trials_public:
        return replace(cube, trials=plug_in_trials(cube, stored.manifest.policy))
    (trials,) = _published_trials(cube, stored, memory)
    return replace(cube, trials=trials)


@contextmanager
def _matching_protection(stored: ReleaseFolder) -> Iterator[None]:
    """Says what is wrong if the data have values that protection groups do not cover."""
    try:
        yield
    except InputError:
        if stored.manifest.pooled:
            raise stored.unlike_manifest(DATA, "protection") from None
        raise


@contextmanager
def _engine(stored: ReleaseFolder, resource: str, memory: str | None) -> Iterator[LocalEngine]:
    """The files of a resource, which must have the columns that the manifest says."""
    columns = stored.manifest.resources[resource].columns
    count = stored.manifest.cell_count if resource == DATA else None
    paths = stored.paths(resource)
    with closing(LocalEngine(paths, columns=columns, count_column=count, memory=memory)) as engine:
        if engine.columns() != columns:
            raise stored.unlike_manifest(resource, "columns")
        yield engine


@contextmanager
def _opened(
    stored: ReleaseFolder, memory: str | None, coarsening: Coarsening = NO_COARSENING
) -> Iterator[Iterator[CellBatch]]:
    """The groups of a release, checked as they pass."""
    with _engine(stored, DATA, memory) as engine, _matching_protection(stored):
        grouping = GroupBy(stored.manifest.schema, coarsening=coarsening)
        yield _checked(engine.batches(grouping), stored)


def _checked(batches: Iterator[CellBatch], stored: ReleaseFolder) -> Iterator[CellBatch]:
    """The same batches, if they have the values and the number of records of the manifest."""
    records = 0
    try:
        for batch in batches:
            records += int(batch.count.sum())
            yield batch
    except (KeyError, OverflowError):  # a value without a place in the domain, or in any calendar
        raise stored.unlike_manifest(DATA, "domain") from None
    if records != stored.manifest.records or not records:
        raise stored.unlike_manifest(DATA, "rows")


def _published_trials(cells: Cells, stored: ReleaseFolder, memory: str | None) -> Iterator[Floats]:
    """The groups file has one row per group, in the same canonical order as the cells."""
    with _engine(stored, GROUPS, memory) as engine:
        reader = RowReader(engine.to_reader())
        for part in cells.parts():
            yield _trials_of(part, reader.read(part.groups), stored)
        if reader.read(1).num_rows:
            raise _other_groups(stored)


def _other_groups(stored: ReleaseFolder) -> ReleaseError:
    """The error for a groups file whose groups are not those of the data."""
    groups, data = stored.paths(GROUPS)[0].name, stored.paths(DATA)[0].name
    return ReleaseError(f"The file {groups} does not match {data} (groups).")


def _trials_of(part: Cube, table: pa.Table, stored: ReleaseFolder) -> Floats:
    if any(column.null_count for column in table.columns[-2:]):
        raise stored.unlike_manifest(GROUPS, "counts")
    records, trials = (column.to_numpy() for column in table.columns[-2:])
    mine = part.group_table()
    same = table.num_rows == part.groups and np.array_equal(records, part.records)
    if not same or not table.select(mine.column_names).cast(mine.schema).equals(mine):
        raise _other_groups(stored)
    if not ((trials >= 1).all() and (trials <= records).all()):
        raise stored.unlike_manifest(GROUPS, "trials")
    return np.asarray(trials, dtype=np.float64)


class RowReader:
    """A stream of Arrow batches, read a given number of rows at a time."""

    def __init__(self, batches: pa.RecordBatchReader) -> None:
        self._batches = batches
        self._held = pa.Table.from_batches([], batches.schema)

    def read(self, rows: int) -> pa.Table:
        """As many rows as asked for, or as are left."""
        parts = [self._held]
        missing = rows - self._held.num_rows
        while missing > 0 and (batch := next(self._batches, None)) is not None:
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
    m, retention = cube.schema.domain_size, policy.retention
    totals = cube.records[cube.group]
    frequencies = reconstruct_frequency(cube.count, totals, retention=retention, domain_size=m)
    largest = np.zeros(cube.groups)
    np.maximum.at(largest, cube.group, frequencies)
    known = policy.parameters(m)
    if policy.tail_bound.exact or policy.tail_bound.name not in BOUNDS:
        known["bound"] = BOUNDS["chernoff-full"]

    def trials(frequency: Floats) -> Floats:
        possible = np.clip(frequency, max(1.0 / m, policy.exposed_above), 1.0)
        sizes = largest_private_size(possible, **known)
        return np.minimum(np.maximum(sizes, 1.0), cube.records)

    variance = trial_variance(np.clip(largest, 0.0, 1.0), retention, m) / trials(largest)
    # Only a group that is private whatever its frequencies has surely not been sampled.
    surely = trials(np.ones(cube.groups)) >= cube.records
    likely = np.minimum(trials(largest + np.sqrt(variance)), cube.records - 0.5)
    return np.where(surely, cube.records, likely)


def load_table(
    stored: ReleaseFolder, resource: str, files: tuple[Path, ...] | None = None
) -> pa.Table:
    """The rows of a resource as they are stored; of all its files, or of some."""
    columns = stored.manifest.resources[resource].columns
    return read_all(list(files or stored.paths(resource)), columns=columns)


def load_records(stored: ReleaseFolder) -> pa.Table:
    """The published records as they are; cells are repeated as often as they count."""
    cells, name = load_table(stored, DATA), stored.manifest.cell_count
    if name is None:
        return cells
    rows = np.repeat(np.arange(cells.num_rows), cells.column(name).to_numpy())
    return cells.drop_columns([name]).take(pa.array(rows))
