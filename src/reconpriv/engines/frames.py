"""Data frames as tables: those in memory as Arrow, lazy ones counted where they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from reconpriv.engines.lazy import LazyTable
from reconpriv.engines.names import check_names
from reconpriv.errors import InputError
from reconpriv.schema import ColumnLabels

_BATCH = 1 << 17


def open_frame(source: Any) -> LazyTable | pa.Table | pyarrow.dataset.Dataset:
    """A frame as Arrow, or, where it is lazy, as a table that is counted where it is."""
    kind = f"{type(source).__module__.split('.')[0].lstrip('_')}.{type(source).__name__}"
    opener = {
        "polars.LazyFrame": LazyPolars,
        "duckdb.DuckDBPyRelation": LazyRelation,
        "pyarrow.RecordBatchReader": LazyStream,
    }.get(kind)
    if opener is None and isinstance(source, pyarrow.dataset.Dataset):
        check_names(source.schema.names, "the Dataset")
        return source
    if opener is None and not (
        hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")
    ):
        raise InputError(
            f"A table cannot be read from a {type(source).__name__}.",
            hint="Give a path or a list of paths, or a pandas, Polars, PyArrow, DuckDB or Spark"
            " table.",
        )
    try:
        table: Any = _as_arrow(source) if opener is None else opener(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"The {type(source).__name__} cannot be turned into an Arrow table"
            f" ({type(error).__name__}).",
            hint="A column of mixed types is the usual cause.",
        ) from None
    check_names(table.schema.names, f"the {type(source).__name__}")
    return table


def _as_arrow(source: Any) -> pa.Table:
    if type(source).__module__.split(".")[0] == "pandas":
        # The index is not a column of the table.
        return pa.Table.from_pandas(source, preserve_index=False)
    return pa.table(source)


class _Frame:
    """What lazy frames have in common: nothing is known of labels, nothing is to be closed."""

    labels: Mapping[str, ColumnLabels] = {}

    def close(self) -> None:
        """The frame is its owner's."""


class LazyPolars(_Frame):
    """A Polars query that has not run; Polars counts its cells in its streaming engine."""

    counts = True

    def __init__(self, frame: Any) -> None:
        """Only the names and types of the columns are asked for."""
        import polars  # noqa: PLC0415 - not a dependency, but somebody has it who has such a frame

        self._frame = frame
        self.schema = polars.DataFrame(schema=frame.collect_schema()).to_arrow().schema

    def rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The records, a chunk at a time."""
        for chunk in self._frame.select(names).collect_batches(chunk_size=_BATCH):
            yield from chunk.to_arrow().to_batches()

    def cells(self, names: Sequence[str], count: str) -> Iterator[pa.RecordBatch]:
        """The cells, counted by Polars."""
        counted = self._frame.select(names).group_by(names).len(name=count)
        yield from counted.collect(engine="streaming").to_arrow().to_batches()


class LazyRelation(_Frame):
    """A DuckDB relation of the user's own connection, which counts its cells."""

    counts = True

    def __init__(self, relation: Any) -> None:
        """Only the names and types of the columns are asked for."""
        self._relation = relation
        self.schema = relation.limit(0).to_arrow_table().schema

    def rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The records, streamed."""
        yield from self._relation.project(_list(names)).to_arrow_reader(_BATCH)

    def cells(self, names: Sequence[str], count: str) -> Iterator[pa.RecordBatch]:
        """The cells, counted by the user's connection."""
        expression = f"{_list(names)}, count(*) AS {_list([count])}"
        yield from self._relation.aggregate(expression).to_arrow_reader(_BATCH)


class LazyStream(_Frame):
    """An Arrow stream, which can be read once."""

    counts = False

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        """The schema comes before the first batch."""
        self._reader = reader
        self.schema = reader.schema

    def rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The records, as they come."""
        for batch in self._reader:
            yield batch.select(list(names))

    def cells(self, names: Sequence[str], count: str) -> Iterator[pa.RecordBatch]:
        """Refused: a stream does not count."""
        raise NotImplementedError


def _list(names: Sequence[str]) -> str:
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)
