"""What margins are published beside the records, and the trials that groups give up for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.columns.schema import Schema
from reconpriv.policy.margin_settings import NO_MARGINS, Margins
from reconpriv.policy.policy import Policy
from reconpriv.protect.margins.tables import (
    NO_TOTALS,
    Attributes,
    MarginTable,
    MarginTotals,
    table_name,
)
from reconpriv.theory.arrays import Flags, Floats

if TYPE_CHECKING:
    from reconpriv.protect.margins.limits import MarginWorth


@dataclass(frozen=True)
class CostPart:
    """What margins cost some of the groups; ``most`` is the most that they tell about one."""

    groups: int = 0
    trials: int = 0
    trials_lost: int = 0
    most: float = 0.0

    def __add__(self, other: CostPart) -> CostPart:
        return CostPart(
            self.groups + other.groups,
            self.trials + other.trials,
            self.trials_lost + other.trials_lost,
            max(self.most, other.most),
        )


class TrialLimits:
    """Lowers the limits of a sampling rule by what margins tell about the groups: here, nothing."""

    def lowered(self, batch: CellBatch, limits: Floats) -> Floats:  # noqa: ARG002
        """The limits of a sampling rule, lowered by what margins are worth about each group."""
        return limits

    def told(self, batch: CellBatch) -> Floats | None:  # noqa: ARG002
        """How many trials margins are worth about each group; None if they are not counted."""
        return None

    def cost(self, batch: CellBatch) -> CostPart:  # noqa: ARG002
        """What margins cost the groups of a batch."""
        return CostPart()

    def beside(self, batch: CellBatch) -> dict[str, Floats]:  # noqa: ARG002
        """For every group: its own trials, those that margins are worth, and both together."""
        return {}


UNCOUNTED = TrialLimits()


@dataclass(frozen=True)
class DescribedTable:
    """A margin table: its name, its columns, how many rows it has and how many are left out."""

    name: str
    columns: tuple[str, ...]
    rows: int
    left_out: int

    def as_dict(self) -> dict[str, Any]:
        """Its fields by name, as the manifest and an audit have them."""
        return vars(self) | {"columns": list(self.columns)}


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
    asked for by name and have too many. ``notes`` say why there are none. ``counted`` lowers no
    limit if the sampling rule does not count what margins are ``worth``.
    """

    margins: Margins = NO_MARGINS
    variance: float = 0.0
    tables: tuple[PlannedTable, ...] = ()
    counted: TrialLimits = UNCOUNTED
    totals: MarginTotals = NO_TOTALS
    rows: Flags = field(default_factory=lambda: np.zeros(0, dtype=bool))
    too_large: tuple[Attributes, ...] = ()
    notes: tuple[str, ...] = ()
    worth: MarginWorth | None = None

    @property
    def published(self) -> tuple[MarginTable, ...]:
        """The tables of which some row is published."""
        return tuple(one.table for one in self.tables if one.table.rows)


NO_MARGIN_PLAN = MarginPlan()


@dataclass(frozen=True)
class MarginCost:
    """What margins cost: how private they are, their tables, and the trials that groups give up.

    Without a table it is that of no margins, false as a condition, and says nothing.

    ``groups`` get ``trials_lost`` fewer trials than the ``trials`` they would have without margins;
    ``most_trials`` is the most that margins are worth about one group. ``counted`` is False for a
    sampling rule that does not count margins: then nothing is known about groups.
    """

    margins: Margins = NO_MARGINS
    variance: float = 0.0
    tables: tuple[DescribedTable, ...] = ()
    sampling: str = ""
    counted: bool = False
    groups: int = 0
    trials: int = 0
    trials_lost: int = 0
    most_trials: float = 0.0
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """True if any table is published."""
        return bool(self.tables)

    @property
    def sentence(self) -> str:
        """What margins cost the groups, and what is left out of them."""
        return " ".join([self._cost, *self.notes]).strip()

    @property
    def aside(self) -> str:
        """What to add to figures that count no margins; empty if there are none."""
        return "; margins are left aside" if self.tables else ""

    @property
    def _cost(self) -> str:
        if not self.tables:
            return ""
        if not self.counted:
            return _not_counted(self.sampling)
        if not self.groups:
            return "Margins cost no group a trial."
        groups = "1 group" if self.groups == 1 else f"{self.groups:,} groups"
        return (
            f"Margins cost {self.trials_lost:,} of {self.trials:,} trials, in {groups}: what they"
            " tell about a group counts towards its limit."
        )

    def as_dict(self) -> dict[str, Any]:
        """The privacy, the tables and the cost of margins by name, as an audit has them."""
        return {
            "sentence": self.sentence,
            "rho": self.margins.rho,
            "epsilon": self.margins.epsilon,
            "delta": self.margins.delta,
            "variance": self.variance,
            "tables": [table.as_dict() for table in self.tables],
            "sampling": self.sampling,
            "counted": self.counted,
            "groups_with_fewer_trials": self.groups,
            "trials_without_margins": self.trials,
            "trials_lost": self.trials_lost,
            "most_trials_from_margins": self.most_trials,
        }


NO_MARGIN_COST = MarginCost()


def margin_cost(
    plan: MarginPlan, parts: Iterable[CostPart], policy: Policy, schema: Schema
) -> MarginCost:
    """What was found in all parts of a table."""
    if not plan.published:
        return NO_MARGIN_COST
    found = sum(parts, CostPart())
    return MarginCost(
        margins=plan.margins,
        variance=plan.variance,
        tables=tuple(one.described(schema) for one in plan.tables),
        sampling=policy.sampling,
        counted=policy.sampling_rule.counts_margins,
        groups=found.groups,
        trials=found.trials,
        trials_lost=found.trials_lost,
        most_trials=found.most,
        notes=_not_published(plan, schema),
    )


def margin_notes(plan: MarginPlan, policy: Policy, schema: Schema) -> tuple[str, ...]:
    """Which margins are not published, and what they are not counted in."""
    if not plan.published:
        return plan.notes
    # A release says of how many rows; that it has no such table at all deserves a warning.
    notes = _not_published(plan, schema, rows=False)
    if policy.sampling_rule.samples and not policy.sampling_rule.counts_margins:
        notes += (_not_counted(policy.sampling),)
    return notes


def _not_counted(sampling: str) -> str:
    return f"Sampling rule {sampling!r} does not count what margins tell about a group."


def _not_published(plan: MarginPlan, schema: Schema, *, rows: bool = True) -> tuple[str, ...]:
    notes = [
        f"There is no margin table by {table_name(attributes, schema)}: it has too many rows."
        for attributes in plan.too_large
    ]
    for one in plan.tables:
        if one.left_out and (rows or not one.table.rows):
            notes.append(
                _left_out(
                    one.left_out,
                    one.table.rows + one.left_out,
                    table_name(one.table.attributes, schema),
                )
            )
    return tuple(notes)


def _left_out(rows: int, of: int, name: str) -> str:
    if rows == of:
        return f"The margin table by {name} is left out: each of its rows would give a group away."
    if rows == 1:
        return (
            f"1 of the {of:,} rows of the margin table by {name} is left out: it would give a group"
            " away."
        )
    return (
        f"{rows:,} of the {of:,} rows of the margin table by {name} are left out: each of them"
        " would give a group away."
    )
