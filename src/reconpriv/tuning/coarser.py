"""A table made coarser on its cells alone: without a column, or with wider bins of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconpriv.cells.cube import Cube
from reconpriv.columns.schema import Kind
from reconpriv.theory.arrays import Flags, Ints

# Codes are packed into one number for as long as they fit.
_MOST = 1 << 62


def without_column(cube: Cube, attribute: int) -> Cube:
    """The cells that are left when a public column is dropped."""
    kept = [i for i in range(len(cube.codes)) if i != attribute]
    schema = replace(cube.schema, public=tuple(cube.schema.public[i] for i in kept))
    smaller = replace(
        cube,
        schema=schema,
        codes=tuple(cube.codes[i] for i in kept),
        values=tuple(cube.values[i] for i in kept),
    )
    return merged(smaller)


def with_bins(cube: Cube, attribute: int, width: int) -> Cube:
    """The cells that are left when a whole number x becomes ⌊x / width⌋ · width."""
    numbers = [None if v is None else v // width * width for v in _numbers(cube, attribute)]
    bins = list(dict.fromkeys(numbers))  # sorted, because the values are
    place = {value: i for i, value in enumerate(bins)}
    codes = np.array([place[n] for n in numbers], dtype=np.int32)[cube.codes[attribute]]
    values = pa.array(bins, cube.values[attribute].type)
    changed = replace(
        cube,
        codes=(*cube.codes[:attribute], codes, *cube.codes[attribute + 1 :]),
        values=(*cube.values[:attribute], values, *cube.values[attribute + 1 :]),
    )
    return merged(changed)


def wider_bins(cube: Cube, attribute: int) -> tuple[int, ...]:
    """Bin widths to try for a column of whole numbers: 2, 5 and 10 times its current step."""
    if cube.schema.public[attribute].kind is not Kind.INTEGER:
        return ()
    numbers = [number for number in _numbers(cube, attribute) if number is not None]
    if len(numbers) < 3:
        return ()
    step = int(np.gcd.reduce(np.diff(np.array(numbers, dtype=object))))
    reach = numbers[-1] - numbers[0]
    return tuple(step * times for times in (2, 5, 10) if step * times <= reach)


def _numbers(cube: Cube, attribute: int) -> list[int | None]:
    return list(cube.values[attribute].to_pylist())


def some_groups(cube: Cube, chosen: Flags) -> Cube:
    """The chosen groups with their cells."""
    cells = chosen[cube.group]
    number = np.cumsum(chosen) - 1
    return replace(
        cube,
        codes=tuple(codes[chosen] for codes in cube.codes),
        records=cube.records[chosen],
        trials=cube.trials[chosen],
        group=number[cube.group[cells]],
        value=cube.value[cells],
        count=cube.count[cells],
    )


def merged(cube: Cube) -> Cube:
    """Join the groups that agree on all public codes, in canonical order."""
    group_of, groups = _groups_of(cube.codes, [len(v) for v in cube.values], cube.groups)
    m = cube.schema.domain_size
    keys, place = np.unique(group_of[cube.group] * m + cube.value, return_inverse=True)
    first = np.empty(groups, dtype=np.int64)
    first[group_of[::-1]] = np.arange(group_of.size)[::-1]
    records = np.bincount(group_of, weights=cube.records, minlength=groups).astype(np.int64)
    return replace(
        cube,
        codes=tuple(codes[first] for codes in cube.codes),
        records=records,
        trials=records.astype(np.float64),
        group=keys // m,
        value=keys % m,
        count=np.bincount(place, weights=cube.count, minlength=keys.size).astype(np.int64),
    )


def _groups_of(codes: Sequence[NDArray[np.int32]], sizes: list[int], rows: int) -> tuple[Ints, int]:
    """The number of each row's group, in canonical order."""
    packed, most = np.zeros(rows, dtype=np.int64), 1
    for column, size in zip(codes, sizes, strict=True):
        if most * size > _MOST:
            packed = np.unique(packed, return_inverse=True)[1].astype(np.int64)
            most = int(packed.max()) + 1
        packed, most = packed * size + column, most * size
    keys, group = np.unique(packed, return_inverse=True)
    return group.astype(np.int64), keys.size
