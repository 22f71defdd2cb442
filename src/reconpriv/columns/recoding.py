"""Recoded columns: numbers and dates in bins, values in groups, as their publisher declared them.

A recoding says what is published in place of a column's values: an ordered list of labels, each of
which stands for an interval of numbers or for a set of texts. It is part of the manifest, so that
analysts know what each label covers. A day is its number in the calendar, so that bins of dates
have borders like bins of numbers; a time of day is a part of one.
"""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from reconpriv.columns.kinds import in_utc
from reconpriv.errors import InputError

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
PERIODS = tuple(_MONTHS)
LAST_YEAR = 9998  # a period needs an end, and the calendar ends with 9999

_DAY = 86_400_000_000  # in microseconds
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T].+)?")

MOST_LABELS = 1000

# A border is stored as a JSON number, which keeps this many digits whatever reads it.
MOST_DIGITS = 15
_QUANTILE_DIGITS = 6


@dataclass(frozen=True)
class Recoding:
    """What is published of a column: labels in order, and what each of them stands for.

    Bin i holds the numbers from ``borders[i]`` up to but not including ``borders[i + 1]``; if the
    last bin is open, there is one border fewer, and if it is ``closed``, it holds its upper border,
    too. ``whole`` says that the column holds only whole numbers. Dates are numbers of days, whole
    if they have no time of day. For groups, ``groups[i]`` are the original texts behind label i,
    and the label ``rest``, if there is one, stands for every other text as well. ``declared`` is
    width, borders, quantiles, a period (month, quarter or year) or groups.
    """

    column: str
    declared: str
    labels: tuple[str, ...]
    borders: tuple[Decimal, ...] = ()
    whole: bool = False
    members: tuple[tuple[str, ...], ...] = ()
    rest: str | None = None
    closed: bool = False

    @property
    def binned(self) -> bool:
        """True if the labels are bins, of numbers or of dates."""
        return bool(self.borders)

    @property
    def numeric(self) -> bool:
        """True if the labels are bins of numbers."""
        return self.binned and not self.dated

    @property
    def dated(self) -> bool:
        """True if the labels are periods of the calendar."""
        return self.declared in PERIODS

    def place(self, value: Any) -> Decimal | None:
        """Where a number or a date lies among the borders; None if it is neither."""
        return day_number(value) if self.dated else as_number(value)

    def shown(self, border: Decimal) -> str:
        """A border as it is written in SQL."""
        return f"DATE '{written_day(border)}'" if self.dated else plain(border)

    def interval(self, position: int) -> tuple[Decimal, Decimal | None]:
        """The bin's borders: the lower belongs to it, the upper does not; None if there is none."""
        above = self.borders[position + 1 : position + 2]
        return self.borders[position], above[0] if above else None

    def holds_end(self, position: int) -> bool:
        """True if the upper border belongs to the bin."""
        return self.closed and position == len(self.labels) - 1

    def ends(self, position: int) -> tuple[Decimal, Decimal | None]:
        """The lowest and the highest number that a bin may hold; None if it is open.

        Of numbers that are not whole, the upper border itself, which they come close to.
        """
        low, high = self.interval(position)
        return low, high - 1 if high is not None and self.whole else high

    def as_dict(self) -> dict[str, Any]:
        """The recoding as the manifest has it; the labels are also the categories of the field."""
        shown: dict[str, Any] = {"declared": self.declared, "labels": list(self.labels)}
        if self.binned:
            written = written_day if self.dated else json_number
            shown |= {"borders": [written(one) for one in self.borders], "whole": self.whole}
            return shown | ({"closed": True} if self.closed else {})
        shown["groups"] = [list(values) for values in self.members]
        return shown | ({"rest": self.rest} if self.rest is not None else {})


def as_number(said: Any) -> Decimal | None:
    """A finite number as it was written, or None if it is not one."""
    if isinstance(said, bool) or said is None:
        return None
    try:
        # The text of a float is the number that was meant: 0.1, not its nearest binary fraction.
        number = Decimal(str(said).strip())
    except decimal.InvalidOperation:
        return None
    if not number.is_finite():
        return None
    with decimal.localcontext(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN):
        return number.normalize() if number else Decimal(0)


def bins_of_width(
    column: str, width: Decimal, lowest: Decimal, highest: Decimal, *, whole: bool
) -> Recoding:
    """Bins between multiples of the width, from the lowest value to the highest."""
    if whole and width != width.to_integral_value():
        raise InputError(
            f"Column {column!r} holds whole numbers; a bin width of {plain(width)} would make bins"
            " of different sizes.",
            hint="Choose a whole width, or give borders.",
        )
    with decimal.localcontext(prec=100):
        first = (lowest / width).to_integral_value(decimal.ROUND_FLOOR)
        last = (highest / width).to_integral_value(decimal.ROUND_FLOOR)
        if last - first >= MOST_LABELS:
            raise too_many(column)
        edges = tuple((first + i) * width for i in range(int(last - first) + 2))
    return _binned(column, "width", edges, whole=whole, is_open=False)


def bins_between(
    column: str,
    borders: Sequence[Decimal],
    *,
    whole: bool,
    declared: str = "borders",
    top: Decimal | None = None,
) -> Recoding:
    """Bins from border to border; the last one is open unless there is a top, which it holds."""
    if whole:
        # Whole numbers from 17.5 on are those from 18 on, and those up to 99 end before 100.
        borders = [border.to_integral_value(decimal.ROUND_CEILING) for border in borders]
        if top is not None:
            borders.append(top.to_integral_value(decimal.ROUND_FLOOR) + 1)
        if any(low >= high for low, high in itertools.pairwise(borders)):
            raise InputError(f"No whole number lies between two borders of {column!r}.")
        if not all(-(2**63) <= border < 2**63 for border in borders):
            raise InputError(f"A border of {column!r} is a whole number beyond 64 bits.")
    elif top is not None:
        borders = [*borders, top]
    return _binned(
        column, declared, tuple(borders), whole=whole, is_open=top is None,
        closed=top is not None and not whole,
    )  # fmt: skip


def bins_of_periods(
    column: str, period: str, first: dt.date, last: dt.date, *, whole: bool
) -> Recoding:
    """Months, quarters or years from one date to another."""
    borders = period_borders(period, first, last, most=MOST_LABELS)
    if not borders:
        raise too_many(column)
    return Recoding(column, period, period_labels(period, borders), tuple(borders), whole)


def quantile_border(value: Any) -> Decimal:
    """A value of the table as a border, rounded down to a few digits."""
    number = as_number(value)
    assert number is not None
    place = number.adjusted() - _QUANTILE_DIGITS + 1
    return number.quantize(Decimal((0, (1,), place)), decimal.ROUND_FLOOR)


def _binned(
    column: str, declared: str, edges: tuple[Decimal, ...], *,
    whole: bool, is_open: bool, closed: bool = False,
) -> Recoding:  # fmt: skip
    edges = tuple(edge if edge else Decimal(0) for edge in edges)
    if any(as_number(json_number(edge)) != edge for edge in edges):
        raise too_fine(column)
    labels = bin_labels(edges, whole=whole, is_open=is_open, closed=closed)
    return Recoding(column, declared, labels, edges, whole, closed=closed)


def bin_labels(
    edges: Sequence[Decimal], *, whole: bool, is_open: bool, closed: bool = False
) -> tuple[str, ...]:
    """The labels of the bins between these borders."""
    labels = []
    for low, high in itertools.pairwise(edges):
        if not whole:
            labels.append(f"{plain(low)} to under {plain(high)}")
        elif high - low == 1:
            labels.append(plain(low))
        else:
            labels.append(f"{plain(low)} to {plain(high - 1)}")
    if closed:
        labels[-1] = f"{plain(edges[-2])} to {plain(edges[-1])}"
    return (*labels, *([f"{plain(edges[-1])} or more"] if is_open else []))


def read_recoding(column: str, said: Mapping[str, Any]) -> Recoding:
    """A recoding from a manifest; a ValueError, TypeError or KeyError if it is malformed."""
    declared, labels = said["declared"], _texts(said["labels"])
    if not 1 <= len(labels) <= MOST_LABELS or len(set(labels)) != len(labels):
        raise ValueError
    if declared == "groups":
        groups, rest = tuple(_texts(values) for values in said["groups"]), said.get("rest")
        every = [value for values in groups for value in values]
        if len(groups) != len(labels) or len(set(every)) != len(every):
            raise ValueError
        if rest is not None and rest not in labels:
            raise ValueError
        return Recoding(column, declared, labels, members=groups, rest=rest)
    dated, whole, closed = declared in PERIODS, said["whole"], said.get("closed", False)
    read = day_number if dated else as_number
    numbers = [read(one) if isinstance(one, str) is dated else None for one in said["borders"]]
    borders = tuple(number for number in numbers if number is not None)
    if not dated and declared not in ("width", "borders", "quantiles"):
        raise ValueError
    if type(whole) is not bool or type(closed) is not bool or (closed and (whole or dated)):
        raise ValueError
    spare = len(borders) - len(labels)
    if len(borders) != len(numbers) or spare not in (0, 1) or ((dated or closed) and not spare):
        raise ValueError
    if any(low >= high for low, high in itertools.pairwise(borders)):
        raise ValueError
    known = period_labels(declared, borders) if dated else bin_labels(
        borders, whole=whole, is_open=not spare, closed=closed
    )  # fmt: skip
    if labels != known:
        raise ValueError
    return Recoding(column, declared, labels, borders, whole, closed=closed)


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError
    return tuple(values)


def plain(number: Decimal) -> str:
    """A number in digits, without an exponent."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def json_number(number: Decimal) -> int | float:
    """A number as JSON has it."""
    return int(number) if number == number.to_integral_value() else float(number)


def too_fine(column: str) -> InputError:
    """The error for a border that a manifest cannot keep."""
    return InputError(
        f"A border of {column!r} has more than {MOST_DIGITS} digits.",
        hint="Round it, or choose wider bins.",
    )


def too_many(column: str) -> InputError:
    """The error for a recoding with too many labels."""
    return InputError(
        f"The recoding of {column!r} would make more than {MOST_LABELS:,} values.",
        hint="Choose wider bins or coarser groups.",
    )


def day_number(value: Any) -> Decimal | None:
    """A date, a time or its text as a number of days; None for anything else."""
    if isinstance(value, str):
        text = value.strip()
        try:
            value = dt.datetime.fromisoformat(text) if _DATE.fullmatch(text) else None
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
