"""The values that a quantile can have, in order, and the place of every record among them.

Places are exact where numbers are not: integers beyond 2^53 and long decimals keep their order and
their value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconpriv.answers.answerer import Answerer
from reconpriv.cells.cube import Cells, Cube
from reconpriv.columns.schema import Value
from reconpriv.estimate.measures import ColumnNumber, ExpressionNumber, Measure, Steps
from reconpriv.estimate.totals import Number
from reconpriv.theory.arrays import Floats


@dataclass(frozen=True)
class Ladder:
    """Places of groups (``number``) or of sensitive values (``scores``); NaN where one is missing.

    ``at`` gives the value at a place, and the lower and the upper end of what it stands for, which
    differ for bins.
    """

    number: Number | None
    scores: Floats | None
    at: Callable[[int], tuple[Value, Value, Value]]


@dataclass(frozen=True)
class _Places:
    """Places of what an expression gives, among all that it gives; in memory they are kept."""

    cells: Cells
    expression: ExpressionNumber
    distinct: pa.Array

    def of(self, part: Cube) -> Floats:
        return self._kept if part is self.cells else self._found(part)

    @cached_property
    def _kept(self) -> Floats:
        assert isinstance(self.cells, Cube)
        return self._found(self.cells)

    def _found(self, part: Cube) -> Floats:
        found = pc.index_in(self.expression.values(part), value_set=self.distinct)
        return np.asarray(found.cast(pa.float64()).to_numpy(zero_copy_only=False))


def ladder_of(answerer: Answerer, measure: Measure) -> Ladder:
    """The ladder of a measure."""
    steps, number, cells = measure.steps, measure.number, answerer.cells
    if steps is not None:
        return Ladder(number, measure.scores, _of_steps(steps))
    if number is None:
        assert measure.scores is not None
        places, at = _placed(measure.scores, cells.schema.domain)
        return Ladder(None, places, at)
    if isinstance(number, ColumnNumber):
        places, at = _placed(number.numbers, cells.values[number.index])
        return Ladder(ColumnNumber(number.index, places), None, at)
    seen = [pc.unique(number.values(part)) for part in cells.parts()]
    distinct = pc.unique(pa.concat_arrays(seen)).drop_null()
    ordered = distinct.take(pc.array_sort_indices(distinct))
    shown = _numbers(lambda place: ordered[place].as_py())
    return Ladder(_Places(cells, number, ordered), None, shown)


def _of_steps(steps: Steps) -> Callable[[int], tuple[Value, Value, Value]]:
    return lambda place: (steps.shown[place], steps.low[place], steps.high[place])


def _numbers(value: Callable[[int], Value]) -> Callable[[int], tuple[Value, Value, Value]]:
    def at(place: int) -> tuple[Value, Value, Value]:
        shown = _plain(value(place))
        return shown, shown, shown

    return at


def _plain(value: Value) -> Value:
    """Whole numbers as integers, others as floats."""
    if isinstance(value, int):
        return value
    return int(value) if value == int(value) else float(value)


def _placed(
    numbers: Floats, values: Sequence[Value] | pa.Array
) -> tuple[Floats, Callable[[int], tuple[Value, Value, Value]]]:
    """The places of ascending values; those that are the same as floats keep their order."""
    order = np.argsort(numbers, kind="stable")
    order = order[~np.isnan(numbers[order])]
    places = np.full(numbers.size, np.nan)
    places[order] = np.arange(order.size)

    def value(place: int) -> Value:
        code = int(order[place])
        found = values[code].as_py() if isinstance(values, pa.Array) else values[code]
        own = isinstance(found, int | Decimal) and float(found) == numbers[code]
        return found if own else float(numbers[code])

    return places, _numbers(value)
