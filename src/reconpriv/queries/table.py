"""A table of estimates: one row for every combination of attributes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from reconpriv.queries.estimate import Estimate
from reconpriv.schema import Value, json_value


@dataclass(frozen=True)
class EstimateTable:
    """Estimates labelled by the values of the attributes they were grouped by."""

    by: tuple[str, ...]
    rows: tuple[tuple[dict[str, Value], Estimate], ...]

    def __iter__(self) -> Iterator[tuple[dict[str, Value], Estimate]]:
        """Iterate over (labels, estimate)."""
        return iter(self.rows)

    def __len__(self) -> int:
        """How many combinations there are."""
        return len(self.rows)

    def __getitem__(self, key: Value | tuple[Value, ...]) -> Estimate:
        """The estimate of one combination, by its value or tuple of values."""
        wanted = key if isinstance(key, tuple) else (key,)
        for labels, estimate in self.rows:
            if tuple(labels.values()) == wanted:
                return estimate
        raise KeyError(key)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "by": list(self.by),
            "rows": [
                {
                    "labels": {name: json_value(value) for name, value in labels.items()},
                    **estimate.as_dict(),
                }
                for labels, estimate in self.rows
            ],
        }

    def to_arrow(self) -> pa.Table:
        """Labels, count, interval and what each rests on, as columns."""
        columns: dict[str, Any] = {
            name: [labels[name] for labels, _ in self.rows] for name in self.by
        }
        for name in ("count", "low", "high", "standard_error", "exact", "records", "groups"):
            label = name if name not in columns else f"{name}_"
            columns[label] = [getattr(estimate, name) for _, estimate in self.rows]
        return pa.table(columns)

    def __str__(self) -> str:
        """The table as text."""
        from reconpriv.render import as_text, estimate_table_view  # noqa: PLC0415 - rich is shown

        return as_text(estimate_table_view(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from reconpriv.render_html import estimate_table_html  # noqa: PLC0415

        return estimate_table_html(self)
