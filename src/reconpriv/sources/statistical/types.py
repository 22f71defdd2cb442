"""What the numbers of SPSS, Stata and SAS files stand for, read off their display formats.

These programs know numbers and text only; a number's format or values say whether it is a date, or
whole. Nothing is settled before every value of a column has been seen.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa

from reconpriv.errors import InputError
from reconpriv.theory.arrays import Floats

_DAY = 86_400_000_000  # in microseconds
_SECOND = 1_000_000
_LARGEST_WHOLE = 2.0**53
_EPOCH = dt.date(1970, 1, 1)
_FIRST = (dt.date.min - _EPOCH).days * _DAY
_LAST = ((dt.date.max - _EPOCH).days + 1) * _DAY
_ORIGINS = {"SPSS": dt.date(1582, 10, 14), "Stata": dt.date(1960, 1, 1), "SAS": dt.date(1960, 1, 1)}

_SPSS = (
    (r"DATE|ADATE|EDATE|JDATE|SDATE|MOYR|QYR|WKYR", "date", _SECOND),
    (r"DATETIME|YMDHMS", "moment", _SECOND),
    (r"D?TIME|MTIME", "clock", _SECOND),
)
_SAS = (
    (r"DTDATE|DTMONYY|DTYEAR|DTYYQC|DTWKDATX|DATETIME|DATEAMPM|MDYAMPM|(IS|E|B)8601D[TNXZ]",
     "moment", _SECOND),
    (r"DATE|(DDMMYY|MMDDYY|YYMMDD|YYMM|MMYY|YYQR?|YYWEEK)[BCDNPSUVW]?|WEEKDAT[EX]|WORDDAT[EX]|MONYY"
     r"|YYMON|JULIAN|JULDAY|DAY|DOWNAME|MONNAME|MONTH|QTRR?|WEEKDAY|YEAR|NENGO|(IS|E|B)8601DA",
     "date", _DAY),
    (r"TIME|TIMEAMPM|TOD|HHMM|HOUR|MMSS|(IS|E|B)8601TM", "clock", _SECOND),
)  # fmt: skip
_STATA_CLOCK = re.compile(r"%tc(HH|Hh|hh|MM|mm|SS|ss|\.s+|AM|am|[:._ -])+$")


class Meaning(Enum):
    """What a column of numbers or text is, as far as its declaration says."""

    TEXT = "text"
    WHOLE = "whole"  # stored as an integer
    NUMBER = "number"  # an integer if every value is whole
    DATE = "date"  # a moment if a value is not a whole day
    MOMENT = "moment"
    CLOCK = "clock"  # a number of seconds if a value is not a time of day


@dataclass(frozen=True)
class Reading:
    """How to read a column: what it is; for times, the microseconds per unit and the origin."""

    meaning: Meaning
    unit: int = _SECOND
    origin: int = 0  # in microseconds since 1970
    step: int = 1  # the file's precision in microseconds


def read_as(program: str, storage: str, form: str | None) -> Reading:
    """What a column is, from its storage type and its display format.

    Writers give whole numbers any format, F8.2 and %10.0g among them, so the format does not count.
    """
    form = form or ""
    if storage == "string":
        return Reading(Meaning.TEXT)
    meaning, unit = _stata_time(form) if program == "Stata" else _named_time(program, form)
    if meaning is not None:
        origin = (_ORIGINS[program] - _EPOCH).days * _DAY
        # Seconds since 1582 in a double are 2 microseconds apart.
        return Reading(meaning, unit, origin, 10 if program == "SPSS" else 1)
    return Reading(Meaning.WHOLE if storage.startswith("int") else Meaning.NUMBER)


def _stata_time(form: str) -> tuple[Meaning | None, int]:
    # %tC also counts leap seconds; it stays the number of milliseconds that it is.
    form = form.replace("%-", "%")
    if form.startswith("%tc"):
        return (Meaning.CLOCK if _STATA_CLOCK.match(form) else Meaning.MOMENT), 1000
    if form.startswith(("%td", "%d")):
        return Meaning.DATE, _DAY
    return None, 1


def _named_time(program: str, form: str) -> tuple[Meaning | None, int]:
    name = re.match(r"([A-Z][A-Z0-9]*?[A-Z])(\d+)?(\.\d*)?$", form.upper())
    for pattern, meaning, unit in _SPSS if program == "SPSS" else _SAS:
        if name and re.fullmatch(pattern, name[1]):
            return Meaning(meaning), unit
    return None, 1


class Settling:
    """Looks at every value of a column, then knows its type and turns values into it."""

    def __init__(self, name: str, reading: Reading) -> None:
        """Nothing has been seen yet."""
        self.name, self.reading = name, reading
        self._fits = True

    @property
    def raw_type(self) -> pa.DataType:
        """The type in which values are kept until all have been seen."""
        kinds = {Meaning.TEXT: pa.string(), Meaning.WHOLE: pa.int64()}
        return kinds.get(self.reading.meaning, pa.float64())

    def look(self, values: pa.Array) -> None:
        """Take note of some more values."""
        meaning = self.reading.meaning
        if meaning in (Meaning.TEXT, Meaning.WHOLE):
            return
        numbers: Floats = values.drop_null().to_numpy(zero_copy_only=False)
        if meaning is Meaning.NUMBER:
            fit = (np.abs(numbers) <= _LARGEST_WHOLE) & (numbers == np.floor(numbers))
        elif meaning is Meaning.CLOCK:
            fit = (numbers >= 0) & (numbers * self.reading.unit < _DAY)
        else:
            self._check_years(numbers)
            fit = numbers * self.reading.unit % _DAY == 0
        self._fits = self._fits and bool(fit.all())

    def _check_years(self, numbers: Floats) -> None:
        moments = numbers * self.reading.unit + self.reading.origin
        if not ((moments >= _FIRST) & (moments < _LAST)).all():
            raise InputError(
                f"Column {self.name!r} holds dates outside the years 1 to 9999.",
                hint="Leave it out, or correct it where the file was made.",
            )

    def settle(self, values: pa.Array) -> pa.Array:
        """Values in the type that all values of the column allow."""
        match self.reading.meaning:
            case Meaning.NUMBER:
                return values.cast(pa.int64()) if self._fits else values
            case Meaning.DATE if self._fits:
                return self._moments(values).cast(pa.date32())
            case Meaning.DATE | Meaning.MOMENT:
                return self._moments(values)
            case Meaning.CLOCK:
                return self._clock(values) if self._fits else self._seconds(values)
            case _:
                return values

    def _microseconds(self, values: pa.Array, origin: int, step: int) -> pa.Array:
        # The whole part is exact as an integer; times a million it would not be as a double.
        numbers: Floats = values.fill_null(0.0).to_numpy(zero_copy_only=False)
        whole = np.floor(numbers)
        part = np.rint((numbers - whole) * self.reading.unit / step).astype(np.int64) * step
        ticks = whole.astype(np.int64) * self.reading.unit + part + origin
        return pa.array(ticks, mask=np.asarray(values.is_null()))

    def _moments(self, values: pa.Array) -> pa.Array:
        ticks = self._microseconds(values, self.reading.origin, self.reading.step)
        return ticks.cast(pa.timestamp("us"))

    def _clock(self, values: pa.Array) -> pa.Array:
        return self._microseconds(values, 0, 1).cast(pa.time64("us"))

    def _seconds(self, values: pa.Array) -> pa.Array:
        numbers: Floats = values.to_numpy(zero_copy_only=False)
        mask = np.asarray(values.is_null())
        return pa.array(numbers * self.reading.unit / _SECOND, mask=mask)
