"""Spreadsheets as tables: a sheet whose first row names the columns.

A sheet has at most 1,048,576 rows, so it is read whole, once.
"""

from __future__ import annotations

import datetime as dt
import logging
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconpriv.errors import InputError
from reconpriv.extras import needs
from reconpriv.messages.remedies import Advice, Control, Remedy
from reconpriv.sources.column_names import check_names
from reconpriv.sources.formats import Opening
from reconpriv.sources.lazy import LazyTable

_BATCH = 1 << 17
_PIECE = 1 << 20
_TOP = 50  # rows in which the names of the columns are looked for
_LARGEST_WHOLE = 2.0**53
_DAY = 86_400_000  # in milliseconds
# The day on which a spreadsheet puts a time without a date; 1899-12-30 is day 0.
_NO_DATES = [(dt.date(1899, 12, day) - dt.date(1970, 1, 1)).days for day in (30, 31)]


# What Python says of a damaged file.
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, expat.ExpatError, EOFError, NotImplementedError, RuntimeError,
    ValueError,
)  # fmt: skip


def open_excel(files: Sequence[str], how: Opening) -> Sheet:
    """One sheet of a spreadsheet."""
    if len(files) > 1:
        raise InputError(
            "Spreadsheets are read one at a time.", hint="Export them as CSV to read several."
        )
    return Sheet(Path(files[0]), how.table)


class Sheet(LazyTable):
    """A sheet as a table."""

    def __init__(self, path: Path, sheet: str | None) -> None:
        """Read the sheet; its columns get their types from all their cells."""
        with _clear_errors(path.name):
            _check_parts(path)
            reader = _fastexcel().read_excel(path)
            self._name = _choose(reader.sheet_names, sheet, path.name)
            top = reader.load_sheet(
                self._name, header_row=None, skip_rows=0, n_rows=_TOP, dtypes="string"
            )
            rows = [list(row.values()) for row in top.to_arrow().to_pylist()]
            blank = next((i for i, row in enumerate(rows) if any(row)), None)
            if blank is None:
                raise _no_names(self._name, path.name, top.total_height)
            heads = [head or "" for head in rows[blank]]
            below = partial(
                reader.load_sheet,
                self._name,
                header_row=None,
                skip_rows=blank + 1,
                schema_sample_rows=None,
                skip_whitespace_tail_rows=True,
            )
            cells, errors = below().to_arrow_with_errors()
            cells = _truths_apart(cells, below)
        columns = list(zip(heads, map(_typed, cells), strict=True))
        # Cells that were formatted but never filled do not make a column.
        kept = [
            (name, column) for name, column in columns if name or column.null_count < len(column)
        ]
        check_names([name for name, _ in kept], f"sheet {self._name!r}")
        self._table = pa.table([column for _, column in kept], names=[name for name, _ in kept])
        found = errors.errors if errors else ()
        self._errors = {heads[error.position[1]]: error.position for error in reversed(found)}
        self.schema = self._table.schema

    def fetch(self, names: Sequence[str], count: str | None = None) -> Iterator[pa.RecordBatch]:
        """The records; a cell that holds an error is refused."""
        assert count is None
        for name in names:
            if name in self._errors:
                row, _ = self._errors[name]
                raise InputError(
                    f"Column {name!r} of sheet {self._name!r} holds an error in row {row + 1},"
                    " such as #N/A or #DIV/0!.",
                    hint="Correct or empty the cell, or leave the column out.",
                )
        yield from self._table.select(list(names)).to_batches(max_chunksize=_BATCH)


def _check_parts(path: Path) -> None:
    """Compare every part of the file with its checksum, and its text with the rules of XML.

    The reader never gets to a checksum, since it stops at the end of the text, and it guesses what
    broken XML means: a flipped bit could put the values of one column into another.
    """
    if not zipfile.is_zipfile(path):  # the old binary format has no checksums
        return
    try:
        with zipfile.ZipFile(path) as parts:
            for part in parts.infolist():
                with parts.open(part) as stream:
                    if part.filename.endswith((".xml", ".rels")):
                        expat.ParserCreate().ParseFile(stream)
                    while stream.read(_PIECE):
                        pass
    except _DAMAGED:
        raise OSError from None


def _choose(sheets: list[str], sheet: str | None, shown: str) -> str:
    listed = ", ".join(sheets)
    if sheet is None and len(sheets) != 1:
        raise InputError(
            f"{shown} has {len(sheets)} sheets.",
            hint=Advice(Remedy("choose one with {}", Control.TABLE), f"It has: {listed}."),
        )
    if sheet is not None and sheet not in sheets:
        raise InputError(f"{shown} has no sheet {sheet!r}.", hint=f"It has: {listed}.")
    return sheets[0] if sheet is None else sheet


def _no_names(sheet: str, shown: str, height: int) -> InputError:
    if height > _TOP:
        return InputError(
            f"The first {_TOP} rows of sheet {sheet!r} of {shown} are blank.",
            hint="Column names are expected there: remove the blank rows above them.",
        )
    return InputError(f"The sheet {sheet!r} of {shown} is empty.")


def _truths_apart(cells: pa.RecordBatch, load: Callable[..., Any]) -> list[pa.Array]:
    """The columns; one with both TRUE or FALSE and numbers is text, as TRUE would become 1."""
    columns = list(cells.columns)
    numbers = [i for i, column in enumerate(columns) if pa.types.is_floating(column.type)]
    if not numbers:
        return columns
    texts = load(dtypes="string").to_arrow().columns
    for i in numbers:
        if pc.any(pc.is_in(texts[i], pa.array(["true", "false"]))).as_py():
            columns[i] = texts[i]
    return columns


def _typed(cells: pa.Array) -> pa.Array:
    """Whole numbers as integers, days as dates, times without a date as such."""
    kind = cells.type
    if pa.types.is_floating(kind):
        numbers = cells.drop_null().to_numpy(zero_copy_only=False)
        whole = (np.abs(numbers) <= _LARGEST_WHOLE) & (numbers == np.floor(numbers))
        return cells.cast(pa.int64()) if whole.all() else cells
    if pa.types.is_timestamp(kind):
        ticks = cells.drop_null().cast(pa.timestamp("ms")).cast(pa.int64()).to_numpy()
        if len(ticks) and np.isin(ticks // _DAY, _NO_DATES).all():
            return pc.cast(cells, pa.time32("ms"))
        return cells.cast(pa.date32()) if (ticks % _DAY == 0).all() else cells
    if pa.types.is_duration(kind):
        ticks = cells.cast(pa.duration("ms")).cast(pa.int64())
        known = ticks.drop_null().to_numpy()
        if ((known >= 0) & (known < _DAY)).all():
            return ticks.cast(pa.int32()).cast(pa.time32("ms"))
        return pc.divide(ticks.cast(pa.float64()), 1000.0)
    return cells


def _fastexcel() -> Any:
    with needs("formats", "Spreadsheets need fastexcel."):
        import fastexcel  # noqa: PLC0415 - an extra
    # It would report each column without a value on standard error.
    logging.getLogger("fastexcel").setLevel(logging.ERROR)
    return fastexcel


@contextmanager
def _clear_errors(shown: str) -> Iterator[None]:
    fastexcel = _fastexcel()
    try:
        yield
    except (fastexcel.FastExcelError, OSError):
        raise InputError(
            f"{shown} is truncated, protected by a password, or not a spreadsheet.",
            hint="Open it and save it again.",
        ) from None
