"""DuckDB's errors as one sentence each, without a value or a path of the input."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from reconpriv.errors import InputError, ReconprivError

_MEANINGS = (
    (
        ("schema mismatch", "Schema mismatch", "mismatch in glob", "failed to cast column"),
        "The Parquet files differ in their columns or types.",
        "Bring them to one schema, or read them one by one.",
    ),
    (
        ("Connection has been closed", "connection closed", "Connection Error"),
        "The table has been closed.",
        "Open it again with read().",
    ),
    (
        ("Parquet", "magic bytes", "Footer", "TProtocolException", "Thrift"),
        "The Parquet file is truncated or is no Parquet file.",
        "Fetch or export it again.",
    ),
    (
        ("unterminated quote",),
        "The CSV has a quoted field that is never closed.",
        "Look for a stray double quote.",
    ),
    (
        ("not utf-8 encoded", "Invalid unicode"),
        "The file is not UTF-8 text.",
        "Convert it first: iconv -t utf-8.",
    ),
    (
        ("No space left", "max_temp_directory_size"),
        "There is no space left on the disk for temporary files.",
        "Free some, or point TMPDIR to another disk.",
    ),
    (
        ("Out of Memory",),
        "The table needs more memory than allowed.",
        "Raise --memory or lower --threads.",
    ),
)
_FRAME = "A column of a type that DuckDB does not know, or a query that fails, is the usual cause."


@contextmanager
def clear_errors(what: str) -> Iterator[None]:
    """Turn DuckDB's errors into one sentence that quotes no data and no path."""
    try:
        yield
    except ReconprivError:
        raise
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.Error as error:
        raise _translated(str(error), what) from None
    except RuntimeError as error:
        if "interrupted" in str(error).lower():
            raise KeyboardInterrupt from None
        raise
    except OverflowError:
        raise InputError(
            "The table holds a date outside the years 1 to 9999.",
            hint="Turn it into text with --sql.",
        ) from None
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise InputError(
            f"The {what} cannot be read ({type(error).__name__}).",
            hint=_FRAME if what == "frame" else "Check that the file is whole and may be read.",
        ) from None


def _translated(message: str, what: str) -> ReconprivError:
    line = re.search(r"Line: (\d+)", message) or re.search(r"in line (\d+)", message)
    columns = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if columns and line:
        return InputError(
            f"Line {line[1]} of the CSV has {columns[2]} fields where its header has {columns[1]}.",
            hint="Mend the line; a field that holds the delimiter must be quoted.",
        )
    for signs, sentence, hint in _MEANINGS:
        if any(sign in message for sign in signs):
            return InputError(sentence, hint=hint)
    # Only errors in the query itself may be shown: others may quote a value of the table.
    if what.startswith("--sql") and message.startswith(("Parser", "Binder", "Catalog")):
        return InputError(f"The --sql query does not work: {message.splitlines()[0]}")
    where = f" (line {line[1]})" if line else ""
    return InputError(
        f"The {what} cannot be read{where} ({message.split(':', 1)[0]}).",
        hint=_FRAME
        if what == "frame"
        else "Check that the file is whole and of the kind its name says.",
    )
