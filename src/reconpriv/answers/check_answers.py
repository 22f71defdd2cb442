"""Three answers of a release, for those who count its records with another program."""

from __future__ import annotations

import numpy as np

from reconpriv.cells.cube import Cube
from reconpriv.cells.sums import sum_selections
from reconpriv.columns.schema import Column, Value
from reconpriv.errors import OutputError
from reconpriv.estimate.counts import Design
from reconpriv.estimate.set_counts import SetCounts
from reconpriv.release.export_design import PLAIN, CheckAnswer, comparable
from reconpriv.theory.arrays import Flags, Ints


def check_answers(cube: Cube, design: Design, pooled: tuple[str, ...]) -> tuple[CheckAnswer, ...]:
    """An exact count, a sensitive one, and one among part of the records.

    They are about frequent values. Where groups are pooled over every public column, or no public
    value can be written in a program, all are about the whole table.
    """
    schema = cube.schema
    published = np.bincount(cube.value, weights=cube.count, minlength=schema.domain_size)
    values = [
        int(i) for i in np.argsort(-published, kind="stable")
        if comparable(schema.sensitive, schema.domain[i])
    ]  # fmt: skip
    if not values:
        raise OutputError(
            f"No value of column {schema.sensitive.name!r} can be written in a script.", hint=PLAIN
        )
    every = np.ones(cube.groups, dtype=bool)
    found = _frequent_part(cube, pooled)
    among, part = (None, every) if found is None else found
    third = values[0] if among is not None else values[min(1, len(values) - 1)]
    return (
        CheckAnswer(among, None, float(cube.records[part].sum()), 0.0),
        _counted(cube, design, None, every, values[0]),
        _counted(cube, design, among, part, third),
    )


def _counted(
    cube: Cube, design: Design, among: tuple[Column, Value] | None, part: Flags, value: int
) -> CheckAnswer:
    """The unbiased count of one value, from the records alone."""
    selection: Ints = np.where(part, 0, -1).astype(np.int64)
    found = SetCounts(sum_selections(cube, selection, 1, [value]), design)
    error = float(np.sqrt(found.variances[0]))
    return CheckAnswer(among, cube.schema.domain[value], float(found.number[0]), error)


def _frequent_part(
    cube: Cube, pooled: tuple[str, ...]
) -> tuple[tuple[Column, Value], Flags] | None:
    """A frequent value of a public column over which no groups are pooled, and its groups."""
    for column, codes, values in zip(cube.schema.public, cube.codes, cube.values, strict=True):
        if column.name in pooled or len(values) < 2:
            continue
        records = np.bincount(codes, weights=cube.records, minlength=len(values))
        for code in np.argsort(-records, kind="stable").tolist():
            value = values[code].as_py()
            if comparable(column, value):
                return (column, value), np.asarray(codes == code)
    return None
