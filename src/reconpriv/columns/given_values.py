"""Values as users have them: of numpy, pandas, Polars or Arrow, one or many, missing or not."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import islice
from typing import Any

from reconpriv.errors import InputError

MOST_VALUES = 1_000_000
"""Of one column in one question; an iterator may have no end."""


def is_missing(value: Any) -> bool:
    """None, NaN, or what pandas and numpy have for them."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, float) or _numpy_kind(value) in ("f", "m", "M"):
        return bool(value != value)  # noqa: PLR0124 - only NaN is not itself
    return False


def plain_value(value: Any) -> Any:
    """The Python value that a value of another library stands for; None if it is missing.

    What Python cannot hold, such as a time in nanoseconds, stays as it is.
    """
    if hasattr(value, "as_py"):  # of Arrow
        value = value.as_py()
    if _numpy_kind(value) and hasattr(value, "__setitem__"):
        value = value[()]  # out of an array of no dimension
    if is_missing(value):
        return None
    kind = _numpy_kind(value)
    if kind == "M":
        rounded = value.astype("datetime64[us]")
        return rounded.item() if rounded == value else value
    # A shorter floating-point number has another text than the double that it equals.
    if kind and (kind != "f" or isinstance(value, float)):
        return value.item()
    if isinstance(value, dt.datetime) and hasattr(value, "to_pydatetime"):
        return value if getattr(value, "nanosecond", False) else value.to_pydatetime()
    return value


def given_values(value: Any) -> Any:
    """A plain value, or a list of them where any of several is meant.

    A list is whatever can be gone through: a range, an iterator, a set, an array, a Series.
    """
    value = plain_value(value)
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | bytearray | Mapping):
        return value
    if hasattr(value, "columns"):
        raise InputError(f"A {type(value).__name__} is a table; give the values of one column.")
    found = [plain_value(one) for one in islice(value, MOST_VALUES + 1)]
    if len(found) > MOST_VALUES:
        raise InputError(
            f"More than {MOST_VALUES:,} values are asked for.",
            hint="Write a condition, for example a range with BETWEEN.",
        )
    return found


def _numpy_kind(value: Any) -> str:
    """The letter that numpy has for the type of a scalar, or of an array of no dimension."""
    return str(value.dtype.kind) if getattr(value, "ndim", None) == 0 else ""
