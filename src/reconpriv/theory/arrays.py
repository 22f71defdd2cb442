"""What the arrays of this package hold, and the distinct columns of one."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

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
