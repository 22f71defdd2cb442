"""From micro groups to protection groups: the records that agree after coarsening."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconpriv.cells.cell_batch import CellBatch, Coarse, Encoded, Pools, python_values, unify
from reconpriv.cells.cube import Cube, collect, with_protection
from reconpriv.columns.schema import Column, Schema
from reconpriv.policy.protection import Coarsening, coarse_labels
from reconpriv.theory.arrays import Ints


class Coarsened(NamedTuple):
    """The cells of the protection groups, and the protection group of every micro group."""

    cube: Cube
    within: Ints


def coarse_column(
    column: Column, schema: Schema, coarsening: Coarsening, values: pa.Array
) -> Encoded | None:
    """The label of each value of a column, in canonical order; None if the column is ignored."""
    recoding = dict(coarsening.columns)[column.name]
    if recoding is None:
        return None
    fine = schema.recoding(column.name)
    labels = coarse_labels(column, fine, recoding, python_values(values, column.name))
    ordered = [*sorted({label for label in labels if label is not None})]
    place: dict[str | None, int] = {label: i for i, label in enumerate(ordered)}
    if None in labels:
        place[None] = len(ordered)
    codes = np.array([place[label] for label in labels], dtype=np.int32)
    return Encoded(codes, pa.array([*place], pa.string()))


def coarse_columns(schema: Schema, coarsening: Coarsening) -> Coarse | None:
    """From public columns of micro groups to those of protection groups; None if they are equal."""

    def coarse(public: tuple[Encoded, ...]) -> tuple[Encoded, ...]:
        found = []
        for column, own in zip(schema.public, public, strict=True):
            if column.name not in coarsening.names:
                found.append(own)
            elif (labels := coarse_column(column, schema, coarsening, own.values)) is not None:
                found.append(Encoded(labels.codes[own.codes], labels.values))
        return tuple(found)

    return coarse if coarsening else None


def pooled(batch: CellBatch, schema: Schema, coarsening: Coarsening) -> CellBatch:
    """The batch with the protection groups that its micro groups make up, in canonical order."""
    coarse = coarse_columns(schema, coarsening)
    if coarse is None:
        return batch
    columns = [unify([own]) for own in coarse(batch.public)]
    keys, within = _groups([codes for codes, _ in columns], batch.groups)
    m = schema.domain_size
    cells, position = np.unique(within[batch.group_of_cell] * m + batch.value, return_inverse=True)
    count = np.bincount(position.reshape(-1), weights=batch.count).astype(np.int64)
    starts = np.searchsorted(cells, np.arange(keys.shape[1]) * m)
    public = tuple(Encoded(own, values) for own, (_, values) in zip(keys, columns, strict=True))
    return replace(batch, pools=Pools(CellBatch(public, starts, cells % m, count), within))


def coarsen(cube: Cube, coarsening: Coarsening) -> Coarsened:
    """Sum micro groups into protection groups, in canonical order; every record is a trial."""
    batch = pooled(cube.as_batch(), cube.schema, coarsening)
    found = collect([batch.whole], coarsening.coarse(cube.schema), coins=cube.coins)
    return Coarsened(found, batch.within)


def pooled_cube(cube: Cube, coarsening: Coarsening) -> Cube:
    """The cells with the protection groups that they make up; every record is a trial."""
    return with_protection(cube, *coarsen(cube, coarsening)) if coarsening else cube


def _groups(codes: list[NDArray[np.int32]], groups: int) -> tuple[NDArray[np.int32], Ints]:
    """The combinations of codes that occur, sorted, and which one each micro group has."""
    if not codes:
        return np.zeros((0, 1), dtype=np.int32), np.zeros(groups, dtype=np.int64)
    keys, within = np.unique(np.stack(codes), axis=1, return_inverse=True)
    return keys, within.reshape(-1).astype(np.int64)
