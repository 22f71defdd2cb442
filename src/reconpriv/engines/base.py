"""What an engine does for the rest of the package."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconpriv.cells.cell_batch import CellBatch, outside_years
from reconpriv.columns.recoding import Recoding
from reconpriv.columns.schema import Column, ColumnLabels, Kind, Value
from reconpriv.engines.recode_sql import Dialect, label_of
from reconpriv.errors import InputError, OutputError
from reconpriv.messages.remedies import Control, Remedy, either
from reconpriv.protect.coarsening import coarse_column
from reconpriv.protect.group_by import GroupBy
from reconpriv.protect.row_choice import RowChoice
from reconpriv.protect.watched import PublishFunction

# Columns counted or summarised in one statement: its time grows with the square of their number,
# and with thousands DuckDB runs out of stack. Rough counts are cheap.
_TOGETHER, _ROUGHLY_TOGETHER = 64, 1_000
_COUNTED_EXACTLY = 10_000_000  # records; the values of more are counted roughly
_WIDE = ("HUGEINT", "UHUGEINT", "UBIGINT")
# What both engines read as the same number; each also knows spellings of its own.
_NUMBER = r"^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$"
FORMATS = ("parquet", "csv", "cells")
ROWS_PER_FILE = 1 << 24

Progress = Callable[[str, float], None]
"""Called with a stage and the share of the records that is done, 0 to 1."""


T = TypeVar("T")


def no_progress(stage: str, done: float) -> None:
    """Say nothing."""


# More would only wait for each other, and a million of them stop the machine.
_THREADS = 1_024
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def memory_bytes(text: str) -> int:
    """A size such as 2GB or 500 MiB in bytes."""
    size = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kmgt]?)(i?)b?", text.strip().lower())
    if size is None:
        raise InputError(
            f"{text!r} is not a valid memory limit.", hint="Write memory as 2GB or 500MB."
        )
    unit = 1024 ** "kmgt".find(size[2]) * 1024 if size[3] and size[2] else _UNITS[size[2]]
    return int(float(size[1]) * unit)


def check_threads(threads: int | None) -> None:
    """Refuse a number of threads that no engine should start; None is the engine's own choice."""
    if threads is not None and not (isinstance(threads, int) and 1 <= threads <= _THREADS):
        raise InputError(f"The number of threads must be 1 to {_THREADS:,}; got {threads!r}.")


@dataclass(frozen=True)
class Layout:
    """How a release is stored: records or cells with counts, with or without the trials."""

    file_format: str
    cells: bool
    with_trials: bool
    rows_per_file: int = ROWS_PER_FILE

    @classmethod
    def of(cls, release_format: str, *, with_trials: bool) -> Layout:
        """The layout of one of ``FORMATS``; cells are written as Parquet."""
        cells = release_format == "cells"
        return cls("parquet" if cells else release_format, cells, with_trials)


@dataclass(frozen=True)
class WrittenFile:
    """A file of a release: its name, and what the manifest says about it."""

    name: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Written:
    """What a publication wrote, and totals that stay with the publisher.

    ``unique_records`` are alone in their group, ``few_records`` in one of fewer than five.
    """

    data: tuple[WrittenFile, ...]
    groups_files: tuple[WrittenFile, ...]
    records: int
    groups: int
    sampled_groups: int
    trials: int
    unattainable_groups: int
    unattainable_records: int
    unique_records: int
    few_records: int


class Engine(ABC):
    """Counts the cells of one table, streams its groups and writes releases.

    Each column is an SQL expression of its canonical type over the view ``table``. How rows are
    asked for is up to the engine, and so is everything that takes more than one query.
    """

    name: str
    dialect: Dialect
    table: str
    labels: Mapping[str, ColumnLabels] = MappingProxyType({})
    """What the source says about its columns and their values."""
    _count = "count(*)"
    _types: dict[str, str]
    _expressions: dict[Column, str]

    @abstractmethod
    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        """The few rows of a query."""

    @abstractmethod
    def _known_codes(self, values: pa.Array, codes: NDArray[np.int32]) -> str:
        """Make the codes of a column's values known; returns a table of ``v`` and ``code``."""

    @abstractmethod
    def _distinct_values(self, query: str) -> pa.Array:
        """The rows of a query with one column."""

    @abstractmethod
    def one_row_each(self, choose: RowChoice, *, drop_missing: bool) -> Engine:
        """An engine over the chosen rows, which needs this one to stay open."""

    @abstractmethod
    def batches(self, grouping: GroupBy, progress: Progress = no_progress) -> Iterator[CellBatch]:
        """Every micro group, in canonical order, in batches of bounded size.

        With a coarsening, in the order of protection groups, which are whole as well.
        """

    @abstractmethod
    def interrupt(self) -> None:
        """Stop what another thread is doing with this engine; it gets a KeyboardInterrupt."""

    @abstractmethod
    def close(self) -> None:
        """Close connections and remove temporary files."""

    def _describe(self, types: Mapping[str, str]) -> None:
        """Find the expression that gives each column its canonical type."""
        self._types, self._expressions = dict(types), {}
        for name, kind in types.items():
            meaning, pattern = self._canonical(name, kind)
            self._expressions[Column(name, meaning)] = pattern.format(self.dialect.quote(name))

    def _canonical(self, name: str, kind: str) -> tuple[Kind, str]:
        known = self.dialect.kinds.get(kind.partition("(")[0])
        if known is not None:
            return known
        scale = re.fullmatch(r"DECIMAL\(\d+,(\d+)\)", kind, re.IGNORECASE)
        if scale is None and kind not in _WIDE:
            return Kind.OTHER, "{}"
        if scale is not None and scale[1] != "0":
            return Kind.DECIMAL, "{}"
        column = self.dialect.quote(name)
        fits = f"count({column}) = count(TRY_CAST({column} AS BIGINT))"
        if self._rows(f"SELECT {fits} FROM {self.table}")[0][0]:
            return Kind.INTEGER, "CAST({} AS BIGINT)"
        return Kind.DECIMAL, "CAST({} AS DECIMAL(38, 0))"

    def _present(self, column: Column | None) -> str:
        return "true" if column is None else f"({self._expressions[column]}) IS NOT NULL"

    def _replace(self, column: Column, kind: Kind, expression: str) -> Column:
        """Replace a column's expression; the order of the columns stays the same."""
        new = Column(column.name, kind)
        self._expressions = {
            new if one == column else one: expression if one == column else old
            for one, old in self._expressions.items()
        }
        return new

    def columns(self) -> list[Column]:
        """The table's columns, in order."""
        return list(self._expressions)

    @abstractmethod
    def expect_columns(self, names: Sequence[str]) -> None:
        """Take note, before anything is counted, of the columns that will be asked for."""

    def single_precision(self, names: Sequence[str]) -> list[str]:
        """Which of these columns hold 32-bit numbers that read differently as 64-bit ones."""
        single = [name for name in names if self._types.get(name, "").upper() == "FLOAT"]
        if not single:
            return []
        differ = ", ".join(
            f"bool_or(CAST(CAST({column} AS STRING) AS DOUBLE) <> CAST({column} AS DOUBLE))"
            for column in map(self.dialect.quote, single)
        )
        (found,) = self._rows(f"SELECT {differ} FROM {self.table}")
        return [name for name, other in zip(single, found, strict=True) if other]

    def records(self) -> int:
        """How many records there are."""
        return int(self._rows(f"SELECT {self._count} FROM {self.table}")[0][0] or 0)

    def value_counts(self, column: Column, at_most: int | None = None) -> dict[Value, int]:
        """The distinct values of a column with counts, None included; some, if too many."""
        value = self._expressions[column]
        strange = f"max({value} NOT BETWEEN DATE '0001-01-01' AND DATE '9999-12-31')"
        outside = strange if column.kind is Kind.DATE else "false"
        limit = "" if at_most is None else f" LIMIT {at_most}"
        found = self._rows(
            f"SELECT {value} AS v, {self._count} AS n, {outside} AS o FROM {self.table}"
            f" GROUP BY ALL{limit}"
        )
        if any(outside for _, _, outside in found):
            raise outside_years(column.name)
        return {value: count for value, count, _ in found}

    def distinct_in_time(self, columns: Sequence[Column], records: int) -> list[int]:
        """How many distinct values each column has; roughly if there are very many records."""
        return self.distinct(columns, rough=records > _COUNTED_EXACTLY)

    def distinct(
        self, columns: Sequence[Column], *, present: Column | None = None, rough: bool = False
    ) -> list[int]:
        """How many distinct values each column has, or roughly, where ``present`` is not missing.

        A rough count may be off by a third, and takes little memory.
        """
        count = "approx_count_distinct({})" if rough else "count(DISTINCT {})"
        together = _ROUGHLY_TOGETHER if rough else _TOGETHER
        found: list[int] = []
        for first in range(0, len(columns), together):
            some = columns[first : first + together]
            counts = ", ".join(count.format(self._expressions[column]) for column in some)
            found += self._rows(
                f"SELECT {counts} FROM {self.table} WHERE {self._present(present)}"
            )[0]
        return found

    def as_number(self, column: Column) -> Column | None:
        """Turn a column of texts into numbers if every text spells one; otherwise return None."""
        text = self._expressions[column]
        spelled = f"bool_and({self.dialect.matches}({text}, {self.dialect.literal(_NUMBER)}))"
        if not self._rows(f"SELECT {spelled} FROM {self.table}")[0][0]:
            return None
        return self._replace(column, Kind.NUMBER, f"CAST({text} AS DOUBLE) + 0e0")

    def value_range(self, column: Column, present: Column | None) -> tuple[Value, Value] | None:
        """The lowest and the highest value among records in which ``present`` is not missing.

        Of times, the days.
        """
        value = self.dialect.ranged(self._expressions[column], column.kind)
        where = f"WHERE {self._present(present)}"
        ((low, high),) = self._rows(f"SELECT min({value}), max({value}) FROM {self.table} {where}")
        return None if low is None else (low, high)

    def quantiles(self, column: Column, parts: int, present: Column | None) -> list[Value]:
        """The lowest value, then the values below which 1/parts, 2/parts, … of the records lie."""
        counted = (
            f"SELECT {self._expressions[column]} AS v, {self._count} AS n FROM {self.table}"
            f" WHERE {self._present(column)} AND {self._present(present)} GROUP BY ALL"
        )
        ranked = (
            "SELECT v, sum(n) OVER (ORDER BY v) - n AS below, sum(n) OVER () AS total"
            f" FROM ({counted})"
        )
        shares = (f"min(CASE WHEN below * {parts} >= total * {k} THEN v END)" for k in range(parts))
        found = self._rows(f"SELECT {', '.join(shares)} FROM ({ranked})")[0]
        return [one for one in found if one is not None]

    def texts(self, column: Column, recoding: Recoding, *, known: bool) -> list[str]:
        """The values that the groups list, as text, or the first one that none of them lists."""
        text = f"CAST({self._expressions[column]} AS STRING)"
        every = [self.dialect.literal(one) for values in recoding.members for one in values]
        inside = f"{text} IN ({', '.join(every)})" if every else "false"
        chosen = f"DISTINCT {text} FROM {self.table} WHERE {inside}"
        first = f"min({text}) FROM {self.table} WHERE NOT ({inside})"
        rows = self._rows(f"SELECT {chosen if known else first}")
        return [str(row[0]) for row in rows if row[0] is not None]

    def recode(self, column: Column, recoding: Recoding) -> None:
        """From now on the column holds the labels of the recoding."""
        label = label_of(self._expressions[column], column.kind, recoding, self.dialect)
        self._replace(column, Kind.STRING, label)

    def _sorted_cells(self, grouping: GroupBy, order: str) -> str:
        """The query for the cells c0, c1, …, n; ``order`` is a clause of {keys} and {order}.

        The keys tell protection groups apart: public columns, or codes of their coarser labels.
        """
        schema, coarsening = grouping.schema, grouping.coarsening
        names = [f"c{i}" for i in range(len(schema.columns))]
        columns = [self._expressions[column] for column in schema.columns]
        chosen = ", ".join(f"{e} AS {name}" for e, name in zip(columns, names, strict=True))
        where = self._present(schema.sensitive if grouping.drop_missing else None)
        keys, joins = [], ""
        for i, column in enumerate(schema.public):
            if column.name not in coarsening.names:
                keys.append(names[i])
                continue
            values = self._distinct_values(
                f"SELECT DISTINCT {columns[i]} AS v FROM {self.table} WHERE {where}"
            )
            labels = coarse_column(column, schema, coarsening, values)
            if labels is not None:
                codes = self._known_codes(values, labels.codes)
                joins += f" LEFT JOIN {codes} k{i} ON k{i}.v IS NOT DISTINCT FROM c.c{i}"
                keys.append(f"k{i}.code")
        sorting = ", ".join(f"{name} NULLS LAST" for name in dict.fromkeys([*keys, *names]))
        return (
            f"SELECT {', '.join(names)}, n FROM (SELECT {chosen}, {self._count} AS n"
            f" FROM {self.table} WHERE {where} GROUP BY ALL) c{joins}"
            f" {order.format(keys=', '.join(keys) or '0', order=sorting)}"
        )

    def map_groups(
        self,
        grouping: GroupBy,
        work: Callable[[Iterator[CellBatch]], T],
        progress: Progress = no_progress,
    ) -> list[T]:
        """Apply a picklable function to the groups, all at once or part by part."""
        return [work(self.batches(grouping, progress))]

    @abstractmethod
    def write(
        self,
        grouping: GroupBy,
        publish: PublishFunction,
        folder: Path,
        layout: Layout,
        progress: Progress = no_progress,
    ) -> Written:
        """Publish every group and write data (and groups, if asked) into an existing folder."""

    def write_to_uri(self, *_: Any, **__: Any) -> Written:
        """The same on a file system that only the engine knows, manifest included."""
        raise OutputError(
            "Only Spark writes a release to a URI.",
            hint=either("give a folder on this machine", Remedy("use {}", Control.ENGINE, "spark")),
        )
