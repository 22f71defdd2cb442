"""The margins of a release as its manifest describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from reconpriv.core.margin_plan import DescribedTable
from reconpriv.core.margins import NEIGHBOURS, Margins
from reconpriv.release import json_parts
from reconpriv.release.described_files import Files

_NAMES = ("table", "count")


@dataclass(frozen=True)
class DescribedMargins:
    """The margins of a release: their privacy, their noise, their tables and their files.

    ``names`` are those of the two columns that hold the name of a table and a noisy count.
    """

    rho: float
    epsilon: float
    delta: float
    variance: float
    tables: tuple[DescribedTable, ...]
    names: tuple[str, str]
    files: Files

    @classmethod
    def from_dict(cls, said: Mapping[str, Any], files: Files) -> Self:
        """Read the block; a ValueError, KeyError or TypeError if it is damaged."""
        tables = tuple(
            DescribedTable(
                json_parts.text(one["name"]),
                tuple(json_parts.text(name) for name in one["columns"]),
                json_parts.count(one["rows"]),
                json_parts.count(one["left_out"]),
            )
            for one in said["tables"]
        )
        names = said["columns"]["table"], said["columns"]["count"]
        rho, epsilon, delta, variance = (
            json_parts.number(said[name]) for name in ("rho", "epsilon", "delta", "variance")
        )
        if not min(rho, epsilon, delta, variance) > 0 or not tables:
            raise ValueError
        if not all(one.columns and one.rows for one in tables):
            raise ValueError
        return cls(
            rho,
            epsilon,
            delta,
            variance,
            tables,
            (json_parts.text(names[0]), json_parts.text(names[1])),
            files,
        )

    @property
    def asked(self) -> Margins:
        """What a policy says to get them."""
        tables = [table.columns for table in self.tables]
        return Margins(rho=self.rho, delta=self.delta, tables=tables)

    def as_dict(self) -> dict[str, Any]:
        """The block in the manifest."""
        return {
            "rho": self.rho,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "variance": self.variance,
            "neighbours": NEIGHBOURS,
            "tables": [table.as_dict() for table in self.tables],
            "columns": dict(zip(_NAMES, self.names, strict=True)),
        }
