"""What is found out about a table before it is published: identifiers, people, giveaways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from reconpriv.auditing.column_risk import ColumnRisk, identifier_remedies, identifiers_named
from reconpriv.auditing.giveaways import Giveaway
from reconpriv.auditing.obstacles import (
    Accepted,
    Obstacle,
    giveaway_obstacle,
    refuse,
    too_many_unique,
    unique_obstacle,
)
from reconpriv.auditing.single_records import count_unique
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.columns.schema import MAX_UNIQUE, Column, Schema, Value, looks_like_identifier
from reconpriv.messages.remedies import Advice, Control, Remedy, either
from reconpriv.protect.group_by import GroupBy

if TYPE_CHECKING:
    from reconpriv.engines.base import Engine, Written


def identifier_obstacle(
    found: Mapping[str, int], kept: frozenset[str], records: int
) -> Obstacle | None:
    """The nearly unique columns that nobody asked to keep."""
    refused = [
        ColumnRisk(name, n, identifier=True) for name, n in found.items() if name not in kept
    ]
    if not refused:
        return None
    names = [column.name for column in refused]
    return Obstacle("identifiers", identifiers_named(refused, records), identifier_remedies(names))


def identifier_note(column: ColumnRisk, records: int) -> str:
    """The warning about one such column."""
    note = (
        f"Public column {column.name!r} is nearly unique ({column.distinct:,} values in"
        f" {records:,} records): is it an identifier? It would be published as it is, and splits"
        " the table into tiny groups."
    )
    if column.kept:
        return f"{note} It is kept on request."
    return Advice(note, Remedy("leave it out", Control.DROP, (column.name,)))


@dataclass(frozen=True)
class People:
    """How many people a table is about, and how many of them have several rows.

    ``most`` is the largest number of rows of one person; ``unknown`` rows do not say whose they
    are.
    """

    people: int = 0
    several: int = 0
    most: int = 0
    unknown: int = 0

    def __add__(self, more: People) -> People:
        """The people of two parts, which share none."""
        return People(
            self.people + more.people,
            self.several + more.several,
            max(self.most, more.most),
            self.unknown + more.unknown,
        )

    def obstacle(self, person: str) -> Obstacle | None:
        """Why the table cannot be published as it is; None if each row is one person."""
        if self.unknown:
            return Obstacle(
                "people",
                f"{self.unknown:,} records have no value in {person!r}, so nobody can tell whose"
                " they are",
                either(Remedy("leave those records out", Control.SQL)),
            )
        if not self.several:
            return None
        verb = "has" if self.several == 1 else "have"
        return Obstacle(
            "people",
            f"{self.several:,} of {self.people:,} people {verb} several rows (up to {self.most:,});"
            " a vote over the rows of one person undoes the randomisation",
            either(
                Remedy("keep one row of each", Control.ROWS_PER_PERSON, "one"),
                Remedy("aggregate to one row per person", Control.SQL),
            ),
        )

    def as_dict(self) -> dict[str, Any]:
        """The counts by name."""
        return dict(vars(self))


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
        schema, rough = self.schema, self.distinct(self.schema.public, rough=True)
        # The count may be off by a third, so allow for twice as many values.
        suspects = [
            c for c in schema.public if looks_like_identifier(2 * rough[c.name], schema.records)
        ]
        exact = self.distinct(suspects)
        return {name: n for name, n in exact.items() if looks_like_identifier(n, schema.records)}

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

    def refuse(self, accepted: Accepted) -> None:
        """Refuse to publish people or identifiers that must not be."""
        kept, records = accepted.identifiers, self.schema.records
        refuse(identifier_obstacle(self.identifiers, kept, records), self.people_obstacle())

    def refuse_written(
        self, written: Written, told: Sequence[Giveaway], accepted: Accepted
    ) -> None:
        """Refuse what giveaways and unique records forbid, before a release becomes final."""
        refuse(
            giveaway_obstacle(told, self.schema.sensitive.name, accepted),
            self.unique_obstacle(written.unique_records, written.records, accepted, {}),
        )

    @cached_property
    def unique_without(self) -> dict[str, int]:
        """How many records would be unique without each public column."""
        public, found = self.schema.public, {}
        for column in public:
            rest = replace(self.schema, public=tuple(one for one in public if one != column))
            parts = self.engine.map_groups(GroupBy(rest, self.drop_missing), count_unique)
            found[column.name] = sum(parts)
        return found
