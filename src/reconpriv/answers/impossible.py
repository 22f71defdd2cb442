"""The remark on an estimate that does not fit its interval: an unbiased one may lie outside."""

from __future__ import annotations

_ONLY = "by chance, as an unbiased one may be: read it as close to {}; the interval holds only what"
BELOW_ZERO = f"the estimate is below 0 {_ONLY.format(0)} is possible"
BELOW = f"the estimate is lower than possible {_ONLY.format('the lower limit')} is possible"
ABOVE = f"the estimate is higher than possible {_ONLY.format('the upper limit')} is possible"
OUTSIDE = (
    "the estimate lies outside its interval by chance, as an unbiased one may: trust the interval"
)
IMPOSSIBLE = (BELOW_ZERO, BELOW, ABOVE, OUTSIDE)

_ROUNDING = 1e-9


def impossible(value: float | None, low: float | None, high: float | None) -> tuple[str, ...]:
    """The remark if a value is not between the lowest and the highest that is possible."""
    if value is None or low is None or high is None:
        return ()
    slack = _ROUNDING * max(abs(low), abs(high), 1.0)
    if value < low - slack:
        return (BELOW if low else BELOW_ZERO,)
    return (ABOVE,) if value > high + slack else ()


def misfit(value: float, low: float, high: float, possible: tuple[float, float]) -> tuple[str, ...]:
    """The remark on a value that is impossible, or else outside its interval."""
    found = impossible(value, *possible)
    return found or ((OUTSIDE,) if impossible(value, low, high) else ())
