"""What is averaged, added up or ranked: a number of public columns, or the sensitive attribute.

A column of numbers stands for itself. Bins stand for their middles in averages and sums; an average
of them is then one of the middles, and says so. Other sensitive values need scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from reconpriv.core.cube import Cube
from reconpriv.engines.local import Evaluator
from reconpriv.errors import InputError
from reconpriv.queries.answer import Answerer
from reconpriv.queries.sql import unknown_column
from reconpriv.queries.sql_text import written_condition
from reconpriv.recoding import Recoding
from reconpriv.schema import Column, Kind, Schema, Value
from reconpriv.theory.arrays import Floats

_NUMERIC = (Kind.INTEGER, Kind.NUMBER, Kind.DECIMAL)
Scores = Mapping[Any, float]


@dataclass(frozen=True)
class ColumnNumber:
    """The number of a public column, from the numbers of its values."""

    index: int
    numbers: Floats

    def of(self, part: Cube) -> Floats:
        """The number of every group; NaN where it is missing."""
        return np.asarray(self.numbers[part.codes[self.index]])


@dataclass(frozen=True)
class ExpressionNumber:
    """The number that an expression over public columns gives."""

    expression: str

    def of(self, part: Cube) -> Floats:
        """The number of every group; NaN where it is missing."""
        evaluator = Evaluator(part.group_table(), written_condition)
        found = evaluator.values(self.expression)
        evaluator.close()
        kind = found.type
        if not (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        ):
            raise InputError(
                f"The expression {written_condition(self.expression)} gives no number, so it"
                " cannot be averaged or added up."
            )
        return np.asarray(
            found.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64
        )


@dataclass(frozen=True)
class Steps:
    """The values that a quantile can have, in order: numbers, bins or classes.

    ``places`` says where in that order each number (or, of the sensitive attribute, each value)
    stands. Bins have borders, from ``low`` up to ``high``, which may be open.
    """

    shown: tuple[Value, ...]
    low: tuple[Value, ...]
    high: tuple[Value, ...]


@dataclass(frozen=True)
class Measure:
    """A number of each record: ``number`` of public columns, or ``scores`` of sensitive values.

    A missing value is NaN, and does not count. ``steps`` are for quantiles; without them the
    values are the numbers themselves.
    """

    name: str
    number: ColumnNumber | ExpressionNumber | None
    scores: Floats | None
    steps: Steps | None = None
    remarks: tuple[str, ...] = ()


def measure_of(
    answerer: Answerer, asked: str, scores: Scores | None, *, ranked: bool = False
) -> Measure:
    """The measure that a column stands for; ``ranked`` if only its order is asked for."""
    schema = answerer.cells.schema
    names = [column.name for column in schema.columns]
    if asked not in names:
        folded = [name for name in names if name.lower() == asked.lower()]
        if len(folded) != 1:
            raise unknown_column(asked, names)
        asked = folded[0]
    column = next(one for one in schema.columns if one.name == asked)
    if column == schema.sensitive:
        return _sensitive(answerer, column, scores, ranked=ranked)
    if scores is not None:
        raise InputError(
            f"Scores are for the sensitive column {schema.sensitive.name!r}; {asked!r} is public."
        )
    index = names.index(asked)
    values = answerer.known[asked]
    numbers, steps, remarks = _numbers(column, list(values), schema.recoding(asked), ranked=ranked)
    return Measure(asked, ColumnNumber(index, numbers), None, steps, remarks)


def has_numbers(schema: Schema, name: str, *, ranked: bool = False) -> bool:
    """Whether a column has an average (or, if ``ranked``, a median) without scores."""
    column = next(one for one in schema.columns if one.name == name)
    return _has_numbers(column, schema.recoding(name), ranked=ranked)


def _has_numbers(column: Column, recoding: Recoding | None, *, ranked: bool) -> bool:
    if recoding is not None:
        return recoding.numeric or ranked
    return column.kind in _NUMERIC


def _sensitive(
    answerer: Answerer, column: Column, scores: Scores | None, *, ranked: bool
) -> Measure:
    schema = answerer.cells.schema
    domain, recoding = list(schema.domain), schema.recoding(column.name)
    if scores is None:
        numbers, steps, remarks = _numbers(column, domain, recoding, ranked=ranked, sensitive=True)
        return Measure(column.name, None, numbers, steps, remarks)
    strangers = [value for value in scores if value not in domain]
    if strangers:
        raise InputError(f"The scores name {strangers[0]!r}, which {column.name!r} does not have.")
    left = [value for value in domain if value is not None and value not in scores]
    if left:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        raise InputError(
            f"The scores leave out {left[0]!r}{more}.",
            hint=f"Give a number for each of the {len(domain)} values of {column.name!r}.",
        )
    numbers = np.array([_score(value, scores.get(value)) for value in domain])
    steps = None
    if ranked:
        steps = _classes(domain, numbers)
        numbers = _ranks(numbers)
    return Measure(column.name, None, numbers, steps)


_LARGEST_SCORE = 1e15  # beyond it, numbers that differ by one are the same


def _score(value: Value, score: Any) -> float:
    if value is None and score is None:
        return float("nan")
    if isinstance(score, bool) or not isinstance(score, int | float | Decimal | np.number):
        raise InputError(f"The score of {value!r} must be a number; got {score!r}.")
    if not abs(number := float(score)) <= _LARGEST_SCORE:
        limits = f"-{_LARGEST_SCORE:g} and {_LARGEST_SCORE:g}"
        raise InputError(f"The score of {value!r} must lie between {limits}; got {score!r}.")
    return number


def _ranks(numbers: Floats) -> Floats:
    """The place of each number among the distinct ones; NaN stays."""
    distinct = np.unique(numbers[~np.isnan(numbers)])
    return np.where(np.isnan(numbers), np.nan, np.searchsorted(distinct, numbers).astype(float))


def _classes(values: Sequence[Value], numbers: Floats) -> Steps:
    """Classes in the order of their scores; those of the same score are one step."""
    distinct = np.unique(numbers[~np.isnan(numbers)])
    shown = []
    for number in distinct:
        same = [str(v) for v, n in zip(values, numbers, strict=True) if n == number]
        shown.append(" or ".join(same))
    return Steps(tuple(shown), tuple(shown), tuple(shown))


def _numbers(
    column: Column,
    values: Sequence[Value],
    recoding: Recoding | None,
    *,
    ranked: bool,
    sensitive: bool = False,
) -> tuple[Floats, Steps | None, tuple[str, ...]]:
    """The numbers of the values of a column, or refuse."""
    usable = _has_numbers(column, recoding, ranked=ranked)
    if usable and recoding is not None:
        place = {label: i for i, label in enumerate(recoding.labels)}
        where = np.array([place.get(value, -1) for value in values])
        if ranked:
            ranks = np.where(where < 0, np.nan, where.astype(np.float64))
            return ranks, _bins(recoding), ()
        return _middles(recoding, values, where), None, (_MIDDLES.format(column=column.name),)
    if not usable:
        what = "text" if column.kind is Kind.STRING else f"{column.kind.value} values"
        hint = "Average a column of numbers."
        if sensitive:
            hint = "Give scores, a number for each value, for example scores={…}."
        raise InputError(
            f"Column {column.name!r} holds {what}, so it has no average, sum or quantile.",
            hint=hint,
        )
    numbers = np.array([np.nan if value is None else float(value) for value in values])
    return numbers, None, ()


_MIDDLES = (
    "{column} is published in bins: every number is taken as the middle of its bin, and the"
    " interval does not cover a departure from that"
)


def _bins(recoding: Recoding) -> Steps:
    if not recoding.numeric:  # groups in the order in which they were declared
        return Steps(recoding.labels, recoding.labels, recoding.labels)
    ends = [recoding.interval(i) for i in range(len(recoding.labels))]
    step = 1 if recoding.whole else 0
    high = tuple(None if top is None else _plain(top - step) for _, top in ends)
    return Steps(recoding.labels, tuple(_plain(low) for low, _ in ends), high)


def _plain(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


def _middles(recoding: Recoding, values: Sequence[Value], where: Any) -> Floats:
    found = np.full(len(values), np.nan)
    for i, place in enumerate(where.tolist()):
        if place < 0:
            continue
        low, high = recoding.interval(place)
        if high is None:
            raise InputError(
                f"The last bin of {recoding.column!r} ({recoding.labels[place]}) has no end, so it"
                " has no middle.",
                hint="Leave it out with a condition, or ask for the median.",
            )
        found[i] = float(low + high - (1 if recoding.whole else 0)) / 2.0
    return found
