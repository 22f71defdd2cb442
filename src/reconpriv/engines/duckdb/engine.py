"""DuckDB: counts cells on one machine, spilling to disk if memory is short."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.columns.schema import Column, ColumnLabels, Kind, Schema
from reconpriv.columns.schema import quote_identifier as quote
from reconpriv.engines.base import Written, check_threads
from reconpriv.engines.duckdb.columns import TABLE
from reconpriv.engines.duckdb.csv_texts import CsvTexts
from reconpriv.engines.duckdb.errors import QUERY, RESULT, Typed, clear_errors
from reconpriv.engines.duckdb.groups import BATCH, NUMBERS, GroupCounts
from reconpriv.engines.duckdb.kinds import KINDS, NANOSECONDS, WIDE
from reconpriv.engines.duckdb.literals import literal
from reconpriv.engines.duckdb.query_faults import JSON_ERRORS
from reconpriv.engines.duckdb.room import check_room
from reconpriv.engines.duckdb.unchanged_columns import carried_columns
from reconpriv.engines.duckdb.views import VIEW, open_source, reads_columns
from reconpriv.errors import InputError, OutputError
from reconpriv.messages.remedies import Control, Remedy, either
from reconpriv.policy.protection import Coarsening
from reconpriv.protect.row_choice import RowChoice
from reconpriv.sources.column_names import free_name
from reconpriv.sources.lazy import LazyTable, spool
from reconpriv.writing.scratch import Scratch, temporary


class DuckDBEngine(GroupCounts):
    """The engine of one table; see :class:`reconpriv.engines.base.Engine`."""

    name = "duckdb"

    def __init__(
        self,
        source: Any,
        *,
        sql: str | None = None,
        table: str | None = None,
        threads: int | None = None,
        memory: str | None = None,
        columns: Sequence[Column] | None = None,
        count_column: str | None = None,
        labels: str = "describe",
    ) -> None:
        """Open the source; with ``sql``, the table is that query over ``input``.

        ``table`` names a table of a database or a sheet. ``columns`` declares what a text file
        holds, if that is known. With ``count_column`` a row stands for as many records as that
        column says. ``labels`` says whether value labels describe values or take their place.
        """
        check_room()
        files = isinstance(source, str | os.PathLike | list | tuple)
        self._what = "input" if files else "frame"
        self._count_column = count_column
        self._memory = memory
        # A query may be slow, and may give something else each time.
        self._may_code = sql is None and reads_columns(source, columns)
        self._lazy: LazyTable | None = None
        self._labels: Mapping[str, ColumnLabels] = {}
        self._texts: CsvTexts | None = None
        self._waiting = False  # whether the records of a lazy table or CSV have yet to be fetched
        self._counted = False  # whether only cells were fetched, with a column of our own to count
        self._stopped = threading.Event()
        # Raw data may be spilled there, so it is removed even if nobody closes the table.
        self._scratch: Scratch | None = None
        self._kept: tuple[tuple[Schema, bool, Coarsening], list[CellBatch]] | None = None
        self._connection = duckdb.connect(
            config={"autoinstall_known_extensions": "false", **JSON_ERRORS}
        )
        try:
            with clear_errors(self._what):
                self._configure(threads, memory)
                opened = open_source(
                    self._connection, source, self._scratch_folder, columns, table, labels
                )
                if isinstance(opened, CsvTexts):
                    self._texts = opened
                else:
                    self._lazy = opened
                if opened is not None:
                    self._open_lazy(opened, whole=sql is not None or count_column is not None)
            with self._query_errors(sql):
                query = f"FROM {VIEW}" if sql is None else _single_select(self._connection, sql)
            create = f"CREATE TEMP VIEW {TABLE} AS "
            with self._query_errors(sql, len(create) - _bytes_before(query, sql or query)):
                self._connection.execute(create + query)
                if self._lazy is not None and self._lazy.labels:
                    said, names = self._lazy.labels, self._lazy.schema.names
                    kept = carried_columns(self._connection, query, names)
                    self._labels = {name: said[old] for name, old in kept.items() if old in said}
            if sql is not None:
                self._what = RESULT
            with clear_errors(self._what):
                self._expressions = self._describe()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _query_errors(self, sql: str | None, begin: int = 0) -> Iterator[None]:
        """Explain errors of the user's query, which begins at this byte of what DuckDB is given."""
        if sql is None:
            with clear_errors(self._what):
                yield
            return
        columns = self._connection.sql(f"FROM {VIEW}").columns
        with clear_errors(QUERY, Typed(sql, begin, columns)):
            yield

    def _configure(self, threads: int | None, memory: str | None) -> None:
        settings = {"TimeZone": "UTC", "temp_directory": str(self._scratch_folder())}
        check_threads(threads)
        if threads is not None:
            settings["threads"] = str(threads)
        if memory is not None:
            settings["memory_limit"] = memory
        for name, value in settings.items():
            try:
                self._connection.execute(f"SET {name} = {literal(value)}")
            except duckdb.Error:
                raise InputError(
                    f"{value!r} is not a valid {name.replace('_', ' ')}.",
                    hint="Write memory as 2GB or 500MB." if name == "memory_limit" else "",
                ) from None
        # A notebook without ipywidgets refuses both; then there is no progress to ask for.
        with suppress(duckdb.InvalidInputException):
            self._connection.execute("SET enable_progress_bar = true")
            self._connection.execute("SET enable_progress_bar_print = false")

    def _scratch_folder(self) -> Path:
        if self._scratch is None:
            self._scratch = temporary()
        return self._scratch.path

    @property
    def labels(self) -> Mapping[str, ColumnLabels]:
        """What the source says about its columns and their values."""
        return self._labels

    def _open_lazy(self, opened: LazyTable | CsvTexts, *, whole: bool) -> None:
        """Fetch all records if a query asks for them; otherwise only the columns, for now."""
        if whole:
            self._fetch_all(opened)
        else:
            if isinstance(opened, CsvTexts):
                self._view(opened.no_records)
            else:
                self._connection.register(VIEW, opened.schema.empty_table())
            self._waiting = True

    def _fetch_all(self, opened: LazyTable | CsvTexts) -> None:
        if isinstance(opened, CsvTexts):
            self._view(opened.records(self._connection))
        else:
            self._fetch(opened.fetch(opened.schema.names), opened.schema)

    def _fetch(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        file = spool(batches, schema, self._scratch_folder() / "fetched.parquet", self._stopped)
        self._view(f"FROM read_parquet({literal(str(file))})")

    def _view(self, query: str) -> None:
        self._connection.execute(f"DROP VIEW IF EXISTS {VIEW}")
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS {query}")

    def expect_columns(self, names: Sequence[str]) -> None:
        """Fetch these columns of a CSV or of a table elsewhere: only its cells, if it can count."""
        if self._waiting:
            with self._refreshed():
                self._keep(names)
        self._check_nanoseconds(names)

    def _keep(self, names: Sequence[str]) -> None:
        if self._lazy is not None and not self._lazy.can_count:
            self._fetch(self._lazy.fetch(names), _part(self._lazy.schema, names))
            return
        self._count_column = free_name("count", names)
        self._counted = True
        if self._texts is not None:
            self._view(self._texts.cells(self._connection, names, self._count_column))
        elif self._lazy is not None:
            schema = _part(self._lazy.schema, names)
            schema = schema.append(pa.field(self._count_column, pa.int64()))
            self._fetch(self._lazy.fetch(names, self._count_column), schema)

    def _check_nanoseconds(self, names: Sequence[str]) -> None:
        """Refuse what microseconds cannot tell apart, rather than round it."""
        relation = self._connection.sql(f"FROM {TABLE}")
        for name, kind in zip(relation.columns, map(str, relation.types), strict=True):
            if name not in names or kind not in NANOSECONDS:
                continue
            column, coarse = quote(name), NANOSECONDS[kind]
            with clear_errors(self._what):
                finer = self._connection.execute(
                    f"SELECT count(*) FROM {TABLE} WHERE {column}::{coarse}::{kind} <> {column}"
                ).fetchall()
            if finer[0][0]:
                raise InputError(
                    f"Column {name!r} holds parts of a microsecond, which a release cannot hold.",
                    hint=Remedy(
                        "round them",
                        Control.SQL,
                        f"SELECT * REPLACE ({column}::{coarse} AS {column}) FROM input",
                    ),
                )

    def _keep_all(self) -> None:
        """Fetch every record of a CSV, or of a table that lies elsewhere."""
        opened = self._texts if self._texts is not None else self._lazy
        if opened is not None and self._waiting:
            with self._refreshed():
                self._fetch_all(opened)

    @contextmanager
    def _refreshed(self) -> Iterator[None]:
        """Describe the table anew once its records have come."""
        with clear_errors(self._what):
            yield
            self._waiting = False
            self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {TABLE} AS FROM {VIEW}")
            self._expressions = self._describe()

    def _describe(self) -> dict[Column, str]:
        """Each column with the expression that gives its canonical type."""
        relation = self._connection.sql(f"FROM {TABLE}")
        expressions: dict[Column, str] = {}
        for name, kind in zip(relation.columns, map(str, relation.types), strict=True):
            if self._counted and name == self._count_column:
                continue
            meaning, pattern = self._canonical(name, kind)
            expressions[Column(name, meaning)] = pattern.format(quote(name))
        if any(column.kind is Kind.NUMBER for column in expressions):
            # Parquet's statistics leave NaN out, so DuckDB would fold isnan to false.
            self._connection.execute("SET disabled_optimizers = 'statistics_propagation'")
        return expressions

    def _canonical(self, name: str, kind: str) -> tuple[Kind, str]:
        if kind in KINDS:
            return KINDS[kind]
        if kind.startswith("ENUM"):
            return Kind.STRING, "{}::VARCHAR"
        scale = re.fullmatch(r"DECIMAL\(\d+,(\d+)\)", kind)
        if kind in WIDE or (scale and scale[1] == "0"):
            column = quote(name)
            fits = self._connection.execute(
                f"SELECT count(*) = count(TRY_CAST({column} AS BIGINT))"
                f" FROM {TABLE} WHERE {column} IS NOT NULL"
            ).fetchall()
            return (
                (Kind.INTEGER, "{}::BIGINT") if fits[0][0] else (Kind.DECIMAL, "{}::DECIMAL(38, 0)")
            )
        if scale:
            return Kind.DECIMAL, "{}"
        return Kind.OTHER, "{}"

    def columns(self) -> list[Column]:
        """The table's columns, in order."""
        return list(self._expressions)

    def one_row_each(self, choose: RowChoice, *, drop_missing: bool) -> DuckDBEngine:
        """An engine over the chosen rows, which are kept in a file beside what is spilled."""
        groups = self.batches(choose.by_person, drop_missing=drop_missing)
        rows = choose(groups)
        first = next(rows)
        file = self._scratch_folder() / f"rows-{next(NUMBERS)}.parquet"
        spool(chain([first], rows), first.schema, file, self._stopped)
        self._kept = None
        return DuckDBEngine(file, memory=self._memory)

    def interrupt(self) -> None:
        """Stop the query that another thread runs; that thread gets a KeyboardInterrupt."""
        self._stopped.set()
        if self._lazy is not None:
            self._lazy.interrupt()
        self._connection.interrupt()

    def write_to_uri(self, *_: Any, **__: Any) -> Written:
        """Refused: this engine writes only to folders on its own machine."""
        raise OutputError(
            "Only Spark writes a release to a URI.",
            hint=either("give a folder on this machine", Remedy("use {}", Control.ENGINE, "spark")),
        )

    def to_arrow(self) -> pa.Table:
        """Every column in its canonical type."""
        self._keep_all()
        columns = ", ".join(f"{e} AS {quote(c.name)}" for c, e in self._expressions.items())
        with clear_errors(self._what):
            return self._connection.sql(f"SELECT {columns} FROM {TABLE}").to_arrow_table()

    def to_reader(self) -> pa.RecordBatchReader:
        """Every column in its canonical type, as a stream."""
        self._keep_all()
        columns = ", ".join(f"{e} AS {quote(c.name)}" for c, e in self._expressions.items())
        with clear_errors(self._what):
            return self._connection.sql(f"SELECT {columns} FROM {TABLE}").to_arrow_reader(BATCH)

    def close(self) -> None:
        """Close the connection and remove its temporary files."""
        self._kept = None
        try:
            if self._lazy is not None:
                self._lazy.close()
        finally:
            try:
                self._connection.close()
            finally:
                if self._scratch is not None:
                    self._scratch.close()


def open_table(source: Any, **settings: Any) -> DuckDBEngine:
    """Open a source as :func:`reconpriv.read` describes it."""
    return DuckDBEngine(source, **settings)


def read_all(source: Any, *, columns: Sequence[Column] | None = None) -> pa.Table:
    """A whole table in memory, with the usual types; for tables known to be small."""
    engine = DuckDBEngine(source, columns=columns)
    try:
        return engine.to_arrow()
    finally:
        engine.close()


def _part(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])


def _single_select(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise InputError(
            "The SQL query must be one SELECT over the table called input.",
            hint="For example 'SELECT * EXCLUDE (id) FROM input WHERE age >= 18'.",
        )
    return str(statements[0].query).strip().rstrip(";")


def _bytes_before(part: str, whole: str) -> int:
    return len(whole[: max(whole.find(part), 0)].encode())
