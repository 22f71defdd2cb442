"""What margins cost the groups: the trials that are given up because margins tell about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reconpriv.core.cells import CellBatch
from reconpriv.core.margins import NO_ROW, NO_TABLE, Margins
from reconpriv.core.sample_sizes import sample_limits
from reconpriv.policy import Policy
from reconpriv.schema import Schema
from reconpriv.theory.arrays import Floats, Ints

# Every audit imports this module; only those with margins need more than its empty CostPart.
if TYPE_CHECKING:
    from reconpriv.core.margin_limits import CountedLimits
    from reconpriv.core.margin_plan import DescribedTable, MarginPlan


@dataclass(frozen=True)
class CostPart:
    """What margins cost some of the groups; ``most`` is the most that they tell about one."""

    groups: int = 0
    trials: int = 0
    trials_lost: int = 0
    most: float = 0.0

    def __add__(self, other: CostPart) -> CostPart:
        """Both parts together."""
        return CostPart(
            self.groups + other.groups,
            self.trials + other.trials,
            self.trials_lost + other.trials_lost,
            max(self.most, other.most),
        )


def cost_of(batch: CellBatch, counted: CountedLimits) -> CostPart:
    """The trials of these groups without margins, and those that margins cost them."""
    policy = counted.worth.policy
    limits = sample_limits(batch, policy, counted.worth.domain_size)
    alone = own_trials(batch.sizes, limits)
    lowered, most = counted.cost(batch, limits)
    trials = own_trials(batch.sizes, lowered)
    return CostPart(
        groups=int((trials < alone).sum()),
        trials=round(float(alone.sum())),
        trials_lost=round(float((alone - trials).sum())),
        most=most,
    )


def own_trials(sizes: Ints, limits: Floats) -> Floats:
    """How many records of each group are drawn: all, or as many as its limit allows."""
    return np.where(sizes > limits, np.maximum(limits, 1.0), sizes)


@dataclass(frozen=True)
class MarginCost:
    """What margins cost: how private they are, their tables, and the trials that groups give up.

    ``groups`` get ``trials_lost`` fewer trials than the ``trials`` they would have without margins;
    ``most_trials`` is the most that margins are worth about one group. ``counted`` is False for a
    sample size that does not count margins: then nothing is known about groups.
    """

    margins: Margins
    variance: float
    tables: tuple[DescribedTable, ...]
    sample_size: str
    counted: bool
    groups: int
    trials: int
    trials_lost: int
    most_trials: float
    notes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What margins cost the groups, and what is left out of them."""
        return " ".join([self._cost, *self.notes]).strip()

    @property
    def _cost(self) -> str:
        if not self.counted:
            return _not_counted(self.sample_size)
        if not self.groups:
            return "Margins cost no group a trial."
        groups = "1 group" if self.groups == 1 else f"{self.groups:,} groups"
        return (
            f"Margins cost {self.trials_lost:,} of {self.trials:,} trials, in {groups}: what they"
            " tell about a group counts towards its limit."
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "sentence": self.sentence,
            "rho": self.margins.rho,
            "epsilon": self.margins.epsilon,
            "delta": self.margins.delta,
            "variance": self.variance,
            "tables": [table.as_dict() for table in self.tables],
            "sample_size": self.sample_size,
            "counted": self.counted,
            "groups_with_fewer_trials": self.groups,
            "trials_without_margins": self.trials,
            "trials_lost": self.trials_lost,
            "most_trials_from_margins": self.most_trials,
        }


def margin_cost(
    plan: MarginPlan, parts: Iterable[CostPart], policy: Policy, schema: Schema
) -> MarginCost:
    """What was found in all parts of a table."""
    found = sum(parts, CostPart())
    return MarginCost(
        margins=plan.margins,
        variance=plan.variance,
        tables=tuple(one.described(schema) for one in plan.tables),
        sample_size=policy.sample_size,
        counted=policy.sampling.counts_margins,
        groups=found.groups,
        trials=found.trials,
        trials_lost=found.trials_lost,
        most_trials=found.most,
        notes=_not_published(plan, schema),
    )


def margin_notes(plan: MarginPlan | None, policy: Policy, schema: Schema) -> tuple[str, ...]:
    """Which margins are not published, and what they are not counted in."""
    if plan is None or not plan.published:
        return (NO_TABLE if plan is None else NO_ROW,)
    # A release says of how many rows; that it has no such table at all deserves a warning.
    notes = _not_published(plan, schema, rows=False)
    if policy.sampling.samples and not policy.sampling.counts_margins:
        notes += (_not_counted(policy.sample_size),)
    return notes


def _not_counted(sample_size: str) -> str:
    return f"Sample size {sample_size!r} does not count what margins tell about a group."


def _not_published(plan: MarginPlan, schema: Schema, *, rows: bool = True) -> tuple[str, ...]:
    from reconpriv.core.margin_tables import table_name  # noqa: PLC0415

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


def trials_beside_margins(batch: CellBatch, counted: CountedLimits) -> dict[str, Floats]:
    """For every group: its own trials, those that margins are worth, and both together."""
    told = counted.told(batch)
    if told is None:
        return {}
    limits = sample_limits(batch, counted.worth.policy, counted.worth.domain_size)
    own = own_trials(batch.sizes, counted.lowered(batch, limits))
    return {"trials": own, "trials_from_margins": told, "effective_trials": own + told}
