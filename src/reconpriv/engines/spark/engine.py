"""Spark: counts, publishes and writes on many machines; only totals come back.

The same kernel runs in the workers on Arrow batches. Trials are keyed by cell, so neither the
partitioning nor a retried task changes a release: with the same key it equals the other engine's,
byte for byte.
"""

from __future__ import annotations

import itertools
import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.columns.schema import Kind
from reconpriv.engines.base import Engine, Layout, Progress, T, Written, no_progress
from reconpriv.engines.recode_sql import Dialect
from reconpriv.engines.spark.jobs import map_in_arrow, quote, spark_work
from reconpriv.engines.spark.output import struct, write_to_folder
from reconpriv.engines.spark.remote import remote_release, write_remote
from reconpriv.engines.spark.session import (
    LEAVE_OUT,
    open_session,
    session_of,
    without_pandas_warning,
)
from reconpriv.engines.spark.tasks import (
    ChooseRows,
    MapGroups,
    PackBatches,
    PublishGroups,
    canonical_table,
    unpack_batch,
)
from reconpriv.engines.spark.views import check_path, read_path
from reconpriv.errors import InputError
from reconpriv.protect.group_by import GroupBy
from reconpriv.protect.row_choice import RowChoice
from reconpriv.protect.watched import PublishFunction
from reconpriv.sources.column_names import check_names
from reconpriv.sources.databases.url import is_database
from reconpriv.writing.marker import MANIFEST

_KINDS = {
    # What is not a number is missing, and + 0.0 makes -0.0 and 0.0 one value.
    "float": (Kind.NUMBER, "CASE WHEN isnan({0}) THEN NULL ELSE CAST({0} AS DOUBLE) + 0.0D END"),
    "double": (Kind.NUMBER, "CASE WHEN isnan({0}) THEN NULL ELSE {0} + 0.0D END"),
    "void": (Kind.STRING, "CAST({0} AS STRING)"),
    **dict.fromkeys(("string", "char", "varchar"), (Kind.STRING, "{0}")),
    "boolean": (Kind.BOOLEAN, "{0}"),
    "date": (Kind.DATE, "{0}"),
    "time": (Kind.TIME, "{0}"),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), (Kind.DATETIME, "{0}")),
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
_numbers = itertools.count()


def is_spark_frame(source: Any) -> bool:
    """True if this is a Spark data frame, classic or Connect, without importing Spark."""
    return type(source).__module__.startswith("pyspark.sql.") and hasattr(source, "mapInArrow")


class SparkEngine(Engine):
    """The engine of one table in Spark."""

    name = "spark"
    dialect = Dialect(_text, quote, _KINDS, "regexp_like", _DAY)

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
        self._views: list[str] = []
        own = is_spark_frame(source)
        if own and any(setting is not None for setting in (sql, master, threads, memory)):
            raise InputError(
                "A Spark data frame comes with its session; sql, master, threads and memory"
                " cannot be set for it.",
                hint="Use Spark's own calls on the data frame first.",
            )
        if not own:
            if not isinstance(source, str | os.PathLike):
                raise InputError(
                    f"Spark reads a path or a Spark data frame, not a {type(source).__name__}."
                )
            check_path(os.fspath(source))
        self.session = session_of(source) if own else open_session(master, memory, threads)
        try:
            with spark_work(self.session, "reading the input", "reading"):
                frame = source if own else read_path(self.session, os.fspath(source))
            if sql is not None:
                with spark_work(self.session, "the SQL query", "reading"):
                    # In a subquery, nothing but a SELECT is possible.
                    frame = self._frame(
                        f"WITH input AS (SELECT * FROM {self._view(frame)})"
                        f" SELECT * FROM (\n{sql.strip().rstrip(';')}\n)"
                    )
                    # Over Connect, a query is checked only when it is used.
                    frame.schema  # noqa: B018
            check_names(frame.columns, "the Spark data frame")
            with spark_work(self.session, "reading the input", "reading"):
                self.table = self._view(frame)
            self._describe({f.name: f.dataType.simpleString() for f in frame.schema.fields})
        except BaseException:
            self.close()
            raise

    def _view(self, frame: Any) -> str:
        """The name of a frame in SQL, until this engine is closed."""
        self._views.append(f"reconpriv_{os.getpid()}_{next(_numbers)}")
        frame.createTempView(self._views[-1])
        return self._views[-1]

    def _frame(self, query: str) -> Any:
        return self.session.spark.sql(query)

    def _collected(self, query: str) -> pa.Table:
        with spark_work(self.session, "counting", "counting"):
            return canonical_table(self._frame(query).toArrow())

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        columns = (column.to_pylist() for column in self._collected(query).columns)
        return list(zip(*columns, strict=True))

    def _distinct_values(self, query: str) -> pa.Array:
        return self._collected(query).column(0).combine_chunks()

    def _known_codes(self, values: pa.Array, codes: NDArray[np.int32]) -> str:
        """A small table that every machine gets."""
        table = pa.table({"v": values, "code": codes})
        with without_pandas_warning():
            return self._view(self.session.spark.createDataFrame(table).hint("broadcast"))

    def expect_columns(self, names: Sequence[str]) -> None:
        """Nothing to do: Spark prunes columns by itself."""

    def _whole_groups(self, grouping: GroupBy) -> Any:
        """Cells with each protection group in one partition, sorted there: one shuffle by keys."""
        return self._frame(self._sorted_cells(grouping, "DISTRIBUTE BY {keys} SORT BY {order}"))

    def one_row_each(self, choose: RowChoice, *, drop_missing: bool) -> SparkEngine:
        """An engine over the chosen rows, which are chosen anew whenever they are counted."""
        # The person is the first column.
        together = "DISTRIBUTE BY c0 SORT BY {order}"
        by_person = GroupBy(choose.by_person, drop_missing)
        rows = self._frame(self._sorted_cells(by_person, together))
        named = (f"{self._expressions[c]} AS {quote(c.name)}" for c in choose.schema.columns)
        kinds = self._frame(f"SELECT {', '.join(named)} FROM {self.table}").schema
        return SparkEngine(map_in_arrow(rows, ChooseRows(choose), kinds))

    def batches(self, grouping: GroupBy, progress: Progress = no_progress) -> Iterator[CellBatch]:
        """Every micro group, in canonical order, streamed to this side part by part.

        Neither an audit nor a publication needs this; a file of all groups does.
        """
        with spark_work(self.session, "counting", "counting", progress):
            ordered = self._frame(self._sorted_cells(grouping, "ORDER BY {order}"))
            packed = map_in_arrow(ordered, PackBatches(), struct({"batch": "binary"}))
            cells = (unpack_batch(bytes(row.batch)) for row in packed.toLocalIterator())
            yield from grouping.batches(cells)

    def map_groups(
        self,
        grouping: GroupBy,
        work: Callable[[Iterator[CellBatch]], T],
        progress: Progress = no_progress,
    ) -> list[T]:
        """Apply a function to the groups of each partition, on the workers."""
        with spark_work(self.session, "counting", "counting", progress):
            task = MapGroups(grouping, work)
            results = map_in_arrow(self._whole_groups(grouping), task, struct({"result": "binary"}))
            table = results.toArrow()
        return [pickle.loads(result) for result in table.column(0).to_pylist()]

    def write(
        self,
        grouping: GroupBy,
        publish: PublishFunction,
        folder: Path,
        layout: Layout,
        progress: Progress = no_progress,
    ) -> Written:
        """Publish every group and write the files on the workers, into a folder they share."""
        task = PublishGroups(publish, grouping)
        groups = self._whole_groups(grouping)
        return write_to_folder(self.session, groups, task, folder, layout, progress)

    def write_to_uri(
        self,
        grouping: GroupBy,
        publish: PublishFunction,
        uri: str,
        layout: Layout,
        progress: Progress = no_progress,
        *,
        overwrite: bool,
        manifest: Callable[[Written], str],
        beside: Mapping[str, bytes],
    ) -> Written:
        """Publish every group to any file system that Spark writes, with small files beside."""
        task = PublishGroups(publish, grouping)
        groups = self._whole_groups(grouping)
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
        """Forget the views, and end the session if it was started here."""
        while self._views:
            with suppress(Exception):
                self.session.spark.catalog.dropTempView(self._views.pop())
        self.session.close()


def open_table(source: Any, *, table: str | None, labels: str, **settings: Any) -> SparkEngine:
    """Open a source as :func:`reconpriv.read` describes it, unless Spark cannot read it."""
    if table is not None or is_database(source):
        raise InputError("Only DuckDB reads tables of a database.", hint=LEAVE_OUT)
    if labels == "apply":
        raise InputError("Only DuckDB reads files with value labels.", hint=LEAVE_OUT)
    return SparkEngine(source, **settings)
