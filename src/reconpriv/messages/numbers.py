"""Numbers for reading, in charts, reports and sentences."""

from __future__ import annotations

import math
from typing import Any

# The same for Vega, whose formats are those of d3: shares and numbers on axes, counts in full.
PERCENT, TICK, COUNT = "~%", ",~r", ","


def percent(share: float) -> str:
    """A share for reading, down to one in ten thousand."""
    if 0 < share < 1e-4:
        return "< 0.01%"
    return f"{share:.2%}" if share < 0.01 else f"{share:.1%}"


def brief_percent(share: float) -> str:
    """A share with three digits at most, as on an axis."""
    return f"{100 * share:.3g}%"


def brief(value: float) -> str:
    """A number in few digits; a small one as people write it: 1e-9."""
    return f"{value:g}".replace("e-0", "e-")


def count(value: float) -> str:
    """A count, as on an axis."""
    return f"{value:,.10g}"


def cell(value: str | float | None) -> str:
    """A cell of a table; missing is a dash."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else value


def limit(size: float) -> str:
    """A largest private size; without one, a group may have any."""
    return "any" if math.isinf(size) else f"{size:,.1f}"


def label(value: Any) -> str:
    """A value of the data."""
    return "(missing)" if value is None else str(value)


def unbroken(text: str) -> str:
    """Text in which no line ends between a number and its percent sign."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")
