"""How often each value of a public column goes with each sensitive value, gathered in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from reconpriv.cells.cell_batch import CellBatch, Encoded, unify
from reconpriv.columns.schema import Schema
from reconpriv.theory.arrays import Ints

_DENSE = 1 << 20  # pairs that are counted in an array of all of them
_MOST_PAIRS = 1 << 22  # of a column, kept at a time; one with more different ones is given up


@dataclass(frozen=True)
class Pairs:
    """The pairs of one column: its values in order, and the count of each value with each s."""

    values: pa.Array
    code: Ints
    sensitive: Ints
    count: Ints


@dataclass
class JointCounts:
    """Collects the pairs of every public column; parts can be sent and joined."""

    schema: Schema
    parts: list[list[Pairs]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """One list of parts for each column."""
        self.parts = self.parts or [[] for _ in self.schema.public]

    def add(self, batch: CellBatch) -> None:
        """Count the next batch of whole groups."""
        group = batch.group_of_cell
        for parts, column in zip(self.parts, batch.public, strict=True):
            parts.append(_counted(column, group, batch, self.schema.domain_size))
            if sum(part.count.size for part in parts) > _MOST_PAIRS:
                parts[:] = [self._joined(parts)]
                if parts[0].count.size > _MOST_PAIRS // 2:
                    parts[:] = [Pairs(parts[0].values.slice(0, 0), *([_NOTHING] * 3))]

    def join(self, others: Iterable[JointCounts]) -> JointCounts:
        """These counts and those of other parts of the table."""
        for other in others:
            for mine, theirs in zip(self.parts, other.parts, strict=True):
                mine.extend(theirs)
        return self

    def columns(self) -> Iterator[Pairs]:
        """The pairs of each column, all parts together."""
        for parts in self.parts:
            yield self._joined(parts)

    def _joined(self, parts: list[Pairs]) -> Pairs:
        filled = [part for part in parts if part.count.size]
        if len(filled) <= 1 and (filled or parts):
            return (filled or parts)[0]
        codes, values = unify([Encoded(part.code.astype(np.int32), part.values) for part in filled])
        m = self.schema.domain_size
        sensitive = np.concatenate([part.sensitive for part in filled])
        key, inverse = np.unique(codes * np.int64(m) + sensitive, return_inverse=True)
        weights = np.concatenate([part.count for part in filled])
        count = np.bincount(inverse.reshape(-1), weights=weights).astype(np.int64)
        return Pairs(values, key // m, key % m, count)


_NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class CountPairs:
    """Collects the pairs of one part of the table, on whatever machine has it."""

    schema: Schema

    def __call__(self, batches: Iterator[CellBatch]) -> JointCounts:
        """The counts of these groups."""
        found = JointCounts(self.schema)
        for batch in batches:
            found.add(batch)
        return found


def _counted(column: Encoded, group: Ints, batch: CellBatch, m: int) -> Pairs:
    key = column.codes[group] * np.int64(m) + batch.value
    if len(column.values) * m <= _DENSE:
        total = np.bincount(key, weights=batch.count, minlength=len(column.values) * m)
        key = np.flatnonzero(total)
        count = total[key]
    else:
        key, inverse = np.unique(key, return_inverse=True)
        count = np.bincount(inverse.reshape(-1), weights=batch.count)
    return Pairs(column.values, key // m, key % m, count.astype(np.int64))
