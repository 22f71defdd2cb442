"""The margins of one publication: which rows are published, with which noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from reconpriv.core.cells import CellBatch
from reconpriv.core.margin_limits import CountedLimits, counted_limits, settle_rows
from reconpriv.core.margin_noise import adjusted, noisy_tables
from reconpriv.core.margin_tables import (
    Attributes,
    CountMargins,
    MarginPart,
    MarginTable,
    MarginTotals,
    join_margins,
    table_name,
    wanted_tables,
)
from reconpriv.core.margins import Margins
from reconpriv.core.randomness import Key
from reconpriv.errors import PolicyError
from reconpriv.messages.phrases import listed
from reconpriv.messages.remedies import Control, Remedy, either
from reconpriv.policy import Policy
from reconpriv.schema import Schema
from reconpriv.theory.arrays import Flags, Floats
from reconpriv.theory.discrete_gaussian import check_variance
from reconpriv.theory.expected_frequencies import shrunken

if TYPE_CHECKING:
    from reconpriv.core.cube import Cube

# Applies a function to all groups, at once or part by part.
MapGroups = Callable[[Callable[[Iterator[CellBatch]], MarginPart]], list[MarginPart]]


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
    asked for by name and have too many.
    """

    margins: Margins
    variance: float
    tables: tuple[PlannedTable, ...]
    counted: CountedLimits
    totals: MarginTotals
    rows: Flags
    too_large: tuple[Attributes, ...]

    @property
    def published(self) -> tuple[MarginTable, ...]:
        """The tables of which some row is published."""
        return tuple(one.table for one in self.tables if one.table.rows)


def count_margins(map_groups: MapGroups, policy: Policy, schema: Schema) -> MarginTotals:
    """Count the margins that a policy asks for, in one pass over the groups."""
    margins = policy.wanted_margins
    assert margins is not None
    if not schema.public:
        raise PolicyError("Margins need at least one public column.")
    tables = wanted_tables(margins, schema)
    count = CountMargins(schema, policy, tables)
    parts = map_groups(count)
    totals = join_margins(parts, tables, margins, schema)
    if all(part.compared for part in parts):
        return totals
    kept = tuple(table.attributes for table in totals.tables)
    again = join_margins(map_groups(replace(count, tables=kept)), kept, margins, schema)
    return replace(again, too_large=totals.too_large)


def margins_of(cube: Cube, policy: Policy, key: Key | None = None) -> MarginPlan:
    """The margins of a table whose cells are in memory."""
    batch = cube.as_batch()
    totals = count_margins(lambda work: [work(iter([batch]))], policy, cube.schema)
    return plan_margins(totals, policy, cube.schema, key)


def plan_margins(
    totals: MarginTotals, policy: Policy, schema: Schema, key: Key | None
) -> MarginPlan:
    """Draw the noise, then leave out the rows that would give a group away.

    Without a key nothing is drawn: the counts are the true ones, for an audit that publishes none.
    """
    margins = policy.wanted_margins
    assert margins is not None
    # Rows that are left out have cost as much as those that are published.
    variance = check_variance(margins.variance(len(totals.tables)))
    tables = totals.tables
    if key is not None:
        tables = noisy_tables(tables, variance, schema, key)
    frequencies = row_frequencies(tables, totals.tables, 0.0 if key is None else variance**0.5)
    worth, published = settle_rows(totals, frequencies, variance, policy, schema.domain_size)
    ends = np.cumsum([table.rows for table in tables])
    kept = [np.flatnonzero(flags) for flags in np.split(published, ends[:-1])]
    planned = tuple(
        PlannedTable(table.take(rows), table.rows - rows.size)
        for table, rows in zip(tables, kept, strict=True)
    )
    _refuse_empty(planned, margins, schema)
    return MarginPlan(
        margins,
        variance,
        planned,
        counted_limits(worth, totals, schema),
        totals,
        published,
        totals.too_large,
    )


def row_frequencies(
    noisy: Sequence[MarginTable], true: Sequence[MarginTable], noise: float
) -> list[Floats]:
    """How frequent each sensitive value is in each row of every table; sizes are public."""
    sizes = [table.counts.sum(axis=1) for table in true]
    counts = [adjusted(table.counts, size) for table, size in zip(noisy, sizes, strict=True)]
    # Every table adds up to the whole; their mean has the least noise.
    whole = np.mean([count.sum(axis=0) for count in counts], axis=0).clip(0.0)
    overall = whole / whole.sum()
    return [
        shrunken(count, size, overall, noise) for count, size in zip(counts, sizes, strict=True)
    ]


def _refuse_empty(planned: tuple[PlannedTable, ...], margins: Margins, schema: Schema) -> None:
    empty = [table_name(one.table.attributes, schema) for one in planned if not one.table.rows]
    if not empty or margins.tables is None:
        return
    one = len(empty) == 1
    raise PolicyError(
        f"The margin {'table' if one else 'tables'} by {listed(empty, 'and')} would give groups"
        f" away: every row of {'it' if one else 'them'} is little more than a single group.",
        hint=either(
            Remedy("name other margin tables", Control.MARGIN_TABLES),
            Remedy("choose a smaller ε for margins", Control.MARGINS),
            Remedy("publish without them", Control.MARGINS, 0),
        ),
    )
