"""Opening a table: the engine for its source, and the roles of its columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reconpriv.engines.base import Engine
from reconpriv.engines.choice import open_engine
from reconpriv.engines.recode import Declared, recode
from reconpriv.errors import InputError, warn_caller
from reconpriv.messages.arguments import check_path, checked
from reconpriv.messages.redaction import shown_file
from reconpriv.messages.remedies import Control, Remedy, either
from reconpriv.schema import (
    MAX_UNDECLARED_DOMAIN,
    Schema,
    Value,
    check_domain,
    check_sensitive_kind,
    choose_columns,
    read_domain,
    require_columns,
    settle_domain,
)
from reconpriv.sources.formats import format_of
from reconpriv.table import Table
from reconpriv.writing.marker import is_release

MISSING = ("refuse", "drop", "value")
LABELS = ("describe", "apply")


@checked
def read(
    source: Any,
    *,
    sensitive: str,
    public: Sequence[str] | str | None = None,
    drop: Sequence[str] | str | None = (),
    domain: Sequence[Value] | str | os.PathLike[str] | None = None,
    missing: str = "refuse",
    sql: str | None = None,
    table: str | None = None,
    threads: int | None = None,
    memory: str | None = None,
    engine: str | None = None,
    master: str | None = None,
    labels: str = "describe",
    bin: Mapping[str, Any] | None = None,
    group: Mapping[str, Any] | None = None,
) -> Table:
    """Open a table and give its columns their roles.

    ``source`` is a path (Parquet, CSV, JSON lines, Arrow, SPSS, Stata, SAS, Excel; a folder or glob
    of Parquet; ``-`` for CSV on standard input), a list of paths, a database (``postgresql://…``, a
    SQLite or DuckDB file), or a pandas, Polars, PyArrow, DuckDB or Spark table. ``table`` names a
    table of a database or a sheet of a spreadsheet. By default every column but the sensitive one
    is public. ``missing`` says what to do with records that lack the sensitive value: refuse, drop
    them, or make missing a value of the domain. ``engine`` is duckdb (one machine) or spark, which
    takes the session that is active or starts one at ``master``. With ``labels="apply"`` the value
    labels of an SPSS or Stata file take the place of its codes; otherwise they describe them in the
    release.

    ``bin`` publishes bins in place of numbers: ``{"age": 10}`` is a width, ``{"age": [0, 18, 65]}``
    are borders, ``{"age": Quantiles(5)}`` takes borders from the data, which are then published.
    ``group`` publishes groups in place of values: a dictionary of value: group (``"*"`` stands for
    every other value), a CSV file of value,group, or (file, level) of a hierarchy. A recoded column
    is text, and its labels are in the order of the bins, or in that in which the groups appear.
    """
    public = [public] if isinstance(public, str) else None if public is None else list(public)
    drop = [drop] if isinstance(drop, str) else list(drop or ())
    if missing not in MISSING:
        raise InputError(
            f"There is no treatment of missing values called {missing!r}.",
            hint=f"Choose one of: {', '.join(MISSING)}.",
        )
    if labels not in LABELS:
        raise InputError(
            f"There is no treatment of labels called {labels!r}.",
            hint=f"Choose one of: {', '.join(LABELS)}.",
        )
    for path in source if isinstance(source, list | tuple) else [source]:
        check_path("source", path)
    _refuse_release(source)
    settings = {"sql": sql, "table": table, "threads": threads, "memory": memory, "labels": labels}
    opened = open_engine(source, engine, master=master, **settings)
    try:
        declared = Declared.of(bin or {}, group or {})
        schema, notes = _settle_schema(opened, sensitive, public, drop, domain, missing, declared)
        notes += _empty_columns(opened, schema) if _is_spreadsheet(source) else ()
        notes += _single_precision(opened, schema)
    except BaseException:
        opened.close()
        raise
    for note in notes:
        warn_caller(note)
    return Table(opened, schema, drop_missing=missing == "drop", notes=notes)


def _refuse_release(source: Any) -> None:
    """Refuse the folder of a release: its values are randomised, and its files are no one table."""
    if isinstance(source, str | os.PathLike) and is_release(Path(source)):
        raise InputError(
            f"{shown_file(os.fspath(source))!r} is a release: its values are randomised already.",
            hint="Give the table that it was made from.",
        )


def _is_spreadsheet(source: Any) -> bool:
    found = format_of(os.fspath(source)) if isinstance(source, str | os.PathLike) else None
    return found is not None and found.has_sheets


def _empty_columns(engine: Engine, schema: Schema) -> tuple[str, ...]:
    """A note for each public column without values: its formulas may never have been computed."""
    return tuple(
        f"Public column {column.name!r} has no value in any record. If it holds formulas, open the"
        " file in a spreadsheet program and save it again, which stores their results."
        for column in schema.public
        if set(engine.value_counts(column, 2)) == {None}
    )


def _single_precision(engine: Engine, schema: Schema) -> tuple[str, ...]:
    """A note for each column of 32-bit numbers that read differently as 64-bit ones."""
    return tuple(
        f"Column {name!r} holds single-precision numbers. They count as the double-precision"
        " numbers that equal them, so that 0.7 counts as 0.699999988: conditions and bins with a"
        " border there may leave it out. Store the column in double precision to avoid this."
        for name in engine.single_precision([column.name for column in schema.columns])
    )


def _settle_schema(
    engine: Engine,
    sensitive: str,
    public: Sequence[str] | None,
    drop: Sequence[str],
    domain: Sequence[Value] | str | os.PathLike[str] | None,
    missing: str,
    recoded: Declared,
) -> tuple[Schema, tuple[str, ...]]:
    publics, column = choose_columns(engine.columns(), sensitive, public, drop)
    require_columns(engine.columns(), list(recoded.by_column), "binned or grouped")
    engine.expect_columns([kept.name for kept in (*publics, column)])
    # The fetched values may say more about a column's kind than its declaration did.
    publics, column = choose_columns(engine.columns(), sensitive, [kept.name for kept in publics])
    present = column if missing == "drop" else None
    recodings, notes = recode(engine, (*publics, column), recoded, present)
    if recodings:
        kept_names = [kept.name for kept in publics]
        publics, column = choose_columns(engine.columns(), sensitive, kept_names)
    check_sensitive_kind(column)
    own = next((one for one in recodings if one.column == sensitive), None)
    if own is not None and domain is not None:
        raise InputError(
            f"The bins or groups of {sensitive!r} are its domain already.",
            hint=Remedy("leave {} out", Control.DOMAIN),
        )
    declared: Sequence[Value] | None = None
    if isinstance(domain, str | os.PathLike):
        declared = read_domain(Path(domain))
    elif domain is not None:
        declared = list(domain)  # a pandas column is neither true nor false
    # A column with more values than this is refused, so no more of them are fetched.
    limit = max(MAX_UNDECLARED_DOMAIN, len(declared or ())) + 2
    occurring = engine.value_counts(column, limit)
    if not occurring:
        raise InputError("The table is empty.", hint="There is nothing to audit or to publish.")
    absent = occurring.get(None, 0)
    if absent and missing == "refuse":
        raise InputError(
            f"The sensitive column {sensitive!r} is missing in some records.",
            hint=either(
                Remedy("leave those records out", Control.MISSING, "drop"),
                Remedy("make missing a value of the domain", Control.MISSING, "value"),
            ),
        )
    if missing == "drop":
        occurring.pop(None, None)
        if not occurring:
            raise InputError(f"The sensitive column {sensitive!r} is missing in every record.")
    if declared is not None and absent and missing == "value":
        declared = [*declared, None]
    if own is None:
        settled = settle_domain(column, occurring, declared)
    else:
        settled = (*own.labels, *([None] if absent and missing == "value" else []))
        check_domain(column, settled)
    return Schema(publics, column, settled, sum(occurring.values()), recodings), notes
