"""A cross-tabulation laid out in rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from reconpriv.answers.count_table import Tabular
from reconpriv.answers.figure import Answer, Figure
from reconpriv.columns.schema import Value
from reconpriv.estimate.counts import Estimate
from reconpriv.messages.numbers import label
from reconpriv.sources.column_names import free_name

CELL, ROW_TOTAL, COLUMN_TOTAL, TOTAL = "cell", "row total", "column total", "total"

Key = tuple[Value, ...] | None  # None stands for a total


@dataclass(frozen=True)
class CrosstabCell:
    """A cell or a total: its count, its share if asked for, and whether its interval is wide."""

    part: str
    labels: dict[str, Value]
    count: Estimate
    share: Figure | None
    wide: bool

    @property
    def shown(self) -> Answer:
        """The share if there is one, otherwise the count."""
        return self.count if self.share is None else self.share


@dataclass(frozen=True, repr=False)
class TwoWay(Tabular):
    """A cross-tabulation as people lay it out: rows down the side, columns across the top."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[CrosstabCell, ...]
    shares: bool
    limit: tuple[str, ...] = ()

    @cached_property
    def grid(self) -> dict[tuple[Key, Key], CrosstabCell]:
        """Cells by the values of their row and of their column; a total has None."""
        return {(self._row(one), self._column(one)): one for one in self.cells}

    def _row(self, cell: CrosstabCell) -> Key:
        if cell.part in (COLUMN_TOTAL, TOTAL):
            return None
        return tuple(cell.labels[name] for name in self.rows)

    def _column(self, cell: CrosstabCell) -> Key:
        if self.columns and cell.part in (ROW_TOTAL, TOTAL):
            return None
        return tuple(cell.labels[name] for name in self.columns)

    @cached_property
    def row_keys(self) -> list[Key]:
        """The rows in their order, the total last."""
        return _total_last(dict.fromkeys(map(self._row, self._in_order(self.rows))))

    @cached_property
    def column_keys(self) -> list[Key]:
        """The columns in their order, the total last."""
        return _total_last(dict.fromkeys(map(self._column, self._in_order(self.columns))))

    def _in_order(self, names: Sequence[str]) -> list[CrosstabCell]:
        """Totals first, if there are any: they list every value in its order."""
        part = ROW_TOTAL if names == self.rows else COLUMN_TOTAL
        return [*(c for c in self.cells if c.part == part), *self.cells]

    def column_names(self) -> list[str]:
        """The headings of the columns; of a single one, what it holds."""
        if not self.columns:
            return ["share" if self.shares else "count"]
        return [TOTAL if key is None else label(key[0]) for key in self.column_keys]

    def to_arrow(self) -> pa.Table:
        """The figures without their intervals: row labels as text, then a column for each value."""
        names: list[str] = []
        arrays: list[Any] = []
        for i, name in enumerate(self.rows):
            shown = [TOTAL if key is None else label(key[i]) for key in self.row_keys]
            names.append(name)
            arrays.append(pa.array(shown, pa.string()))
        for key, name in zip(self.column_keys, self.column_names(), strict=True):
            found = [self.grid.get((row, key)) for row in self.row_keys]
            values = [None if cell is None else cell.shown.number for cell in found]
            names.append(free_name(name, names))
            arrays.append(pa.array(values, pa.float64()))
        return pa.Table.from_arrays(arrays, names=names)


def _total_last(keys: dict[Key, None]) -> list[Key]:
    return sorted(keys, key=lambda key: key is None)
