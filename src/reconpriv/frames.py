"""Audit and publish in one call; what goes in as a data frame comes out as one of the same kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import pyarrow as pa

from reconpriv.auditing.audit_report import AuditReport
from reconpriv.columns.schema import Schema, Value
from reconpriv.errors import InputError, OutputError, warn_caller
from reconpriv.messages.arguments import checked
from reconpriv.policy.policy import Policy
from reconpriv.reading import read
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.load import load_records
from reconpriv.release.manifest import MARGINS
from reconpriv.release.publication import no_folder
from reconpriv.release.release import Release
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

_RELEASE = "release"
_RETURNS = ("frame", _RELEASE)
WITHOUT_MARGINS = (
    "A frame holds the published records alone: margins and the numbers of trials, which accurate"
    " counts and intervals need, are left out. To get them: publish(…, returns='release')."
)


@checked
def audit(
    source: Any, policy: Policy | str | None = None, *, sensitive: str, **settings: Any
) -> AuditReport:
    """Audit a table in one call; settings are those of :func:`read` and of :meth:`Table.audit`.

    ``policy`` may be the name of a preset; without one it is the recommended policy.
    """
    own, roles = _split(Table.audit, settings)
    with read(source, sensitive=sensitive, **roles) as table:
        return table.audit(policy, **own)


@checked
def publish(
    source: Any,
    policy: Policy | str | None = None,
    *,
    sensitive: str,
    out: str | os.PathLike[str] | None = None,
    returns: str = "frame",
    **settings: Any,
) -> Any:
    """Publish a table in one call; settings are those of :func:`read` and :meth:`Table.publish`.

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
    own, roles = _split(Table.publish, settings)
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
            return _publish(table, policy, out, **own)
    made: list[Any] = []
    notes: list[str] = []
    with read(source, sensitive=sensitive, **roles) as table:
        # A query makes its own columns and types.
        schema = table.schema if roles.get("sql") is None else None

        def convert(finished: Path) -> None:
            """Make the frame before the folder takes its place, so both exist or neither does."""
            made.append(give_back(source, load_records(ReleaseFolder.open(finished)), schema))
            notes.extend(unused_categories(made[0], table.schema))

        release = _publish(table, policy, out, also=convert, **own)
    if out is None and MARGINS in release.description.resources:
        notes.append(WITHOUT_MARGINS)
    for note in notes:
        warn_caller(note)
    return made[0]


def _split(
    method: Callable[..., Any], settings: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of a method of the table, and the others, which are those of ``read``."""
    own = {name: settings[name] for name in signature(method).parameters if name in settings}
    return own, {name: value for name, value in settings.items() if name not in own}


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
Convert = Callable[[str, pa.ChunkedArray, Sequence[Value]], tuple[Any, int]]
"""Turns a column into the type that it had, or a wider one that the domain fits.

It returns the column and how many of its values are missing.
"""


def _kind_of(source: Any) -> GiveBack | None:
    """What turns published records into a frame of the source's kind; None for a path or Spark."""
    package, name = type(source).__module__.split(".")[0].lstrip("_"), type(source).__name__
    return _GIVE_BACK.get(f"{package}.{name}", _GIVE_BACK.get(package))


def _in_order(records: pa.Table, names: Sequence[str]) -> pa.Table:
    """The columns in the order of these names, new ones last."""
    kept = [name for name in names if name in records.column_names]
    return records.select(kept + [name for name in records.column_names if name not in kept])


def _typed(
    records: pa.Table,
    schema: Schema,
    plain: Callable[[pa.ChunkedArray], Any],
    convert: Convert,
    *errors: type[Exception],
) -> dict[str, Any]:
    """The columns in the types of their frame, and recoded ones as they are, which is text."""
    columns = {}
    for name in records.column_names:
        # Values that the column may hold after publication although it did not before.
        domain = schema.domain if name == schema.sensitive.name else ()
        if schema.recoding(name) is not None:
            columns[name] = plain(records[name])
            continue
        try:
            columns[name], missing = convert(name, records[name], domain)
            if missing != records[name].null_count:
                raise ValueError  # a value that its type does not know
        except (pa.ArrowException, TypeError, ValueError, OverflowError, *errors):
            raise InputError(
                f"The published values of column {name!r} do not fit the type that it has in the"
                " frame, so nothing was published.",
                hint="Give it a plain type first: text, 64-bit integers, dates or microseconds.",
            ) from None
    return columns


def _as_pandas(source: Any, records: pa.Table, schema: Schema | None) -> Any:
    import pandas  # noqa: PLC0415 - not a dependency; whoever has such a frame has it

    def convert(name: str, column: pa.ChunkedArray, domain: Sequence[Value]) -> tuple[Any, int]:
        kind = pandas_type(source.dtypes[name], domain)
        made = pandas.Series(pandas_column(column, kind))
        return made, int(made.isna().sum())

    records = _in_order(records, list(source.columns))
    if schema is None:
        return as_pandas(records)
    return pandas.DataFrame(
        _typed(records, schema, lambda column: pandas.Series(column.to_pandas()), convert)
    )


def _as_polars(source: Any, records: pa.Table, schema: Schema | None) -> Any:
    import polars  # noqa: PLC0415 - not a dependency; whoever has such a frame has it

    def plain(column: pa.ChunkedArray) -> polars.Series:
        return polars.Series(column)

    def convert(name: str, column: pa.ChunkedArray, domain: Sequence[Value]) -> tuple[Any, int]:
        made = plain(column).cast(polars_type(types[name], domain))
        return made, made.null_count()

    types = source.collect_schema()
    records = _in_order(records, types.names())
    if schema is None:
        return polars.DataFrame(records)
    return polars.DataFrame(_typed(records, schema, plain, convert, polars.exceptions.PolarsError))


def _as_arrow(source: Any, records: pa.Table, schema: Schema | None) -> pa.Table:
    def convert(name: str, column: pa.ChunkedArray, domain: Sequence[Value]) -> tuple[Any, int]:
        kind = arrow_type(source.schema.field(name).type, domain)
        return arrow_column(column, kind), column.null_count

    records = _in_order(records, source.schema.names)
    return records if schema is None else pa.table(_typed(records, schema, lambda c: c, convert))


_GIVE_BACK: dict[str, GiveBack] = {
    "pandas": _as_pandas,
    "polars": _as_polars,
    "polars.LazyFrame": lambda *given: _as_polars(*given).lazy(),
    "pyarrow": _as_arrow,
    "pyarrow.RecordBatchReader": lambda *given: _as_arrow(*given).to_reader(),
    "duckdb": lambda relation, records, _: _in_order(records, relation.columns),
}
