"""Tables that lie elsewhere or are not computed yet: only what is asked for is fetched.

A source that can count fetches its cells, not its records. What is fetched is spooled once into the
engine's private scratch folder, so every later pass sees the same table, whatever happens to the
source meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.parquet

from reconpriv.errors import InputError
from reconpriv.messages.remedies import Control, Remedy, either
from reconpriv.schema import ColumnLabels


class LazyTable(Protocol):
    """A table whose columns are known and whose records are still where they were."""

    @property
    def schema(self) -> pa.Schema:
        """Every column, in order."""
        ...

    @property
    def labels(self) -> Mapping[str, ColumnLabels]:
        """What it says about its columns and their values."""
        ...

    def rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """These columns of the records."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...


@runtime_checkable
class Countable(Protocol):
    """A table that can count its own cells, so its records need not be fetched."""

    def cells(self, names: Sequence[str], count: str) -> Iterator[pa.RecordBatch]:
        """The distinct records of these columns, and in column ``count`` how often each occurs."""
        ...


@runtime_checkable
class Interruptible(Protocol):
    """A table whose server may work for a long time before the first batch comes."""

    def interrupt(self) -> None:
        """Stop what another thread is waiting for; that thread gets a KeyboardInterrupt."""
        ...


def spool(batches: Iterator[pa.RecordBatch], schema: pa.Schema, file: Path, stopped: Event) -> Path:
    """Write a stream to a Parquet file, a batch at a time; ``schema`` is used if none comes.

    A batch without rows only shows that work goes on.
    """
    writer: pyarrow.parquet.ParquetWriter | None = None
    try:
        for batch in batches:
            if stopped.is_set():
                raise KeyboardInterrupt
            if not batch.num_rows:
                continue
            if writer is None:
                writer = _writer(file, batch.schema)
            writer.write_batch(batch)
        if writer is None:
            writer = _writer(file, schema)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise InputError(
            "The table has a column of a type that cannot be stored.",
            hint=either(Remedy("leave it out", Control.DROP), "name the public columns"),
        ) from None
    finally:
        if writer is not None:
            writer.close()
    return file


def _writer(file: Path, schema: pa.Schema) -> pyarrow.parquet.ParquetWriter:
    return pyarrow.parquet.ParquetWriter(str(file), schema, compression="zstd", compression_level=1)
