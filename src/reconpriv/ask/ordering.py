"""The order in which values are shown. Cells and files keep the order of the raw text."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from typing import Any

from reconpriv.ask.text_codes import code_number, looks_numeric
from reconpriv.ask.values import Values
from reconpriv.columns.recoding import Recoding
from reconpriv.columns.schema import Value


def sorted_for_display(values: Iterable[Value], recoding: Recoding | None = None) -> list[Value]:
    """Ascending, text codes by their numbers, a missing value last.

    Bins and groups keep the order in which they were declared.
    """
    found = list(values)
    if recoding is not None:
        place = {label: i for i, label in enumerate(recoding.labels)}
        return sorted(found, key=lambda value: place.get(value, len(place)))
    return sorted(found, key=_code_key if looks_numeric(found) else _plain_key)


def by_number(values: Iterable[Value]) -> list[Value]:
    """Text codes by their numbers; anything else in the given order."""
    found = list(values)
    return sorted(found, key=_code_key) if looks_numeric(found) else found


def first_for_display(values: Sequence[Value], how_many: int) -> list[Value]:
    """The first of sorted values, in display order; there may be millions of them."""
    if isinstance(values, Values) and not values.numeric_text:
        return list(values[:how_many])
    key = _code_key if looks_numeric(values) else _plain_key
    return heapq.nsmallest(how_many, values, key=key)


def _code_key(value: Value) -> tuple[Any, ...]:
    number = code_number(value)
    return (1,) if number is None else (0, number, value)


def _plain_key(value: Value) -> tuple[Any, ...]:
    if value is None:
        return (2,)
    if isinstance(value, float) and math.isnan(value):
        return (1,)
    return (0, value)
