"""Arrow files, which are looked at in a process of their own before this one reads them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reconpriv.errors import InputError
from reconpriv.sources import arrow_check
from reconpriv.sources.column_names import check_names


def open_arrow(files: Sequence[str], shown: str) -> Any:
    """The files as one Arrow dataset; a damaged one is refused."""
    from pyarrow import dataset  # noqa: PLC0415 - slow import

    # Absolute, so that no name is taken for an option.
    paths = [str(Path(file).absolute()) for file in files]
    ended = subprocess.run(
        [sys.executable, "-P", arrow_check.__file__, *paths],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if ended.returncode:
        raise InputError(
            f"{shown} is damaged, or is not an Arrow file.", hint="Fetch or export it again."
        )
    found = dataset.dataset(list(files), format="ipc")
    check_names(found.schema.names, shown)
    return found
