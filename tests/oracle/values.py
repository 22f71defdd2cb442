"""One value in many types, and as a literal in SQL."""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import singledispatch
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

_EXACT = 2**53
_PLUS_TWO = dt.timezone(dt.timedelta(hours=2))


@singledispatch
def literal(value: Any) -> str:
    """A value in SQL."""
    return "NULL" if value is None else str(value)


@literal.register(bool)
def _(value: bool) -> str:
    return "TRUE" if value else "FALSE"


@literal.register(float)
def _(value: float) -> str:
    return repr(value)


@literal.register(str)
def _(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@literal.register(dt.datetime)
def _(value: dt.datetime) -> str:
    kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
    return f"{kind} '{value.isoformat(' ')}'"


@literal.register(dt.date)
def _(value: dt.date) -> str:
    return f"DATE '{value.isoformat()}'"


@literal.register(dt.time)
def _(value: dt.time) -> str:
    return f"TIME '{value.isoformat()}'"


@singledispatch
def same_values(value: Any) -> list[Any]:
    """Objects of other types that mean the same value."""
    assert value is None
    return [None, float("nan"), np.nan, pd.NA, pd.NaT, pa.scalar(None), Decimal("NaN")]


@same_values.register(str)
def _(value: str) -> list[Any]:
    return [value, np.str_(value), pa.scalar(value)]


@same_values.register(bool)
def _(value: bool) -> list[Any]:
    return [value, np.bool_(value), pa.scalar(value), str(value).lower()]


@same_values.register(int)
def _(value: int) -> list[Any]:
    found = [value, np.int64(value), Decimal(value), str(value), pa.scalar(value)]
    found += [np.array(value), Fraction(value), pd.Series([value])[0]]
    if abs(value) <= _EXACT:
        found += [float(value), np.float64(value), Decimal(value).quantize(Decimal("0.00"))]
    return [*found, *([np.int8(value), np.float32(value)] if abs(value) < 100 else [])]


@same_values.register(float)
def _(value: float) -> list[Any]:
    found = [value, np.float64(value), Decimal(repr(value)), repr(value), pa.scalar(value)]
    return [*found, np.array(value), *([int(value)] if value.is_integer() else [])]


@same_values.register(Decimal)
def _(value: Decimal) -> list[Any]:
    found = [value, float(value), np.float64(value), str(value), pa.scalar(value)]
    return [*found, value.quantize(Decimal("0.0000")), value.normalize()]


@same_values.register(dt.datetime)
def _(value: dt.datetime) -> list[Any]:
    plain = value.replace(tzinfo=None)
    in_utc = plain.replace(tzinfo=dt.UTC)
    found = [value, pd.Timestamp(value), value.isoformat(), value.isoformat(" "), pa.scalar(value)]
    found += [np.datetime64(plain), np.datetime64(plain, "us")]
    return [*found, plain, in_utc, in_utc.astimezone(_PLUS_TWO)]


@same_values.register(dt.date)
def _(value: dt.date) -> list[Any]:
    midnight = dt.datetime.combine(value, dt.time())
    found = [value, midnight, pd.Timestamp(midnight), np.datetime64(value), value.isoformat()]
    return [*found, pa.scalar(value), midnight.isoformat(" "), midnight.replace(tzinfo=dt.UTC)]


@same_values.register(dt.time)
def _(value: dt.time) -> list[Any]:
    return [value, value.isoformat(), pa.scalar(value)]


def same_keys(value: Any) -> list[Any]:
    """Those that a dictionary can have as keys."""
    return [one for one in same_values(value) if isinstance(one, Hashable)]


def same_lists(rng: Random, values: Sequence[Any]) -> Any:
    """Several values in a container of any type; an iterator can be gone through once."""
    given = [rng.choice(same_values(one)) for one in values]
    plain = list(values)
    ways: list[Callable[[], Any]] = [
        lambda: given,
        lambda: tuple(given),
        lambda: iter(given),
        lambda: (one for one in given),
        lambda: deque(given),
        lambda: dict.fromkeys(plain).keys(),
        lambda: set(plain),
        lambda: frozenset(plain),
        lambda: pd.Series(plain, dtype=object),
        lambda: np.array([*plain, None], dtype=object)[:-1],
        lambda: pd.Index(plain, dtype=object),
        lambda: pa.array(plain),
        lambda: pa.chunked_array([pa.array(plain)]),
    ]
    if None not in plain:
        ways += [lambda: pl.Series(plain), lambda: pd.Series(plain), lambda: np.array(plain)]
    return rng.choice(ways)()
