"""Which labels protection gives the values of a table, found in one pass over its groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from reconpriv.cells.cell_batch import CellBatch, Encoded, python_values, unify
from reconpriv.cells.randomness import Key
from reconpriv.columns.declared_bins import Bins
from reconpriv.columns.declared_groups import unused_note
from reconpriv.columns.recoding import MOST_LABELS, Recoding, bins_between, bins_of_width
from reconpriv.columns.schema import Column, Kind, Schema, Value, require_columns, value_text
from reconpriv.errors import InputError
from reconpriv.policy.protection import (
    IGNORED,
    MERGED,
    Coarsening,
    Declared,
    Protection,
    as_interval,
    coarse_labels,
)
from reconpriv.protect.merging import NOTHING_RANDOMISED, merged_values, randomised_cells
from reconpriv.theory.arrays import Ints

Count = Callable[[Iterator[CellBatch]], "list[ValueCounts]"]
MapGroups = Callable[[Count], "list[list[ValueCounts]]"]
"""Applies a function to all groups, at once or part by part."""


@dataclass(frozen=True)
class ValueCounts:
    """The values of a public column, and randomised counts of the sensitive values with each.

    ``counts`` has no columns if nothing is to be merged.
    """

    values: pa.Array
    counts: Ints


def settle(
    protection: Protection, schema: Schema, map_groups: MapGroups, retention: float, key: Key
) -> Coarsening:
    """What each column becomes, which depends on its values.

    Only a merge looks at sensitive values, and only at randomised ones; ``key`` randomises them.
    """
    require_columns(schema.public, protection.names, "a column to protect over")
    if not protection.columns:
        return Coarsening(())
    declared = dict(protection.columns)
    places = tuple(i for i, one in enumerate(schema.public) if one.name in declared)
    merged = tuple(i for i in places if declared[schema.public[i].name] == MERGED)
    parts = map_groups(CountValues(schema, places, merged, retention, key))
    found: list[tuple[str, Recoding | None]] = []
    notes: list[str] = []
    for number, place in enumerate(places):
        column = schema.public[place]
        counted = _joined([part[number] for part in parts])
        said = declared[column.name]
        if said == IGNORED:
            found.append((column.name, None))
        elif said == MERGED:
            fine = schema.recoding(column.name)
            found.append((column.name, merged_values(column, fine, counted.values, counted.counts)))
        else:
            recoding, note = _declared(column, schema.recoding(column.name), said, counted.values)
            found.append((column.name, recoding))
            notes.append(note)
    return Coarsening(tuple(found), tuple(filter(None, notes)))


@dataclass(frozen=True)
class CountValues:
    """Counts values for :func:`settle` in a part of the table; picklable, so tasks can carry it."""

    schema: Schema
    places: tuple[int, ...]
    merged: tuple[int, ...]
    retention: float
    key: Key

    def __call__(self, batches: Iterable[CellBatch]) -> list[ValueCounts]:
        """One pass over whole groups."""
        found: list[list[ValueCounts]] = [[] for _ in self.places]
        for batch in batches:
            randomised = (
                randomised_cells(batch, self.schema, self.retention, self.key)
                if self.merged
                else NOTHING_RANDOMISED
            )
            for parts, place in zip(found, self.places, strict=True):
                codes, values = unify([batch.public[place]])
                m = self.schema.domain_size if place in self.merged else 0
                counts = np.zeros((len(values), m), dtype=np.int64)
                if m:
                    np.add.at(counts, (codes[randomised.group], randomised.value), randomised.count)
                parts[:] = [_joined([*parts, ValueCounts(values, counts)])]
        return [parts[0] for parts in found]


def _joined(parts: Sequence[ValueCounts]) -> ValueCounts:
    """The counts of all parts by value; none of so many values that they cannot be merged."""
    codes, values = unify(
        [Encoded(np.arange(len(part.values), dtype=np.int32), part.values) for part in parts]
    )
    columns = min(part.counts.shape[1] for part in parts) if len(values) <= MOST_LABELS else 0
    counts = np.zeros((len(values), columns), dtype=np.int64)
    np.add.at(counts, codes, np.concatenate([part.counts[:, :columns] for part in parts]))
    return ValueCounts(values, counts)


def _declared(
    column: Column, fine: Recoding | None, said: Declared, known: pa.Array
) -> tuple[Recoding, str]:
    values = python_values(known, column.name)
    recoding = _bins(column, fine, said, values) if isinstance(said, Bins) else said
    assert isinstance(recoding, Recoding)
    coarse_labels(column, fine, recoding, values)  # refuses what it does not cover
    texts = {value_text(column.kind, value) for value in values if value is not None}
    return recoding, unused_note(recoding, texts)


def _bins(column: Column, fine: Recoding | None, said: Bins, values: list[Value]) -> Recoding:
    places = [as_interval(column, fine, value) for value in values if value is not None]
    if not places:
        raise InputError(f"Column {column.name!r} has no value in any record.")
    whole = column.kind is Kind.INTEGER if fine is None else fine.whole
    if said.width is not None:
        lowest = min(low for low, _ in places)
        highest = max(low for low, _ in places)
        return bins_of_width(column.name, said.width, lowest, highest, whole=whole)
    return bins_between(column.name, said.borders, whole=whole)
