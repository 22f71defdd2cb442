"""Columns as codes into sorted categories, a missing value last."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconpriv.columns.given_values import is_missing
from reconpriv.columns.schema import sort_domain
from reconpriv.errors import InputError
from reconpriv.theory.arrays import Floats, Ints


def rows_as_given(X: Any) -> Any:
    """Rows given as lists, as an array of objects: numpy would turn 0 next to text into text."""
    return np.array(X, dtype=object) if isinstance(X, list | tuple) else X


def columns_of(X: Any, checked: NDArray[Any]) -> list[list[Any]]:
    """The columns of a frame or an array as plain values.

    Those of a frame are taken one by one: in one ``checked`` array, dates would become times, and
    times in nanoseconds would become integers.
    """
    if hasattr(X, "iloc"):
        return [plain_values(X.iloc[:, j]) for j in range(checked.shape[1])]
    if hasattr(X, "get_columns"):
        return [plain_values(column) for column in X.get_columns()]
    if hasattr(X, "column_names"):
        return [plain_values(column) for column in X.columns]
    return [plain_values(checked[:, j]) for j in range(checked.shape[1])]


def plain_values(values: Any) -> list[Any]:
    """One column as Python values; times are cut to microseconds, as in releases."""
    for name in ("to_pylist", "to_list"):
        if hasattr(values, name) and not hasattr(values, "iloc"):
            return list(getattr(values, name)())
    array = np.asarray(values) if hasattr(values, "__array__") else np.array(values, dtype=object)
    if array.dtype.kind == "M" and np.datetime_data(array.dtype)[0] in ("ns", "ps", "fs", "as"):
        array = array.astype("datetime64[us]")
    return list(array.tolist())


def check_kinds(values: Sequence[Any], known: Sequence[Any], what: str) -> None:
    """Refuse a column that cannot match any known value, such as text instead of numbers.

    It would say nothing about the class, and nobody would notice.
    """
    learned = {_kind(value) for value in known if not is_missing(value)}
    given = {_kind(value) for value in values if not is_missing(value)}
    if learned and given and not learned & given:
        raise InputError(
            f"{what} holds {' and '.join(sorted(given))}, where {' and '.join(sorted(learned))}"
            " were learned, so no value can match.",
            hint="Convert it, or give a data frame or an array of objects.",
        )


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, Number | Decimal | np.bool_):
        return "numbers"
    if isinstance(value, dt.datetime):
        return "times"
    return "dates" if isinstance(value, dt.date) else f"values of type {type(value).__name__}"


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
    """An array of plain values: of their own type if numpy has one, otherwise of objects."""
    array = np.array(values)
    if array.ndim == 1 and array.dtype.kind in "biufU":
        return array
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
