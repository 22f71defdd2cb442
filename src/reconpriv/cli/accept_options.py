"""The options by which a steward accepts what would otherwise be refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from reconpriv.cli.options import Texts, listed_names, several
from reconpriv.schema import MAX_UNIQUE

KeepIdentifier = Annotated[
    Texts,
    several(
        "--keep-identifier",
        metavar="A,B,…",
        help="Nearly unique public columns to publish anyway; others are refused.",
    ),
]
KeepGiveaway = Annotated[
    Texts,
    several(
        "--keep-giveaway",
        metavar="A,B,…",
        help="Public columns to publish although they give the sensitive value away.",
    ),
]
MaxUnique = Annotated[
    float,
    typer.Option(
        "--max-unique",
        metavar="SHARE",
        help="The largest share of records that may be unique on the public columns.",
    ),
]


@dataclass(frozen=True)
class AcceptOptions:
    """What the steward accepts; each field is an option."""

    keep_identifier: KeepIdentifier = None
    keep_giveaway: KeepGiveaway = None
    max_unique: MaxUnique = MAX_UNIQUE

    def chosen(self) -> dict[str, Any]:
        """The same as arguments in Python."""
        return {
            "keep_identifier": listed_names("--keep-identifier", self.keep_identifier) or [],
            "keep_giveaway": listed_names("--keep-giveaway", self.keep_giveaway) or [],
            "max_unique": self.max_unique,
        }


NOTHING_ACCEPTED = AcceptOptions()
