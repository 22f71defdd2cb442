"""Cells: a table reduced to its distinct records and their counts, group by group.

Records of a micro group with the same sensitive value are identical, so counts say everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconpriv.columns.schema import Schema, Value
from reconpriv.errors import InputError
from reconpriv.theory.arrays import Floats, Ints, run_lengths, run_of_each


@dataclass(frozen=True)
class Encoded:
    """A column as codes into its distinct values."""

    codes: NDArray[np.int32]
    values: pa.Array

    def take(self, positions: Ints) -> Encoded:
        """The same values at other rows."""
        return Encoded(self.codes[positions], self.values)


C = TypeVar("C")


class Pools(NamedTuple, Generic[C]):
    """Protection groups as cells of their own, and the one that each micro group lies within."""

    whole: C
    within: Ints


@dataclass(frozen=True)
class CellBatch:
    """Whole micro groups in canonical order: sorted by public values, then by sensitive value.

    ``public`` has one row per group; ``value`` (an index into the domain) and ``count`` one row per
    cell. ``pools`` are the protection groups that the micro groups make up; without any, each micro
    group is its own.
    """

    public: tuple[Encoded, ...]
    starts: Ints
    value: Ints
    count: Ints
    pools: Pools[CellBatch] | None = None

    @property
    def whole(self) -> CellBatch:
        """The protection groups: those that a policy makes a promise about."""
        return self if self.pools is None else self.pools.whole

    @property
    def within(self) -> Ints:
        """The protection group that each micro group lies within."""
        return np.arange(self.groups) if self.pools is None else self.pools.within

    @property
    def groups(self) -> int:
        """How many micro groups there are."""
        return self.starts.size

    @property
    def cells_per_group(self) -> Ints:
        """How many sensitive values occur in each group."""
        return run_lengths(self.starts, self.count.size)

    @property
    def sizes(self) -> Ints:
        """|g| of each group."""
        return np.add.reduceat(self.count, self.starts)

    @property
    def largest_counts(self) -> Ints:
        """How many records of each group hold its most frequent value."""
        return np.maximum.reduceat(self.count, self.starts)

    @property
    def largest_frequencies(self) -> Floats:
        """The largest f of each group."""
        return np.asarray(self.largest_counts / self.sizes)

    @property
    def group_of_cell(self) -> Ints:
        """The group each cell belongs to."""
        return run_of_each(self.starts, self.count.size)

    def slice(self, first: int, last: int) -> CellBatch:
        """The groups first..last-1 as a batch."""
        low = int(self.starts[first])
        high = int(self.starts[last]) if last < self.groups else self.count.size
        return CellBatch(
            tuple(Encoded(column.codes[first:last], column.values) for column in self.public),
            self.starts[first:last] - low,
            self.value[low:high],
            self.count[low:high],
        )

    def take(self, groups: Ints) -> CellBatch:
        """Some groups, given in their order, as a batch."""
        wanted = np.zeros(self.groups, dtype=bool)
        wanted[groups] = True
        lengths = self.cells_per_group
        cells = np.repeat(wanted, lengths)
        return CellBatch(
            tuple(column.take(groups) for column in self.public),
            np.cumsum(lengths[groups]) - lengths[groups],
            self.value[cells],
            self.count[cells],
        )

    def public_values(self, group: int, schema: Schema) -> dict[str, Value]:
        """The public values of one group, as Python objects."""
        return {
            column.name: python_values(part.values.slice(int(part.codes[group]), 1), column.name)[0]
            for part, column in zip(self.public, schema.public, strict=True)
        }


def python_values(values: pa.Array, column: str) -> list[Value]:
    """Arrow values as Python objects; refuses dates that Python cannot hold."""
    try:
        return list(values.to_pylist())
    except OverflowError:
        raise outside_years(column) from None


def outside_years(column: str) -> InputError:
    """The error for a date that Python cannot hold."""
    return InputError(
        f"Column {column!r} holds a date outside the years 1 to 9999.",
        hint="Turn it into text first.",
    )


Coarse = Callable[[tuple[Encoded, ...]], tuple[Encoded, ...]]
"""From the public columns of micro groups to those of their protection groups."""


def whole_groups(
    batches: Iterable[pa.RecordBatch], schema: Schema, coarse: Coarse | None = None
) -> Iterator[CellBatch]:
    """Turn sorted cells (public…, sensitive, count) into batches that never split a group.

    With ``coarse``, cells are sorted by coarse values first, and no protection group is split. The
    last group of a batch may continue in the next one, so it is carried over.
    """
    held: list[pa.Table] = []
    rows = stuck = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        held.append(pa.Table.from_batches([batch]))
        rows += batch.num_rows
        # A group that fills whole batches is looked at again only when there is twice as much.
        if rows < 2 * stuck:
            continue
        table = pa.concat_tables(held)
        found = _from_sorted(table, schema)
        last = _first_of_last(found, coarse)
        if last:
            yield found.slice(0, last)
        held = [table.slice(int(found.starts[last]))]
        rows = held[0].num_rows
        stuck = 0 if last else rows
    if rows:
        yield _from_sorted(pa.concat_tables(held), schema)


def _first_of_last(batch: CellBatch, coarse: Coarse | None) -> int:
    """The first micro group of the last protection group."""
    if coarse is None:
        return batch.groups - 1
    same = np.ones(batch.groups, dtype=bool)
    for column in coarse(batch.public):
        same &= column.codes == column.codes[-1]
    others = np.flatnonzero(~same)
    return int(others[-1]) + 1 if others.size else 0


def _from_sorted(table: pa.Table, schema: Schema) -> CellBatch:
    """Find groups by comparing neighbours; turn sensitive values into indices into the domain."""
    columns = [encode(column) for column in table.columns[:-1]]
    changes = np.zeros(table.num_rows, dtype=bool)
    changes[0] = True
    for column in columns[:-1]:
        changes[1:] |= column.codes[1:] != column.codes[:-1]
    starts = np.flatnonzero(changes)
    position = {value: i for i, value in enumerate(schema.domain)}
    sensitive = columns[-1]
    to_domain = np.array([position[v] for v in sensitive.values.to_pylist()], dtype=np.int64)
    value = to_domain[sensitive.codes]
    count = table.columns[-1].combine_chunks().to_numpy(zero_copy_only=False).astype(np.int64)
    falls = value[1:] < value[:-1]
    if np.any(falls & ~changes[1:]):
        # Engines sort texts; bins and groups have their own order.
        order = np.lexsort((value, np.cumsum(changes)))
        value, count = value[order], count[order]
    return CellBatch(tuple(column.take(starts) for column in columns[:-1]), starts, value, count)


def encode(column: pa.Array | pa.ChunkedArray) -> Encoded:
    """A column as codes into the values that occur, including a missing one."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    array = pc.dictionary_encode(column, null_encoding="encode")
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return Encoded(array.indices.to_numpy(zero_copy_only=False), array.dictionary)


def unify(parts: list[Encoded]) -> tuple[NDArray[np.int32], pa.Array]:
    """One set of codes into the sorted values that occur, a missing value last."""
    used = [np.flatnonzero(np.bincount(part.codes)) for part in parts]
    values = pa.concat_arrays(
        [_plain(_at(part.values, u)) for part, u in zip(parts, used, strict=True)]
    )
    encoded = pc.dictionary_encode(values, null_encoding="encode")
    order = pc.array_sort_indices(encoded.dictionary, null_placement="at_end")
    rank = np.empty(len(order), dtype=np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    ranks = rank[encoded.indices.to_numpy(zero_copy_only=False)]
    codes, start = [], 0
    for part, u in zip(parts, used, strict=True):
        lookup = np.zeros(int(u[-1]) + 1, dtype=np.int32)
        lookup[u] = ranks[start : start + u.size]
        codes.append(lookup[part.codes])
        start += u.size
    return np.concatenate(codes), encoded.dictionary.take(order)


def _at(values: pa.Array, positions: Ints) -> pa.Array:
    """The values at ascending positions, which are usually all."""
    return values if positions.size == len(values) else values.take(pa.array(positions))


def _plain(values: pa.Array) -> pa.Array:
    """Text in one Arrow type, however the engine delivered it."""
    if pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
        return values.cast(pa.string())
    return values.cast(pa.string()) if pa.types.is_null(values.type) else values
