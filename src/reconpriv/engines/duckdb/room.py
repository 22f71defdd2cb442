"""Whether a process may still take enough address space to read a table."""

from __future__ import annotations

import sys
from pathlib import Path

from reconpriv.errors import InputError
from reconpriv.messages.remedies import Control, Remedy, either

# DuckDB's and Arrow's threads reserve this much for the smallest table. Below it they may crash
# the process, where no error can be raised.
LEAST = 1 << 30


def address_space_left() -> int | None:
    """How many bytes a limit such as ``ulimit -v`` leaves; None if there is no limit."""
    if sys.platform != "linux":
        return None
    import resource  # noqa: PLC0415 - Windows has no such module

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return limit - pages * resource.getpagesize()


def check_room() -> None:
    """Refuse to begin with too little."""
    left = address_space_left()
    if left is not None and left < LEAST:
        raise InputError(
            f"The limit on address space leaves {max(left, 0) >> 20:,} MB; reading a table takes"
            f" {LEAST >> 20:,} MB.",
            hint=either("raise the limit (ulimit -v)", Remedy("use {} instead", Control.MEMORY)),
        )
