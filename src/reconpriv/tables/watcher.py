"""How far an audit goes, and who sees the groups as it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reconpriv.cells.cell_batch import CellBatch

Watcher = Callable[[CellBatch], None]
"""Called with every batch of whole groups as it passes."""


@dataclass(frozen=True)
class Extent:
    """How many of the worst groups to show, what a small group is, and whether to drop columns."""

    worst: int
    k: int
    columns: bool | None
