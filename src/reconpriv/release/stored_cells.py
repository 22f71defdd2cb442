"""Cells on disk, read back one part at a time: for a release whose cells do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.cube import Cube, collect, with_protection
from reconpriv.columns.schema import Schema
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.writing.scratch import Scratch, temporary

CELLS_PER_PART = 1 << 19
_ARRAYS = ("records", "trials", "group", "value", "count")


@dataclass(frozen=True, eq=False)
class StoredCells:
    """Parts in their own folder, which is removed with this object.

    ``lookups`` turn the codes of a part into codes of all values, column by column. ``pools`` are
    the protection groups, part by part; without any, each micro group is its own.
    """

    schema: Schema
    values: tuple[pa.Array, ...]
    lookups: tuple[list[NDArray[np.int32]], ...]
    scratch: Scratch
    number: int
    coin_flips: bool = False
    pools: StoredCells | None = None
    name: str = "{}"

    @property
    def whole(self) -> StoredCells:
        """The protection groups: those that all sensitive values rest on."""
        return self if self.pools is None else self.pools

    def parts(self) -> Iterator[Cube]:
        """Every part, read from disk."""
        if self.pools is None:
            yield from (cube for cube, _ in self._read())
            return
        for (cube, within), whole in zip(self._read(), self.pools.parts(), strict=True):
            yield with_protection(cube, whole, within)

    def _read(self) -> Iterator[tuple[Cube, Ints]]:
        """Every part, and the protection group within which each of its groups lies."""
        for number in range(self.number):
            with np.load(self._path(number)) as stored:
                codes = tuple(
                    lookup[number][stored[f"codes{i}"]] for i, lookup in enumerate(self.lookups)
                )
                arrays = {name: stored[name] for name in _ARRAYS}
                within = stored["within"]
            yield (
                Cube(self.schema, codes, self.values, **arrays, coin_flips=self.coin_flips),
                within,
            )

    def _path(self, number: int) -> Path:
        return self.scratch.path / f"{self.name.format(number)}.npz"

    def set_trials(self, trials: Iterable[Floats]) -> None:
        """Note the trials of each part's groups, part by part."""
        for number, found in enumerate(trials):
            path = self._path(number)
            with np.load(path) as stored:
                arrays = {name: stored[name] for name in stored.files}
            np.savez(path, **(arrays | {"trials": found}))


def store(
    batches: Iterable[CellBatch], schema: Schema, *, coin_flips: bool = False, group_schema: Schema
) -> StoredCells:
    """Write batches of whole groups to disk, a few hundred thousand cells per part.

    ``group_schema`` is that of protection groups, which are written too if it is another.
    """
    # Published cells, not raw ones; still nothing should be left behind.
    scratch = temporary("cells")
    micro, groups = _Writer(scratch, schema, "{}"), _Writer(scratch, group_schema, "g{}")
    two = group_schema != schema
    try:
        for part in _of_size(batches, CELLS_PER_PART):
            first = np.cumsum([0, *(batch.whole.groups for batch in part[:-1])])
            within = [batch.within + start for batch, start in zip(part, first, strict=True)]
            micro.add(part, np.concatenate(within))
            if two:
                groups.add([batch.whole for batch in part])
    except BaseException:
        scratch.close()
        raise
    return replace(
        micro.cells(coin_flips=coin_flips),
        pools=groups.cells(coin_flips=coin_flips) if two else None,
    )


@dataclass
class _Writer:
    """Writes parts under their own names, and collects the values of their columns."""

    scratch: Scratch
    schema: Schema
    name: str
    number: int = 0
    values: list[list[pa.Array]] = field(default_factory=list)

    def add(self, batches: list[CellBatch], within: Ints | None = None) -> None:
        """Write the next part."""
        # In the order in which they come, which ``within`` follows.
        cube = collect([replace(batch, pools=None) for batch in batches], self.schema)
        arrays: dict[str, Any] = {f"codes{i}": own for i, own in enumerate(cube.codes)}
        arrays |= {name: getattr(cube, name) for name in _ARRAYS}
        arrays["within"] = cube.within if within is None else within
        np.savez(self.scratch.path / f"{self.name.format(self.number)}.npz", **arrays)
        self.values.append(list(cube.values))
        self.number += 1

    def cells(self, *, coin_flips: bool) -> StoredCells:
        """All parts."""
        joined = [_join_values(list(column)) for column in zip(*self.values, strict=True)]
        return StoredCells(
            self.schema,
            tuple(ordered for ordered, _ in joined),
            tuple(lookups for _, lookups in joined),
            self.scratch,
            self.number,
            coin_flips,
            name=self.name,
        )


def _of_size(batches: Iterable[CellBatch], cells: int) -> Iterator[list[CellBatch]]:
    part: list[CellBatch] = []
    held = 0
    for batch in batches:
        part.append(batch)
        held += batch.count.size
        if held >= cells:
            yield part
            part, held = [], 0
    if part:
        yield part


def _join_values(parts: list[pa.Array]) -> tuple[pa.Array, list[NDArray[np.int32]]]:
    """The sorted values of a column, and for each part the positions of its values among them."""
    present = [values.drop_null() for values in parts]
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(np.arange(len(values), dtype=np.int32)), values)
        for values in present
    ]
    unified = pa.chunked_array(chunks).unify_dictionaries().chunks
    values = unified[-1].dictionary
    order = pc.array_sort_indices(values).to_numpy()
    ranks = np.empty(len(values) + 1, dtype=np.int32)
    ranks[order] = np.arange(len(values), dtype=np.int32)
    ranks[-1] = len(values)
    # A missing value is the last one of a part, and the last one of all.
    lookups = [np.append(ranks[chunk.indices.to_numpy()], ranks[-1]) for chunk in unified]
    missing = any(values.null_count for values in parts)
    ordered = values.take(pa.array(order))
    if missing:
        ordered = pa.concat_arrays([ordered, pa.nulls(1, ordered.type)])
    return ordered, lookups
