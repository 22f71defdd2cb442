"""From micro groups to protection groups: the records that agree after coarsening."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconpriv.core.cells import python_values
from reconpriv.core.cube import Cube
from reconpriv.core.merging import merged_values, randomised_cells
from reconpriv.core.protection import (
    IGNORED,
    MERGED,
    Declared,
    Protection,
    Settled,
    as_interval,
    coarse_labels,
)
from reconpriv.core.randomness import Key
from reconpriv.declared_bins import Bins
from reconpriv.errors import InputError
from reconpriv.recoding import Recoding, bins_between, bins_of_width, unused_note
from reconpriv.schema import Column, Kind, Value, require_columns, value_text
from reconpriv.theory.arrays import Ints


class Coarsened(NamedTuple):
    """The cells of the protection groups, and the protection group of every micro group."""

    cube: Cube
    within: Ints


def settle(protection: Protection, cube: Cube, retention: float, key: Key) -> Settled:
    """Settle what each column becomes, from its values; ``cube`` holds the raw cells.

    Only a merge looks at sensitive values, and only at randomised ones; ``key`` randomises them.
    """
    schema = cube.schema
    names = [column.name for column in schema.public]
    require_columns(schema.public, protection.names, "a column to protect over")
    declared = dict(protection.columns)
    randomised = randomised_cells(cube, retention, key) if protection.merges else None
    found: list[tuple[str, Recoding | None]] = []
    notes: list[str] = []
    for place, name in enumerate(names):
        said = declared.get(name)
        if said == MERGED and randomised is not None:
            found.append((name, merged_values(cube, place, randomised)))
        elif said == IGNORED:
            found.append((name, None))
        elif said is not None:
            recoding, note = _declared(cube, place, said)
            found.append((name, recoding))
            notes.append(note)
    return Settled(tuple(found), tuple(filter(None, notes)))


def _declared(cube: Cube, place: int, said: Declared) -> tuple[Recoding, str]:
    column = cube.schema.public[place]
    fine = cube.schema.recoding(column.name)
    values = python_values(cube.values[place], column.name)
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


def coarsen(cube: Cube, settled: Settled) -> Coarsened:
    """Sum micro groups into protection groups, in canonical order; every record is a trial."""
    schema = settled.coarse(cube.schema)
    found = dict(settled.columns)
    codes: list[NDArray[np.int32]] = []
    values: list[pa.Array] = []
    for column, own, known in zip(cube.schema.public, cube.codes, cube.values, strict=True):
        recoding = found.get(column.name)
        if column.name not in found:
            codes.append(own)
            values.append(known)
        elif recoding is not None:
            fine = cube.schema.recoding(column.name)
            labels = coarse_labels(column, fine, recoding, python_values(known, column.name))
            ordered = [*sorted({label for label in labels if label is not None})]
            place: dict[str | None, int] = {label: i for i, label in enumerate(ordered)}
            if None in labels:
                place[None] = len(ordered)
            lookup = np.array([place[label] for label in labels], dtype=np.int32)
            codes.append(lookup[own])
            values.append(pa.array([*place], pa.string()))
    keys, within = _groups(codes, cube.groups)
    m = schema.domain_size
    cells, position = np.unique(within[cube.group] * m + cube.value, return_inverse=True)
    count = np.bincount(position.reshape(-1), weights=cube.count).astype(np.int64)
    groups = keys.shape[1]
    records = np.bincount(within, weights=cube.records, minlength=groups).astype(np.int64)
    coarse = Cube(
        schema=schema,
        codes=tuple(keys),
        values=tuple(values),
        records=records,
        trials=records.astype(np.float64),
        group=cells // m,
        value=cells % m,
        count=count,
        coins=cube.coins,
    )
    return Coarsened(coarse, within)


def _groups(codes: list[NDArray[np.int32]], groups: int) -> tuple[NDArray[np.int32], Ints]:
    """The combinations of codes that occur, sorted, and which one each micro group has."""
    if not codes:
        return np.zeros((0, 1), dtype=np.int32), np.zeros(groups, dtype=np.int64)
    keys, within = np.unique(np.stack(codes), axis=1, return_inverse=True)
    return keys, within.reshape(-1).astype(np.int64)
