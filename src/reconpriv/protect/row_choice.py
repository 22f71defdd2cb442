"""One row of each person, chosen by the key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.randomness import Key, Randomness, purpose, unit_interval
from reconpriv.columns.schema import Column, Kind, Schema, Value
from reconpriv.theory.arrays import Floats, Ints, run_of_each, run_starts


@dataclass(frozen=True)
class RowChoice:
    """Chooses a row of each person; every row of a person is equally likely.

    The choice depends on the key and on what a person's rows hold, not on their order.
    """

    schema: Schema
    key: Key

    @property
    def by_person(self) -> Schema:
        """The schema of the groups to choose from: the person's number is their first column."""
        assert self.schema.person is not None
        return replace(self.schema, public=(self.schema.person, *self.schema.public))

    def __call__(self, batches: Iterator[CellBatch]) -> Iterator[pa.RecordBatch]:
        """The chosen rows, without the person's number.

        All rows of a person follow one another, though maybe not in one batch.
        """
        bound_to = purpose(0.0, self.schema.sensitive, self.schema.domain, b"rows")
        randomness = Randomness(self.key, bound_to)
        waiting: tuple[object, float, pa.RecordBatch] | None = None
        for batch in batches:
            place, first = self._places(batch, randomness)
            chosen, places = _smallest(place, first)
            rows = self._rows(batch, chosen)
            values = batch.public[0].values
            group = batch.group_of_cell[chosen]
            who = batch.public[0].codes[group]
            if waiting is not None:
                if values[int(who[0])].as_py() != waiting[0]:
                    yield waiting[2]
                elif waiting[1] < places[0]:
                    rows = pa.concat_batches([waiting[2], rows.slice(1)])
                    places[0] = waiting[1]
            last = rows.num_rows - 1
            waiting = values[int(who[-1])].as_py(), float(places[-1]), rows.slice(last)
            if last:
                yield rows.slice(0, last)
        if waiting is not None:
            yield waiting[2]

    def _places(self, batch: CellBatch, randomness: Randomness) -> tuple[Floats, Ints]:
        """Where each cell comes in a race among a person's rows, and each person's first cell.

        The first of n exponential times is each row's with probability 1/n; that of a cell of
        equal rows is their minimum.
        """
        schema = self.by_person
        ids = randomness.hash_sensitive(schema.sensitive, schema.domain)[batch.value]
        group = batch.group_of_cell
        person, *public = batch.public
        numbers = [_number(value) for value in person.values.to_pylist()]
        named = Column(schema.public[0].name, Kind.STRING)
        ids = ids + randomness.hash_values(named, numbers)[person.codes[group]]
        for column, part in zip(schema.public[1:], public, strict=True):
            hashes = randomness.hash_values(column, part.values.to_pylist())
            ids = ids + hashes[part.codes[group]]
        u = unit_interval(randomness.words(ids, np.uint64(0))[:, 0])
        who = batch.public[0].codes[group]
        return -np.log1p(-u) / batch.count, run_starts(who)

    def _rows(self, batch: CellBatch, cells: Ints) -> pa.RecordBatch:
        group = batch.group_of_cell[cells]
        columns = [part.values.take(pa.array(part.codes[group])) for part in batch.public[1:]]
        columns.append(pa.array(self.schema.domain).take(pa.array(batch.value[cells])))
        return pa.RecordBatch.from_arrays(columns, [one.name for one in self.schema.columns])


def _number(value: Value) -> str | None:
    """A person's number as text: 7 and 7.0, which a data frame makes of it, are one person."""
    whole = isinstance(value, float | Decimal) and value == int(value)
    return None if value is None else str(int(value)) if whole else str(value)


def _smallest(place: Floats, first: Ints) -> tuple[Ints, Floats]:
    """The cell with the smallest place of each person, and that place."""
    chosen = np.lexsort((place, run_of_each(first, place.size)))[first]
    return chosen, place[chosen]
