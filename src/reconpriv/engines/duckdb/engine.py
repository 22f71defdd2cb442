"""DuckDB: counts cells on one machine, spilling to disk if memory is short."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from reconpriv.core.cells import CellBatch, outside_years, whole_groups
from reconpriv.core.row_choice import RowChoice
from reconpriv.engines.base import (
    Layout,
    Progress,
    PublishFunction,
    T,
    Written,
    check_threads,
    memory_bytes,
    no_progress,
)
from reconpriv.engines.duckdb.coded_cells import CodedCells, code_cells
from reconpriv.engines.duckdb.csv_summary import FACTS, summarise
from reconpriv.engines.duckdb.csv_texts import CsvTexts
from reconpriv.engines.duckdb.errors import QUERY, RESULT, Typed, clear_errors
from reconpriv.engines.duckdb.kinds import KINDS, NANOSECONDS, OUTSIDE_YEARS, WIDE
from reconpriv.engines.duckdb.literals import literal
from reconpriv.engines.duckdb.query_faults import JSON_ERRORS
from reconpriv.engines.duckdb.room import check_room
from reconpriv.engines.duckdb.unchanged_columns import carried_columns
from reconpriv.engines.duckdb.views import VIEW, open_source, reads_columns
from reconpriv.engines.polling import polling
from reconpriv.engines.recode_sql import NUMBER, RANKED, Dialect, label_of, listed, replaced, shares
from reconpriv.errors import InputError, OutputError
from reconpriv.messages.remedies import Control, Remedy, either
from reconpriv.recoding import Recoding
from reconpriv.schema import Column, ColumnLabels, Kind, Schema, Value
from reconpriv.schema import quote_identifier as quote
from reconpriv.sources.column_names import free_name
from reconpriv.sources.lazy import Countable, Interruptible, LazyTable, spool
from reconpriv.writing.scratch import Scratch, temporary

_NUMBERS = count()
_TABLE = "reconpriv_table"
_DIALECT = Dialect("VARCHAR", literal)
_COMMON = 4  # values of a column that a summary shows
# Columns counted or summarised in one statement: its time grows with the square of their number,
# and with thousands DuckDB runs out of stack.
_TOGETHER = 64
_ROUGHLY_TOGETHER = 1_000  # rough counts are cheap, and so is a statement of many
_BATCH = 1 << 17  # cells fetched at a time, at most
_LEAST_BATCH = 1 << 10
_KEEP = 8  # batches kept in memory, so an audit before a publication counts only once
_BYTES_PER_VALUE = 64  # what a value of a cell takes as it passes through the kernel
_BATCH_MEMORY = 1 << 28


class DuckDBEngine:
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
        self._kept: tuple[tuple[Schema, bool], list[CellBatch]] | None = None
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
            create = f"CREATE TEMP VIEW {_TABLE} AS "
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

    @property
    def _count(self) -> str:
        if self._count_column is None:
            return "count(*)"
        return f"sum({quote(self._count_column)})::BIGINT"

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
            self._fetch(opened.rows(opened.schema.names), opened.schema)

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
        if self._texts is None and not isinstance(self._lazy, Countable):
            assert self._lazy is not None
            self._fetch(self._lazy.rows(names), _part(self._lazy.schema, names))
            return
        self._count_column = free_name("count", names)
        self._counted = True
        if self._texts is not None:
            self._view(self._texts.cells(self._connection, names, self._count_column))
        else:
            schema = _part(self._lazy.schema, names)
            schema = schema.append(pa.field(self._count_column, pa.int64()))
            self._fetch(self._lazy.cells(names, self._count_column), schema)

    def _check_nanoseconds(self, names: Sequence[str]) -> None:
        """Refuse what microseconds cannot tell apart, rather than round it."""
        relation = self._connection.sql(f"FROM {_TABLE}")
        for name, kind in zip(relation.columns, map(str, relation.types), strict=True):
            if name not in names or kind not in NANOSECONDS:
                continue
            column, coarse = quote(name), NANOSECONDS[kind]
            with clear_errors(self._what):
                finer = self._connection.execute(
                    f"SELECT count(*) FROM {_TABLE} WHERE {column}::{coarse}::{kind} <> {column}"
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
            self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {_TABLE} AS FROM {VIEW}")
            self._expressions = self._describe()

    def _describe(self) -> dict[Column, str]:
        """Each column with the expression that gives its canonical type."""
        relation = self._connection.sql(f"FROM {_TABLE}")
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
                f" FROM {_TABLE} WHERE {column} IS NOT NULL"
            ).fetchall()
            return (
                (Kind.INTEGER, "{}::BIGINT") if fits[0][0] else (Kind.DECIMAL, "{}::DECIMAL(38, 0)")
            )
        if scale:
            return Kind.DECIMAL, "{}"
        return Kind.OTHER, "{}"

    def single_precision(self, names: Sequence[str]) -> list[str]:
        """Which of these columns hold 32-bit numbers that read differently as 64-bit ones."""
        relation = self._connection.sql(f"FROM {_TABLE}")
        kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
        single = [name for name in names if kinds.get(name) == "FLOAT"]
        if not single:
            return []
        differ = (f"bool_or({quote(n)}::VARCHAR::DOUBLE <> {quote(n)}::DOUBLE)" for n in single)
        with clear_errors(self._what):
            query = f"SELECT {', '.join(differ)} FROM {_TABLE}"
            found = self._connection.execute(query).fetchall()[0]
        return [name for name, other in zip(single, found, strict=True) if other]

    def columns(self) -> list[Column]:
        """The table's columns, in order."""
        return list(self._expressions)

    def records(self) -> int:
        """How many records there are."""
        with clear_errors(self._what):
            found = self._connection.execute(f"SELECT {self._count} FROM {_TABLE}").fetchall()
        return int(found[0][0] or 0)

    def value_counts(self, column: Column, at_most: int | None = None) -> dict[Value, int]:
        """The distinct values of a column with their counts, including None."""
        outside = OUTSIDE_YEARS if column.kind is Kind.DATE else "false"
        query = (
            f"SELECT {self._expressions[column]} AS v, {self._count}, {outside} FROM {_TABLE}"
            " GROUP BY ALL"
        )
        if at_most is not None:
            query += f" LIMIT {at_most}"
        with clear_errors(self._what):
            found = self._connection.execute(query).fetchall()
        if any(strange for _, _, strange in found):
            raise outside_years(column.name)
        return {value: count for value, count, _ in found}

    def as_number(self, column: Column) -> Column | None:
        """Turn a column of texts into numbers if every text spells one; otherwise return None."""
        text = self._expressions[column]
        query = f"SELECT bool_and(regexp_full_match({text}, {literal(NUMBER)})) FROM {_TABLE}"
        with clear_errors(self._what):
            if not self._connection.execute(query).fetchall()[0][0]:
                return None
        return self._replace(column, Kind.NUMBER, f"CAST({text} AS DOUBLE) + 0.0")

    def _replace(self, column: Column, kind: Kind, expression: str) -> Column:
        """Replace a column's expression; the order of the columns stays the same."""
        self._expressions, new = replaced(self._expressions, column, kind, expression)
        return new

    def value_range(self, column: Column, present: Column | None) -> tuple[Value, Value] | None:
        """The lowest and the highest value among records in which ``present`` is not missing."""
        value = _DIALECT.ranged(self._expressions[column], column.kind)
        query = f"SELECT min({value}), max({value}) FROM {_TABLE} WHERE {self._present(present)}"
        with clear_errors(self._what):
            low, high = self._connection.execute(query).fetchall()[0]
        return None if low is None else (low, high)

    def quantiles(self, column: Column, parts: int, present: Column | None) -> list[Value]:
        """The lowest value, then the values below which 1/parts, 2/parts, … of the records lie."""
        counted = (
            f"SELECT {self._expressions[column]} AS v, {self._count} AS n FROM {_TABLE}"
            f" WHERE {self._present(column)} AND {self._present(present)} GROUP BY v"
        )
        ranked = f"SELECT {', '.join(RANKED)} FROM ({counted})"
        query = f"SELECT {', '.join(shares(parts))} FROM ({ranked})"
        with clear_errors(self._what):
            found = self._connection.execute(query).fetchall()[0]
        return [one for one in found if one is not None]

    def _present(self, column: Column | None) -> str:
        return "true" if column is None else f"({self._expressions[column]}) IS NOT NULL"

    def texts(self, column: Column, recoding: Recoding, *, known: bool) -> list[str]:
        """The values that the groups list, as text, or the first one that none of them lists."""
        text, inside = listed(self._expressions[column], recoding, _DIALECT)
        chosen = f"DISTINCT {text} FROM {_TABLE} WHERE {inside}"
        first = f"min({text}) FROM {_TABLE} WHERE NOT ({inside})"
        with clear_errors(self._what):
            rows = self._connection.execute(f"SELECT {chosen if known else first}").fetchall()
        return [str(row[0]) for row in rows if row[0] is not None]

    def recode(self, column: Column, recoding: Recoding) -> None:
        """From now on the column holds the labels of the recoding."""
        label = label_of(self._expressions[column], column.kind, recoding, _DIALECT)
        self._replace(column, Kind.STRING, label)

    def distinct(
        self, columns: Sequence[Column], *, present: Column | None = None, rough: bool = False
    ) -> list[int]:
        """How many distinct values each column has, where ``present`` is not missing."""
        count = "approx_count_distinct({})" if rough else "count(DISTINCT {})"
        together = _ROUGHLY_TOGETHER if rough else _TOGETHER
        found: list[int] = []
        with clear_errors(self._what):
            for first in range(0, len(columns), together):
                some = columns[first : first + together]
                counts = ", ".join(count.format(self._expressions[column]) for column in some)
                query = f"SELECT {counts} FROM {_TABLE} WHERE {self._present(present)}"
                found += self._connection.execute(query).fetchall()[0]
        return found

    def summaries(self) -> tuple[int, list[tuple[Column, dict[str, Any]]]]:
        """How many records there are; for each column its values, range and most common values."""
        if self._texts is not None and self._waiting:
            with clear_errors(self._what):
                return summarise(self._connection, self._texts, _COMMON)
        self._keep_all()
        columns = list(self._expressions.items())
        records, found = 0, []
        for i in range(0, len(columns), _TOGETHER):
            parts = ["count(*)"]
            for column, value in columns[i : i + _TOGETHER]:
                plain = column.kind is not Kind.OTHER
                parts += [f"count({value})", f"count(DISTINCT {value})" if plain else "0"]
                parts += [f"min({value})", f"max({value})"] if plain else ["NULL", "NULL"]
                parts.append(f"approx_top_k({value}, {_COMMON})" if plain else "[]")
            with clear_errors(self._what):
                query = f"SELECT {', '.join(parts)} FROM {_TABLE}"
                records, *facts = self._connection.execute(query).fetchall()[0]
            found += [facts[j : j + len(FACTS)] for j in range(0, len(facts), len(FACTS))]
        rows = zip(self._expressions, found, strict=True)
        return records, [(column, dict(zip(FACTS, row, strict=True))) for column, row in rows]

    def one_row_each(self, choose: RowChoice, *, drop_missing: bool) -> DuckDBEngine:
        """An engine over the chosen rows, which are kept in a file beside what is spilled."""
        groups = self.batches(choose.by_person, drop_missing=drop_missing)
        rows = choose(groups)
        first = next(rows)
        file = self._scratch_folder() / f"rows-{next(_NUMBERS)}.parquet"
        spool(chain([first], rows), first.schema, file, self._stopped)
        self._kept = None
        return DuckDBEngine(file, memory=self._memory)

    def interrupt(self) -> None:
        """Stop the query that another thread runs; that thread gets a KeyboardInterrupt."""
        self._stopped.set()
        if isinstance(self._lazy, Interruptible):
            self._lazy.interrupt()
        self._connection.interrupt()

    def batches(
        self, schema: Schema, *, drop_missing: bool, progress: Progress = no_progress
    ) -> Iterator[CellBatch]:
        """Every micro group, whole, in canonical order, in batches of bounded size."""
        if self._kept is not None and self._kept[0] == (schema, drop_missing):
            yield from self._kept[1]
            return
        kept: list[CellBatch] | None = []
        cells = 0
        for batch in self._count_groups(schema, drop_missing, progress):
            cells += batch.count.size
            if kept is not None:
                kept = [*kept, batch] if cells <= _KEEP * self._batch_cells(schema) else None
            yield batch
        if kept is not None:
            self._kept = ((schema, drop_missing), kept)

    def _count_groups(
        self, schema: Schema, drop_missing: bool, progress: Progress
    ) -> Iterator[CellBatch]:
        # Inside the query columns are c0, c1, …, so no column name can get in the way.
        columns = ", ".join(
            f"{self._expressions[column]} AS c{i}" for i, column in enumerate(schema.columns)
        )
        where = f"WHERE {self._present(schema.sensitive)}" if drop_missing else ""
        order = ", ".join(f"c{i} NULLS LAST" for i in range(len(schema.columns)))
        query = (
            f"SELECT {columns}, {self._count} AS n FROM {_TABLE} {where}"
            f" GROUP BY ALL ORDER BY {order}"
        )
        with clear_errors(self._what):
            coded = self._coded(schema, where)
            query = query if coded is None else coded.query
            with _watched(self._connection, "counting", progress):
                reader = self._connection.sql(query).to_arrow_reader(self._batch_cells(schema))
            yield from whole_groups(reader, schema) if coded is None else coded.groups(reader)

    def _coded(self, schema: Schema, where: str) -> CodedCells | None:
        if not self._may_code:
            return None
        weight = None if self._count_column is None else quote(self._count_column)
        return code_cells(self._connection, _TABLE, schema, self._expressions, where, weight)

    def _batch_cells(self, schema: Schema) -> int:
        """How many cells the kernel takes at a time: fewer with little memory or many columns."""
        memory = _BATCH_MEMORY if self._memory is None else memory_bytes(self._memory) // 8
        fitting = memory // (_BYTES_PER_VALUE * (len(schema.columns) + 1))
        return max(_LEAST_BATCH, min(_BATCH, fitting))

    def map_groups(
        self,
        schema: Schema,
        work: Callable[[Iterator[CellBatch]], T],
        *,
        drop_missing: bool,
        progress: Progress = no_progress,
    ) -> list[T]:
        """Apply a function to all groups at once."""
        return [work(self.batches(schema, drop_missing=drop_missing, progress=progress))]

    def write(
        self,
        schema: Schema,
        publish: PublishFunction,
        folder: Path,
        *,
        layout: Layout,
        drop_missing: bool,
        progress: Progress = no_progress,
    ) -> Written:
        """Publish every group and write data (and groups, if asked) into an existing folder."""
        from reconpriv.engines.writer import write_release_files  # noqa: PLC0415

        batches = self.batches(schema, drop_missing=drop_missing, progress=progress)
        return write_release_files(batches, schema, publish, folder, layout, progress)

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
            return self._connection.sql(f"SELECT {columns} FROM {_TABLE}").to_arrow_table()

    def to_reader(self) -> pa.RecordBatchReader:
        """Every column in its canonical type, as a stream."""
        self._keep_all()
        columns = ", ".join(f"{e} AS {quote(c.name)}" for c, e in self._expressions.items())
        with clear_errors(self._what):
            return self._connection.sql(f"SELECT {columns} FROM {_TABLE}").to_arrow_reader(_BATCH)

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


@contextmanager
def _watched(
    connection: duckdb.DuckDBPyConnection, stage: str, progress: Progress
) -> Iterator[None]:
    """Report the progress of a running query from a separate thread."""
    if progress is no_progress:
        yield
        return

    def ask() -> None:
        percent = connection.query_progress()
        if percent >= 0:
            progress(stage, percent / 100.0)

    with polling(ask, every=0.2):
        yield
