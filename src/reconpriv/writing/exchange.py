"""Exchanging two folders in one step, where the system can: neither name is ever missing."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # Linux
_RENAME_SWAP = 2  # macOS


def exchange(one: Path, other: Path) -> bool:
    """Exchange two folders of one file system; False if the system has no such call."""
    names = os.fsencode(one), os.fsencode(other)
    try:
        system = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            failed = system.renamex_np(*names, _RENAME_SWAP)
        else:
            failed = system.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE)
    except (AttributeError, OSError, TypeError):
        return False
    return not failed
