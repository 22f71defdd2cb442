"""Numbers that are shares: one that looks like a percentage is asked about, and refused."""

from __future__ import annotations

from numbers import Real
from typing import Any

from reconpriv.errors import PolicyError, ReconprivError

# Whether 0, and whether 1, is allowed too.
_RANGES = {
    (False, False): "lie strictly between 0 and 1",
    (True, False): "be at least 0 and below 1",
    (False, True): "be above 0 and at most 1",
    (True, True): "be between 0 and 1",
}
# An error of more than 100 % is possible; a number of 2 or more is meant as a percentage.
_LARGEST_ERROR = 2.0


def check_share(
    value: Any,
    what: str,
    *,
    hint: str = "",
    zero: bool = False,
    one: bool = False,
    least: float = 0.0,
    error: type[ReconprivError] = PolicyError,
) -> float:
    """Return a share between 0 and 1; ``zero`` and ``one`` allow these as well.

    What is below ``least`` is refused like 0.
    """
    if _is_number(value) and (
        (0 < value < 1 and value >= least) or (zero and value == 0) or (one and value == 1)
    ):
        return float(value)
    raise error(f"{what} must {_RANGES[zero, one]}; {got(value, one=one)}", hint=hint)


def check_relative_error(value: Any, what: str, *, hint: str = "") -> float:
    """Return a relative error, which may be above 1 but is not a percentage."""
    if _is_number(value) and 0 < value < _LARGEST_ERROR:
        return float(value)
    limit = f"above 0 and below {_LARGEST_ERROR:g}"
    raise PolicyError(f"{what} must be {limit}; {got(value)}", hint=hint)


def got(value: Any, *, one: bool = False) -> str:
    """What was given, and the share that may have been meant; ``one`` if 100 % may be."""
    shown = f"{float(value):g}" if _is_number(value) and abs(value) < 1e300 else repr(value)
    if _is_number(value) and (1 < value < 100 or (one and value == 100)):
        return f"got {shown}: did you mean {float(value) / 100:g}?"
    return f"got {shown}."


def _is_number(value: Any) -> bool:
    # Abstract classes are slow to ask, and nearly every share is a float.
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))
