"""The paper's query pool (section 6.1): random count queries with a least selectivity."""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from reconpriv.errors import InputError, PolicyError
from reconpriv.queries.cube import Cube
from reconpriv.randomness import Key, Randomness, unit_interval
from reconpriv.schema import Value, json_value, quote_identifier

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A pool is drawn in rounds of candidates; past this many the table has too few such queries.
_ROUND = 1 << 14
_ROUNDS = 200
# Up to so many possible cells are counted in an array of all of them, which needs no sorting.
_DENSE = 1 << 22

Candidate = tuple[tuple[int, ...], tuple[int, ...], int, int]


@dataclass(frozen=True)
class Workload:
    """Queries of the form A1 = a1 AND … AND SA = x, with their true answers.

    The answers are raw counts: a workload stays with the publisher. ``selected`` are the records
    that satisfy the public half of each query.
    """

    queries: tuple[dict[str, Value], ...]
    answers: Ints
    selected: Ints
    records: int
    candidates: int

    def __len__(self) -> int:
        """How many queries there are."""
        return len(self.queries)


def make_workload(
    cube: Cube,
    *,
    queries: int = 5_000,
    min_selectivity: float = 0.001,
    max_attributes: int = 3,
    seed: int = 0,
) -> Workload:
    """Draw d from 1..3, d public attributes, a value of each and a sensitive value, all uniformly.

    A query is kept where at least ``min_selectivity`` of the records satisfy it, until there are
    enough. ``cube`` holds the raw cells. The same seed gives the same pool.
    """
    if queries < 1:
        raise PolicyError(f"A workload needs at least one query; got {queries}.")
    if not 0 < min_selectivity <= 1:
        raise PolicyError(f"The least selectivity lies in (0, 1]; got {min_selectivity:g}.")
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
    found: list[Candidate] = []
    for number in range(_ROUNDS):
        for attributes, codes, value, answer in pool.candidates(number):
            found.append((attributes, codes, value, answer))
            if len(found) == queries:
                return _workload(pool, found, number)
    raise InputError(
        f"Only {len(found):,} of {_ROUND * _ROUNDS:,} random queries reach a selectivity of"
        f" {min_selectivity:g}.",
        hint="Ask for fewer queries or a lower selectivity.",
    )


class _Pool:
    """Candidates with their true answers, looked up in one table per attribute subset."""

    def __init__(self, cube: Cube, most: int, seed: int, least: float) -> None:
        self.cube, self._most, self._least = cube, most, least
        # Any 32 bytes will do here: a pool is no secret, it only has to be repeatable.
        digest = hashlib.blake2b(f"workload {seed}".encode(), digest_size=32).digest()
        self._randomness = Randomness(Key(digest))
        self._tables: dict[tuple[int, ...], tuple[Ints, Ints]] = {}
        # Further conditions only lower an answer, so other attributes need not be looked at.
        self.useful = {
            i for i in range(len(cube.codes)) if int(self._count((i,))[1].max()) >= least
        }

    def candidates(self, number: int) -> Iterator[Candidate]:
        """Those of one round of candidates that reach the least answer."""
        m, sizes = self.cube.schema.domain_size, [len(v) for v in self.cube.values]
        index = np.arange(_ROUND, dtype=np.uint64) + np.uint64(number * _ROUND)
        draws = [
            unit_interval(self._randomness.words(np.full(_ROUND, i, np.uint64), index))
            for i in range(1 + len(sizes))
        ]
        how_many = 1 + (draws[0][:, 0] * self._most).astype(np.int64)
        value = (draws[0][:, 1] * m).astype(np.int64)
        # A random order of the attributes, of which the first d are taken: without replacement.
        order = np.argsort(np.stack([d[:, 0] for d in draws[1:]], axis=1), axis=1)
        chosen = np.stack(
            [(d[:, 1] * size).astype(np.int64) for d, size in zip(draws[1:], sizes, strict=True)],
            axis=1,
        )
        for row in range(_ROUND):
            attributes = tuple(sorted(order[row, : how_many[row]].tolist()))
            if not self.useful.issuperset(attributes):
                continue
            codes = tuple(chosen[row, list(attributes)].tolist())
            answer = self._sum(attributes, codes, int(value[row]), int(value[row]) + 1)
            if answer >= self._least:
                yield attributes, codes, int(value[row]), answer

    def selected(self, attributes: tuple[int, ...], codes: tuple[int, ...]) -> int:
        """The records that satisfy the public half of a query."""
        return self._sum(attributes, codes, 0, self.cube.schema.domain_size)

    def _sum(
        self, attributes: tuple[int, ...], codes: tuple[int, ...], first: int, last: int
    ) -> int:
        """The records with these codes and a sensitive value in first..last-1."""
        if attributes not in self._tables:
            self._tables[attributes] = self._count(attributes)
        keys, counts = self._tables[attributes]
        key = 0
        for attribute, code in zip(attributes, codes, strict=True):
            key = key * len(self.cube.values[attribute]) + code
        key *= self.cube.schema.domain_size
        low, high = np.searchsorted(keys, (key + first, key + last))
        return int(counts[low:high].sum()) if high > low else 0

    def _count(self, attributes: tuple[int, ...]) -> tuple[Ints, Ints]:
        cube = self.cube
        packed = np.zeros(cube.groups, dtype=np.int64)
        for attribute in attributes:
            packed = packed * len(cube.values[attribute]) + cube.codes[attribute]
        cells = packed[cube.group] * cube.schema.domain_size + cube.value
        possible = cube.schema.domain_size * math.prod(len(cube.values[a]) for a in attributes)
        if possible <= _DENSE:
            counts = np.bincount(cells, weights=cube.count, minlength=1)
            keys = np.flatnonzero(counts)
            return keys, counts[keys].astype(np.int64)
        keys, position = np.unique(cells, return_inverse=True)
        return keys, np.bincount(position, weights=cube.count).astype(np.int64)


def _workload(pool: _Pool, found: list[Candidate], number: int) -> Workload:
    cube = pool.cube
    known = [values.to_pylist() for values in cube.values]
    names = [column.name for column in cube.schema.public]
    queries = []
    for attributes, codes, value, _ in found:
        query = {names[a]: known[a][c] for a, c in zip(attributes, codes, strict=True)}
        queries.append({**query, cube.schema.sensitive.name: cube.schema.domain[value]})
    return Workload(
        queries=tuple(queries),
        answers=np.array([answer for *_, answer in found], dtype=np.int64),
        selected=np.array([pool.selected(a, c) for a, c, *_ in found], dtype=np.int64),
        records=int(cube.records.sum()),
        candidates=(number + 1) * _ROUND,
    )


def relative_errors(estimates: Floats, answers: Ints) -> Floats:
    """|est - ans| / ans of each query (section 6.2)."""
    return np.asarray(np.abs(estimates - answers) / answers)


def mean_relative_error(estimates: Floats, answers: Ints) -> float:
    """The mean of the relative errors of a workload."""
    return float(relative_errors(estimates, answers).mean())


def write_workload(stream: TextIO, workload: Workload) -> None:
    """The pool as a batch file; the true answers stay out of it.

    A column an attribute, or one column of SQL where a value is missing or empty: an empty field
    would ask nothing.
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
