"""Tables that lie elsewhere or are not computed yet: only what is asked for is fetched.

A source that can count fetches its cells, not its records. What is fetched is spooled once into the
engine's private scratch folder, so every later pass sees the same table, whatever happens to the
source meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event

import pyarrow as pa
import pyarrow.parquet

from reconpriv.columns.schema import ColumnLabels
from reconpriv.errors import InputError
from reconpriv.messages.remedies import Control, Remedy, either


class LazyTable:
    """A table whose columns are known and whose records are still where they were.

    ``schema`` has every column, in order, ``labels`` what the source says about columns and values.
    """

    schema: pa.Schema
    labels: Mapping[str, ColumnLabels] = {}
    can_count = False

    def fetch(self, names: Sequence[str], count: str | None = None) -> Iterator[pa.RecordBatch]:
        """These columns of the records, in batches.

        With ``count``, a table that ``can_count`` gives its cells instead: the distinct records,
        and in a last column of that name how often each occurs.
        """
        raise NotImplementedError

    def interrupt(self) -> None:
        """Stop what another thread is waiting for; that thread gets a KeyboardInterrupt."""

    def close(self) -> None:
        """Close connections."""


def spool(batches: Iterator[pa.RecordBatch], schema: pa.Schema, file: Path, stopped: Event) -> Path:
    """Write a stream to a Parquet file, a batch at a time; ``schema`` is used if none comes.

    A batch without rows only shows that work goes on.
    """
    writer: pyarrow.parquet.ParquetWriter | None = None
    try:
        for batch in batches:
            if stopped.is_set():
                raise KeyboardInterrupt
            if batch.num_rows:
                writer = writer or _writer(file, batch.schema)
                writer.write_batch(batch)
        writer = writer or _writer(file, schema)
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
