"""What an experiment yields: named tables of rows, written as CSV."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Step = Callable[[str], None]
"""Called with a few words whenever a step of an experiment is done."""


@dataclass(frozen=True)
class Result:
    """The rows of one experiment."""

    name: str
    rows: tuple[Row, ...]

    def select(self, **wanted: Any) -> list[Row]:
        """The rows with the given values."""
        return [row for row in self.rows if all(row[k] == v for k, v in wanted.items())]

    def write(self, folder: Path) -> Path:
        """Write the rows as CSV, with floats in full precision."""
        path = folder / f"{self.name}.csv"
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(self.rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        return path


def read_result(path: Path) -> Result:
    """Read the rows back; numbers become numbers."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = [{k: _number(v) for k, v in row.items()} for row in csv.DictReader(stream)]
    return Result(path.stem, tuple(rows))


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
