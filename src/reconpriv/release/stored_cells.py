"""Cells on disk, read back one part at a time: for a release whose cells do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconpriv.core.cells import CellBatch
from reconpriv.core.cube import Cube, collect
from reconpriv.schema import Schema
from reconpriv.theory.arrays import Floats
from reconpriv.writing.scratch import Scratch, temporary

CELLS_PER_PART = 1 << 19
_ARRAYS = ("records", "trials", "group", "value", "count")


@dataclass(frozen=True, eq=False)
class StoredCells:
    """Parts in their own folder, which is removed with this object.

    ``lookups`` turn the codes of a part into codes of all values, column by column.
    """

    schema: Schema
    values: tuple[pa.Array, ...]
    lookups: tuple[list[NDArray[np.int32]], ...]
    scratch: Scratch
    number: int
    coins: bool = False

    def parts(self) -> Iterator[Cube]:
        """Every part, read from disk."""
        for number in range(self.number):
            with np.load(self.scratch.path / f"{number}.npz") as stored:
                codes = tuple(
                    lookup[number][stored[f"codes{i}"]] for i, lookup in enumerate(self.lookups)
                )
                arrays = {name: stored[name] for name in _ARRAYS}
            yield Cube(self.schema, codes, self.values, **arrays, coins=self.coins)

    def set_trials(self, trials: Iterable[Floats]) -> None:
        """Note the trials of each part's groups, part by part."""
        for number, found in enumerate(trials):
            path = self.scratch.path / f"{number}.npz"
            with np.load(path) as stored:
                arrays = {name: stored[name] for name in stored.files}
            np.savez(path, **(arrays | {"trials": found}))


def store(batches: Iterable[CellBatch], schema: Schema, *, coins: bool = False) -> StoredCells:
    """Write batches of whole groups to disk, a few hundred thousand cells per part."""
    # Published cells, not raw ones; still nothing should be left behind.
    scratch = temporary("cells")
    values: list[list[pa.Array]] = [[] for _ in schema.public]
    number = 0
    try:
        for part in _of_size(batches, CELLS_PER_PART):
            cube = collect(part, schema)
            arrays: dict[str, Any] = {f"codes{i}": own for i, own in enumerate(cube.codes)}
            arrays |= {name: getattr(cube, name) for name in _ARRAYS}
            np.savez(scratch.path / f"{number}.npz", **arrays)
            for column, own_values in zip(values, cube.values, strict=True):
                column.append(own_values)
            number += 1
    except BaseException:
        scratch.close()
        raise
    joined = [_join_values(column) for column in values]
    return StoredCells(
        schema,
        tuple(ordered for ordered, _ in joined),
        tuple(lookups for _, lookups in joined),
        scratch,
        number,
        coins,
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
