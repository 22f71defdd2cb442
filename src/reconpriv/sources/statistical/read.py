"""SPSS, Stata and SAS files as tables, read a chunk at a time with their labels.

A chunk holds Python values, so its size is bounded in bytes. The values are kept as they come in a
scratch file until all have been seen; then the types of the columns are converted.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from reconpriv.columns.schema import ColumnLabels, Value
from reconpriv.errors import InputError
from reconpriv.extras import needs
from reconpriv.messages.remedies import Advice, Control, Remedy, either
from reconpriv.sources.column_names import check_names
from reconpriv.sources.formats import Opening
from reconpriv.sources.lazy import LazyTable
from reconpriv.sources.statistical.types import ColumnConverter, Meaning, read_as
from reconpriv.sources.statistical.xport import Transport, Window

_CHUNK_BYTES = 1 << 27
_BYTES_PER_VALUE = 96  # a Python number or short text, its place in a list, its Arrow copy
_LEAST_ROWS = 1 << 6
_MOST_ROWS = 1 << 20
_BATCH = 1 << 17


@dataclass(frozen=True)
class _Program:
    name: str
    function: str
    missing_codes: bool = True  # whether values that stand for missing ones are declared


_SPSS = _Program("SPSS", "read_sav")
PROGRAMS = {
    ".sav": _SPSS,
    ".zsav": _SPSS,
    ".por": _Program("SPSS", "read_por", missing_codes=False),
    ".dta": _Program("Stata", "read_dta"),
    ".sas7bdat": _Program("SAS", "read_sas7bdat"),
    ".xpt": _Program("SAS", "read_xport", missing_codes=False),
    ".xport": _Program("SAS", "read_xport", missing_codes=False),
}


def open_statistical(files: Sequence[str], how: Opening) -> StatisticalFile:
    """A single file of a statistical program, its columns and labels read."""
    if len(files) > 1:
        raise InputError(
            "Files of statistical programs are read one at a time.",
            hint="Combine them into one file first.",
        )
    if files[0].lower().endswith(".gz"):
        raise InputError(f"{Path(files[0]).name} is compressed.", hint="Unpack it first: gunzip.")
    return StatisticalFile(Path(files[0]).absolute(), how.scratch, how.labels)


class StatisticalFile(LazyTable):
    """A file of SPSS, Stata or SAS."""

    def __init__(self, path: Path, scratch: Callable[[], Path], labels: str = "describe") -> None:
        """Read what the file says about its columns."""
        self._path, self._scratch = path, scratch
        self._program = PROGRAMS[path.suffix.lower()]
        more = {"user_missing": True} if self._program.missing_codes else {}
        _, about = self._read(path, metadataonly=True, **more)
        check_names(about.column_names, path.name)
        self._about = about
        self._readings = {
            name: read_as(
                self._program.name,
                about.readstat_variable_types[name],
                about.original_variable_types[name],
            )
            for name in about.column_names
        }
        self._values = {
            # The labels of a date are for the number behind it.
            name: {} if reading.timed else _value_labels(about, name)
            for name, reading in self._readings.items()
        }
        self._apply = labels == "apply"
        if self._apply and not any(self._values.values()):
            raise InputError(
                f"{path.name} has no value labels to apply.",
                hint=Advice(
                    "SAS keeps them in a catalog of its own.",
                    Remedy("leave {} out", Control.LABELS, "apply"),
                ),
            )
        # Each column with the type that it has unless its values forbid it.
        self.schema = pa.schema([(name, self._declared(name)) for name in self._readings])
        said = {name: self._described(name) for name in self._readings}
        self.labels = {name: one for name, one in said.items() if one != ColumnLabels()}

    def _declared(self, name: str) -> pa.DataType:
        if self._apply and self._values[name]:
            return pa.string()  # whether its labels tell values apart matters once it is read
        column = ColumnConverter(name, self._readings[name])
        return self._finish(column, pa.array([], column.raw_type)).type

    def _described(self, name: str) -> ColumnLabels:
        """A variable's label, and its value labels unless they have become the values."""
        title = (self._about.column_names_to_labels.get(name) or "").strip()
        return ColumnLabels(title, () if self._apply else tuple(self._values[name].items()))

    def fetch(self, names: Sequence[str], count: str | None = None) -> Iterator[pa.RecordBatch]:
        """The records; a batch without rows comes while the file is still being looked at."""
        assert count is None
        columns = [ColumnConverter(name, self._readings[name]) for name in names]
        raw = self._scratch() / "raw.parquet"
        kinds = pa.schema([(column.name, column.raw_type) for column in columns])
        try:
            with pyarrow.parquet.ParquetWriter(str(raw), kinds, compression="lz4") as writer:
                for batch in self._raw_batches(columns, kinds):
                    writer.write_batch(batch)
                    yield batch.slice(0, 0)
            for batch in pyarrow.parquet.ParquetFile(raw).iter_batches(_BATCH):
                arrays = [self._finish(c, batch.column(c.name)) for c in columns]
                yield pa.RecordBatch.from_arrays(arrays, names=list(names))
        finally:
            raw.unlink(missing_ok=True)

    def _raw_batches(
        self, columns: Sequence[ColumnConverter], kinds: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        before = _stamp(self._path)
        for chunk in self._chunks(kinds.names):
            arrays = [pa.array(chunk[c.name], c.raw_type, from_pandas=True) for c in columns]
            for column, array in zip(columns, arrays, strict=True):
                column.look(array)
            yield pa.RecordBatch.from_arrays(arrays, schema=kinds)
        if _stamp(self._path) != before:
            raise InputError(f"{self._path.name} changed while it was read.", hint="Read it again.")

    def _chunks(self, names: list[str]) -> Iterator[dict[str, list[Any]]]:
        """The values of some columns, as many records at a time as memory should hold."""
        widths = self._about.variable_storage_width
        text = [name for name in names if self._readings[name].meaning is Meaning.TEXT]
        each = _BYTES_PER_VALUE * len(names) + 2 * sum(widths[name] for name in text)
        size = min(max(_CHUNK_BYTES // each, _LEAST_ROWS), _MOST_ROWS)
        total, done = self._about.number_rows, 0
        transport = None
        if self._program.function == "read_xport":
            transport = Transport(self._path, sum(widths.values()))
            total = transport.records
        while total is None or done < total:
            wanted = size if total is None else min(size, total - done)
            settings = {
                "usecols": names, "row_limit": wanted, "disable_datetime_conversion": True,
            }  # fmt: skip
            if transport is None:
                chunk, _ = self._read(self._path, row_offset=done, **settings)
            else:
                with Window(transport, done) as window:
                    chunk, _ = self._read(window, **settings)
            found = len(chunk[names[0]])
            done += found
            yield dict(chunk)
            if found < wanted:
                break
        if transport is not None:
            transport.check_end(done)

    def _read(self, source: Path | Window, **settings: Any) -> tuple[Any, Any]:
        function = getattr(_pyreadstat(), self._program.function)
        with _clear_errors(self._path.name, self._program.name), warnings.catch_warnings():
            # Filters are global: another thread's warnings must stay warnings.
            warnings.filterwarnings("error", message="column .* is duplicated")
            values, about = function(source, output_format="dict", **settings)
        return values, about

    def _finish(self, column: ColumnConverter, values: pa.Array) -> pa.Array:
        converted = column.convert(values)
        if column.reading.meaning is Meaning.TEXT:
            # None of these programs tells a missing text from an empty one.
            converted = pc.if_else(pc.equal(converted, ""), pa.scalar(None, pa.string()), converted)
        said = self._values[column.name]
        return _named(converted, said, column.name) if self._apply and said else converted


def _value_labels(about: Any, name: str) -> dict[Value, str]:
    """What values stand for; values that stand for a missing one are left out."""
    said = about.variable_value_labels.get(name, {})
    missing = about.missing_ranges.get(name, [])
    text = about.readstat_variable_types[name] == "string"
    found: dict[Value, str] = {}
    for value, label in said.items():
        if isinstance(value, str) != text or not label.strip():
            continue  # Stata and SAS write .a to .z as letters
        if any(one["lo"] <= value <= one["hi"] for one in missing):
            continue
        if isinstance(value, str):
            found[value.rstrip()] = label.strip()
        elif math.isfinite(value):
            found[int(value) if value == int(value) else value] = label.strip()
    return found


def _named(values: pa.Array, said: Mapping[Value, str], name: str) -> pa.Array:
    """Labels in place of codes; a code without one is its own label."""
    if len(set(said.values())) < len(said):
        raise _ambiguous(name)
    coded = values.dictionary_encode()
    labels = []
    for value in coded.dictionary.to_pylist():
        label = said.get(value)
        if label is None:
            label = str(value)
            if label in said.values():
                raise _ambiguous(name)
        labels.append(label)
    return pa.array(labels, pa.string()).take(coded.indices)


def _ambiguous(name: str) -> InputError:
    return InputError(
        f"Two values of column {name!r} have the same label.",
        hint=either(
            Remedy("leave {} out", Control.LABELS, "apply"), "give them different labels first"
        ),
    )


def _stamp(path: Path) -> tuple[int, int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ino


def _pyreadstat() -> Any:
    with needs("formats", "SPSS, Stata and SAS files need pyreadstat."):
        import pyreadstat  # noqa: PLC0415 - an extra
    return pyreadstat


@contextmanager
def _clear_errors(shown: str, program: str) -> Iterator[None]:
    """What pyreadstat says, as one sentence without a value of the file."""
    readstat = _pyreadstat()
    try:
        yield
    except UnicodeDecodeError:
        raise _encoding(shown) from None
    except readstat.ReadstatError as error:
        if "encoding" in str(error) or "convert" in str(error):
            raise _encoding(shown) from None
        raise InputError(
            f"{shown} is truncated or not a valid {program} file.", hint="Fetch or export it again."
        ) from None
    except UserWarning:
        raise InputError(
            f"Two columns of {shown} have the same name.", hint="Rename one of them."
        ) from None
    except (readstat.PyreadstatError, OSError, ValueError, OverflowError) as error:
        raise InputError(
            f"{shown} cannot be read ({type(error).__name__}).",
            hint="Check that the file is complete and readable.",
        ) from None


def _encoding(shown: str) -> InputError:
    return InputError(
        f"{shown} holds text that is not in the encoding it declares.",
        hint="Save it as Unicode (UTF-8) in the program it comes from.",
    )
