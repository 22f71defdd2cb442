"""DuckDB's errors as one sentence each, without a value or a path of the input."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from reconpriv.engines.duckdb.query_faults import conversion, details, fault
from reconpriv.errors import InputError, ReconprivError
from reconpriv.messages.one_line import byte_words
from reconpriv.messages.remedies import AS_TEXT, Control, Remedy, either

_MEANINGS = (
    (
        ("schema mismatch", "Schema mismatch", "mismatch in glob", "failed to cast column"),
        "The Parquet files differ in their columns or types.",
        "Give them the same schema, or read them one by one.",
    ),
    (
        ("Connection has been closed", "connection closed", "Connection Error"),
        "The table has been closed.",
        "Open it again.",
    ),
    (
        ("Parquet", "magic bytes", "Footer", "TProtocolException", "Thrift"),
        "The Parquet file is truncated or is not a Parquet file.",
        "Fetch or export it again.",
    ),
    (
        ("unterminated quote",),
        "The CSV has a quoted field that is never closed.",
        "Look for a stray double quote.",
    ),
    (("not utf-8 encoded", "Invalid unicode"), "The file is not UTF-8 text.", "Save it as UTF-8."),
    (
        ("No space left", "max_temp_directory_size"),
        "There is no space left on the disk for temporary files.",
        "Free some, or point TMPDIR to another disk.",
    ),
    (
        ("Out of Memory",),
        "The table needs more memory than allowed.",
        either(Remedy("raise {}", Control.MEMORY), Remedy("lower {}", Control.THREADS)),
    ),
)
_FRAME = "A column of a type that DuckDB does not know, or a query that fails, is the usual cause."

QUERY = "SQL query"
RESULT = "result of the SQL query"
_FAILS = "Check its expressions: one of them fails on some record."
_HINTS = {"frame": _FRAME, QUERY: _FAILS, RESULT: _FAILS}


@dataclass(frozen=True)
class Typed:
    """The user's words within what DuckDB was given: where they begin, and what they may name."""

    text: str
    begin: int = 0
    columns: Sequence[str] = ()

    def place(self, position: int | None) -> str:
        """Where in the user's words a byte of the whole lies; empty if it lies outside."""
        if position is None or not 0 <= position - self.begin <= len(self.text.encode()):
            return ""
        return " " + byte_words(self.text, position - self.begin)


@contextmanager
def clear_errors(what: str, typed: Typed | None = None) -> Iterator[None]:
    """Turn DuckDB's errors into one sentence that quotes no data, no path and none of its words.

    ``typed`` is the user's query, if there is one.
    """
    try:
        yield
    except ReconprivError:
        raise
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.Error as error:
        raise _translated(str(error), what, typed) from None
    except RuntimeError as error:
        if "interrupted" in str(error).lower():
            raise KeyboardInterrupt from None
        raise
    except OverflowError:
        raise InputError(
            "The table holds a date outside the years 1 to 9999.", hint=AS_TEXT
        ) from None
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise InputError(
            f"The {what} cannot be read ({type(error).__name__}).",
            hint=_FRAME if what == "frame" else "Check that the file is complete and readable.",
        ) from None


def _translated(message: str, what: str, typed: Typed | None) -> ReconprivError:
    line = re.search(r"Line: (\d+)", message) or re.search(r"in line (\d+)", message)
    columns = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if columns and line:
        return InputError(
            f"Line {line[1]} of the CSV has {columns[2]} fields where its header has {columns[1]}.",
            hint="Correct the line; a field that holds the delimiter must be quoted.",
        )
    found = None if typed is None else fault(message, typed.columns)
    if typed is not None and found is not None:
        sentence = f"The {what} does not work{typed.place(found.position)}: {found.what}."
        return InputError(sentence, hint=found.hint)
    for signs, sentence, hint in _MEANINGS:
        if any(sign in message for sign in signs):
            return InputError(sentence, hint=hint)
    if message.startswith("Conversion"):
        sentence, hint = conversion(details(message)["exception_message"])
        shown = f"{sentence[0].upper()}{sentence[1:]}."
        return InputError(shown, hint=hint if what == RESULT else "")
    where = f" (line {line[1]})" if line else ""
    return InputError(
        f"The {what} cannot be read{where}.",
        hint=_HINTS.get(what, "Check that the file is complete and of the type its name says."),
    )
