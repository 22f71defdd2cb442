"""Audit and publish in one call; what goes in as a data frame comes out as one of the same kind."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reconpriv.auditing import AuditReport
from reconpriv.errors import InputError, ReconprivWarning
from reconpriv.policy import Policy
from reconpriv.reading import read
from reconpriv.release import Release
from reconpriv.table import Table

if TYPE_CHECKING:
    from reconpriv.randomness import Key


def audit(
    source: Any, policy: Policy, *, sensitive: str, worst: int = 10, **roles: Any
) -> AuditReport:
    """Audit a table in one call; ``roles`` and further settings are those of :func:`read`."""
    with read(source, sensitive=sensitive, **roles) as table:
        return table.audit(policy, worst=worst)


def publish(
    source: Any,
    policy: Policy,
    *,
    sensitive: str,
    out: str | os.PathLike[str] | None = None,
    key: Key | bytes | str | os.PathLike[str] | None = None,
    file_format: str = "parquet",
    overwrite: bool = False,
    **roles: Any,
) -> Any:
    """Publish a table in one call; ``roles`` and further settings are those of :func:`read`.

    A pandas, Polars or Arrow table comes back as one of the same kind, with the types that its
    columns had, categories included: the published records, one row each, in canonical order. A
    lazy Polars frame comes back lazy, an Arrow stream as a stream, a DuckDB relation as an Arrow
    table. With ``out`` the release folder is written too; analysts need it for intervals. From a
    path, a database or Spark the release folder is what comes out.
    """
    give_back = _kind_of(source)
    if give_back is None:
        if out is None:
            raise InputError(
                "There is no folder to write the release to.",
                hint="Give one: publish(source, policy, sensitive=…, out='release').",
            )
        with read(source, sensitive=sensitive, **roles) as table:
            return _publish(table, policy, out, key, file_format, overwrite)
    with tempfile.TemporaryDirectory(prefix="reconpriv-") as scratch:
        with read(source, sensitive=sensitive, **roles) as table:
            folder = Path(scratch) / "release" if out is None else out
            release = _publish(table, policy, folder, key, file_format, overwrite)
        records = release.to_arrow()
    same_types = roles.get("sql") is None  # a query makes columns and types of its own
    return give_back(source, records, same_types)


def _publish(
    table: Table,
    policy: Policy,
    out: str | os.PathLike[str],
    key: Key | bytes | str | os.PathLike[str] | None,
    file_format: str,
    overwrite: bool,
) -> Release:
    release = table.publish(policy, out, key=key, file_format=file_format, overwrite=overwrite)
    for note in release.warnings:
        if note not in table.warnings:  # those have been said
            warnings.warn(note, ReconprivWarning, stacklevel=4)
    return release


GiveBack = Callable[[Any, pa.Table, bool], Any]


def _kind_of(source: Any) -> GiveBack | None:
    """What turns published records into a frame of the source's kind; None for a path or Spark."""
    package = type(source).__module__.split(".")[0].lstrip("_")
    name = type(source).__name__
    if package == "pandas":
        return _as_pandas
    if package == "polars":
        return _as_lazy_polars if name == "LazyFrame" else _as_polars
    if package == "duckdb":
        return _as_arrow_of_relation
    if package == "pyarrow":
        return _as_stream if name == "RecordBatchReader" else _as_arrow
    return None


def _in_order(records: pa.Table, names: Sequence[str]) -> pa.Table:
    """The columns in the order of these names, new ones last."""
    kept = [name for name in names if name in records.column_names]
    return records.select(kept + [name for name in records.column_names if name not in kept])


def _as_pandas(source: Any, records: pa.Table, same_types: bool) -> Any:
    frame = _in_order(records, list(source.columns)).to_pandas()
    return frame.astype({n: source.dtypes[n] for n in frame.columns}) if same_types else frame


def _as_polars(source: Any, records: pa.Table, same_types: bool) -> Any:
    import polars  # noqa: PLC0415 - not a dependency, but who has such a frame has it

    types = source.collect_schema()
    frame = polars.DataFrame(_in_order(records, types.names()))
    return frame.cast({n: types[n] for n in frame.columns}) if same_types else frame


def _as_lazy_polars(source: Any, records: pa.Table, same_types: bool) -> Any:
    return _as_polars(source, records, same_types).lazy()


def _as_arrow(source: Any, records: pa.Table, same_types: bool) -> pa.Table:
    table = _in_order(records, source.schema.names)
    if not same_types:
        return table
    columns = [_cast(table[name], source.schema.field(name).type) for name in table.column_names]
    return pa.table(columns, names=table.column_names)


def _as_stream(source: Any, records: pa.Table, same_types: bool) -> pa.RecordBatchReader:
    return _as_arrow(source, records, same_types).to_reader()


def _as_arrow_of_relation(source: Any, records: pa.Table, _: bool) -> pa.Table:
    return _in_order(records, source.columns)


def _cast(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(target):
        return column.cast(target)
    # Arrow casts text to a dictionary, but nothing else.
    encoded = column.cast(target.value_type).combine_chunks().dictionary_encode()
    indices = encoded.indices.cast(target.index_type)
    return pa.chunked_array(
        [pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=target.ordered)]
    )
