"""What is found out about a table before it is published: identifiers, people, giveaways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from reconpriv.core.giveaways import Giveaway, giveaways_by_column, giveaways_in
from reconpriv.core.identifiers import find_identifiers, refuse_identifiers
from reconpriv.core.obstacles import (
    Accepted,
    Obstacle,
    giveaway_obstacle,
    too_many_unique,
    unique_obstacle,
)
from reconpriv.core.people import People, count_people
from reconpriv.core.single_records import count_unique
from reconpriv.policy import Policy
from reconpriv.schema import Column, Schema, Value

if TYPE_CHECKING:
    from reconpriv.core.cube import Cube
    from reconpriv.engines.base import Engine, Written


@dataclass
class Checks:
    """The checks of one table; what they count is remembered."""

    engine: Engine
    schema: Schema
    drop_missing: bool
    one_row_each: bool = False  # people were dealt with when the rows were chosen
    _told: dict[tuple[Value, ...], tuple[Giveaway, ...]] = field(default_factory=dict, repr=False)

    @cached_property
    def identifiers(self) -> dict[str, int]:
        """The nearly unique public columns with their number of values."""
        return find_identifiers(self.engine, self.schema, drop_missing=self.drop_missing)

    @property
    def known_identifiers(self) -> dict[str, int]:
        """The same if they were looked for already; otherwise none."""
        found: dict[str, int] = self.__dict__.get("identifiers", {})
        return found

    @cached_property
    def people(self) -> People | None:
        """How many people the table is about; None if nothing says who a row is about."""
        if self.schema.person is None:
            return None
        if self.one_row_each:
            return People(people=self.schema.records, most=1)
        by_person = replace(self.schema, public=(self.schema.person,))
        return sum(
            self.engine.map_groups(by_person, count_people, drop_missing=self.drop_missing),
            People(),
        )

    def people_obstacle(self) -> Obstacle | None:
        """People with several rows, or rows of nobody."""
        if self.people is None or self.schema.person is None:
            return None
        return self.people.obstacle(self.schema.person.name)

    def giveaways(
        self, policy: Policy, in_memory: Callable[[], Cube | None]
    ) -> tuple[Giveaway, ...]:
        """The public columns that tell the sensitive value.

        ``in_memory`` is asked for the table, if that fits into memory. Of the policy, only harmless
        values matter.
        """
        if policy.harmless not in self._told:
            self._told[policy.harmless] = self._giveaways(policy, in_memory())
        return self._told[policy.harmless]

    def _giveaways(self, policy: Policy, cube: Cube | None) -> tuple[Giveaway, ...]:
        if cube is not None:
            return giveaways_in(cube, policy.harmless)
        counts = self.engine.value_counts(self.schema.sensitive)
        domain = self.schema.domain
        common = max(range(len(domain)), key=lambda i: counts.get(domain[i], 0))
        map_groups = partial(self.engine.map_groups, drop_missing=self.drop_missing)
        return giveaways_by_column(map_groups, self.schema, common, policy.harmless)

    def unique_obstacle(
        self, unique: int, records: int, accepted: Accepted, without: Mapping[str, int]
    ) -> Obstacle | None:
        """Too many unique records, with the columns that cause them.

        ``without`` says how many there would be without each column, if that is known already.
        """
        if too_many_unique(unique, records, accepted) and not without:
            without = self.unique_without
        return unique_obstacle(unique, records, accepted, without)

    def refuse(
        self, policy: Policy, accepted: Accepted, in_memory: Callable[[], Cube | None]
    ) -> None:
        """Refuse to publish what must not be, unless the steward accepts it."""
        refuse_identifiers(self.identifiers, accepted.identifiers, self.schema.records)
        _refuse(self.people_obstacle())
        told = self.giveaways(policy, in_memory)
        _refuse(giveaway_obstacle(told, self.schema.sensitive.name, accepted))

    def refuse_unique(self, written: Written, accepted: Accepted) -> None:
        """Refuse a release of too many unique records, before it becomes final."""
        _refuse(self.unique_obstacle(written.unique_records, written.records, accepted, {}))

    @cached_property
    def unique_without(self) -> dict[str, int]:
        """How many records would be unique without each public column."""
        return {column.name: self._unique_without(column) for column in self.schema.public}

    def _unique_without(self, column: Column) -> int:
        rest = tuple(one for one in self.schema.public if one != column)
        schema = replace(self.schema, public=rest)
        return sum(self.engine.map_groups(schema, count_unique, drop_missing=self.drop_missing))


def _refuse(obstacle: Obstacle | None) -> None:
    if obstacle is not None:
        obstacle.refuse()
