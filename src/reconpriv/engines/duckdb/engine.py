"""DuckDB: counts cells on one machine, spilling to disk if memory is short."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from reconpriv.columns.schema import Column, Kind
from reconpriv.columns.schema import quote_identifier as quote
from reconpriv.engines.base import check_threads
from reconpriv.engines.duckdb.csv_texts import CsvTexts
from reconpriv.engines.duckdb.dialect import NANOSECONDS, literal
from reconpriv.engines.duckdb.errors import QUERY, RESULT, Typed, clear_errors
from reconpriv.engines.duckdb.groups import BATCH, GroupCounts
from reconpriv.engines.duckdb.query_faults import JSON_ERRORS
from reconpriv.engines.duckdb.room import check_room
from reconpriv.engines.duckdb.unchanged_columns import carried_columns
from reconpriv.engines.duckdb.views import VIEW, open_source, reads_columns
from reconpriv.errors import InputError
from reconpriv.messages.remedies import Control, Remedy
from reconpriv.protect.group_by import GroupBy
from reconpriv.protect.row_choice import RowChoice
from reconpriv.sources.column_names import free_name
from reconpriv.sources.lazy import LazyTable, spool
from reconpriv.writing.scratch import Scratch, temporary

_COMMON = 60  # values of a column that a summary has
_FACTS = ("filled", "distinct", "low", "high", "common")


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
        self._waiting = False  # whether the records of a lazy table have yet to be fetched
        self._counted = False  # whether only cells were fetched, with a column of our own to count
        self._stopped = threading.Event()
        # Raw data may be spilled there, so it is removed even if nobody closes the table.
        self._scratch: Scratch | None = None
        self._kept = None
        self._connection = duckdb.connect(
            config={"autoinstall_known_extensions": "false", **JSON_ERRORS}
        )
        try:
            with clear_errors(self._what):
                self._configure(threads, memory)
                self._lazy = open_source(
                    self._connection, source, self._scratch_folder, columns, table, labels
                )
                if self._lazy is not None:
                    # All records, if a query asks for them; otherwise only the columns, for now.
                    self._connection.register(VIEW, self._lazy.schema.empty_table())
                    self._waiting = sql is None and count_column is None
                    if not self._waiting:
                        self._fetch(self._lazy.schema.names)
            with self._query_errors(sql):
                query = f"FROM {VIEW}" if sql is None else _single_select(self._connection, sql)
            create = f"CREATE TEMP VIEW {self.table} AS "
            with self._query_errors(sql, len(create) - _bytes_before(query, sql or query)):
                self._connection.execute(create + query)
                if self._lazy is not None and self._lazy.labels:
                    said, names = self._lazy.labels, self._lazy.schema.names
                    kept = carried_columns(self._connection, query, names)
                    self.labels = {name: said[old] for name, old in kept.items() if old in said}
            if sql is not None:
                self._what = RESULT
            with clear_errors(self._what):
                self._describe_table()
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

    def _fetch(self, names: Sequence[str], count: str | None = None) -> None:
        """Make these columns of the lazy table the view, or their cells with that count."""
        assert self._lazy is not None
        if isinstance(self._lazy, CsvTexts):
            query = self._lazy.query(self._connection, names, count)
        else:
            fields = [self._lazy.schema.field(name) for name in names]
            fields += [] if count is None else [pa.field(count, pa.int64())]
            file = self._scratch_folder() / "fetched.parquet"
            spool(self._lazy.fetch(names, count), pa.schema(fields), file, self._stopped)
            query = f"FROM read_parquet({literal(str(file))})"
        self._connection.execute(f"DROP VIEW IF EXISTS {VIEW}")
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS {query}")

    def expect_columns(self, names: Sequence[str]) -> None:
        """Fetch these columns of a lazy table: only its cells, if it can count."""
        if self._waiting and self._lazy is not None:
            if self._lazy.can_count:
                self._count_column, self._counted = free_name("count", names), True
            self._refresh(names)
        self._check_nanoseconds(names)

    def _keep_all(self) -> None:
        """Fetch every record of a lazy table."""
        if self._waiting and self._lazy is not None:
            self._refresh(self._lazy.schema.names)

    def _refresh(self, names: Sequence[str]) -> None:
        """Describe the table anew once its records have come."""
        with clear_errors(self._what):
            self._fetch(names, self._count_column)
            self._waiting = False
            self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {self.table} AS FROM {VIEW}")
            self._describe_table()

    def _check_nanoseconds(self, names: Sequence[str]) -> None:
        """Refuse what microseconds cannot tell apart, rather than round it."""
        relation = self._connection.sql(f"FROM {self.table}")
        for name, kind in zip(relation.columns, map(str, relation.types), strict=True):
            if name not in names or kind not in NANOSECONDS:
                continue
            column, coarse = quote(name), NANOSECONDS[kind]
            differs = f"{column}::{coarse}::{kind} <> {column}"
            if self._rows(f"SELECT count(*) FROM {self.table} WHERE {differs}")[0][0]:
                raise InputError(
                    f"Column {name!r} holds parts of a microsecond, which a release cannot hold.",
                    hint=Remedy(
                        "round them",
                        Control.SQL,
                        f"SELECT * REPLACE ({column}::{coarse} AS {column}) FROM input",
                    ),
                )

    def _describe_table(self) -> None:
        relation = self._connection.sql(f"FROM {self.table}")
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        if self._counted:
            types.pop(str(self._count_column))
        self._describe(types)
        if any(column.kind is Kind.NUMBER for column in self._expressions):
            # Parquet's statistics leave NaN out, so DuckDB would fold isnan to false.
            self._connection.execute("SET disabled_optimizers = 'statistics_propagation'")

    def one_row_each(self, choose: RowChoice, *, drop_missing: bool) -> DuckDBEngine:
        """An engine over the chosen rows, which are kept in a file beside what is spilled."""
        groups = self.batches(GroupBy(choose.by_person, drop_missing))
        file, _ = self._spooled(choose(groups), "rows")
        self._kept = None
        return DuckDBEngine(file, memory=self._memory)

    def interrupt(self) -> None:
        """Stop the query that another thread runs; that thread gets a KeyboardInterrupt."""
        self._stopped.set()
        if self._lazy is not None:
            self._lazy.interrupt()
        self._connection.interrupt()

    def summaries(self) -> tuple[int, list[tuple[Column, dict[str, Any]]]]:
        """How many records there are; for each column its values, range and most common values."""
        self._keep_all()
        found = []
        for column, value in self._expressions.items():
            counted = f"SELECT {value} AS v, count(*) AS n FROM {self.table} GROUP BY ALL"
            first = f"FROM counted WHERE v IS NOT NULL ORDER BY n DESC, v LIMIT {_COMMON}"
            facts = f"count(v), min(v), max(v), (SELECT list(v ORDER BY n DESC, v) FROM ({first}))"
            if column.kind is Kind.OTHER:
                counted = f"SELECT 0 AS v, count({value}) AS n FROM {self.table}"
                facts = "0, NULL, NULL, NULL"
            (row,) = self._rows(
                f"WITH counted AS MATERIALIZED ({counted}) SELECT"
                f" coalesce(sum(n) FILTER (WHERE v IS NOT NULL), 0)::BIGINT, {facts} FROM counted"
            )
            found.append((column, dict(zip(_FACTS, row, strict=True))))
        return self.records(), found

    def sample(self, records: int) -> list[tuple[Any, ...]]:
        """The first records; values that cannot be published are left out."""
        shown = (
            "NULL" if column.kind is Kind.OTHER else value
            for column, value in self._expressions.items()
        )
        return self._rows(f"SELECT {', '.join(shown)} FROM {self.table} LIMIT {records}")

    def _every_column(self) -> str:
        """The query for every record, each column in its canonical type."""
        self._keep_all()
        columns = ", ".join(f"{e} AS {quote(c.name)}" for c, e in self._expressions.items())
        return f"SELECT {columns} FROM {self.table}"

    def to_arrow(self) -> pa.Table:
        """Every column in its canonical type."""
        with clear_errors(self._what):
            return self._connection.sql(self._every_column()).to_arrow_table()

    def to_reader(self) -> pa.RecordBatchReader:
        """Every column in its canonical type, as a stream."""
        with clear_errors(self._what):
            return self._connection.sql(self._every_column()).to_arrow_reader(BATCH)

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
