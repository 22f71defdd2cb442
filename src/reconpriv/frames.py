"""Audit and publish in one call; what goes in as a data frame comes out as one of the same kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reconpriv.core.audit_report import AuditReport
from reconpriv.core.single_records import K
from reconpriv.errors import InputError, OutputError, warn_caller
from reconpriv.messages.arguments import checked
from reconpriv.policy import Policy
from reconpriv.reading import read
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.load import load_records
from reconpriv.release.publication import no_folder
from reconpriv.release.release import Release
from reconpriv.schema import MAX_UNIQUE, Schema, Value
from reconpriv.sources.frame_types import (
    arrow_column,
    arrow_type,
    as_pandas,
    pandas_column,
    pandas_type,
    polars_type,
    unused_categories,
)
from reconpriv.sources.frames import may_be_table, not_a_table
from reconpriv.table import Table
from reconpriv.writing.folder import is_uri
from reconpriv.writing.scratch import temporary

if TYPE_CHECKING:
    from reconpriv.core.randomness import Key

_RELEASE = "release"
_RETURNS = ("frame", _RELEASE)
WITHOUT_MARGINS = (
    "A frame holds the published records alone: margins and the numbers of trials, which accurate"
    " counts and intervals need, are left out. To get them: publish(…, returns='release')."
)


@checked
def audit(
    source: Any,
    policy: Policy | str | None = None,
    *,
    sensitive: str,
    worst: int = 10,
    k: int = K,
    columns: bool | None = None,
    keep_identifier: Iterable[str] = (),
    keep_giveaway: Iterable[str] = (),
    max_unique: float = MAX_UNIQUE,
    **roles: Any,
) -> AuditReport:
    """Audit a table in one call; ``roles`` and further settings are those of :func:`read`.

    ``policy`` may be the name of a preset; without one it is the recommended policy.
    """
    with read(source, sensitive=sensitive, **roles) as table:
        return table.audit(
            policy,
            worst=worst,
            k=k,
            columns=columns,
            keep_identifier=keep_identifier,
            keep_giveaway=keep_giveaway,
            max_unique=max_unique,
        )


@checked
def publish(
    source: Any,
    policy: Policy | str | None = None,
    *,
    sensitive: str,
    out: str | os.PathLike[str] | None = None,
    returns: str = "frame",
    key: Key | bytes | str | os.PathLike[str] | None = None,
    file_format: str = "parquet",
    overwrite: bool = False,
    keep_identifier: Iterable[str] = (),
    keep_giveaway: Iterable[str] = (),
    max_unique: float = MAX_UNIQUE,
    second_sample: bool = False,
    role_change: bool = False,
    **roles: Any,
) -> Any:
    """Publish a table in one call; ``roles`` and further settings are those of :func:`read`.

    ``policy`` may be the name of a preset; without one it is the recommended policy, fitted to the
    table. What is refused, and how to insist, is as in :meth:`Table.publish`.

    A pandas, Polars or Arrow table comes back as one of the same kind, with the types that its
    columns had, including categories: the published records, one row each, in canonical order; a
    recoded column comes back as text. A lazy Polars frame comes back lazy, an Arrow stream as a
    stream, a DuckDB relation as an Arrow table.

    Margins and the numbers of trials, which intervals need, have no place in a frame.
    ``returns="release"`` gives a release that has them, and is kept as long as the object is if no
    folder is named. With ``out`` the release folder is written, too. From a path, a database or
    Spark a release is what comes out.
    """
    given: dict[str, Any] = {
        "key": key,
        "file_format": file_format,
        "overwrite": overwrite,
        "keep_identifier": keep_identifier,
        "keep_giveaway": keep_giveaway,
        "max_unique": max_unique,
        "second_sample": second_sample,
        "role_change": role_change,
    }
    if returns not in _RETURNS:
        raise InputError(f"returns must be one of {', '.join(_RETURNS)}; got {returns!r}.")
    give_back = _kind_of(source)
    if give_back is not None and out is not None and is_uri(out):
        raise OutputError("The release of a frame goes into a folder on this machine.")
    if give_back is None and not may_be_table(source):
        raise not_a_table(source)
    if give_back is None or returns == _RELEASE:
        if out is None and returns != _RELEASE:
            raise no_folder("publish(source, sensitive=…, out='release')")
        with read(source, sensitive=sensitive, **roles) as table:
            return _publish(table, policy, out, **given)
    made: list[Any] = []
    notes: list[str] = []
    with read(source, sensitive=sensitive, **roles) as table:
        # A query makes its own columns and types.
        schema = table.schema if roles.get("sql") is None else None

        def convert(finished: Path) -> None:
            """Make the frame before the folder takes its place, so both exist or neither does."""
            made.append(give_back(source, load_records(ReleaseFolder.open(finished)), schema))
            notes.extend(unused_categories(made[0], table.schema))

        release = _publish(table, policy, out, also=convert, **given)
    if out is None and release.description.margins is not None:
        notes.append(WITHOUT_MARGINS)
    for note in notes:
        warn_caller(note)
    return made[0]


def _publish(
    table: Table, policy: Policy | str | None, out: str | os.PathLike[str] | None, **given: Any
) -> Release:
    """Publish into a folder, or into one that goes with the release; give its warnings."""
    kept = temporary("release") if out is None else None
    folder = out if kept is None else kept.path / "release"
    release = table.publish(policy, folder, **given)
    for note in release.warnings:
        if note not in table.warnings:  # already given
            warn_caller(note)
    return replace(release, kept=kept)


GiveBack = Callable[[Any, pa.Table, Schema | None], Any]


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


def _domain(schema: Schema, name: str) -> Sequence[Value]:
    """Values that a column may hold after publication although it did not before."""
    return schema.domain if name == schema.sensitive.name else ()


@contextmanager
def _fitting(name: str, *errors: type[Exception]) -> Iterator[None]:
    """Name the column whose type cannot hold what was published."""
    try:
        yield
    except (pa.ArrowException, TypeError, ValueError, OverflowError, *errors):
        raise InputError(
            f"The published values of column {name!r} do not fit the type that it has in the frame,"
            " so nothing was published.",
            hint="Give it a plain type first: text, 64-bit integers, dates or microseconds.",
        ) from None


def _check_missing(found: int, column: pa.ChunkedArray) -> None:
    """Refuse a value that would become missing because its type does not know it."""
    if found != column.null_count:
        raise ValueError


def _as_pandas(source: Any, records: pa.Table, schema: Schema | None) -> Any:
    import pandas  # noqa: PLC0415 - not a dependency; whoever has such a frame has it

    records = _in_order(records, list(source.columns))
    if schema is None:
        return as_pandas(records)
    columns = {}
    for name in records.column_names:
        with _fitting(name):
            column = records[name]
            if schema.recoding(name) is not None:
                columns[name] = pandas.Series(column.to_pandas())
                continue
            kind = pandas_type(source.dtypes[name], _domain(schema, name))
            columns[name] = pandas.Series(pandas_column(column, kind))
            _check_missing(int(columns[name].isna().sum()), column)
    return pandas.DataFrame(columns)


def _as_polars(source: Any, records: pa.Table, schema: Schema | None) -> Any:
    import polars  # noqa: PLC0415 - not a dependency; whoever has such a frame has it

    types = source.collect_schema()
    frame = polars.DataFrame(_in_order(records, types.names()))
    if schema is None:
        return frame
    columns = []
    for name in frame.columns:
        if schema.recoding(name) is not None:
            columns.append(frame[name])
            continue
        with _fitting(name, polars.exceptions.PolarsError):
            column = frame[name].cast(polars_type(types[name], _domain(schema, name)))
            _check_missing(column.null_count(), records[name])
            columns.append(column)
    return polars.DataFrame(columns)


def _as_lazy_polars(source: Any, records: pa.Table, schema: Schema | None) -> Any:
    return _as_polars(source, records, schema).lazy()


def _as_arrow(source: Any, records: pa.Table, schema: Schema | None) -> pa.Table:
    table = _in_order(records, source.schema.names)
    if schema is None:
        return table
    columns = []
    for name in table.column_names:
        if schema.recoding(name) is not None:
            columns.append(table[name])
            continue
        with _fitting(name):
            kind = arrow_type(source.schema.field(name).type, _domain(schema, name))
            columns.append(arrow_column(table[name], kind))
    return pa.table(columns, names=table.column_names)


def _as_stream(source: Any, records: pa.Table, schema: Schema | None) -> pa.RecordBatchReader:
    return _as_arrow(source, records, schema).to_reader()


def _as_arrow_of_relation(source: Any, records: pa.Table, _: Schema | None) -> pa.Table:
    return _in_order(records, source.columns)
