"""Data frames as tables: those in memory as Arrow, lazy ones counted where they are."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reconpriv.errors import InputError, ReconprivError
from reconpriv.sources.column_names import check_names
from reconpriv.sources.databases.duckdb_tables import LazyRelation
from reconpriv.sources.lazy import LazyTable

if TYPE_CHECKING:
    import pyarrow.dataset

_BATCH = 1 << 17
_KNOWN_EXTENSIONS = ("arrow.uuid", "arrow.json")  # to DuckDB
_TABLES = {
    "pandas": ("DataFrame",),
    "polars": ("DataFrame", "LazyFrame"),
    "pyarrow": ("Table", "RecordBatch", "RecordBatchReader"),
    "duckdb": ("DuckDBPyRelation",),
}


def open_frame(source: Any) -> LazyTable | pa.Table | pyarrow.dataset.Dataset:
    """A frame as Arrow, or, if it is lazy, as a table that is counted where it is."""
    name = type(source).__name__
    if not may_be_table(source) or isinstance(source, str | os.PathLike | list | tuple):
        raise not_a_table(source)
    opener = _OPENERS.get(f"{_package(source)}.{name}", _as_arrow)
    try:
        table = opener(source)
    except ReconprivError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"The {name} cannot be turned into an Arrow table ({type(error).__name__}).",
            hint="A column of mixed types, or of objects beyond 64 bits, is the usual cause.",
        ) from None
    if not table.schema.names:
        raise InputError(f"The {name} has no columns.")
    check_names(table.schema.names, f"the {name}")
    for field in table.schema:
        own = isinstance(field.type, pa.BaseExtensionType) and field.type.extension_name
        if not own or own in _KNOWN_EXTENSIONS or pa.types.is_nested(field.type.storage_type):
            continue
        # A custom type, such as pandas' periods: DuckDB would show its numbers.
        if not isinstance(table, pa.Table):
            raise InputError(
                f"Column {field.name!r} of the {name} is of a type that cannot be published.",
                hint="Turn it into text, or take it out.",
            )
        # Nested values can be left out but not published.
        column = table[field.name]
        parts = [pa.StructArray.from_arrays([p.storage], ["storage"]) for p in column.chunks]
        nested = pa.chunked_array(parts, pa.struct({"storage": field.type.storage_type}))
        at = table.schema.get_field_index(field.name)
        table = table.set_column(at, field.name, nested)
    return table


def may_be_table(source: Any) -> bool:
    """True if this may be a path, a list of paths or a frame; a single column is not one."""
    if isinstance(source, str | os.PathLike | list | tuple) or is_dataset(source):
        return True
    package, name = _package(source), type(source).__name__
    if package in _TABLES:
        return name in _TABLES[package]
    exported = hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")
    return exported or package == "pyspark"


def is_dataset(source: Any) -> bool:
    """True if this is an Arrow dataset. Only who imported its module has one: a slow import."""
    module = sys.modules.get("pyarrow.dataset")
    return module is not None and isinstance(source, module.Dataset)


def not_a_table(source: Any) -> InputError:
    """The error for anything else."""
    return InputError(
        f"A table cannot be read from a {type(source).__name__}.",
        hint="Give a path or a list of paths, or a pandas, Polars, PyArrow, DuckDB or Spark table.",
    )


def _package(source: Any) -> str:
    return type(source).__module__.split(".")[0].lstrip("_")


def _as_arrow(source: Any) -> pa.Table | pyarrow.dataset.Dataset:
    if is_dataset(source):
        return source
    if _package(source) == "pandas":
        for name in source.columns:
            if not isinstance(name, str):
                raise InputError(
                    f"The name {name!r} of a column of the DataFrame is not text.",
                    hint="Rename it, for example frame.columns = frame.columns.map(str).",
                )
        check_names(list(source.columns), "the DataFrame")
        # The index is not a column of the table.
        return pa.Table.from_pandas(source, preserve_index=False)
    return pa.table(source)


class LazyPolars(LazyTable):
    """A Polars query that has not run; Polars counts its cells in its streaming engine."""

    can_count = True

    def __init__(self, frame: Any) -> None:
        """Only the names and types of the columns are asked for."""
        import polars  # noqa: PLC0415 - not a dependency; whoever has such a frame has it

        self._frame = frame
        with _polars_errors():
            self.schema = polars.DataFrame(schema=frame.collect_schema()).to_arrow().schema

    def fetch(self, names: Sequence[str], count: str | None = None) -> Iterator[pa.RecordBatch]:
        """The records a chunk at a time, or the cells."""
        with _polars_errors():
            chosen = self._frame.select(names)
            if count is not None:
                counted = chosen.group_by(names).len(name=count).collect(engine="streaming")
                yield from counted.to_arrow().to_batches()
                return
            for chunk in chosen.collect_batches(chunk_size=_BATCH):
                yield from chunk.to_arrow().to_batches()


@contextmanager
def _polars_errors() -> Iterator[None]:
    """Name only the kind of an error: its text may quote values of the table, and paths."""
    import polars  # noqa: PLC0415 - not a dependency; whoever has such a frame has it

    try:
        yield
    except (polars.exceptions.PolarsError, OSError) as error:
        raise InputError(
            f"Polars cannot compute the LazyFrame ({type(error).__name__}).",
            hint="Call its collect() to see why.",
        ) from None


class LazyStream(LazyTable):
    """An Arrow stream, which can be read once."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        """The schema comes before the first batch."""
        self._reader = reader
        self.schema = reader.schema

    def fetch(self, names: Sequence[str], count: str | None = None) -> Iterator[pa.RecordBatch]:
        """The records, as they come; it cannot count."""
        assert count is None
        empty = True
        for batch in self._reader:
            empty = False
            yield batch.select(list(names))
        if empty:
            raise InputError(
                "The RecordBatchReader gives no records.",
                hint="It can be read only once; if it has been read already, make a new one.",
            )


_OPENERS: dict[str, Callable[[Any], Any]] = {
    "polars.LazyFrame": LazyPolars,
    "duckdb.DuckDBPyRelation": LazyRelation,
    "pyarrow.RecordBatchReader": LazyStream,
}
