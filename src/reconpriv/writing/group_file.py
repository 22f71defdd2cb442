"""Writing the verdicts of all groups to a file, for the publisher."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from reconpriv.errors import OutputError
from reconpriv.messages.redaction import shown_file, shown_path
from reconpriv.writing.folder import refuse_inside_release


def check_groups_file(path: Path) -> None:
    """Refuse a name that cannot be written, before any work is done."""
    if path.suffix.lower() not in (".parquet", ".csv"):
        raise OutputError(
            f"Groups cannot be written to {shown_file(path)!r}.",
            hint="Use a name in .parquet or .csv.",
        )
    refuse_inside_release(path, "a list of groups")
    if path.exists():
        raise OutputError(f"{shown_path(path)} exists already.", hint="Choose another name.")


def write_groups(tables: Iterable[pa.Table], path: Path) -> None:
    """Stream the tables into a new .parquet or .csv file; nothing half-written remains."""
    check_groups_file(path)
    ending = path.suffix.lower()
    try:
        # Raw frequencies are in it, so it is made readable by its owner alone.
        with tempfile.NamedTemporaryFile(
            prefix=f".{path.name}.", dir=path.parent, delete=False
        ) as handle:
            work = Path(handle.name)
    except OSError as error:
        raise OutputError(f"{shown_path(path)} cannot be written: {error.strerror}.") from None
    try:
        writer = None
        for table in tables:
            if writer is None:
                opener = (
                    pyarrow.csv.CSVWriter if ending == ".csv" else pyarrow.parquet.ParquetWriter
                )
                writer = opener(str(work), table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()
        work.rename(path)
    except OSError as error:
        raise OutputError(
            f"{shown_path(path)} could not be written: {error.strerror or error}."
        ) from None
    finally:
        work.unlink(missing_ok=True)
