"""Which margins are published beside the records; possibly none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reconpriv.columns.schema import Schema
from reconpriv.policy.margin_settings import NO_MARGINS, Margins
from reconpriv.protect.margins.tables import (
    NO_TOTALS,
    Attributes,
    MarginTable,
    MarginTotals,
    table_name,
)
from reconpriv.protect.margins.trial_limits import UNCOUNTED, TrialLimits
from reconpriv.theory.arrays import Flags


@dataclass(frozen=True)
class DescribedTable:
    """A margin table: its name, its columns, how many rows it has and how many are left out."""

    name: str
    columns: tuple[str, ...]
    rows: int
    left_out: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "name": self.name,
            "columns": list(self.columns),
            "rows": self.rows,
            "left_out": self.left_out,
        }


@dataclass(frozen=True)
class PlannedTable:
    """A margin table with the rows that are published; ``left_out`` would give a group away."""

    table: MarginTable
    left_out: int

    def described(self, schema: Schema) -> DescribedTable:
        """The table in the words of its columns."""
        attributes = self.table.attributes
        columns = tuple(schema.public[a].name for a in attributes)
        return DescribedTable(
            table_name(attributes, schema), columns, self.table.rows, self.left_out
        )


@dataclass(frozen=True)
class MarginPlan:
    """What is published beside the records, and what it costs them.

    ``rows`` says which rows of all tables are published; ``too_large`` names tables that were not
    asked for by name and have too many. ``notes`` say why there are none.
    """

    margins: Margins = NO_MARGINS
    variance: float = 0.0
    tables: tuple[PlannedTable, ...] = ()
    counted: TrialLimits = UNCOUNTED
    totals: MarginTotals = NO_TOTALS
    rows: Flags = field(default_factory=lambda: np.zeros(0, dtype=bool))
    too_large: tuple[Attributes, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def published(self) -> tuple[MarginTable, ...]:
        """The tables of which some row is published."""
        return tuple(one.table for one in self.tables if one.table.rows)


NO_MARGIN_PLAN = MarginPlan()
