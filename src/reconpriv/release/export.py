"""Published records as a file of a statistical program, with the labels of the manifest.

What a format cannot hold is refused, or changed with a note; nothing is lost without a word.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from reconpriv.columns.schema import ColumnLabels, Value
from reconpriv.errors import OutputError
from reconpriv.extras import needs
from reconpriv.messages.redaction import shown_file, shown_path
from reconpriv.release.export_names import file_names
from reconpriv.writing.file import check_file, whole_file

_FILE_LABEL = "Randomised release (reconpriv)"
_DESIGNED_LABEL = f"{_FILE_LABEL}: correct its counts"
_LARGEST_WHOLE = 2**53
_LONG = (-2_147_483_647, 2_147_483_620)  # Stata's long; what lies above stands for missing
_LARGEST_IBM = 7.2e75
_SMALLEST_IBM = 5.4e-79


@dataclass(frozen=True)
class ExportFormat:
    """What a format can hold."""

    program: str
    function: str
    text_bytes: int
    label_bytes: int
    value_label_bytes: int = 0  # none
    text_labels: bool = False
    wide_format: str = ""  # shows a whole number that needs a double
    pads_text: bool = False
    step: int = 1  # the precision of a moment, in microseconds
    settings: Mapping[str, Any] = field(default_factory=dict)


_SAV = ExportFormat("SPSS", "write_sav", 32_767, 256, 120, True, "F20.0", True, 10)
TARGETS = {
    ".sav": _SAV,
    ".zsav": ExportFormat(**{**vars(_SAV), "settings": {"compress": True}}),
    ".dta": ExportFormat("Stata", "write_dta", 2_000_000_000, 80, 32_000, False, "%20.0f"),
    ".xpt": ExportFormat("SAS", "write_xport", 32_767, 256, pads_text=True),
}
_PLAIN: dict[str, Callable[[pa.Table, Path], None]] = {
    ".csv": lambda table, path: pyarrow.csv.write_csv(table, str(path)),
    ".parquet": lambda table, path: pyarrow.parquet.write_table(table, str(path)),
}


@dataclass(frozen=True)
class Script:
    """A program to be written beside the data, so that both are there or neither."""

    path: Path
    text: str


_ENDINGS = {"Stata": ".do", "SPSS": ".sps", "SAS": ".sas", "R": ".R"}


def program_of(path: Path) -> str:
    """The program that a file is for; CSV and Parquet are read by R."""
    target = TARGETS.get(path.suffix.lower())
    return "R" if target is None else target.program


def script_path(path: Path) -> Path:
    """The program that goes with a file: beside it, with the same name."""
    return path.with_suffix(_ENDINGS[program_of(path)])


def check_export(path: Path, *, overwrite: bool, script: bool = False) -> None:
    """Refuse a file, or a script beside it, that cannot be written, before any work is done."""
    check_file(path, overwrite=overwrite)
    ending = path.suffix.lower()
    if ending == ".sas7bdat":
        raise OutputError(
            "Only SAS itself writes .sas7bdat.", hint="Write .xpt, which SAS imports."
        )
    if ending not in (*TARGETS, *_PLAIN):
        raise OutputError(
            f"The kind of file {shown_file(path)!r} cannot be written.",
            hint=f"Known: {', '.join((*TARGETS, *_PLAIN))}.",
        )
    if script:
        check_file(script_path(path), overwrite=overwrite)


def export_table(
    table: pa.Table,
    labels: Mapping[str, ColumnLabels],
    path: Path,
    *,
    overwrite: bool = False,
    script: Script | None = None,
) -> tuple[str, ...]:
    """Write a table with its labels, whole or not at all; return what had to be changed."""
    check_export(path, overwrite=overwrite, script=script is not None)
    with contextlib.ExitStack() as beside:
        if script is not None:
            work = beside.enter_context(whole_file(script.path, overwrite=overwrite))
            work.write_text(script.text, encoding="utf-8", newline="\n")
        return _export(table, labels, path, overwrite, designed=script is not None)


def _export(
    table: pa.Table,
    labels: Mapping[str, ColumnLabels],
    path: Path,
    overwrite: bool,
    *,
    designed: bool,
) -> tuple[str, ...]:
    ending = path.suffix.lower()
    if ending in _PLAIN:
        with whole_file(path, overwrite=overwrite) as work:
            _PLAIN[ending](table, work)
        return ()
    pyreadstat, polars = _libraries()
    sheet = _Sheet(TARGETS[ending], _DESIGNED_LABEL if designed else _FILE_LABEL)
    for name, column in zip(table.column_names, table.columns, strict=True):
        sheet.add(name, column.combine_chunks(), labels.get(name, ColumnLabels()))
    frame, settings = sheet.finish()
    with whole_file(path, overwrite=overwrite) as work:
        try:
            getattr(pyreadstat, sheet.target.function)(polars.from_arrow(frame), work, **settings)
        except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError) as error:
            raise OutputError(f"{shown_path(path)} could not be written: {error}.") from None
        except (ValueError, OverflowError) as error:
            raise OutputError(
                f"{shown_path(path)} could not be written: the {sheet.target.program} format cannot"
                f" hold some value or label ({type(error).__name__}).",
                hint="Write .parquet or .csv.",
            ) from None
    return tuple(sheet.notes)


class _Sheet:
    """Columns on their way into a file, and what is to be said about them."""

    def __init__(self, target: ExportFormat, file_label: str) -> None:
        self.target = target
        self.file_label = file_label
        self.notes: list[str] = []
        self._names: list[str] = []
        self._arrays: list[pa.Array] = []
        self._titles: dict[str, str] = {}
        self._values: dict[str, dict[Value, str]] = {}
        self._formats: dict[str, str] = {}

    def add(self, name: str, array: pa.Array, said: ColumnLabels) -> None:
        """Take a column as the format can hold it."""
        values = dict(said.values)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        kind = array.type
        if pa.types.is_boolean(kind):
            array, values = array.cast(pa.int32()), {0: "false", 1: "true"}
            self.notes.append(f"Column {name!r} holds 1 for true and 0 for false.")
        elif pa.types.is_integer(kind):
            array = self._whole(name, array)
        elif pa.types.is_floating(kind):
            self._check_numbers(name, array)
        elif pa.types.is_timestamp(kind):
            array = self._moments(name, array)
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            self._check_text(name, array)
            array = array.fill_null("")
        elif not pa.types.is_date(kind) and not pa.types.is_time(kind):
            raise self._refusal(name, f"holds {kind} values")
        self._names.append(name)
        self._arrays.append(array)
        self._titles[name] = said.title
        self._values[name] = self._value_labels(name, array.type, values)

    def _whole(self, name: str, array: pa.Array) -> pa.Array:
        limits = pc.min_max(array)
        low, high = limits["min"].as_py() or 0, limits["max"].as_py() or 0
        if low >= _LONG[0] and high <= _LONG[1]:
            return array.cast(pa.int32())
        if max(-low, high) > _LARGEST_WHOLE:
            raise self._refusal(name, "holds whole numbers beyond 2^53")
        self._formats[name] = self.target.wide_format
        return array.cast(pa.float64())

    def _check_numbers(self, name: str, array: pa.Array) -> None:
        if not pc.all(pc.is_finite(array.drop_null())).as_py() and len(array.drop_null()):
            raise self._refusal(name, "holds infinite numbers")
        sizes = pc.abs(array.drop_null())
        extreme = pc.and_(pc.not_equal(sizes, 0.0), pc.or_(
            pc.greater(sizes, _LARGEST_IBM), pc.less(sizes, _SMALLEST_IBM)
        ))  # fmt: skip
        if self.target.program == "SAS" and pc.any(extreme).as_py():
            raise self._refusal(name, "holds numbers too large or too small")

    def _moments(self, name: str, array: pa.Array) -> pa.Array:
        if array.type.tz is not None:
            self.notes.append(f"Column {name!r} is in UTC.")
        array = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.timestamp("us"))
        ticks = array.drop_null().cast(pa.int64()).to_numpy()
        if (ticks % self.target.step).any():
            raise self._refusal(name, "holds single microseconds")
        return array

    def _check_text(self, name: str, array: pa.Array) -> None:
        known = array.drop_null().unique()
        if not len(known):
            return
        if pc.any(pc.match_substring(known, "\0")).as_py():
            raise self._refusal(name, "holds text with a null character")
        if self.target.pads_text and pc.any(pc.ends_with(known, " ")).as_py():
            raise self._refusal(name, "holds text that ends in a blank")
        if pc.max(pc.binary_length(known)).as_py() > self.target.text_bytes:
            raise self._refusal(name, f"holds text of more than {self.target.text_bytes:,} bytes")
        if pc.any(pc.equal(known, "")).as_py():
            if array.null_count:
                raise self._refusal(name, "holds both empty and missing text")
            self.notes.append(f"Empty text in column {name!r} counts as missing there.")

    def _refusal(self, name: str, what: str) -> OutputError:
        return OutputError(
            f"Column {name!r} {what}, which a {self.target.program} file cannot hold.",
            hint="Write .parquet or .csv.",
        )

    def _value_labels(
        self, name: str, kind: pa.DataType, values: dict[Value, str]
    ) -> dict[Value, str]:
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        held = pa.types.is_int32(kind) or (text and self.target.text_labels)
        if values and (not self.target.value_label_bytes or not held):
            self.notes.append(
                f"The value labels of column {name!r} are left out: {self.target.program} files"
                f" have none{'' if not self.target.value_label_bytes else ' for such values'}."
            )
            return {}
        if not text and not all(_LONG[0] <= value <= _LONG[1] for value in values):
            # No record has such a code, or the column would have another type.
            values = {v: label for v, label in values.items() if _LONG[0] <= v <= _LONG[1]}
            self.notes.append(f"Labels of column {name!r} for codes beyond 32 bits are left out.")
        return {v: self._cut(t, self.target.value_label_bytes, name) for v, t in values.items()}

    def _cut(self, label: str, limit: int, name: str) -> str:
        cut = label.encode()[:limit].decode(errors="ignore")
        if cut != label:
            self.notes.append(f"A label of column {name!r} is cut to {limit} bytes.")
        return cut

    def finish(self) -> tuple[pa.Table, dict[str, Any]]:
        """The columns under names that the format allows, and the settings of the writer."""
        names = file_names(self._names, self.target.program)
        for old, new in names.items():
            if old != new:
                self.notes.append(f"Column {old!r} is called {new} there.")
        titles = {
            new: self._titles[old] or (old if old != new else "") for old, new in names.items()
        }
        limit = self.target.label_bytes
        settings: dict[str, Any] = dict(self.target.settings) | {
            "file_label": self.file_label,
            "column_labels": {n: self._cut(t, limit, n) for n, t in titles.items() if t},
            "variable_format": {names[old]: form for old, form in self._formats.items() if form},
        }
        if self.target.value_label_bytes:
            settings["variable_value_labels"] = {
                names[old]: values for old, values in self._values.items() if values
            }
        return pa.table(self._arrays, names=list(names.values())), settings


def _libraries() -> Sequence[Any]:
    with needs("formats", "Files of statistical programs need pyreadstat and polars.", OutputError):
        import polars  # noqa: PLC0415 - an extra
        import pyreadstat  # noqa: PLC0415 - an extra
    return pyreadstat, polars
