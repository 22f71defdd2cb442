"""Spark: counts, publishes and writes on many machines; only totals come back.

The same kernel runs in the workers on Arrow batches. Trials are keyed by cell, so neither the
partitioning nor a retried task changes a release: with the same key it equals the other engine's,
byte for byte.
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from reconpriv.cells.cell_batch import CellBatch, Encoded, whole_groups
from reconpriv.columns.recoding import Recoding
from reconpriv.columns.schema import Column, ColumnLabels, Kind, Schema, Value
from reconpriv.engines.base import Layout, Progress, T, Written, no_progress
from reconpriv.engines.recode_sql import NUMBER, RANKED, Dialect, label_of, listed, replaced, shares
from reconpriv.engines.spark.jobs import map_in_arrow, quote, spark_work
from reconpriv.engines.spark.output import struct, write_to_folder
from reconpriv.engines.spark.remote import remote_release, write_remote
from reconpriv.engines.spark.session import LEAVE_OUT, open_session, session_of
from reconpriv.engines.spark.tasks import (
    ChooseRows,
    MapGroups,
    PackBatches,
    PublishGroups,
    canonical_table,
    unpack_batch,
)
from reconpriv.engines.spark.views import check_path, read_path, select_from
from reconpriv.errors import InputError
from reconpriv.policy.protection import NO_COARSENING, Coarsening
from reconpriv.protect.coarsening import coarse_column, coarse_columns, pooled
from reconpriv.protect.row_choice import RowChoice
from reconpriv.protect.watched import PublishFunction
from reconpriv.sources.column_names import check_names
from reconpriv.sources.databases.url import is_database
from reconpriv.writing.marker import MANIFEST

_KINDS = {
    # What is not a number is missing, and + 0.0 makes -0.0 and 0.0 one value.
    "float": (Kind.NUMBER, "CASE WHEN isnan({0}) THEN NULL ELSE CAST({0} AS DOUBLE) + 0.0D END"),
    "double": (Kind.NUMBER, "CASE WHEN isnan({0}) THEN NULL ELSE {0} + 0.0D END"),
    "string": (Kind.STRING, "{0}"),
    "void": (Kind.STRING, "CAST({0} AS STRING)"),
    "boolean": (Kind.BOOLEAN, "{0}"),
    "date": (Kind.DATE, "{0}"),
    "timestamp": (Kind.DATETIME, "{0}"),
    "timestamp_ntz": (Kind.DATETIME, "{0}"),
    "bigint": (Kind.INTEGER, "{0}"),
    **dict.fromkeys(("tinyint", "smallint", "int"), (Kind.INTEGER, "CAST({0} AS BIGINT)")),
}


def _text(text: str) -> str:
    # What a backslash and a doubled quote mean depends on the session; bytes mean themselves.
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


# A session may have any time zone, and its casts follow it.
_DAY = (
    "CASE WHEN typeof({0}) = 'timestamp_ntz' THEN CAST({0} AS DATE)"
    " ELSE date_from_unix_date(CAST(floor(unix_seconds({0}) / 86400) AS INT)) END"
)
_DIALECT = Dialect("STRING", _text, _DAY)


def is_spark_frame(source: Any) -> bool:
    """Whether this is a Spark data frame, classic or Connect, without importing Spark."""
    return type(source).__module__.startswith("pyspark.sql.") and hasattr(source, "mapInArrow")


class SparkEngine:
    """The engine of one table in Spark; see :class:`reconpriv.engines.base.Engine`."""

    name = "spark"

    def __init__(
        self,
        source: Any,
        *,
        sql: str | None = None,
        master: str | None = None,
        threads: int | None = None,
        memory: str | None = None,
    ) -> None:
        """Open a Spark data frame in its own session, or a path in the active or a new one."""
        self._view: str | None = None
        if is_spark_frame(source):
            if any(setting is not None for setting in (sql, master, threads, memory)):
                raise InputError(
                    "A Spark data frame comes with its session; sql, master, threads and memory"
                    " cannot be set for it.",
                    hint="Use Spark's own calls on the data frame first.",
                )
            self.session = session_of(source)
            self._frame = source
        else:
            if not isinstance(source, str | os.PathLike):
                raise InputError(
                    f"Spark reads a path or a Spark data frame, not a {type(source).__name__}."
                )
            path = os.fspath(source)
            check_path(path)
            self.session = open_session(master, memory, threads)
            try:
                with spark_work(self.session, "reading the input", "reading"):
                    self._frame = read_path(self.session, path)
                if sql is not None:
                    with spark_work(self.session, "the SQL query", "reading"):
                        self._frame, self._view = select_from(self.session, self._frame, sql)
            except BaseException:
                self.close()
                raise
        try:
            check_names(self._frame.columns, "the Spark data frame")
            self._expressions = self._describe()
        except BaseException:
            self.close()
            raise

    def _describe(self) -> dict[Column, str]:
        expressions: dict[Column, str] = {}
        with spark_work(self.session, "reading the input", "reading"):
            for field in self._frame.schema.fields:
                kind, pattern = self._canonical(field)
                expressions[Column(field.name, kind)] = pattern.format(quote(field.name))
        return expressions

    def _canonical(self, field: Any) -> tuple[Kind, str]:
        name = field.dataType.simpleString()
        if name in _KINDS:
            return _KINDS[name]
        if name.startswith(("char(", "varchar(")):
            return Kind.STRING, "{0}"
        if name.startswith("time("):
            return Kind.TIME, "{0}"
        scale = re.fullmatch(r"decimal\(\d+,(\d+)\)", name)
        if scale and scale[1] == "0":
            column = quote(field.name)
            row = self._frame.selectExpr(
                f"count({column}) = count(try_cast({column} AS BIGINT)) AS fits"
            ).first()
            wide = (Kind.DECIMAL, "CAST({0} AS DECIMAL(38, 0))")
            return (Kind.INTEGER, "CAST({0} AS BIGINT)") if row.fits else wide
        return (Kind.DECIMAL, "{0}") if scale else (Kind.OTHER, "{0}")

    @property
    def labels(self) -> Mapping[str, ColumnLabels]:
        """Spark's tables have none."""
        return {}

    def expect_columns(self, names: Sequence[str]) -> None:
        """Nothing to do: Spark prunes columns by itself."""

    def single_precision(self, names: Sequence[str]) -> list[str]:
        """Which of these columns hold 32-bit numbers that read differently as 64-bit ones."""
        kinds = dict(self._frame.dtypes)
        single = [name for name in names if kinds.get(name) == "float"]
        if not single:
            return []
        differ = (
            f"bool_or(CAST(CAST({quote(n)} AS STRING) AS DOUBLE) <> CAST({quote(n)} AS DOUBLE))"
            f" AS c{i}"
            for i, n in enumerate(single)
        )
        with spark_work(self.session, "counting", "counting"):
            found = self._frame.selectExpr(*differ).toArrow().to_pylist()[0].values()
        return [name for name, other in zip(single, found, strict=True) if other]

    def columns(self) -> list[Column]:
        """The table's columns, in order."""
        return list(self._expressions)

    def records(self) -> int:
        """How many records there are."""
        with spark_work(self.session, "counting", "counting"):
            return int(self._frame.count())

    def value_counts(self, column: Column, at_most: int | None = None) -> dict[Value, int]:
        """The distinct values of a column with their counts, including None."""
        counted = self._frame.selectExpr(f"{self._expressions[column]} AS v").groupBy("v").count()
        if at_most is not None:
            counted = counted.limit(at_most)
        with spark_work(self.session, "counting", "counting"):
            table = canonical_table(counted.toArrow())
        return dict(zip(*(part.to_pylist() for part in table.columns), strict=True))

    def as_number(self, column: Column) -> Column | None:
        """Turn a column of texts into numbers if every text spells one; otherwise return None."""
        text = self._expressions[column]
        spelled = f"bool_and(regexp_like({text}, {_text(f'^{NUMBER}$')})) AS spelled"
        with spark_work(self.session, "counting", "counting"):
            if not self._frame.selectExpr(spelled).first().spelled:
                return None
        return self._replace(column, Kind.NUMBER, f"CAST({text} AS DOUBLE) + 0.0D")

    def _replace(self, column: Column, kind: Kind, expression: str) -> Column:
        """Replace a column's expression; the order of the columns stays the same."""
        self._expressions, new = replaced(self._expressions, column, kind, expression)
        return new

    def value_range(self, column: Column, present: Column | None) -> tuple[Value, Value] | None:
        """The lowest and the highest value among records in which ``present`` is not missing."""
        value = _DIALECT.ranged(self._expressions[column], column.kind)
        kept = self._frame.where(self._present(present))
        with spark_work(self.session, "counting", "counting"):
            low, high = kept.selectExpr(f"min({value}) AS low", f"max({value}) AS high").first()
        return None if low is None else (low, high)

    def quantiles(self, column: Column, parts: int, present: Column | None) -> list[Value]:
        """The lowest value, then the values below which 1/parts, 2/parts, … of the records lie."""
        kept = self._frame.where(f"{self._present(column)} AND {self._present(present)}")
        values = kept.selectExpr(f"{self._expressions[column]} AS v")
        counted = values.groupBy("v").count().withColumnRenamed("count", "n")
        with spark_work(self.session, "counting", "counting"):
            found = counted.selectExpr(*RANKED).selectExpr(*shares(parts)).first()
        return [one for one in found if one is not None]

    def _present(self, column: Column | None) -> str:
        return "true" if column is None else f"({self._expressions[column]}) IS NOT NULL"

    def texts(self, column: Column, recoding: Recoding, *, known: bool) -> list[str]:
        """The values that the groups list, as text, or the first one that none of them lists."""
        text, inside = listed(self._expressions[column], recoding, _DIALECT)
        chosen = self._frame.where(inside if known else f"NOT ({inside})")
        with spark_work(self.session, "counting", "counting"):
            rows = (
                chosen.selectExpr(f"{text} AS v" if known else f"min({text}) AS v")
                .distinct()
                .collect()
            )
        return [str(row.v) for row in rows if row.v is not None]

    def recode(self, column: Column, recoding: Recoding) -> None:
        """From now on the column holds the labels of the recoding."""
        label = label_of(self._expressions[column], column.kind, recoding, _DIALECT)
        self._replace(column, Kind.STRING, label)

    def distinct(
        self, columns: Sequence[Column], *, present: Column | None = None, rough: bool = False
    ) -> list[int]:
        """How many distinct values each column has, where ``present`` is not missing."""
        count = "approx_count_distinct({})" if rough else "count(DISTINCT {})"
        counts = [
            f"{count.format(self._expressions[column])} AS c{i}" for i, column in enumerate(columns)
        ]
        frame = self._frame.where(self._present(present))
        with spark_work(self.session, "counting", "counting"):
            return list(frame.selectExpr(*counts).first())

    def _cells(self, schema: Schema, drop_missing: bool) -> Any:
        """Every cell with its count, as c0, c1, …, n."""
        names = [f"c{i}" for i in range(len(schema.columns))]
        frame = self._frame
        if drop_missing:
            frame = frame.where(self._present(schema.sensitive))
        chosen = [
            f"{self._expressions[column]} AS {name}"
            for column, name in zip(schema.columns, names, strict=True)
        ]
        return frame.selectExpr(*chosen).groupBy(*names).count().withColumnRenamed("count", "n")

    def _whole_groups(self, schema: Schema, drop_missing: bool, coarsening: Coarsening) -> Any:
        """Cells with each protection group in one partition, sorted there: one shuffle by keys."""
        cells, keys = self._keyed_cells(schema, drop_missing, coarsening)
        together = cells.repartition(*keys) if keys else cells.repartition(1)
        names = [f"c{i}" for i in range(len(schema.columns))]
        order = list(dict.fromkeys([*keys, *names]))
        return together.sortWithinPartitions(*nulls_last(together, order)).select(*names, "n")

    def _keyed_cells(
        self, schema: Schema, drop_missing: bool, coarsening: Coarsening
    ) -> tuple[Any, list[str]]:
        """Every cell with its count, and the columns that tell protection groups apart."""
        cells, keys = self._cells(schema, drop_missing), []
        for i, column in enumerate(schema.public):
            if column.name not in coarsening.names:
                keys.append(f"c{i}")
                continue
            with spark_work(self.session, "counting", "counting"):
                values = canonical_table(cells.select(f"c{i}").distinct().toArrow()).column(0)
            labels = coarse_column(column, schema, coarsening, values.combine_chunks())
            if labels is not None:
                coded = self._coded(cells.schema[f"c{i}"], i, values, labels)
                cells = cells.join(coded, cells[f"c{i}"].eqNullSafe(coded[f"v{i}"]), "left")
                keys.append(f"k{i}")
        return cells, keys

    def _coded(self, field: Any, place: int, values: pa.ChunkedArray, labels: Encoded) -> Any:
        """The code of each value of a column as a small table that every machine gets."""
        kinds = struct({f"k{place}": "int"}, [type(field)(f"v{place}", field.dataType)])
        rows = list(zip(values.to_pylist(), labels.codes.tolist(), strict=True))
        return self.session.spark.createDataFrame(rows, kinds).hint("broadcast")

    def one_row_each(self, choose: RowChoice, *, drop_missing: bool) -> SparkEngine:
        """An engine over the chosen rows, which are chosen anew whenever they are counted."""
        cells = self._cells(choose.by_person, drop_missing)
        together = cells.repartition("c0")
        ordered = together.sortWithinPartitions(*nulls_last(together, together.columns[:-1]))
        named = (f"{self._expressions[c]} AS {quote(c.name)}" for c in choose.schema.columns)
        kinds = self._frame.selectExpr(*named).schema
        return SparkEngine(map_in_arrow(ordered, ChooseRows(choose), kinds))

    def batches(
        self,
        schema: Schema,
        *,
        drop_missing: bool,
        coarsening: Coarsening = NO_COARSENING,
        progress: Progress = no_progress,
    ) -> Iterator[CellBatch]:
        """Every micro group, in canonical order, streamed to this side part by part.

        Neither an audit nor a publication needs this; a file of all groups does.
        """
        cells, keys = self._keyed_cells(schema, drop_missing, coarsening)
        names = [f"c{i}" for i in range(len(schema.columns))]
        order = list(dict.fromkeys([*keys, *names]))
        ordered = cells.orderBy(*nulls_last(cells, order)).select(*names, "n")
        packed = map_in_arrow(ordered, PackBatches(), struct({"batch": "binary"}))
        with spark_work(self.session, "counting", "counting", progress):
            batches = (unpack_batch(bytes(row.batch)) for row in packed.toLocalIterator())
            for batch in whole_groups(batches, schema, coarse_columns(schema, coarsening)):
                yield pooled(batch, schema, coarsening)

    def map_groups(
        self,
        schema: Schema,
        work: Callable[[Iterator[CellBatch]], T],
        *,
        drop_missing: bool,
        coarsening: Coarsening = NO_COARSENING,
        progress: Progress = no_progress,
    ) -> list[T]:
        """Apply a function to the groups of each partition, on the workers."""
        groups = self._whole_groups(schema, drop_missing, coarsening)
        task = MapGroups(schema, coarsening, work)
        results = map_in_arrow(groups, task, struct({"result": "binary"}))
        with spark_work(self.session, "counting", "counting", progress):
            table = results.toArrow()
        return [pickle.loads(result) for result in table.column(0).to_pylist()]

    def write(
        self,
        schema: Schema,
        publish: PublishFunction,
        folder: Path,
        *,
        layout: Layout,
        drop_missing: bool,
        coarsening: Coarsening = NO_COARSENING,
        progress: Progress = no_progress,
    ) -> Written:
        """Publish every group and write the files on the workers, into a folder they share."""
        groups = self._whole_groups(schema, drop_missing, coarsening)
        task = PublishGroups(publish, schema, coarsening)
        return write_to_folder(self.session, groups, task, folder, layout, progress)

    def write_to_uri(
        self,
        schema: Schema,
        publish: PublishFunction,
        uri: str,
        *,
        layout: Layout,
        drop_missing: bool,
        overwrite: bool,
        manifest: Callable[[Written], str],
        beside: Mapping[str, bytes],
        coarsening: Coarsening = NO_COARSENING,
        progress: Progress = no_progress,
    ) -> Written:
        """Publish every group to any file system that Spark writes."""
        groups = self._whole_groups(schema, drop_missing, coarsening)
        task = PublishGroups(publish, schema, coarsening)
        with remote_release(self.session, uri, overwrite=overwrite) as folder:
            written = write_remote(self.session, groups, task, folder, layout, progress)
            for name, content in beside.items():
                folder.write_bytes(name, content)
            folder.write_bytes(MANIFEST, manifest(written).encode("utf-8"))
        return written

    def interrupt(self) -> None:
        """Stop the jobs that another thread waits for; that thread gets a KeyboardInterrupt."""
        self.session.interrupt()

    def close(self) -> None:
        """End the session if it was started here."""
        if self._view is not None:
            self.session.spark.catalog.dropTempView(self._view)
            self._view = None
        self.session.close()


def nulls_last(frame: Any, names: Sequence[str]) -> list[Any]:
    """Ascending order with missing values last, as everywhere here."""
    return [frame[name].asc_nulls_last() for name in names]


def open_table(source: Any, *, table: str | None, labels: str, **settings: Any) -> SparkEngine:
    """Open a source as :func:`reconpriv.read` describes it, unless Spark cannot read it."""
    if table is not None or is_database(source):
        raise InputError("Only DuckDB reads tables of a database.", hint=LEAVE_OUT)
    if labels == "apply":
        raise InputError("Only DuckDB reads files with value labels.", hint=LEAVE_OUT)
    return SparkEngine(source, **settings)
