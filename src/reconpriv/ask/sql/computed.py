"""Expressions that a SELECT groups by become public columns of the cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconpriv.answers.answerer import Answerer
from reconpriv.ask.ordering import sorted_for_display
from reconpriv.ask.sql.text import written_condition
from reconpriv.cells.cube import Cells, Cube
from reconpriv.columns.schema import Column, Kind, Schema, Value
from reconpriv.engines.local import Evaluator
from reconpriv.errors import InputError
from reconpriv.sources.column_names import free_name

if TYPE_CHECKING:
    from reconpriv.ask.sql.select import Grouping

_NAN = object()
_PLAIN = (
    pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_string,
    pa.types.is_boolean, pa.types.is_date, pa.types.is_timestamp, pa.types.is_time,
    pa.types.is_null,
)  # fmt: skip


def with_groupings(answerer: Answerer, by: Sequence[Grouping]) -> tuple[Answerer, list[str]]:
    """The columns to group by; expressions become columns of the cells."""
    taken = [column.name for column in answerer.cells.schema.columns]
    names: list[str] = []
    computed: dict[str, str] = {}
    for grouping in by:
        name = grouping.column
        if name is None:
            name = free_name("expression", [*taken, *computed])
            computed[name] = grouping.expression
        names.append(name)
    if computed:
        extended = with_expressions(answerer.cells, computed)
        answerer = Answerer(extended, answerer.design, answerer.measurements)
    return answerer, names


@dataclass(frozen=True)
class ComputedCells:
    """Cells with further public columns, each computed from the others."""

    base: Cells
    schema: Schema
    values: tuple[pa.Array, ...]
    expressions: tuple[str, ...]

    def parts(self) -> Iterator[Cube]:
        """Every part, with the codes of the computed columns."""
        first = len(self.values) - len(self.expressions)
        places = [_places(values) for values in self.values[first:]]
        for part in self.base.parts():
            evaluator = Evaluator(part.group_table(), written_condition)
            codes = [
                _codes(evaluator.values(expression), place)
                for expression, place in zip(self.expressions, places, strict=True)
            ]
            evaluator.close()
            yield replace(part, schema=self.schema, values=self.values, codes=(*part.codes, *codes))


def with_expressions(cells: Cells, expressions: Mapping[str, str]) -> Cells:
    """Cells with a public column for every expression (name: SQL over public columns)."""
    found: list[list[pa.Array]] = [[] for _ in expressions]
    for part in cells.parts():
        evaluator = Evaluator(part.group_table(), written_condition)
        for column, sql in zip(found, expressions.values(), strict=True):
            column.append(_plain(evaluator.values(sql), sql).unique())
        evaluator.close()
    columns = tuple(Column(name, Kind.OTHER) for name in expressions)
    extended = ComputedCells(
        cells,
        replace(cells.schema, public=(*cells.schema.public, *columns)),
        (*cells.values, *(_distinct(column) for column in found)),
        tuple(expressions.values()),
    )
    if isinstance(cells, Cube):
        (whole,) = extended.parts()  # kept in memory, so it is not computed again
        return whole
    return extended


def _plain(values: pa.Array, sql: str) -> pa.Array:
    if not any(test(values.type) for test in _PLAIN):
        raise InputError(
            f"The expression {written_condition(sql)} gives no plain value to group by."
        )
    return values


def _distinct(parts: Sequence[pa.Array]) -> pa.Array:
    """The distinct values of all parts, in display order."""
    every = {_key(value): value for part in parts for value in part.to_pylist()}
    return pa.array(sorted_for_display(every.values()), parts[0].type)


def _places(values: pa.Array) -> dict[Any, int]:
    return {_key(value): i for i, value in enumerate(values.to_pylist())}


def _codes(values: pa.Array, place: Mapping[Any, int]) -> NDArray[np.int32]:
    """The place of each value among the distinct ones."""
    encoded = values.dictionary_encode(null_encoding="encode")
    lookup = np.array([place[_key(v)] for v in encoded.dictionary.to_pylist()], dtype=np.int32)
    return np.asarray(lookup[encoded.indices.to_numpy()])


def _key(value: Value) -> Any:
    """A key that distinguishes values; NaN is not equal to itself, but counts as one value."""
    return _NAN if isinstance(value, float) and math.isnan(value) else value
