"""The margins of one publication: which rows are published, with which noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.randomness import Key
from reconpriv.columns.schema import Schema
from reconpriv.errors import PolicyError
from reconpriv.messages.phrases import listed
from reconpriv.messages.remedies import Control, Remedy, either
from reconpriv.policy.margin_settings import NO_ROW, NO_TABLE, Margins
from reconpriv.policy.policy import Policy
from reconpriv.protect.margins.limits import CountedLimits, publishable_rows
from reconpriv.protect.margins.noise import adjusted, noisy_tables
from reconpriv.protect.margins.planned import UNCOUNTED, MarginPlan, PlannedTable
from reconpriv.protect.margins.tables import (
    NO_TOTALS,
    CountMargins,
    MarginPart,
    MarginTable,
    MarginTotals,
    index_rows,
    join_margins,
    table_name,
    wanted_tables,
)
from reconpriv.theory.arrays import Floats
from reconpriv.theory.margins.discrete_gaussian import check_variance
from reconpriv.theory.margins.main_effects import shrunken

# Applies a function to all groups, at once or part by part.
MapMargins = Callable[[Callable[[Iterator[CellBatch]], MarginPart]], list[MarginPart]]


def count_margins(map_groups: MapMargins, policy: Policy, schema: Schema) -> MarginTotals:
    """Count the margins that a policy asks for, in one pass over the groups, if there are any."""
    margins = policy.wanted_margins
    tables = wanted_tables(margins, schema)
    if not tables:
        return NO_TOTALS
    count = CountMargins(schema, policy, tables)
    parts = map_groups(count)
    totals = join_margins(parts, tables, margins, schema)
    if all(part.compared for part in parts) or not totals.tables:
        return totals
    kept = tuple(table.attributes for table in totals.tables)
    again = join_margins(map_groups(replace(count, tables=kept)), kept, margins, schema)
    return replace(again, too_large=totals.too_large)


def planned_margins(
    map_groups: MapMargins, policy: Policy, schema: Schema, key: Key | None
) -> MarginPlan:
    """The margins that a policy asks for; an empty plan if it asks for none, or none is left."""
    plan = plan_margins(count_margins(map_groups, policy, schema), policy, schema, key)
    return MarginPlan(notes=(NO_ROW,)) if plan.tables and not plan.published else plan


def plan_margins(
    totals: MarginTotals, policy: Policy, schema: Schema, key: Key | None
) -> MarginPlan:
    """Draw the noise, then leave out the rows that would give a group away.

    Without a key nothing is drawn: the counts are the true ones, for an audit that publishes none.
    """
    if not totals.tables:
        return MarginPlan(notes=(NO_TABLE,) if totals.too_large else ())
    margins = policy.wanted_margins
    # Rows that are left out have cost as much as those that are published.
    variance = check_variance(margins.variance(len(totals.tables)))
    tables = totals.tables
    if key is not None:
        tables = noisy_tables(tables, variance, schema, key)
    frequencies = row_frequencies(tables, totals.tables, 0.0 if key is None else variance**0.5)
    worth, published = publishable_rows(totals, frequencies, variance, policy, schema.domain_size)
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
        CountedLimits(worth, index_rows(totals.tables, schema), schema)
        if policy.sampling_rule.counts_margins
        else UNCOUNTED,
        totals,
        published,
        totals.too_large,
        worth=worth,
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
