"""Declarations of bins, as a user writes them on every surface."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from reconpriv.columns.recoding import (
    MOST_DIGITS,
    MOST_LABELS,
    PERIODS,
    as_number,
    plain,
    too_fine,
    too_many,
)
from reconpriv.errors import InputError

_QUANTILES = re.compile(r"\s*quantiles\s*:\s*(\d{1,9})\s*", re.IGNORECASE)
_TOP = re.compile(r"\s*top\s*[:=](.*)", re.IGNORECASE)
HOW = (
    "Write a width (10), borders (0,18,65, with top:99 after them to close the last bin) or"
    " quantiles:5; for dates month, quarter or year."
)


@dataclass(frozen=True)
class Quantiles:
    """Bins that hold about equally many records each; their borders come from the data."""

    bins: int

    def __post_init__(self) -> None:
        if type(self.bins) is not int or not 2 <= self.bins <= MOST_LABELS:
            raise InputError(
                f"Quantiles make 2 to {MOST_LABELS:,} bins; got {str(self.bins)[:20]}."
            )


@dataclass(frozen=True)
class Bins:
    """A declaration: a width, or borders, or a number of quantiles, or a period of the calendar.

    ``top`` is the largest number there may be; it closes the last bin of borders and quantiles.
    """

    width: Decimal | None = None
    borders: tuple[Decimal, ...] = ()
    quantiles: int | None = None
    period: str | None = None
    top: Decimal | None = None


def declared_bins(column: str, said: Any) -> Bins:
    """What a user wrote for a column, as a text, a number or a list.

    10, "10", [0, 18, 65], "0,18,65", "0,18,65,top:99", "quantiles:5", "month".
    """
    if isinstance(said, Quantiles):
        return Bins(quantiles=said.bins)
    written = isinstance(said, str)
    if written and said.strip().lower() in PERIODS:
        return Bins(period=said.strip().lower())
    parts: list[Any] = [said]
    if written:
        parts = said.split(",")
    elif isinstance(said, Iterable):
        parts = list(said)
    ending = _TOP.fullmatch(parts[-1]) if parts and isinstance(parts[-1], str) else None
    top = None if ending is None else _number(column, ending[1])
    parts = parts if ending is None else parts[:-1]
    quantiles = _QUANTILES.fullmatch(parts[0]) if written and len(parts) == 1 else None
    if quantiles:
        return Bins(quantiles=Quantiles(int(quantiles[1])).bins, top=top)
    numbers = [_number(column, part) for part in parts]
    if len(numbers) == 1 and top is None and (written or not isinstance(said, Iterable)):
        if numbers[0] <= 0:
            raise InputError(
                f"The bin width of {column!r} must be above 0; got {plain(numbers[0])}.", hint=HOW
            )
        return Bins(width=numbers[0])
    if len(numbers) < 2:
        raise InputError(f"The bins of {column!r} need at least two borders.", hint=HOW)
    if len(numbers) > MOST_LABELS:
        raise too_many(column)
    if any(low >= high for low, high in itertools.pairwise(numbers)):
        raise InputError(f"The borders of {column!r} must ascend.", hint=HOW)
    if top is not None and top <= numbers[-1]:
        raise InputError(
            f"The top of {column!r}, {plain(top)}, must be above its last border,"
            f" {plain(numbers[-1])}.",
            hint=HOW,
        )
    return Bins(borders=tuple(numbers), top=top)


def _number(column: str, said: Any) -> Decimal:
    number = as_number(said)
    if number is None:
        shown = repr(said.strip() if isinstance(said, str) else said)
        raise InputError(f"The bins of {column!r} are given by numbers; got {shown}.", hint=HOW)
    if len(number.as_tuple().digits) > MOST_DIGITS or abs(number.adjusted()) >= 2 * MOST_DIGITS:
        raise too_fine(column)
    return number
