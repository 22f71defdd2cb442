"""What the numbers of SPSS, Stata and SAS files stand for, read off their display formats.

These programs know numbers and text only; a number's format or values say whether it is a date, or
whole. Nothing is decided before every value of a column has been seen.
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

# The formats of times, with the microseconds per unit; SPSS's and SAS's without their widths.
_TIMES = {
    "SPSS": (
        (r"DATE|ADATE|EDATE|JDATE|SDATE|MOYR|QYR|WKYR", "date", _SECOND),
        (r"DATETIME|YMDHMS", "moment", _SECOND),
        (r"D?TIME|MTIME", "clock", _SECOND),
    ),
    "SAS": (
        (r"DTDATE|DTMONYY|DTYEAR|DTYYQC|DTWKDATX|DATETIME|DATEAMPM|MDYAMPM|(IS|E|B)8601D[TNXZ]",
         "moment", _SECOND),
        (r"DATE|(DDMMYY|MMDDYY|YYMMDD|YYMM|MMYY|YYQR?|YYWEEK)[BCDNPSUVW]?|WEEKDAT[EX]|WORDDAT[EX]"
         r"|MONYY|YYMON|JULIAN|JULDAY|DAY|DOWNAME|MONNAME|MONTH|QTRR?|WEEKDAY|YEAR|NENGO"
         r"|(IS|E|B)8601DA", "date", _DAY),
        (r"TIME|TIMEAMPM|TOD|HHMM|HOUR|MMSS|(IS|E|B)8601TM", "clock", _SECOND),
    ),
    # %tC also counts leap seconds; it stays the number of milliseconds that it is.
    "Stata": (
        (r"%tc(HH|Hh|hh|MM|mm|SS|ss|\.s+|AM|am|[:._ -])+", "clock", 1000),
        (r"%tc.*", "moment", 1000),
        (r"%t?d.*", "date", _DAY),
    ),
}  # fmt: skip


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

    @property
    def timed(self) -> bool:
        """True if its numbers stand for dates or times."""
        return self.meaning in (Meaning.DATE, Meaning.MOMENT, Meaning.CLOCK)


def read_as(program: str, storage: str, form: str | None) -> Reading:
    """What a column is, from its storage type and its display format.

    Writers give whole numbers any format, F8.2 and %10.0g among them, so the format does not count.
    """
    if storage == "string":
        return Reading(Meaning.TEXT)
    name = (form or "").replace("%-", "%")
    if program != "Stata":
        found = re.match(r"([A-Z][A-Z0-9]*?[A-Z])(\d+)?(\.\d*)?$", name.upper())
        name = found[1] if found else ""
    for pattern, meaning, unit in _TIMES[program]:
        if re.fullmatch(pattern, name):
            origin = (_ORIGINS[program] - _EPOCH).days * _DAY
            # Seconds since 1582 in a double are 2 microseconds apart.
            return Reading(Meaning(meaning), unit, origin, 10 if program == "SPSS" else 1)
    return Reading(Meaning.WHOLE if storage.startswith("int") else Meaning.NUMBER)


class ColumnConverter:
    """Looks at every value of a column, then knows its type and turns values into it."""

    def __init__(self, name: str, reading: Reading) -> None:
        self.name, self.reading = name, reading
        self._fits = True

    @property
    def raw_type(self) -> pa.DataType:
        """The type in which values are kept until all have been seen."""
        kinds = {Meaning.TEXT: pa.string(), Meaning.WHOLE: pa.int64()}
        return kinds.get(self.reading.meaning, pa.float64())

    def look(self, values: pa.Array) -> None:
        """Take note of some more values."""
        meaning, unit = self.reading.meaning, self.reading.unit
        if meaning in (Meaning.TEXT, Meaning.WHOLE):
            return
        numbers: Floats = values.drop_null().to_numpy(zero_copy_only=False)
        if meaning is Meaning.NUMBER:
            fit = (np.abs(numbers) <= _LARGEST_WHOLE) & (numbers == np.floor(numbers))
        elif meaning is Meaning.CLOCK:
            fit = (numbers >= 0) & (numbers * unit < _DAY)
        else:
            moments = numbers * unit + self.reading.origin
            if not ((moments >= _FIRST) & (moments < _LAST)).all():
                raise InputError(
                    f"Column {self.name!r} holds dates outside the years 1 to 9999.",
                    hint="Leave it out, or correct it where the file was made.",
                )
            fit = numbers * unit % _DAY == 0
        self._fits = self._fits and bool(fit.all())

    def convert(self, values: pa.Array) -> pa.Array:
        """Values in the type that all values of the column allow."""
        reading = self.reading
        match reading.meaning:
            case Meaning.NUMBER:
                return values.cast(pa.int64()) if self._fits else values
            case Meaning.DATE | Meaning.MOMENT:
                ticks = self._microseconds(values, reading.origin, reading.step)
                moments = ticks.cast(pa.timestamp("us"))
                days = reading.meaning is Meaning.DATE and self._fits
                return moments.cast(pa.date32()) if days else moments
            case Meaning.CLOCK if self._fits:
                return self._microseconds(values, 0, 1).cast(pa.time64("us"))
            case Meaning.CLOCK:
                numbers: Floats = values.to_numpy(zero_copy_only=False)
                missing = np.asarray(values.is_null())
                return pa.array(numbers * reading.unit / _SECOND, mask=missing)
            case _:
                return values

    def _microseconds(self, values: pa.Array, origin: int, step: int) -> pa.Array:
        # The whole part is exact as an integer; times a million it would not be as a double.
        numbers: Floats = values.fill_null(0.0).to_numpy(zero_copy_only=False)
        whole = np.floor(numbers)
        part = np.rint((numbers - whole) * self.reading.unit / step).astype(np.int64) * step
        ticks = whole.astype(np.int64) * self.reading.unit + part + origin
        return pa.array(ticks, mask=np.asarray(values.is_null()))
