"""What is found out about a table before it is published: identifiers, people, giveaways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from reconpriv.auditing.column_risk import ColumnRisk, identifier_remedies, identifiers_named
from reconpriv.auditing.giveaways import Giveaway
from reconpriv.auditing.obstacles import (
    Accepted,
    Obstacle,
    People,
    giveaway_obstacle,
    refuse,
    too_many_unique,
    unique_obstacle,
)
from reconpriv.auditing.single_records import count_unique, unique_without
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.cube import collect
from reconpriv.columns.schema import MAX_UNIQUE, Column, Schema, Value, looks_like_identifier
from reconpriv.protect.group_by import GroupBy

if TYPE_CHECKING:
    from reconpriv.engines.base import Engine, Written

# Up to so many records, one pass is enough for the table without each column.
_IN_MEMORY = 1 << 20


def count_people(batches: Iterator[CellBatch]) -> People:
    """The people in groups that were made by the person's number alone; for workers."""
    found = People()
    for batch in batches:
        (person,) = batch.public
        nobody = pc.is_null(person.values)
        if pa.types.is_string(person.values.type) or pa.types.is_large_string(person.values.type):
            nobody = pc.or_(nobody, pc.fill_null(pc.equal(person.values, ""), False))
        missing = nobody.to_numpy(zero_copy_only=False)[person.codes]
        known = batch.sizes[~missing]
        found += People(
            people=known.size,
            several=int((known > 1).sum()),
            most=int(known.max(initial=0)),
            unknown=int(batch.sizes[missing].sum()),
        )
    return found


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

    def distinct(self, columns: Sequence[Column], *, rough: bool = False) -> dict[str, int]:
        """How many values each of these columns has."""
        if not columns:
            return {}
        present = self.schema.sensitive if self.drop_missing else None
        found = self.engine.distinct(columns, present=present, rough=rough)
        return {column.name: count for column, count in zip(columns, found, strict=True)}

    @cached_property
    def identifiers(self) -> dict[str, int]:
        """The nearly unique public columns with their number of values.

        A rough count, which needs one pass and little memory, singles out those worth counting.
        """
        public, records = self.schema.public, self.schema.records
        rough = self.distinct(public, rough=True)
        # The count may be off by a third, so allow for twice as many values.
        suspects = [c for c in public if looks_like_identifier(2 * rough[c.name], records)]
        exact = self.distinct(suspects)
        return {name: n for name, n in exact.items() if looks_like_identifier(n, records)}

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
        parts = self.engine.map_groups(GroupBy(self.by_person, self.drop_missing), count_people)
        return sum(parts, People())

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

    @cached_property
    def unique_without(self) -> dict[str, int]:
        """How many records would be unique without each public column."""
        public, found = self.schema.public, dict[str, int]()
        if self.schema.records <= _IN_MEMORY:
            cells = self.engine.batches(GroupBy(self.schema, self.drop_missing))
            counts = unique_without(collect(cells, self.schema))
            return {column.name: n for column, n in zip(public, counts, strict=True)}
        for column in public:
            rest = replace(self.schema, public=tuple(one for one in public if one != column))
            parts = self.engine.map_groups(GroupBy(rest, self.drop_missing), count_unique)
            found[column.name] = sum(parts)
        return found

    def refuse(self, accepted: Accepted) -> None:
        """Refuse to publish people or identifiers that must not be."""
        found = [
            ColumnRisk(name, values, identifier=True)
            for name, values in self.identifiers.items()
            if name not in accepted.identifiers
        ]
        if found:
            what = identifiers_named(found, self.schema.records)
            hint = identifier_remedies([column.name for column in found])
            refuse(Obstacle("identifiers", what, hint))
        refuse(self.people_obstacle())

    def refuse_written(
        self, written: Written, told: Sequence[Giveaway], accepted: Accepted
    ) -> None:
        """Refuse what giveaways and unique records forbid, before a release becomes final."""
        refuse(
            giveaway_obstacle(told, self.schema.sensitive.name, accepted),
            self.unique_obstacle(written.unique_records, written.records, accepted, {}),
        )
