"""The kinds of columns, and what a value of any Python type means in each of them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from enum import Enum
from numbers import Rational, Real
from typing import Any


class Kind(Enum):
    """The type of a column as far as a release is concerned; the value is its Table Schema name."""

    INTEGER = "integer"
    NUMBER = "number"
    DECIMAL = "decimal"
    STRING = "string"
    BOOLEAN = "boolean"
    DATE = "date"
    DATETIME = "datetime"
    TIME = "time"
    OTHER = "other"


NUMBERS = (Kind.INTEGER, Kind.NUMBER, Kind.DECIMAL)
DATES = (Kind.DATE, Kind.DATETIME)
ORDERED = (*NUMBERS, *DATES, Kind.TIME)


def value_text(kind: Kind, value: Any) -> str:
    """The canonical text of a value, the same for equal values in every input format."""
    match kind:
        case Kind.INTEGER:
            return str(int(value))
        case Kind.NUMBER:
            return repr(float(value) + 0.0)  # -0.0 is 0.0
        case Kind.DECIMAL:
            return format(Decimal(value).normalize() + 0, "f")
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.DATE | Kind.DATETIME | Kind.TIME:
            return str(value.isoformat())
        case _:
            return str(value)


_BOOLEANS = {"true": True, "false": False}
_ALL_WHOLE = 2**53  # beyond it, a floating-point number stands for several whole ones


def _is_float(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, Rational)


def _integer(value: Any) -> int:
    if not isinstance(value, str) and value != int(value):
        raise ValueError
    if _is_float(value) and abs(value) > _ALL_WHOLE:
        raise ValueError
    return int(value)


def _number(value: Any) -> Any:
    number = float(value)
    if isinstance(value, str) and number == number:  # noqa: PLR0124 - not NaN
        return number
    if not isinstance(value, Real | Decimal) or (math.isinf(number) and value != number):
        raise ValueError
    return value if value == number else number  # as it was given, if that is the same


def _decimal(value: Any) -> Decimal:
    # The text of a float is the number that was meant: 0.1, not its nearest binary fraction.
    found = Decimal(str(value))
    if not found.is_finite() or (_is_float(value) and abs(value) > _ALL_WHOLE):
        raise ValueError
    return found


def _boolean(value: Any) -> bool:
    return value if isinstance(value, bool) else _BOOLEANS[str(value).lower()]


def _date(value: Any) -> dt.date:
    found = in_utc(_datetime(value))
    if found.time() != dt.time():
        raise ValueError
    return found.date()


def _datetime(value: Any) -> dt.datetime:
    if isinstance(value, str):
        return dt.datetime.fromisoformat(value)
    if not isinstance(value, dt.date) or getattr(value, "nanosecond", False):
        raise ValueError
    return value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())


def _time(value: Any) -> dt.time:
    found = dt.time.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(found, dt.time) or found.tzinfo is not None:
        raise ValueError
    return found


_PARSERS: dict[Kind, Callable[[Any], Any]] = {
    Kind.INTEGER: _integer,
    Kind.NUMBER: _number,
    Kind.DECIMAL: _decimal,
    Kind.STRING: str,
    Kind.BOOLEAN: _boolean,
    Kind.DATE: _date,
    Kind.DATETIME: _datetime,
    Kind.TIME: _time,
}


def in_utc(time: dt.datetime) -> dt.datetime:
    """A time without its zone; one that has none is in UTC, as in SQL."""
    return time if time.tzinfo is None else time.astimezone(dt.UTC).replace(tzinfo=None)


FITTING = {
    Kind.INTEGER: "Give a whole number; one beyond 2^53 not as a float.",
    Kind.NUMBER: "Give a number.",
    Kind.DECIMAL: "Give a number; one beyond 2^53 not as a float.",
    Kind.BOOLEAN: "Give True or False.",
    Kind.DATE: "Give a day, such as 2020-12-31.",
    Kind.DATETIME: "Give a day and a time, such as 2020-12-31 18:30.",
    Kind.TIME: "Give a time of day, such as 18:30.",
}
"""What to give, by kind."""


def valued(kind: Kind, value: Any) -> Any:
    """The value of a kind that a plain value means; ValueError if there is none.

    Text is parsed. A midnight is a date, and 0.1 a decimal 0.1.
    """
    if isinstance(value, str):
        value.encode()  # half a surrogate pair is no text
    elif isinstance(value, Iterable) or (isinstance(value, bool) and kind is not Kind.BOOLEAN):
        raise ValueError
    try:
        return _PARSERS[kind](value)
    except (ArithmeticError, AttributeError, KeyError, TypeError) as error:
        raise ValueError from error
