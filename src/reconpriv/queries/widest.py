"""The widest interval that a reader accepts; what is wider gets a flag."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from reconpriv.errors import InputError
from reconpriv.queries.figure_table import Answer, number_of

_HINT = 'For example 100 (records) or "20%" (of the estimate).'
_SHARE_HINT = 'For example 0.1 or "10%", which are ten percentage points.'


@dataclass(frozen=True)
class Widest:
    """A limit for the width of an interval, from its low end to its high end.

    It is in records, relative to the estimate, or, for shares, a share itself (0.1 is ten
    percentage points).
    """

    limit: float
    relative: bool
    shares: bool

    @property
    def words(self) -> str:
        """The limit for reading."""
        if self.relative:
            return f"{100 * self.limit:g} % of the estimate"
        if self.shares:
            points = f"{100 * self.limit:g}"
            return f"{points} percentage {'point' if points == '1' else 'points'}"
        return f"{self.limit:,g} {'record' if self.limit == 1 else 'records'}"

    def exceeded(self, answer: Answer) -> bool:
        """Whether an interval is wider; one that is not there is as wide as can be."""
        if answer.exact:
            return False
        value = number_of(answer)
        if answer.low is None or answer.high is None:
            return True
        size = abs(value or 0.0) if self.relative else 1.0
        return float(answer.high) - float(answer.low) > self.limit * size

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        unit = "estimate" if self.relative else "share" if self.shares else "records"
        return {"limit": self.limit, "of": unit}


def asked_widest(said: float | str, *, shares: bool) -> Widest:
    """A number (of records, or a share), or a text such as "10%".

    Of counts, a percentage is relative to the estimate; of shares, it is percentage points.
    """
    text = str(said).strip()
    percent = text.endswith("%")
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = math.nan
    if isinstance(said, bool) or not math.isfinite(number) or number <= 0:
        hint = _SHARE_HINT if shares else _HINT
        raise InputError(f"The widest interval is a number above 0; got {said!r}.", hint=hint)
    if percent:
        number /= 100
    if shares and number > 1:
        raise InputError(
            f"The widest interval of a share is at most 1, or 100%; got {said!r}.", hint=_SHARE_HINT
        )
    if not shares and not percent and number < 1:
        raise InputError(
            f"The widest interval of a count is at least one record; got {said!r}.",
            hint=f'Write "{100 * number:g}%" for a width relative to the estimate.',
        )
    return Widest(number, percent and not shares, shares)
