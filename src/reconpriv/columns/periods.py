"""Months, quarters and years: the bins of dates.

A day is its number in the calendar, so that bins of dates have borders like bins of numbers; a
time of day is a part of one.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from reconpriv.columns.kinds import in_utc

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
PERIODS = tuple(_MONTHS)
LAST_YEAR = 9998  # a period needs an end, and the calendar ends with 9999

_DAY = 86_400_000_000  # in microseconds
_WRITTEN = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T].+)?")


def day_number(value: Any) -> Decimal | None:
    """A date, a time or its text as a number of days; None for anything else."""
    if isinstance(value, str):
        text = value.strip()
        try:
            value = dt.datetime.fromisoformat(text) if _WRITTEN.fullmatch(text) else None
        except ValueError:
            return None
    if isinstance(value, dt.datetime):
        value = in_utc(value)
        passed = value - dt.datetime.combine(value.date(), dt.time())
        part = Decimal(passed // dt.timedelta(microseconds=1)) / _DAY
        return Decimal(value.toordinal()) + part
    return Decimal(value.toordinal()) if isinstance(value, dt.date) else None


def written_day(day: Decimal) -> str:
    """The date of a day's number."""
    return dt.date.fromordinal(int(day)).isoformat()


def period_borders(period: str, first: dt.date, last: dt.date, *, most: int) -> list[Decimal]:
    """The first day of each period from that of one date to that of another, and the last's end.

    Empty if there are more than ``most`` of them.
    """
    months = _MONTHS[period]
    start, end = ((day.year * 12 + day.month - 1) // months for day in (first, last))
    if end - start >= most:
        return []
    places = [i * months for i in range(start, end + 2)]
    return [Decimal(dt.date(place // 12, place % 12 + 1, 1).toordinal()) for place in places]


def period_labels(period: str, borders: Sequence[Decimal]) -> tuple[str, ...]:
    """The labels of the periods that start at each border but the last."""
    return tuple(_label(period, dt.date.fromordinal(int(border))) for border in borders[:-1])


def _label(period: str, start: dt.date) -> str:
    quarter, month = f"-Q{(start.month + 2) // 3}", f"-{start.month:02d}"
    return f"{start.year:04d}" + {"year": "", "quarter": quarter, "month": month}[period]
