"""One row, one person: who has several rows, and why that undoes the randomisation.

A vote over a person's rows finds the true value much more often than one row tells it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reconpriv.auditing.obstacles import Obstacle
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.messages.remedies import Control, Remedy, either


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
