"""The options by which a steward accepts what would otherwise be refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconpriv.cli.options.declared import shared
from reconpriv.cli.options.shared import Texts, listed_names
from reconpriv.columns.schema import MAX_UNIQUE


@dataclass(frozen=True)
class AcceptOptions:
    """What the steward accepts; each field is an option."""

    keep_identifier: Texts = shared(
        "--keep-identifier A,B,…",
        "Nearly unique public columns to publish anyway; others are refused.",
        repeatable=True,
    )
    keep_giveaway: Texts = shared(
        "--keep-giveaway A,B,…",
        "Public columns to publish although they give the sensitive value away.",
        repeatable=True,
    )
    max_unique: float = shared(
        "--max-unique SHARE",
        "The largest share of records that may be unique on the public columns.",
        MAX_UNIQUE,
    )

    def chosen(self) -> dict[str, Any]:
        """The same as arguments in Python."""
        return {
            "keep_identifier": listed_names("--keep-identifier", self.keep_identifier) or [],
            "keep_giveaway": listed_names("--keep-giveaway", self.keep_giveaway) or [],
            "max_unique": self.max_unique,
        }
