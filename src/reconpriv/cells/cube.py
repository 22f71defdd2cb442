"""Cells held in memory with their design: what every estimate is summed from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconpriv.cells.cell_batch import CellBatch, Encoded, Pools, unify
from reconpriv.columns.schema import Schema
from reconpriv.theory.arrays import Flags, Floats, Ints, distinct_columns, spans
from reconpriv.theory.estimation.design import copies_variance

T = TypeVar("T")
_LARGEST_VARIANCE_OF_A_COIN = 0.25
_SINGLE_NUMBER = 1 << 62  # combinations of codes that one number tells apart


class GroupShares(NamedTuple):
    """Protection groups in selections of micro groups; a group may be in several of them.

    ``micro`` are the micro groups selected, and ``entry`` says to which entry each belongs;
    ``share`` is how much of its protection group an entry is.
    """

    selection: Ints
    group: Ints
    share: Floats
    micro: Ints
    entry: Ints

    @property
    def cut(self) -> Flags:
        """Which entries are only a part of a protection group."""
        return np.asarray(self.share < 1.0)

    @property
    def once(self) -> bool:
        """True if every group counts once: the micro groups are the protection groups."""
        return self.micro is self.group


@dataclass(frozen=True)
class Cube:
    """Groups with their public codes, records and trials; cells with their counts.

    ``codes`` index ``values``, the sorted distinct values of each public attribute. ``trials`` may
    be a plug-in (not whole) if the release does not reveal it; ``coin_flips`` says that scaling and
    sampling were done by independent coin flips (Algorithm 1) instead of exactly. ``pools`` are
    the protection groups; without any, each micro group is its own.
    """

    schema: Schema
    codes: tuple[NDArray[np.int32], ...]
    values: tuple[pa.Array, ...]
    records: Ints
    trials: Floats
    group: Ints
    value: Ints
    count: Ints
    coin_flips: bool = False
    pools: Pools[Cube] | None = None

    @property
    def groups(self) -> int:
        """How many micro groups there are."""
        return self.records.size

    @property
    def whole(self) -> Cube:
        """The protection groups, on which every estimate rests."""
        return self if self.pools is None else self.pools.whole

    @property
    def within(self) -> Ints:
        """The protection group that each micro group lies within."""
        return np.arange(self.groups) if self.pools is None else self.pools.within

    @cached_property
    def starts(self) -> Ints:
        """The first cell of every group, and the number of cells."""
        return np.searchsorted(self.group, np.arange(self.groups + 1))

    @cached_property
    def scale(self) -> Floats:
        """|g| / n_g: how many records one trial stands for."""
        return np.asarray(self.records / self.trials)

    @cached_property
    def sampled(self) -> Flags:
        """Which groups rest on fewer trials than records."""
        return np.asarray(self.trials < self.records)

    def as_batch(self) -> CellBatch:
        """The cells as one batch of whole groups."""
        public = tuple(Encoded(c, v) for c, v in zip(self.codes, self.values, strict=True))
        pools = None if self.pools is None else Pools(self.whole.as_batch(), self.within)
        return CellBatch(public, self.starts[:-1], self.value, self.count, pools)

    def map_groups(self, work: Callable[[Iterator[CellBatch]], T]) -> list[T]:
        """Apply a function to all groups, as an engine does."""
        return [work(iter([self.as_batch()]))]

    def parts(self) -> Iterator[Cube]:
        """The cube itself: all of it is in memory."""
        yield self

    def shares(self, selection: Ints) -> GroupShares:
        """The shares of protection groups in selections of micro groups (-1: in none)."""
        micro = np.flatnonzero(selection >= 0)
        if self.pools is None:
            return GroupShares(
                selection[micro], micro, np.ones(micro.size), micro, np.arange(micro.size)
            )
        many = self.whole.groups
        pairs, entry = np.unique(selection[micro] * many + self.within[micro], return_inverse=True)
        entry, group = entry.reshape(-1), pairs % many
        records = np.bincount(entry, weights=self.records[micro], minlength=pairs.size)
        share = np.asarray(records / self.whole.records[group])
        return GroupShares(pairs // many, group, share, micro, entry)

    def cells_of(self, group: Ints) -> tuple[Ints | slice, Ints]:
        """The cells of some groups, and for each cell the position of its group among them."""
        if 4 * group.size > self.groups and bool((group[1:] > group[:-1]).all()):
            if group.size == self.groups:
                return slice(None), self.group
            # Of many groups it is quicker to look at every cell.
            position = np.full(self.groups, -1)
            position[group] = np.arange(group.size)
            place = position[self.group]
            cell = np.flatnonzero(place >= 0)
            return cell, place[cell]
        first, length = self.starts[group], np.diff(self.starts)[group]
        return spans(first, length), np.repeat(np.arange(group.size), length)

    def only(self, groups: Ints, like: Cube) -> Cube:
        """Some of the micro groups, with the codes of a cube that has just these."""
        cell, group = self.cells_of(groups)
        return replace(
            self,
            codes=like.codes,
            values=like.values,
            records=self.records[groups],
            trials=self.trials[groups],
            group=group,
            value=self.value[cell],
            count=self.count[cell],
            pools=self.pools and Pools(self.whole, self.within[groups]),
        )

    def group_table(self) -> pa.Table:
        """The public values of every group, for predicates to be evaluated on."""
        columns = [
            values.take(pa.array(codes))
            for codes, values in zip(self.codes, self.values, strict=True)
        ]
        return pa.Table.from_arrays(columns, names=[c.name for c in self.schema.public])

    @cached_property
    def uneven(self) -> Floats:
        """The factor that turns a count's share into the variance that uneven copies add to it.

        The remainder |g| - n⌊|g|/n⌋ goes to trials at random (hypergeometric), or each trial
        flips a coin for one more copy (Algorithm 1).
        """
        n = self.trials
        if self.coin_flips:  # neither n nor N is known exactly, so nor is the fraction of N/n
            return np.where(self.sampled, _LARGEST_VARIANCE_OF_A_COIN * n, 0.0)
        return copies_variance(self.records, n)


def collect(
    batches: Iterable[CellBatch],
    schema: Schema,
    trials: Floats | None = None,
    *,
    coin_flips: bool = False,
) -> Cube:
    """Join batches of whole groups; without ``trials``, every record is a trial.

    Batches of protection groups mix the order of micro groups, which is restored.
    """
    parts = list(batches)
    columns = [unify([part.public[i] for part in parts]) for i in range(len(schema.public))]
    records = np.concatenate([part.sizes for part in parts])
    first = np.cumsum([0, *(part.groups for part in parts[:-1])])
    found = Cube(
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
        coin_flips=coin_flips,
    )
    if parts[0].pools is None or not found.codes:
        return found
    order = np.lexsort(found.codes[::-1])
    codes = tuple(column[order] for column in found.codes)
    return found.only(order, replace(found, codes=codes))


def with_protection(dealt: Cube, whole: Cube, within: Ints) -> Cube:
    """Dealt records with their protection groups.

    The trials of a micro group are a plug-in: its share of those of its protection group.
    """
    share = dealt.records / whole.records[within]
    trials = whole.trials[within] * share
    return replace(dealt, trials=trials, pools=Pools(whole, within))


def resting_on(cube: Cube, whole: Cube) -> Cube:
    """The cells of a cube whose protection groups are replaced, for example by their trials."""
    return whole if cube.pools is None else with_protection(cube, whole, cube.within)


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
        keys, _, position = distinct_columns(codes)
        return keys, position
    numbers = np.ravel_multi_index(tuple(codes), tuple(lengths))
    distinct, position = np.unique(numbers, return_inverse=True)
    return np.stack(np.unravel_index(distinct, tuple(lengths))).astype(np.int64), position
