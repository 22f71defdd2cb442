"""Columns as codes into sorted categories, a missing value last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconpriv.errors import InputError
from reconpriv.schema import sort_domain

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def is_missing(value: Any) -> bool:
    """None, NaN, or what pandas has for them."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value  # noqa: PLR0124 - NaN alone is not itself


def sorted_categories(values: Iterable[Any], what: str) -> list[Any]:
    """The distinct values in ascending order, a missing one last as None."""
    found = {None if is_missing(value) else value for value in values}
    try:
        return list(sort_domain(found))
    except TypeError:
        raise InputError(
            f"{what} mixes values that do not compare, such as text and numbers.",
            hint="Turn them all into text.",
        ) from None


def encode(values: Sequence[Any], known: Sequence[Any]) -> Ints:
    """The position of each value among the known ones, or -1."""
    position = {None if is_missing(value) else value: i for i, value in enumerate(known)}
    missing = position.get(None, -1)
    return np.fromiter(
        (missing if is_missing(value) else position.get(value, -1) for value in values),
        dtype=np.int64,
        count=len(values),
    )


def cross_count(rows: Ints, columns: Ints, weight: Floats, shape: tuple[int, int]) -> Floats:
    """A cross table of two columns of codes."""
    cells = np.bincount(rows * shape[1] + columns, weights=weight, minlength=shape[0] * shape[1])
    return np.asarray(cells, dtype=np.float64).reshape(shape)


def array_of(values: Sequence[Any]) -> NDArray[Any]:
    """An array of plain values: of their own type where numpy has one, of objects elsewhere."""
    array = np.array(values)
    if array.ndim == 1 and array.dtype.kind in "biufU":
        return array
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
