"""What is found out about a table before it is published: identifiers, people, giveaways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from reconpriv.auditing.giveaways import Giveaway
from reconpriv.auditing.identifiers import find_identifiers, identifier_obstacle
from reconpriv.auditing.obstacles import (
    Accepted,
    Obstacle,
    giveaway_obstacle,
    too_many_unique,
    unique_obstacle,
)
from reconpriv.auditing.people import People, count_people
from reconpriv.auditing.single_records import count_unique
from reconpriv.columns.schema import MAX_UNIQUE, Column, Schema, Value

if TYPE_CHECKING:
    from reconpriv.engines.base import Engine, Written


@dataclass
class Checks:
    """The checks of one table; what they count is remembered.

    ``told`` are the giveaways that audits have found, by what the policy calls harmless.
    """

    engine: Engine
    schema: Schema
    drop_missing: bool
    one_row_each: bool = False  # people were dealt with when the rows were chosen
    told: dict[tuple[Value, ...], tuple[Giveaway, ...]] = field(default_factory=dict)

    @cached_property
    def identifiers(self) -> dict[str, int]:
        """The nearly unique public columns with their number of values."""
        return find_identifiers(self.engine, self.schema, drop_missing=self.drop_missing)

    @property
    def known_identifiers(self) -> dict[str, int]:
        """The same if they were looked for already; otherwise none."""
        found: dict[str, int] = self.__dict__.get("identifiers", {})
        return found

    @property
    def by_person(self) -> Schema:
        """The schema of a table whose groups are people."""
        assert self.schema.person is not None
        return replace(self.schema, public=(self.schema.person,))

    @cached_property
    def people(self) -> People | None:
        """How many people the table is about; None if nothing says who a row is about."""
        if self.schema.person is None:
            return None
        if self.one_row_each:
            return People(people=self.schema.records, most=1)
        return sum(
            self.engine.map_groups(self.by_person, count_people, drop_missing=self.drop_missing),
            People(),
        )

    def people_obstacle(self) -> Obstacle | None:
        """People with several rows, or rows of nobody."""
        if self.people is None or self.schema.person is None:
            return None
        return self.people.obstacle(self.schema.person.name)

    def unique_obstacle(
        self, unique: int, records: int, accepted: Accepted, without: Mapping[str, int]
    ) -> Obstacle | None:
        """Too many unique records, with the columns that cause them.

        ``without`` says how many there would be without each column, if that is known already. Who
        keeps a nearly unique column on purpose knows that it makes records unique.
        """
        usual = accepted.max_unique == MAX_UNIQUE
        if usual and accepted.identifiers.intersection(self.identifiers):
            return None
        if too_many_unique(unique, records, accepted) and not without:
            without = self.unique_without
        return unique_obstacle(unique, records, accepted, without)

    def refuse(self, accepted: Accepted) -> None:
        """Refuse to publish people or identifiers that must not be."""
        kept, records = accepted.identifiers, self.schema.records
        _refuse(identifier_obstacle(self.identifiers, kept, records))
        _refuse(self.people_obstacle())

    def refuse_written(
        self, written: Written, told: Sequence[Giveaway], accepted: Accepted
    ) -> None:
        """Refuse what giveaways and unique records forbid, before a release becomes final."""
        _refuse(giveaway_obstacle(told, self.schema.sensitive.name, accepted))
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
