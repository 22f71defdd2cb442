"""A table of estimates: one row for every combination of attributes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reconpriv.messages.readable import Plottable
from reconpriv.queries.estimate import COUNT, Estimate
from reconpriv.schema import Value, json_value
from reconpriv.sources.column_names import free_name
from reconpriv.sources.frame_types import as_pandas, as_polars

if TYPE_CHECKING:
    import pandas
    import polars

_COLUMNS = {
    "count": pa.float64(), "low": pa.float64(), "high": pa.float64(), "confidence": pa.float64(),
    "standard_error": pa.float64(), "exact": pa.bool_(), "records": pa.int64(),
    "groups": pa.int64(), "trials": pa.float64(), "from_margins": pa.float64(),
    "remarks": pa.string(),
}  # fmt: skip
# Of counts that lean on a model; one that does not has another estimator, and no such error.
_MODEL_COLUMNS = {
    "estimator": pa.string(), "mean_squared_error": pa.float64(), "from_model": pa.float64(),
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class EstimateTable(Plottable):
    """Estimates labelled by the values of the attributes they were grouped by.

    ``name`` is how the counts are headed.
    """

    by: tuple[str, ...]
    rows: tuple[tuple[dict[str, Value], Estimate], ...]
    name: str = COUNT

    def __iter__(self) -> Iterator[tuple[dict[str, Value], Estimate]]:
        """Iterate over (labels, estimate)."""
        return iter(self.rows)

    def __len__(self) -> int:
        """How many combinations there are."""
        return len(self.rows)

    def __getitem__(self, key: Value | tuple[Value, ...]) -> Estimate:
        """The estimate for one combination, by its value or tuple of values."""
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
                    "labels": json_labels(labels),
                    **estimate.as_dict(),
                }
                for labels, estimate in self.rows
            ],
        }

    def to_arrow(self) -> pa.Table:
        """Labels, count, interval and what each estimate rests on, as columns.

        Labels keep their types. An estimate column named like a label gets underscores.
        """
        arrays = [label_array([labels[name] for labels, _ in self.rows]) for name in self.by]
        names = list(self.by)
        model = any(one.leans for _, one in self.rows)
        for name, kind in {**_COLUMNS, **(_MODEL_COLUMNS if model else {})}.items():
            values = [getattr(estimate, name) for _, estimate in self.rows]
            shown = ["; ".join(value) for value in values] if name == "remarks" else values
            arrays.append(pa.array(shown, kind, from_pandas=True))  # no limits: null, not NaN
            names.append(free_name(self.name if name == COUNT else name, names))
        return pa.Table.from_arrays(arrays, names=names)

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a pandas data frame; integers with missing values stay integers."""
        return as_pandas(self.to_arrow())

    def to_polars(self) -> polars.DataFrame:
        """The same as a Polars data frame."""
        return as_polars(self.to_arrow())


def json_labels(labels: Mapping[str, Value]) -> dict[str, Any]:
    """Labels as JSON knows them; what is infinite or not a number is text."""
    return {
        name: str(value)
        if isinstance(value, float) and not math.isfinite(value)
        else json_value(value)
        for name, value in labels.items()
    }


def label_array(values: list[Value]) -> pa.Array:
    """Labels with their type; text if nothing shows the type."""
    found = pa.array(values)
    return found.cast(pa.string()) if pa.types.is_null(found.type) else found
