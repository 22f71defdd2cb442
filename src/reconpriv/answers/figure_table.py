"""The table of answers: one row for every combination of attributes, one column per figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from reconpriv.answers.count_table import EstimateTable, LabelledRows, json_labels, labelled_columns
from reconpriv.answers.figure import Answer
from reconpriv.columns.schema import Value
from reconpriv.estimate.compare import Comparison


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
