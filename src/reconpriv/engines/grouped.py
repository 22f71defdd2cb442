"""A table behind an engine by its groups: micro groups, and the protection groups they make up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.randomness import Key
from reconpriv.columns.schema import Schema
from reconpriv.engines.base import Engine, Progress, T, no_progress
from reconpriv.engines.local import LocalEngine
from reconpriv.policy.policy import Policy
from reconpriv.policy.protection import Coarsening
from reconpriv.protect.coarsening import find_coarsening
from reconpriv.protect.group_by import GroupBy
from reconpriv.protect.margins.plan import planned_margins
from reconpriv.protect.margins.planned import MarginPlan


@dataclass(frozen=True)
class GroupedTable:
    """The records of a table, and how its groups are made."""

    engine: Engine
    grouping: GroupBy
    progress: Progress = no_progress

    @property
    def group_schema(self) -> Schema:
        """The schema of the groups that a policy makes a promise about: protection groups."""
        return self.grouping.group_schema

    @property
    def here(self) -> bool:
        """True if the groups pass through this process."""
        return self.engine.name == LocalEngine.name

    def coarsened(self, coarsening: Coarsening) -> GroupedTable:
        """The same table by the protection groups of a coarsening."""
        return replace(self, grouping=replace(self.grouping, coarsening=coarsening))

    def protected(self, policy: Policy, key: Key) -> GroupedTable:
        """The same table by the protection groups that a policy asks for."""
        found = find_coarsening(policy, self.grouping.schema, self.map_groups, key)
        return self.coarsened(found)

    def margins(self, policy: Policy, key: Key | None) -> MarginPlan:
        """The margins that a policy asks for, in a pass of their own; without a key, no noise.

        What they tell about a group depends on all groups.
        """
        return planned_margins(self.map_groups, policy, self.grouping.group_schema, key)

    def batches(self) -> Iterator[CellBatch]:
        """Every micro group, in batches of whole protection groups."""
        return self.engine.batches(self.grouping, self.progress)

    def map_groups(self, work: Callable[[Iterator[CellBatch]], T]) -> list[T]:
        """Apply a picklable function to such batches, all at once or part by part."""
        return self.engine.map_groups(self.grouping, work, self.progress)
