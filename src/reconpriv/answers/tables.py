"""Tables of answers: one row for every combination of attributes, of counts or of any figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from reconpriv.answers.figure import COUNT, Answer
from reconpriv.columns.schema import Value, json_value
from reconpriv.estimate.compare import Comparison
from reconpriv.estimate.counts import Estimate
from reconpriv.messages.readable import Plottable, Readable
from reconpriv.sources.column_names import free_name
from reconpriv.sources.frame_types import as_pandas, as_polars

if TYPE_CHECKING:
    import pandas
    import polars

Row = TypeVar("Row")

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


class Tabular(Readable):
    """A result that is a table of Arrow."""

    def to_arrow(self) -> pa.Table:
        """The result as a table."""
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a pandas data frame; integers with missing values stay integers."""
        return as_pandas(self.to_arrow())

    def to_polars(self) -> polars.DataFrame:
        """The same as a Polars data frame."""
        return as_polars(self.to_arrow())


class LabelledRows(Plottable, Tabular, Generic[Row]):
    """Rows labelled by the values of the attributes that they were grouped by."""

    by: tuple[str, ...]
    rows: tuple[tuple[dict[str, Value], Row], ...]

    def __iter__(self) -> Iterator[tuple[dict[str, Value], Row]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Value | tuple[Value, ...]) -> Row:
        """What one combination has, by its value or tuple of values."""
        wanted = key if isinstance(key, tuple) else (key,)
        for labels, row in self.rows:
            if tuple(labels.values()) == wanted:
                return row
        raise KeyError(key)


@dataclass(frozen=True, repr=False)
class EstimateTable(LabelledRows[Estimate]):
    """Estimates labelled by the values of the attributes they were grouped by.

    ``name`` is how the counts are headed.
    """

    by: tuple[str, ...]
    rows: tuple[tuple[dict[str, Value], Estimate], ...]
    name: str = COUNT

    def as_dict(self) -> dict[str, Any]:
        """The table for JSON."""
        rows = [{"labels": json_labels(labels), **one.as_dict()} for labels, one in self.rows]
        return {"by": list(self.by), "rows": rows}

    def to_arrow(self) -> pa.Table:
        """Labels, count, interval and what each estimate rests on, as columns.

        Labels keep their types. An estimate column named like a label gets underscores.
        """
        model = any(one.leans for _, one in self.rows)
        columns = {}
        for name, kind in {**_COLUMNS, **(_MODEL_COLUMNS if model else {})}.items():
            values = [getattr(estimate, name) for _, estimate in self.rows]
            shown = ["; ".join(value) for value in values] if name == "remarks" else values
            # no limits: null, not NaN
            columns[self.name if name == COUNT else name] = pa.array(shown, kind, from_pandas=True)
        return labelled_columns(self.by, [labels for labels, _ in self.rows], columns.items())


@dataclass(frozen=True, repr=False)
class FigureTable(LabelledRows[tuple[Answer, ...]]):
    """Counts and other figures, labelled by the values of the attributes they were grouped by."""

    by: tuple[str, ...]
    names: tuple[str, ...]
    rows: tuple[tuple[dict[str, Value], tuple[Answer, ...]], ...]

    @property
    def answers(self) -> list[Answer]:
        """Every answer, row by row."""
        return [one for _, answers in self.rows for one in answers]

    @property
    def remarks(self) -> list[str]:
        """Each remark once; if it concerns only some answers, with their number."""
        return distinct_remarks(self.answers)

    def as_dict(self) -> dict[str, Any]:
        """The table for JSON."""
        rows = [
            {"labels": json_labels(labels), "figures": [answer.as_dict() for answer in answers]}
            for labels, answers in self.rows
        ]
        return {"by": list(self.by), "figures": list(self.names), "rows": rows}

    def to_arrow(self) -> pa.Table:
        """Labels, then the value and the limits of every figure, as columns."""
        columns: list[tuple[str, pa.Array]] = []
        for i, name in enumerate(self.names):
            answers = [answers[i] for _, answers in self.rows]
            values = {
                name: [one.value for one in answers],
                f"{name} low": [one.low for one in answers],
                f"{name} high": [one.high for one in answers],
                f"{name} standard error": [one.standard_error for one in answers],
                f"{name} exact": [one.exact for one in answers],
                f"{name} remarks": ["; ".join(one.remarks) for one in answers],
            }
            columns += [(heading, _figures(found)) for heading, found in values.items()]
        return labelled_columns(self.by, [labels for labels, _ in self.rows], columns)


def distinct_remarks(answers: Sequence[Answer]) -> list[str]:
    """Each remark once; if it concerns only some answers, with their number."""
    found = Counter(remark for one in answers for remark in one.remarks)
    every = len(answers)
    return [
        remark if times == every else f"{remark} ({times} of {every} estimates)"
        for remark, times in found.items()
    ]


def table_of(answer: Any) -> FigureTable:
    """Any answer as a table: a single one, a table of counts, or a comparison."""
    if isinstance(answer, FigureTable):
        return answer
    if isinstance(answer, Answer):
        return FigureTable((), (answer.name,), (({}, (answer,)),))
    if isinstance(answer, Comparison):
        parts = answer.parts
        return FigureTable(("",), (answer.of,), tuple(({"": name}, (one,)) for name, one in parts))
    assert isinstance(answer, EstimateTable)
    rows = tuple((labels, (one,)) for labels, one in answer.rows)
    return FigureTable(answer.by, (answer.name,), rows)


def _figures(values: list[Any]) -> pa.Array:
    """Numbers as doubles, whatever mixture of them there is; whole ones that need it in 64 bits."""
    present = [value for value in values if value is not None]
    if not all(type(value) in (int, float) for value in present):
        return pa.array(values)
    whole = all(type(value) is int and -(2**63) <= value < 2**63 for value in present)
    if whole and any(value != float(value) for value in present):
        return pa.array(values, pa.int64())
    return pa.array([None if value is None else float(value) for value in values], pa.float64())


def labelled_columns(
    by: Sequence[str],
    labels: Sequence[Mapping[str, Value]],
    columns: Iterable[tuple[str, pa.Array]],
) -> pa.Table:
    """Labels with their types, then other columns; one named like an earlier one is renamed."""
    names = list(by)
    arrays = [label_array([one[name] for one in labels]) for name in by]
    for name, array in columns:
        names.append(free_name(name, names))
        arrays.append(array)
    return pa.Table.from_arrays(arrays, names=names)


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
