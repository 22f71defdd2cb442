"""Cells held in memory with their design: what every estimate is summed from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconpriv.core.cells import CellBatch, Encoded, unify
from reconpriv.schema import Schema
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.design import uneven_copies

_LARGEST_VARIANCE_OF_A_COIN = 0.25
_SINGLE_NUMBER = 1 << 62  # combinations of codes that one number tells apart


@dataclass(frozen=True)
class Cube:
    """Groups with their public codes, records and trials; cells with their counts.

    ``codes`` index ``values``, the sorted distinct values of each public attribute. ``trials`` may
    be a plug-in (not whole) if the release does not reveal it; ``coins`` says that scaling and
    sampling were done by independent coin flips (Algorithm 1) instead of exactly.
    """

    schema: Schema
    codes: tuple[NDArray[np.int32], ...]
    values: tuple[pa.Array, ...]
    records: Ints
    trials: Floats
    group: Ints
    value: Ints
    count: Ints
    coins: bool = False

    @property
    def groups(self) -> int:
        """How many micro groups there are."""
        return self.records.size

    @cached_property
    def scale(self) -> Floats:
        """|g| / n_g: how many records one trial stands for."""
        return np.asarray(self.records / self.trials)

    @cached_property
    def sampled(self) -> Flags:
        """Which groups rest on fewer trials than records."""
        return np.asarray(self.trials < self.records)

    @property
    def cut(self) -> Flags:
        """Which groups are only a part of what was published as one."""
        return np.zeros(self.groups, dtype=bool)

    def as_batch(self) -> CellBatch:
        """The cells as one batch of whole groups."""
        public = tuple(Encoded(c, v) for c, v in zip(self.codes, self.values, strict=True))
        starts = np.searchsorted(self.group, np.arange(self.groups))
        return CellBatch(public, starts, self.value, self.count)

    def parts(self) -> Iterator[Cube]:
        """The cube itself: all of it is in memory."""
        yield self

    def sums(self, selection: Ints, selections: int, chosen: Sequence[int] | None) -> Sums:
        """Sum groups into selections: see :func:`sum_selections`."""
        return sum_selections(self, selection, selections, chosen)

    def group_table(self) -> pa.Table:
        """The public values of every group, for predicates to be evaluated on."""
        columns = [
            values.take(pa.array(codes))
            for codes, values in zip(self.codes, self.values, strict=True)
        ]
        return pa.Table.from_arrays(columns, names=[c.name for c in self.schema.public])

    def scaling_noise(self, observed: Floats, group: Ints) -> Floats:
        """The variance that uneven duplication adds to an observed count, group by group.

        The remainder |g| - n⌊|g|/n⌋ goes to trials at random (hypergeometric), or each trial
        flips a coin for one more copy (Algorithm 1).
        """
        share = observed / self.records[group]
        spread = share if self.coins else share * (1 - share)
        return np.asarray(self.uneven[group] * spread)

    @cached_property
    def uneven(self) -> Floats:
        """The factor that turns a count's share into the variance that uneven copies add to it."""
        n = self.trials
        if self.coins:  # neither n nor N is known exactly, so nor is the fraction of N/n
            return np.where(self.sampled, _LARGEST_VARIANCE_OF_A_COIN * n, 0.0)
        return np.asarray(uneven_copies(self.records, n) * n * n / np.maximum(n - 1, 1.0))


def collect(
    batches: Iterable[CellBatch],
    schema: Schema,
    trials: Floats | None = None,
    *,
    coins: bool = False,
) -> Cube:
    """Join batches of whole groups; without ``trials``, every record is a trial."""
    parts = list(batches)
    columns = [unify([part.public[i] for part in parts]) for i in range(len(schema.public))]
    records = np.concatenate([part.sizes for part in parts])
    first = np.cumsum([0, *(part.groups for part in parts[:-1])])
    return Cube(
        schema=schema,
        codes=tuple(codes for codes, _ in columns),
        values=tuple(values for _, values in columns),
        records=records,
        trials=records.astype(np.float64) if trials is None else trials,
        group=np.concatenate(
            [part.group_of_cell + start for part, start in zip(parts, first, strict=True)]
        ),
        value=np.concatenate([part.value for part in parts]),
        count=np.concatenate([part.count for part in parts]),
        coins=coins,
    )


@dataclass
class CellKeeper:
    """Keeps the cells of a pass for later use, unless there are more than the limit."""

    limit: int
    cells: int = 0
    _batches: list[CellBatch] = field(default_factory=list)

    def add(self, batch: CellBatch) -> None:
        """Take the next batch of whole groups."""
        self.cells += batch.count.size
        self._batches.append(batch)
        if self.cells > self.limit:
            self._batches.clear()

    def cube(self, schema: Schema) -> Cube | None:
        """All cells, or None if there were too many."""
        return collect(self._batches, schema) if self.cells <= self.limit else None


class Cells(Protocol):
    """Cells that are read one part at a time; a cube in memory is its own single part.

    Parts hold whole groups, and their codes index the same values.
    """

    @property
    def schema(self) -> Schema:
        """The columns and the sensitive domain."""
        ...

    @property
    def values(self) -> tuple[pa.Array, ...]:
        """The sorted distinct values of each public attribute."""
        ...

    def parts(self) -> Iterator[Cube]:
        """Every part, from the first; may be called again."""
        ...


@dataclass(frozen=True)
class Sums:
    """What an estimate needs from a selection of groups; arrays have one row per selection.

    ``observed``, ``scaled_observed``, ``noise`` and ``other`` are for the chosen set of sensitive
    values; ``other`` is a variance that comes from outside the selection, with margins. ``cut`` is
    the number of protection groups of which the selection holds only a part.
    """

    groups: Floats
    records: Floats
    trials: Floats
    scaled_records: Floats
    scaled_squares: Floats
    sampled_squares: Floats
    unsampled: Floats
    uneven: Floats
    observed: Floats
    scaled_observed: Floats
    noise: Floats
    other: Floats
    cut: Floats

    def columns(self) -> list[Floats]:
        """All sums, in order."""
        return [getattr(self, one.name) for one in fields(Sums)]

    def __add__(self, more: Sums) -> Sums:
        """The sums over two parts, selection by selection."""
        return Sums(*(a + b for a, b in zip(self.columns(), more.columns(), strict=True)))

    def at(self, selections: Ints, values: Ints) -> Sums:
        """The sums of single values, if these are sums by sensitive value."""
        return Sums(
            *(c[selections, values] if c.ndim == 2 else c[selections] for c in self.columns()),
        )


def sum_selections(
    cube: Cube, selection: Ints, selections: int, chosen: Sequence[int] | None
) -> Sums:
    """Sum groups into selections (``selection`` is -1 for a group that is in none).

    ``chosen`` are indices into the sensitive domain; with None each selection is split by sensitive
    value, and the last three sums have one column per value.
    """
    inside = np.flatnonzero(selection >= 0)
    target = selection[inside]

    def per_selection(weights: Floats | Ints | None) -> Floats:
        part = None if weights is None else weights[inside]
        return np.bincount(target, weights=part, minlength=selections).astype(np.float64)

    squares = np.where(cube.sampled, cube.scale**2, 0.0)
    m = cube.schema.domain_size
    cell_target = selection[cube.group]
    wanted = cell_target >= 0
    if chosen is not None:
        member = np.zeros(m, dtype=bool)
        member[list(chosen)] = True
        wanted &= member[cube.value]
    cells = np.flatnonzero(wanted)
    group, count = cube.group[cells], cube.count[cells].astype(np.float64)
    if chosen is None:
        slot = noise_slot = cell_target[cells] * m + cube.value[cells]
        noise_group, noise_count = group, count
    else:
        slot = cell_target[cells]
        # Noise is not linear in the counts of several values: sum them within each group first.
        noise_group, position = np.unique(group, return_inverse=True)
        noise_count = np.asarray(
            np.bincount(position, weights=count, minlength=noise_group.size), dtype=np.float64
        )
        noise_slot = selection[noise_group]
    shape = (selections, m) if chosen is None else (selections,)
    size = int(np.prod(shape))

    def per_slot(weights: Floats, where: Ints) -> Floats:
        total = np.bincount(where, weights=weights, minlength=size).astype(np.float64)
        return total.reshape(shape)

    return Sums(
        groups=per_selection(None),
        records=per_selection(cube.records),
        trials=per_selection(cube.trials),
        scaled_records=per_selection(cube.scale * cube.records),
        scaled_squares=per_selection(cube.scale**2 * cube.records),
        sampled_squares=per_selection(squares),
        unsampled=per_selection(np.where(cube.sampled, 0.0, cube.scale * cube.records)),
        uneven=per_selection(cube.uneven),
        observed=per_slot(count, slot),
        scaled_observed=per_slot(count * cube.scale[group], slot),
        noise=per_slot(cube.scaling_noise(noise_count, noise_group), noise_slot),
        other=np.zeros(shape),
        cut=per_selection(cube.cut.astype(np.int64)),
    )


def combinations(cube: Cube, attributes: Sequence[int], mask: Flags) -> tuple[Ints, Ints]:
    """Combinations of codes among the masked groups, and which one each group has (or -1)."""
    selection = np.where(mask, 0, -1).astype(np.int64)
    if not attributes:
        return np.zeros((0, 1), dtype=np.int64), selection
    inside = np.flatnonzero(mask)
    stacked = np.stack([cube.codes[attribute][inside] for attribute in attributes])
    lengths = [len(cube.values[attribute]) for attribute in attributes]
    keys, position = _distinct(stacked.astype(np.int64), lengths)
    selection[inside] = position
    return keys, selection


def _distinct(codes: Ints, lengths: Sequence[int]) -> tuple[Ints, Ints]:
    """The distinct columns in order, and the place of every column among them.

    Columns are sorted as single numbers where these fit, which is much quicker.
    """
    if not 0 < math.prod(lengths) < _SINGLE_NUMBER or (codes < 0).any():
        keys, position = np.unique(codes, axis=1, return_inverse=True)
        return keys, position.reshape(-1)
    numbers = np.ravel_multi_index(tuple(codes), tuple(lengths))
    distinct, position = np.unique(numbers, return_inverse=True)
    keys = np.stack(np.unravel_index(distinct, tuple(lengths))).astype(np.int64)
    return keys, position.reshape(-1)


def join_sums(parts: Sequence[tuple[Ints, Sums]]) -> tuple[Ints, Sums]:
    """The sums of all parts by combination; a combination may occur in several parts."""
    if len(parts) == 1:
        return parts[0]
    stacked = np.concatenate([keys for keys, _ in parts], axis=1)
    keys, position = np.unique(stacked, axis=1, return_inverse=True)
    if stacked.shape[0] == 0:
        keys, position = stacked[:, :1], np.zeros(stacked.shape[1], dtype=np.int64)
    position = position.reshape(-1)
    totals = []
    for name in (f.name for f in fields(Sums)):
        every = np.concatenate([getattr(sums, name) for _, sums in parts])
        total = np.zeros((keys.shape[1], *every.shape[1:]))
        np.add.at(total, position, every)
        totals.append(total)
    return keys, Sums(*totals)
