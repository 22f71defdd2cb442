"""What the arrays of this package hold, and what numpy has no function for."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)


def distinct_columns(matrix: NDArray[T]) -> tuple[NDArray[T], Ints, Ints]:
    """The distinct columns in order, the first place of each, and which one every column is.

    Like ``numpy.unique`` along axis 1, which compares whole columns; sorting by one row at a time
    is ten times as fast. There is at least one row and one column.
    """
    order = np.lexsort(matrix[::-1])
    sorted_columns = matrix[:, order]
    new = np.append(True, (sorted_columns[:, 1:] != sorted_columns[:, :-1]).any(axis=0))
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    first = order[new]
    return matrix[:, first], first, place


def quotient(top: ArrayLike, bottom: Floats | Ints, otherwise: ArrayLike = 0.0) -> Floats:
    """top / bottom where that is above 0, and another number elsewhere."""
    shape = np.broadcast_shapes(np.shape(top), bottom.shape)
    out = np.full(shape, otherwise, dtype=np.float64)
    return np.divide(top, bottom, out=out, where=bottom > 0)


def run_starts(values: NDArray[T]) -> Ints:
    """The first place of each run of equal neighbours; there is at least one value."""
    return np.flatnonzero(np.append(True, values[1:] != values[:-1]))


def run_lengths(starts: Ints, size: int) -> Ints:
    """How long the runs are that start at these places, of so many entries in all."""
    return np.diff(np.append(starts, size))


def run_of_each(starts: Ints, size: int) -> Ints:
    """The number of the run that each of so many entries is in."""
    return np.repeat(np.arange(starts.size), run_lengths(starts, size))


def spans(begin: Ints, length: Ints) -> Ints:
    """The positions begin, begin + 1, … of every span, concatenated."""
    before = np.cumsum(length) - length
    return np.asarray(np.repeat(begin - before, length) + np.arange(int(length.sum())))
