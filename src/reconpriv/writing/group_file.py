"""Writing the verdicts of all groups to a file, for the publisher."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from reconpriv.errors import OutputError
from reconpriv.messages.redaction import shown_file
from reconpriv.writing.file import check_file, whole_file

_WRITERS = {".parquet": pyarrow.parquet.ParquetWriter, ".csv": pyarrow.csv.CSVWriter}
_WHAT, _HINT = "a list of groups", "Choose another name."


def check_groups_file(path: Path) -> None:
    """Refuse a name that cannot be written, before any work is done."""
    if path.suffix.lower() not in _WRITERS:
        raise OutputError(
            f"Groups cannot be written to {shown_file(path)!r}.",
            hint="Use a name that ends in .parquet or .csv.",
        )
    check_file(path, private=_WHAT, hint=_HINT)


@contextmanager
def groups_file(path: Path) -> Iterator[Callable[[pa.Table], None]]:
    """A function that adds tables to a new file, which appears once all of them have been added."""
    check_groups_file(path)
    with whole_file(path, private=_WHAT, hint=_HINT) as work, ExitStack() as stack:
        writers: list[Any] = []

        def add(table: pa.Table) -> None:
            if not writers:
                opened = _WRITERS[path.suffix.lower()](str(work), table.schema)
                writers.append(stack.enter_context(opened))
            writers[0].write_table(table)

        yield add
