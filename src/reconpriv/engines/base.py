"""What an engine does for the rest of the package."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.columns.recoding import Recoding
from reconpriv.columns.schema import Column, ColumnLabels, Schema, Value
from reconpriv.errors import InputError
from reconpriv.policy.protection import NO_COARSENING, Coarsening
from reconpriv.protect.row_choice import RowChoice
from reconpriv.protect.watched import PublishFunction

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


class Engine(Protocol):
    """Counts the cells of one table, streams its groups and writes releases."""

    name: str

    @property
    def labels(self) -> Mapping[str, ColumnLabels]:
        """What the source says about its columns and their values."""
        ...

    def columns(self) -> list[Column]:
        """The table's columns that can be published, in order."""
        ...

    def single_precision(self, names: Sequence[str]) -> list[str]:
        """Which of these columns hold 32-bit numbers that read differently as 64-bit ones."""
        ...

    def expect_columns(self, names: Sequence[str]) -> None:
        """Take note, before anything is counted, of the columns that will be asked for."""
        ...

    def records(self) -> int:
        """How many records there are."""
        ...

    def value_counts(self, column: Column, at_most: int | None = None) -> dict[Value, int]:
        """The distinct values of a column with counts, None included; some, if too many."""
        ...

    def distinct(
        self, columns: Sequence[Column], *, present: Column | None = None, rough: bool = False
    ) -> list[int]:
        """How many distinct values each column has, or roughly, where ``present`` is not missing.

        A rough count may be off by a third, and takes little memory.
        """
        ...

    def as_number(self, column: Column) -> Column | None:
        """Turn a column of texts into numbers if every text spells one; otherwise return None."""
        ...

    def value_range(self, column: Column, present: Column | None) -> tuple[Value, Value] | None:
        """The lowest and the highest value among records in which ``present`` is not missing.

        Of times, the days.
        """
        ...

    def quantiles(self, column: Column, parts: int, present: Column | None) -> list[Value]:
        """The lowest value, then the values below which 1/parts, 2/parts, … of the records lie."""
        ...

    def texts(self, column: Column, recoding: Recoding, *, known: bool) -> list[str]:
        """The values that the groups list, as text, or the first one that none of them lists."""
        ...

    def recode(self, column: Column, recoding: Recoding) -> None:
        """From now on the column holds the labels of the recoding."""
        ...

    def one_row_each(self, choose: RowChoice, *, drop_missing: bool) -> Engine:
        """An engine over the chosen rows, which needs this one to stay open."""
        ...

    def batches(
        self,
        schema: Schema,
        *,
        drop_missing: bool,
        coarsening: Coarsening = NO_COARSENING,
        progress: Progress = no_progress,
    ) -> Iterator[CellBatch]:
        """Every micro group in canonical order, in batches of bounded size.

        With a coarsening, in the order of protection groups, which are whole as well.
        """
        ...

    def map_groups(
        self,
        schema: Schema,
        work: Callable[[Iterator[CellBatch]], T],
        *,
        drop_missing: bool,
        coarsening: Coarsening = NO_COARSENING,
        progress: Progress = no_progress,
    ) -> list[T]:
        """Apply a picklable function to the groups, all at once or part by part."""
        ...

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
        """Publish every group and write data (and groups, if asked) into an existing folder."""
        ...

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
        """The same on a file system that only the engine knows, manifest included.

        ``beside`` are further small files by name.
        """
        ...

    def interrupt(self) -> None:
        """Stop what another thread is doing with this engine; it gets a KeyboardInterrupt."""
        ...

    def close(self) -> None:
        """Close connections and remove temporary files."""
        ...
