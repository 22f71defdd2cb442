"""Opening a table: the engine for its source, and the roles of its columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconpriv.columns.schema import (
    ALL,
    MAX_UNDECLARED_DOMAIN,
    ColumnRoles,
    Schema,
    Value,
    check_domain,
    check_sensitive_kind,
    choose_columns,
    choose_domain,
    read_domain,
    require_columns,
)
from reconpriv.engines.base import Engine
from reconpriv.engines.choice import open_engine
from reconpriv.engines.recode import Declared, recode
from reconpriv.errors import InputError, ReconprivError, RolesError, warn_caller
from reconpriv.messages.arguments import check_path, checked
from reconpriv.messages.redaction import shown_file
from reconpriv.messages.remedies import Control, Remedy, either
from reconpriv.proposals import Proposals, propose
from reconpriv.sources.databases.url import is_database
from reconpriv.sources.formats import format_of
from reconpriv.table import Table
from reconpriv.writing.marker import is_release

if TYPE_CHECKING:
    from reconpriv.release.release import Release

MISSING = ("refuse", "drop", "value")
LABELS = ("describe", "apply")
ROWS_PER_PERSON = ("refuse", "one")
_NOTHING = "There is nothing to audit or to publish."
_IN_MEMORY = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"))
_NAMED = 8  # columns without a role that a sentence names


@checked
def read(
    source: Any,
    *,
    sensitive: str,
    public: Sequence[str] | str | None = None,
    drop: Sequence[str] | str | None = (),
    person: str | None = None,
    rows_per_person: str = "refuse",
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
    table of a database or a sheet of a spreadsheet.

    Every column gets a role. ``public`` names the public columns, and all that are not named are
    left out; ``public="all"`` makes every other column public. Without ``public``, the table is
    refused with a proposal for each column. ``person`` names the column that says who a row is
    about: it is never published, and people with several rows are refused unless
    ``rows_per_person`` is ``"one"``, which keeps one row of each, chosen by the key.

    ``missing`` says what to do with records that lack the sensitive value: refuse, drop
    them, or make missing a value of the domain. ``engine`` is duckdb (one machine) or spark, which
    takes the session that is active or starts one at ``master``. With ``labels="apply"`` the value
    labels of an SPSS or Stata file take the place of its codes; otherwise they describe them in the
    release.

    ``bin`` publishes bins in place of numbers: ``{"age": 10}`` is a width, ``{"age": [0, 18, 65]}``
    are borders, ``{"age": [0, 18, 65, "top:99"]}`` also closes the last bin at the largest number
    there may be, and ``{"age": Quantiles(5)}`` takes borders from the data, which are then
    published. Dates go into bins by ``"month"``, ``"quarter"`` or ``"year"``.
    ``group`` publishes groups in place of values: a dictionary of value: group (``"*"`` stands for
    every other value), a CSV file of value,group, or (file, level) of a hierarchy. A recoded column
    is text, and its labels are in the order of the bins, or in that in which the groups appear.
    """
    if public is not None and public != ALL:
        public = [public] if isinstance(public, str) else list(public)
    drop = [drop] if isinstance(drop, str) else list(drop or ())
    for value, choices, what in (
        (rows_per_person, ROWS_PER_PERSON, "several rows per person"),
        (missing, MISSING, "missing values"),
        (labels, LABELS, "labels"),
    ):
        if value not in choices:
            raise InputError(
                f"There is no treatment of {what} called {value!r}.",
                hint=f"Choose one of: {', '.join(choices)}.",
            )
    for path in source if isinstance(source, list | tuple) else [source]:
        check_path("source", path)
    declared = Declared.of(bin or {}, group or {})
    wanted = _Wanted(
        sensitive, public, drop, person, rows_per_person, domain, missing=missing, recoded=declared
    )
    settings = {"sql": sql, "table": table, "threads": threads, "memory": memory, "labels": labels}
    return _read(source, wanted, engine, master, settings)


def read_as_published(
    source: Any,
    release: Release,
    *,
    person: str | None = None,
    rows_per_person: str = "refuse",
    engine: str | None = None,
    master: str | None = None,
    **settings: Any,
) -> Table:
    """Open the table that a release was made from, with the roles, domain and bins of the release.

    ``settings`` say how the source is read: sql, table, threads, memory and labels.
    """
    schema = release.description.schema
    sensitive, missing = schema.sensitive.name, None in schema.domain
    wanted = _Wanted(
        sensitive,
        [column.name for column in schema.public],
        (),
        person,
        rows_per_person,
        # The labels of a recoded column are its domain already.
        None if schema.recoding(sensitive) else [v for v in schema.domain if v is not None],
        missing="value" if missing else "drop",
        recoded=Declared({one.column: one for one in schema.recodings}),
    )
    return _read(source, wanted, engine, master, settings)


@dataclass(frozen=True)
class _Wanted:
    """What each column is to be, and what is to become of its values."""

    sensitive: str
    public: Sequence[str] | str | None
    drop: Sequence[str]
    person: str | None
    rows_per_person: str
    domain: Sequence[Value] | str | os.PathLike[str] | None
    missing: str
    recoded: Declared


def _read(
    source: Any, wanted: _Wanted, engine: str | None, master: str | None, settings: dict[str, Any]
) -> Table:
    """The table of a source as it is wanted."""
    opened = _open(source, engine, master, settings)
    try:
        everything = [column.name for column in opened.columns()]
        roles = _roles(opened, wanted)
        used = {column.name for column in roles.columns}
        left_out = tuple(name for name in everything if name not in used)
        schema, counts, dropped, notes = _schema(opened, roles, wanted)
        notes += _empty_columns(opened, schema) if _is_spreadsheet(source) else ()
        notes += _single_precision(opened, schema)
    except BaseException:
        opened.close()
        raise
    for note in notes:
        warn_caller(note)
    found = Table(opened, schema, dropped=dropped, notes=notes)
    found.left_out, found.source = left_out, source
    if engine in (None, "duckdb") and _can_be_read_again(source):
        found.count_values = partial(_count_values, source, settings)
    found.sensitive_counts = found.in_domain(counts)
    if wanted.rows_per_person == "one":
        try:
            found.keep_one_row_each()
        except BaseException:
            found.close()
            raise
    return found


@checked
def propose_roles(
    source: Any,
    *,
    sensitive: str | None = None,
    sql: str | None = None,
    table: str | None = None,
    threads: int | None = None,
    memory: str | None = None,
    engine: str | None = None,
    master: str | None = None,
    labels: str = "describe",
) -> Proposals:
    """Propose a role for every column of a table: public, dropped, or the person's number.

    The arguments are those of :func:`read`. With ``sensitive``, columns that give its value away
    are found, too. A proposal is a start: only you know what else is sensitive.
    """
    settings = {"sql": sql, "table": table, "threads": threads, "memory": memory, "labels": labels}
    opened = _open(source, engine, master, settings)
    try:
        names = [column.name for column in opened.columns()]
        if sensitive is not None:
            require_columns(opened.columns(), [sensitive], "sensitive")
        opened.expect_columns(names)
        chosen = next((one for one in opened.columns() if one.name == sensitive), None)
        return propose(opened, chosen)
    finally:
        opened.close()


def _open(source: Any, engine: str | None, master: str | None, settings: dict[str, Any]) -> Engine:
    """Open a source, unless it is a release: its values are randomised already."""
    if isinstance(source, str | os.PathLike) and is_release(Path(source)):
        raise InputError(
            f"{shown_file(os.fspath(source))!r} is a release: its values are randomised already.",
            hint="Give the table that it was made from.",
        )
    return open_engine(source, engine, master=master, **settings)


def _can_be_read_again(source: Any) -> bool:
    """True for a file and for a table in memory: streams are gone, and lazy tables take long.

    Of a database, nothing leaves but the cells that are published.
    """
    if isinstance(source, str | os.PathLike):
        return Path(source).is_file() and not is_database(source)
    kind = type(source)
    return (kind.__module__.partition(".")[0], kind.__name__) in _IN_MEMORY


def _count_values(source: Any, settings: dict[str, Any], name: str) -> tuple[int, int]:
    """How many values a column has that the open table does not hold, and how many records.

    None and none if that cannot be found out any more: nothing fails for want of a hint.
    """
    try:
        again = _open(source, None, None, settings)
        try:
            again.expect_columns([name])
            records = again.records()
            column = next(one for one in again.columns() if one.name == name)
            return again.distinct_in_time([column], records)[0], records
        finally:
            again.close()
    except ReconprivError:
        return 0, 0


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


def _roles(engine: Engine, wanted: _Wanted) -> ColumnRoles:
    """The role of every column; refuses a table with columns that have none."""
    available = engine.columns()
    sensitive, public, recoded = wanted.sensitive, wanted.public, wanted.recoded
    drop, person, missing = wanted.drop, wanted.person, wanted.missing
    named = [sensitive, *drop, *([] if person is None else [person])]
    # Once the public columns are known, all others are left out, or public.
    unnamed = [one for one in available if public is None and one.name not in named]
    # Names that do not exist, or twice, are wrong whatever the others become.
    roles = choose_columns(available, sensitive, () if public is None else public, drop, person)
    require_columns(available, list(recoded.by_column), "binned or grouped")
    if unnamed:
        engine.expect_columns([column.name for column in available])
        if not engine.records():
            raise InputError("The table is empty.", hint=_NOTHING)
        column = roles.among(engine.columns()).sensitive
        if sensitive in recoded.by_column:
            recode(engine, (column,), recoded.only(sensitive), column)
            column = roles.among(engine.columns()).sensitive
        names = [one.name for one in unnamed]
        proposals = propose(
            engine, column, drop_missing=missing == "drop", only=[*names, sensitive]
        )
        some = ", ".join(f"{name!r}" for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        verb = "column has" if len(names) == 1 else "columns have"
        raise RolesError(
            f"{len(names):,} {verb} no role yet: {some}{more}.",
            proposals,
            hint=Remedy("name the public columns", Control.PUBLIC),
        )
    engine.expect_columns([column.name for column in roles.columns])
    # The fetched values may say more about a column's kind than its declaration did.
    return roles.among(engine.columns())


def _schema(
    engine: Engine, roles: ColumnRoles, wanted: _Wanted
) -> tuple[Schema, dict[Value, int], int | None, tuple[str, ...]]:
    """The schema, how many records hold each sensitive value, how many have none, and notes."""
    sensitive, domain, missing = roles.sensitive.name, wanted.domain, wanted.missing
    recoded = wanted.recoded
    present = roles.sensitive if missing == "drop" else None
    recodings, notes = recode(engine, (*roles.public, roles.sensitive), recoded, present)
    roles = roles.among(engine.columns())
    column = roles.sensitive
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
        raise InputError("The table is empty.", hint=_NOTHING)
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
        values = choose_domain(column, occurring, declared)
    else:
        values = (*own.labels, *([None] if absent and missing == "value" else []))
        check_domain(column, values)
    records, person = sum(occurring.values()), roles.person
    schema = Schema(roles.public, column, values, records, recodings, person)
    return schema, occurring, absent if missing == "drop" else None, notes
