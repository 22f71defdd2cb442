"""A table behind an engine by its groups: micro groups, and the protection groups they make up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.randomness import Key
from reconpriv.columns.schema import Schema
from reconpriv.engines.base import Engine, Progress, no_progress
from reconpriv.engines.local import LocalEngine
from reconpriv.policy.policy import Policy
from reconpriv.policy.protection import NO_COARSENING, Coarsening
from reconpriv.protect.margins.planned import NO_MARGIN_PLAN, MarginPlan

T = TypeVar("T")


@dataclass(frozen=True)
class GroupedTable:
    """The records of a table, and how its groups are made.

    Records without a sensitive value are left out if ``drop_missing``.
    """

    engine: Engine
    schema: Schema
    drop_missing: bool
    coarsening: Coarsening = NO_COARSENING
    progress: Progress = field(default=no_progress, compare=False)

    @property
    def group_schema(self) -> Schema:
        """The schema of the groups that a policy makes a promise about: protection groups."""
        return self.coarsening.coarse(self.schema)

    @property
    def here(self) -> bool:
        """Whether the groups pass through this process."""
        return self.engine.name == LocalEngine.name

    def protected(self, policy: Policy, key: Key) -> GroupedTable:
        """The same table by the protection groups that a policy asks for."""
        from reconpriv.protect.coarsening import settle  # noqa: PLC0415 - few policies ask for any

        wanted = policy.wanted_protection
        if not wanted:
            return self
        found = settle(wanted, self.schema, self.map_groups, policy.retention, key)
        return replace(self, coarsening=found)

    def margins(self, policy: Policy, key: Key | None) -> MarginPlan:
        """The margins that a policy asks for, in a pass of their own; without a key, no noise.

        What they tell about a group depends on all groups.
        """
        if not policy.wanted_margins:
            return NO_MARGIN_PLAN
        from reconpriv.protect.margins.plan import planned_margins  # noqa: PLC0415 - takes a while

        return planned_margins(self.map_groups, policy, self.group_schema, key)

    def batches(self) -> Iterator[CellBatch]:
        """Every micro group, in batches of whole protection groups."""
        return self.engine.batches(
            self.schema,
            drop_missing=self.drop_missing,
            coarsening=self.coarsening,
            progress=self.progress,
        )

    def map_groups(self, work: Callable[[Iterator[CellBatch]], T]) -> list[T]:
        """Apply a picklable function to such batches, all at once or part by part."""
        return self.engine.map_groups(
            self.schema,
            work,
            drop_missing=self.drop_missing,
            coarsening=self.coarsening,
            progress=self.progress,
        )
