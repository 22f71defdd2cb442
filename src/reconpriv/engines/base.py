"""What an engine does for the rest of the package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from reconpriv.cells import CellBatch
from reconpriv.publish import PublishedBatch
from reconpriv.schema import Column, Schema, Value

FORMATS = ("parquet", "csv")

PublishFunction = Callable[[CellBatch], Iterator[PublishedBatch]]
Progress = Callable[[str, float], None]
"""Called with a stage and the share of the records that is done, 0 to 1."""


def no_progress(stage: str, done: float) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class WrittenFile:
    """A file of a release: its name, and what the manifest says about it."""

    name: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Written:
    """What a publication wrote, and totals that stay with the publisher."""

    data: WrittenFile
    groups_file: WrittenFile | None
    records: int
    groups: int
    sampled_groups: int
    trials: int
    unattainable_groups: int
    unattainable_records: int


class Engine(Protocol):
    """Counts the cells of one table, streams its groups and writes releases."""

    name: str

    def columns(self) -> list[Column]:
        """The table's columns that can be published, in order."""
        ...

    def value_counts(self, column: Column) -> dict[Value, int]:
        """The distinct values of a column with their counts, None among them."""
        ...

    def distinct(self, columns: Sequence[Column]) -> list[int]:
        """How many distinct values each column has."""
        ...

    def groups(
        self, schema: Schema, *, drop_missing: bool, progress: Progress = no_progress
    ) -> Iterator[CellBatch]:
        """Every micro group, whole, in canonical order, in batches of bounded size."""
        ...

    def write(
        self,
        schema: Schema,
        publish: PublishFunction,
        folder: Path,
        *,
        file_format: str,
        with_trials: bool,
        drop_missing: bool,
        progress: Progress = no_progress,
    ) -> Written:
        """Publish every group and write data (and groups, where asked) into an existing folder."""
        ...

    def interrupt(self) -> None:
        """Stop what another thread does with this engine; there it ends as a KeyboardInterrupt."""
        ...

    def close(self) -> None:
        """Give back connections and temporary files."""
        ...
