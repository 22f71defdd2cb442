"""The paper's query pool (section 6.1): random count queries with a minimum selectivity."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TextIO

import numpy as np
import pyarrow as pa

from reconpriv.cells.cube import Cube
from reconpriv.cells.randomness import Randomness, repeatable_key, unit_interval
from reconpriv.columns.schema import Schema, Value, json_value, quote_identifier
from reconpriv.errors import InputError, PolicyError
from reconpriv.messages.shares import check_share
from reconpriv.theory.arrays import Floats, Ints, distinct_columns, run_starts

# A pool is drawn in rounds of candidates; after this many, the table has too few such queries.
_ROUND = 1 << 14
_ROUNDS = 200
# Cells are counted in an array of all possible ones, which needs no sorting, if there are at
# most this many of them and not many more than actually occur.
_DENSE = 1 << 22
_SPARSE = 16


class DrawnQueries(NamedTuple):
    """Queries in the order drawn: their codes as in :class:`Workload`, and their counts."""

    codes: Ints
    value: Ints
    answers: Ints
    selected: Ints

    @classmethod
    def joined(cls, rounds: list[DrawnQueries], most: int) -> DrawnQueries:
        """The first ``most`` candidates of several rounds."""
        return cls(*(np.concatenate(parts, -1)[..., :most] for parts in zip(*rounds, strict=True)))


@dataclass(frozen=True)
class Workload:
    """Queries of the form A1 = a1 AND … AND SA = x, with their true answers.

    The answers are raw counts: a workload stays with the publisher. ``selected`` are the records
    that satisfy the public half of each query. ``codes`` has a row per public column, whose
    ``values`` they index, and -1 where a query does not ask about it; ``value`` is what it asks
    about the sensitive column, by its place in the domain.
    """

    schema: Schema
    values: tuple[pa.Array, ...]
    codes: Ints
    value: Ints
    answers: Ints
    selected: Ints
    records: int
    candidates: int

    def __len__(self) -> int:
        return self.value.size

    @cached_property
    def queries(self) -> tuple[dict[str, Value], ...]:
        """The value that each query asks of each of its columns, the sensitive one last."""
        known = [values.to_pylist() for values in self.values]
        names = [column.name for column in self.schema.public]
        queries: list[dict[str, Value]] = [{} for _ in range(len(self))]
        for query, column in np.argwhere(self.codes.T >= 0).tolist():
            queries[query][names[column]] = known[column][self.codes[column, query]]
        for one, value in zip(queries, self.value.tolist(), strict=True):
            one[self.schema.sensitive.name] = self.schema.domain[value]
        return tuple(queries)

    def without(self, column: int) -> Workload | None:
        """The queries on the table without a public column; None if all of them ask about it."""
        kept, schema = self.codes[column] < 0, self.schema
        if not kept.any():
            return None
        return replace(
            self,
            schema=replace(schema, public=schema.public[:column] + schema.public[column + 1 :]),
            values=self.values[:column] + self.values[column + 1 :],
            codes=np.delete(self.codes, column, axis=0)[:, kept],
            value=self.value[kept],
            answers=self.answers[kept],
            selected=self.selected[kept],
        )


def make_workload(
    cube: Cube,
    *,
    queries: int = 5_000,
    min_selectivity: float = 0.001,
    max_attributes: int = 3,
    seed: int = 0,
) -> Workload:
    """Draw d from 1..3, d public attributes, a value of each and a sensitive value, all uniformly.

    A query is kept if at least ``min_selectivity`` of the records satisfy it, until there are
    enough. ``cube`` holds the raw cells. The same seed gives the same pool.
    """
    if queries < 1:
        raise PolicyError(f"A workload needs at least one query; got {queries}.")
    check_share(min_selectivity, "The smallest selectivity", one=True)
    if not max_attributes >= 1:
        raise PolicyError(f"A query needs at least one public attribute; got {max_attributes}.")
    if not cube.codes:
        raise InputError("A workload needs at least one public attribute.")
    least = min_selectivity * int(cube.records.sum())
    pool = _Pool(cube, min(max_attributes, len(cube.codes)), seed, least)
    if not pool.useful:
        raise InputError(
            f"No query on this table reaches a selectivity of {min_selectivity:g}.",
            hint="Ask for a lower one.",
        )
    rounds: list[DrawnQueries] = []
    found = 0
    for number in range(_ROUNDS):
        rounds.append(pool.candidates(number))
        found += rounds[-1].value.size
        if found >= queries:
            kept = DrawnQueries.joined(rounds, queries)._asdict()
            records, tried = int(cube.records.sum()), (number + 1) * _ROUND
            return Workload(cube.schema, cube.values, **kept, records=records, candidates=tried)
    raise InputError(
        f"Only {found:,} of {_ROUND * _ROUNDS:,} random queries reach a selectivity of"
        f" {min_selectivity:g}.",
        hint="Ask for fewer queries or a lower selectivity.",
    )


class _Counts(NamedTuple):
    """How many records have each key; the keys that occur, in order."""

    keys: Ints
    counts: Ints

    def at(self, wanted: Ints) -> Ints:
        """The counts of these keys, 0 for one that does not occur."""
        place = np.minimum(np.searchsorted(self.keys, wanted), self.keys.size - 1)
        return np.where(self.keys[place] == wanted, self.counts[place], 0)

    def without_value(self, domain_size: int) -> _Counts:
        """The counts of groups, if these keys are of cells: the value is their last digit."""
        group = self.keys // domain_size
        first = run_starts(group)
        return _Counts(group[first], np.add.reduceat(self.counts, first))


class _Pool:
    """DrawnQueries with their true answers, looked up in one table per attribute subset."""

    def __init__(self, cube: Cube, most: int, seed: int, least: float) -> None:
        self._cube, self._most, self._least = cube, most, least
        self._randomness = Randomness(repeatable_key(f"workload {seed}"))
        self._tables: dict[tuple[int, ...], tuple[_Counts, _Counts]] = {}
        # Further conditions only lower an answer, so the other attributes need not be tried.
        self.useful = {
            i for i in range(len(cube.codes)) if int(self._count((i,)).counts.max()) >= least
        }

    def candidates(self, number: int) -> DrawnQueries:
        """The candidates of one round that reach the minimum answer, in the order drawn."""
        m, sizes = self._cube.schema.domain_size, [len(v) for v in self._cube.values]
        index = np.arange(_ROUND, dtype=np.uint64) + np.uint64(number * _ROUND)
        draws = [
            unit_interval(self._randomness.words(np.full(_ROUND, i, np.uint64), index))
            for i in range(1 + len(sizes))
        ]
        how_many = 1 + (draws[0][:, 0] * self._most).astype(np.int64)
        value = (draws[0][:, 1] * m).astype(np.int64)
        # Take the first d attributes of a random order: sampling without replacement.
        order = np.argsort(np.stack([d[:, 0] for d in draws[1:]], axis=1), axis=1)
        used = np.zeros(order.shape, dtype=bool)
        np.put_along_axis(used, order, np.arange(len(sizes)) < how_many[:, None], axis=1)
        chosen = np.stack(
            [(d[:, 1] * size).astype(np.int64) for d, size in zip(draws[1:], sizes, strict=True)],
            axis=1,
        )
        subsets, _, subset = distinct_columns(used.T)
        answer, selected = np.zeros((2, _ROUND), dtype=np.int64)
        for i, members in enumerate(subsets.T):
            attributes = tuple(np.flatnonzero(members).tolist())
            if self.useful.issuperset(attributes):
                rows = np.flatnonzero(subset == i)
                found = self._answers(attributes, chosen[rows], value[rows])
                answer[rows], selected[rows] = found
        kept = np.flatnonzero((answer > 0) & (answer >= self._least))
        codes = np.where(used, chosen, -1)[kept].T
        return DrawnQueries(codes, value[kept], answer[kept], selected[kept])

    def _answers(self, attributes: tuple[int, ...], chosen: Ints, value: Ints) -> tuple[Ints, Ints]:
        """The true answers of candidates on the same attributes, and of their public halves."""
        m = self._cube.schema.domain_size
        if attributes not in self._tables:
            cells = self._count(attributes)
            self._tables[attributes] = cells, cells.without_value(m)
        cells, groups = self._tables[attributes]
        group = np.zeros(value.size, dtype=np.int64)
        for attribute in attributes:
            group = group * len(self._cube.values[attribute]) + chosen[:, attribute]
        return cells.at(group * m + value), groups.at(group)

    def _count(self, attributes: tuple[int, ...]) -> _Counts:
        cube = self._cube
        packed = np.zeros(cube.groups, dtype=np.int64)
        for attribute in attributes:
            packed = packed * len(cube.values[attribute]) + cube.codes[attribute]
        cells = packed[cube.group] * cube.schema.domain_size + cube.value
        possible = cube.schema.domain_size * math.prod(len(cube.values[a]) for a in attributes)
        if possible <= min(_DENSE, _SPARSE * cells.size):
            counts = np.bincount(cells, weights=cube.count, minlength=1)
            keys = np.flatnonzero(counts)
            return _Counts(keys, counts[keys].astype(np.int64))
        keys, position = np.unique(cells, return_inverse=True)
        return _Counts(keys, np.bincount(position, weights=cube.count).astype(np.int64))


def relative_errors(estimates: Floats, answers: Ints) -> Floats:
    """|est - ans| / ans for each query (section 6.2)."""
    return np.asarray(np.abs(estimates - answers) / answers)


def mean_relative_error(estimates: Floats, answers: Ints) -> float:
    """The mean of the relative errors over a workload."""
    return float(relative_errors(estimates, answers).mean())


def write_workload(stream: TextIO, workload: Workload) -> None:
    """Write the pool as a batch file, without the true answers.

    One column per attribute, or one column of SQL if a value is missing or empty: an empty field
    would set no condition.
    """
    writer = csv.writer(stream, lineterminator="\n")
    if any(value in (None, "") for query in workload.queries for value in query.values()):
        writer.writerow(["sql"])
        writer.writerows([_as_sql(query)] for query in workload.queries)
        return
    names = list(dict.fromkeys(name for query in workload.queries for name in query))
    writer.writerow(names)
    for query in workload.queries:
        writer.writerow(["" if name not in query else json_value(query[name]) for name in names])


def _as_sql(query: dict[str, Value]) -> str:
    conditions = []
    for name, value in query.items():
        column = quote_identifier(name)
        if value is None:
            conditions.append(f"{column} IS NULL")
        elif isinstance(value, int | float):
            conditions.append(f"{column} = {value}")
        else:
            text = str(json_value(value)).replace("'", "''")
            conditions.append(f"{column} = '{text}'")
    return "SELECT count(*) FROM release WHERE " + " AND ".join(conditions)
