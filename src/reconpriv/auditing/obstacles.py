"""What stands in the way of a publication, and what a steward accepts on purpose.

An audit names every obstacle; publishing is refused as long as there is one. Each obstacle can be
removed, or accepted by an explicit word.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from reconpriv.auditing.giveaways import Giveaway
from reconpriv.columns.schema import FEW_RECORDS, MAX_UNIQUE, Schema
from reconpriv.errors import InputError
from reconpriv.messages.phrases import listed, share_words
from reconpriv.messages.remedies import Advice, Control, Remedy, either
from reconpriv.messages.shares import check_share

UNIQUE = "unique records"
_NAMED = 3  # columns named as the cause of unique records


@dataclass(frozen=True)
class Accepted:
    """What the steward accepts: columns that are kept although they tell too much, unique records.

    ``max_unique`` is the largest share of records that may be unique on the public columns.
    """

    identifiers: frozenset[str] = frozenset()
    giveaways: frozenset[str] = frozenset()
    max_unique: float = MAX_UNIQUE

    @classmethod
    def of(
        cls,
        schema: Schema,
        keep_identifier: Iterable[str] = (),
        keep_giveaway: Iterable[str] = (),
        max_unique: float = MAX_UNIQUE,
    ) -> Accepted:
        """The same from arguments, which may name public columns only."""
        return cls(
            _public(schema, keep_identifier, "although it is nearly unique"),
            _public(schema, keep_giveaway, "although it gives the sensitive value away"),
            check_share(max_unique, "The largest share of unique records", zero=True, one=True),
        )


def _public(schema: Schema, names: Iterable[str], why: str) -> frozenset[str]:
    kept = frozenset([names] if isinstance(names, str) else names)
    public = [column.name for column in schema.public]
    for name in sorted(kept.difference(public)):
        raise InputError(
            f"{name!r} is to be kept {why}, but it is not a public column.",
            hint=f"Public columns: {', '.join(public) or 'none'}.",
        )
    return kept


@dataclass(frozen=True)
class Obstacle:
    """A reason not to publish: a clause without its full stop, and what can be done about it.

    ``about`` is its subject in one word.
    """

    about: str
    what: str
    hint: Advice

    @property
    def sentence(self) -> Advice:
        """The obstacle as part of a verdict."""
        return Advice(f"Not ready to publish: {self.what}.", self.hint)

    def as_dict(self) -> dict[str, Any]:
        """Its subject and the sentence, for JSON."""
        return {"about": self.about, "sentence": self.sentence}


def refuse(*obstacles: Obstacle | None) -> None:
    """Refuse to publish if there is any of these obstacles."""
    for one in obstacles:
        if one is not None:
            raise InputError(f"Nothing was published: {one.what}.", hint=one.hint)


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
            what = (
                f"{self.unknown:,} records have no value in {person!r}, so nobody can tell whose"
                " they are"
            )
            return Obstacle("people", what, either(Remedy("leave those records out", Control.SQL)))
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
        """The counts for JSON."""
        return asdict(self)


def giveaway_obstacle(
    found: Sequence[Giveaway], sensitive: str, accepted: Accepted
) -> Obstacle | None:
    """The public columns that tell the sensitive value, unless all of them are kept on purpose."""
    refused = [one for one in found if not accepted.giveaways.issuperset(one.columns)]
    if not refused:
        return None
    names = tuple(dict.fromkeys(name for one in refused for name in one.columns))
    it = "it" if len(names) == 1 else "them"
    return Obstacle(
        "giveaways",
        "; ".join(one.sentence(sensitive) for one in refused),
        either(
            Remedy(f"leave {it} out", Control.DROP, names),
            Remedy(f"keep {it} on purpose", Control.KEEP_GIVEAWAY, names),
        ),
    )


def too_many_unique(unique: int, records: int, accepted: Accepted) -> bool:
    """True if more records stand alone than the steward accepts; a few records always do."""
    return records >= FEW_RECORDS and unique > accepted.max_unique * records


def unique_obstacle(
    unique: int, records: int, accepted: Accepted, without: Mapping[str, int]
) -> Obstacle | None:
    """Too many records that are unique on the public columns.

    ``without`` says how many there would be without each column.
    """
    if not too_many_unique(unique, records, accepted):
        return None
    best = sorted(without.items(), key=lambda pair: pair[1])[:_NAMED]
    causes = [(name, n) for name, n in best if n <= 0.9 * unique]
    cause = "no single column causes this"
    fewer: Remedy | str = "publish fewer columns"
    if causes:
        shares = listed([f"{n / records:.1%} without {name!r}" for name, n in causes])
        cause = f"it would be {shares}"
        fewer = Remedy("leave the column out", Control.DROP, (causes[0][0],))
    accept = Remedy("accept it", Control.MAX_UNIQUE, math.ceil(100 * unique / records) / 100)
    return Obstacle(
        UNIQUE,
        f"{share_words(unique, records)} are unique on the public columns; {cause}",
        either(fewer, Remedy("bin numbers", Control.BIN), accept),
    )
