"""A table of figures: one row for every combination of attributes, one column per figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reconpriv.messages.readable import Plottable
from reconpriv.queries.estimate import COUNT, Estimate
from reconpriv.queries.figure import Figure, answered
from reconpriv.queries.table import EstimateTable, json_labels, label_array
from reconpriv.schema import Value
from reconpriv.sources.column_names import free_name
from reconpriv.sources.frame_types import as_pandas, as_polars

if TYPE_CHECKING:
    import pandas
    import polars

    from reconpriv.queries.sql import FigureQuery

Answer = Estimate | Figure


def value_of(answer: Answer) -> Value:
    """The count of an estimate, or the value of another figure."""
    return answer.count if isinstance(answer, Estimate) else answer.value


def number_of(answer: Answer) -> float | None:
    """The same as a number; None for a class or where there is nothing."""
    value = value_of(answer)
    return float(value) if isinstance(value, int | float) else None


@dataclass(frozen=True, repr=False)
class FigureTable(Plottable):
    """Counts and other figures, labelled by the values of the attributes they were grouped by."""

    by: tuple[str, ...]
    names: tuple[str, ...]
    rows: tuple[tuple[dict[str, Value], tuple[Answer, ...]], ...]

    def __iter__(self) -> Iterator[tuple[dict[str, Value], tuple[Answer, ...]]]:
        """Iterate over (labels, figures)."""
        return iter(self.rows)

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def __getitem__(self, key: Value | tuple[Value, ...]) -> tuple[Answer, ...]:
        """The figures of one combination, by its value or tuple of values."""
        wanted = key if isinstance(key, tuple) else (key,)
        for labels, answers in self.rows:
            if tuple(labels.values()) == wanted:
                return answers
        raise KeyError(key)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "by": list(self.by),
            "figures": list(self.names),
            "rows": [
                {
                    "labels": json_labels(labels),
                    "figures": [answer.as_dict() for answer in answers],
                }
                for labels, answers in self.rows
            ],
        }

    def to_arrow(self) -> pa.Table:
        """Labels, then the value and the limits of every figure, as columns."""
        arrays = [label_array([labels[name] for labels, _ in self.rows]) for name in self.by]
        names = list(self.by)
        for i, name in enumerate(self.names):
            answers = [answers[i] for _, answers in self.rows]
            columns = {
                name: [value_of(one) for one in answers],
                f"{name} low": [one.low for one in answers],
                f"{name} high": [one.high for one in answers],
                f"{name} standard error": [one.standard_error for one in answers],
                f"{name} exact": [one.exact for one in answers],
                f"{name} remarks": ["; ".join(one.remarks) for one in answers],
            }
            for heading, values in columns.items():
                arrays.append(_figures(values))
                names.append(free_name(heading, names))
        return pa.Table.from_arrays(arrays, names=names)

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a pandas data frame."""
        return as_pandas(self.to_arrow())

    def to_polars(self) -> polars.DataFrame:
        """The same as a Polars data frame."""
        return as_polars(self.to_arrow())


def _figures(values: list[Any]) -> pa.Array:
    """Numbers as doubles, whatever mixture of them there is; whole ones that need it in 64 bits."""
    present = [value for value in values if value is not None]
    if not all(type(value) in (int, float) for value in present):
        return pa.array(values)
    whole = all(type(value) is int and -(2**63) <= value < 2**63 for value in present)
    if whole and any(value != float(value) for value in present):
        return pa.array(values, pa.int64())
    return pa.array([None if value is None else float(value) for value in values], pa.float64())


def simplified(
    table: FigureTable, asked: FigureQuery
) -> Estimate | EstimateTable | Figure | FigureTable:
    """A single figure by itself, and a table of nothing but one count as a table of counts."""
    if len(table.names) != 1:
        return table
    name = asked.figures[0].alias or COUNT
    if not table.by:
        ((_, (one,)),) = table.rows
        return replace(one, name=name) if isinstance(one, Estimate) else answered(one)
    counts = [
        (labels, replace(one, name=name))
        for labels, (one,) in table.rows
        if isinstance(one, Estimate)
    ]
    if asked.figures[0].kind != COUNT or len(counts) < len(table):
        return table
    return EstimateTable(table.by, tuple(counts), name)
