"""The variance of every query of a workload under a design, from sums made once.

By theory.design the variance of a query is (α A + β B)/p² + E. Without sampling, A is the true
answer, B the number of records it selects, and E is 0. What a sampled group adds to all three
depends on its number of trials n, but not on p, so the sums of each class at each n are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reconpriv.core.cells import CellBatch
from reconpriv.core.cube import Cube
from reconpriv.core.sample_sizes import SampleSize, round_up_to_octave
from reconpriv.policy import Policy
from reconpriv.queries.workload import Workload
from reconpriv.schema import Value
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.design import MEAN_ABSOLUTE, Spread, coin_spread, exact_spread, mixing
from reconpriv.theory.distinct import distinct_columns

# How many sums are kept: each holds three numbers per query, 30 KB for the standard workload.
_KEPT = 4096


@dataclass(frozen=True)
class Questions:
    """The distinct queries of a workload: how often each occurs, and what it selects.

    ``part`` identifies the public half of a query, ``value`` the sensitive value it asks for;
    ``answers`` and ``selected`` are true counts; ``attributes`` are the positions of its public
    columns.
    """

    weight: Floats
    part: Ints
    value: Ints
    parts: int
    answers: Floats
    selected: Floats
    attributes: tuple[tuple[int, ...], ...]

    def errors(self, variance: Floats) -> Floats:
        """E|est - ans|/ans of every question, taking estimates as normal."""
        deviation = np.sqrt(np.maximum(variance, 0.0))
        return np.asarray(MEAN_ABSOLUTE * deviation / self.answers)


@dataclass(frozen=True)
class Coded:
    """The queries of a workload by code: one row per public column, -1 if it is not asked about."""

    columns: Ints
    value: Ints

    @classmethod
    def of(cls, cube: Cube, workload: Workload) -> Coded:
        """Look up every value of every query."""
        columns = [
            _codes(workload, column.name, values.to_pylist())
            for column, values in zip(cube.schema.public, cube.values, strict=True)
        ]
        value = _codes(workload, cube.schema.sensitive.name, list(cube.schema.domain))
        return cls(np.array(columns), value)

    def without(self, column: int) -> Coded:
        """The queries that do not ask about a column, on the table without it."""
        kept = self.columns[column] < 0
        return Coded(np.delete(self.columns, column, axis=0)[:, kept], self.value[kept])


@dataclass(frozen=True)
class Incidence:
    """Which columns (groups or cells) count in which rows, sorted by column."""

    row: NDArray[np.int32]
    begin: Ints

    def total(self, values: Floats, columns: Ints, rows: int) -> Floats:
        """Sum the values of the given columns (ascending) into rows."""
        length = self.begin[columns + 1] - self.begin[columns]
        if columns.size and columns[-1] - columns[0] == columns.size - 1:
            row = self.row[self.begin[columns[0]] : self.begin[columns[-1] + 1]]
        else:
            row = self.row[spans(self.begin[columns], length)]
        total = np.bincount(row, weights=np.repeat(values, length), minlength=rows)
        return np.asarray(total, dtype=np.float64)


def spans(begin: Ints, length: Ints) -> Ints:
    """The positions begin, begin + 1, … of every span, concatenated."""
    before = np.cumsum(length) - length
    return np.asarray(np.repeat(begin - before, length) + np.arange(int(length.sum())))


@dataclass(frozen=True)
class Part:
    """Groups of one octave and one class, by position in the order, largest first.

    ``key`` identifies the groups: sample sizes that have a part in common share its sums.
    """

    groups: Ints
    sizes: Ints
    key: bytes


@dataclass(frozen=True)
class Parts:
    """All groups in parts, and the distinct (|g|, f) of each part, concatenated."""

    members: tuple[Part, ...]
    starts: Ints
    sizes: Ints
    frequency: Floats


@dataclass(frozen=True)
class QueryVariances:
    """A workload on the cells of a table, ready for any design.

    Groups are sorted by the octave of their largest frequency, then by size, largest first, so
    those that a limit samples are adjacent. ``order`` maps back to the original groups. A part is
    a set of groups with one limit: those of one octave and one class of a sample size.
    """

    questions: Questions
    order: Ints
    sizes: Ints
    frequency: Floats
    starts: Ints
    count: Ints
    group_rows: Incidence
    cell_rows: Incidence
    _parts: dict[SampleSize, Parts] = field(default_factory=dict, repr=False)
    _kept: OrderedDict[tuple[bytes, int], NDArray[np.float32]] = field(
        default_factory=OrderedDict, repr=False
    )

    @classmethod
    def of(
        cls,
        cube: Cube,
        batch: CellBatch,
        frequency: Floats,
        workload: Workload,
        asked: Coded | None = None,
    ) -> QueryVariances:
        """Sort the cells and find which query counts which of them.

        ``frequency`` is the largest exposed one of each group.
        """
        order = np.lexsort((-batch.sizes, -round_up_to_octave(frequency)))
        per_group = batch.cells_per_group[order]
        starts = np.concatenate([[0], np.cumsum(per_group)])
        cell = spans(batch.starts[order], per_group)
        codes = np.stack([column[order].astype(np.int64) for column in cube.codes])
        owner = np.repeat(np.arange(order.size), per_group)
        asked = Coded.of(cube, workload) if asked is None else asked
        questions, group_rows, cell_rows = _match(
            cube, workload, asked, codes, batch.value[cell], owner
        )
        return cls(
            questions,
            order,
            batch.sizes[order],
            frequency[order],
            starts,
            batch.count[cell],
            _incidence(group_rows, order.size),
            _incidence(cell_rows, int(starts[-1])),
        )

    def error(self, sums: Floats, retention: float, domain_size: int) -> float:
        """The mean of E|est - ans|/ans over the workload."""
        return float(np.dot(self.questions.weight, self.errors(sums, retention, domain_size)))

    def errors(self, sums: Floats, retention: float, domain_size: int) -> Floats:
        """E|est - ans|/ans of every question."""
        return self.questions.errors(self.variance(sums, retention, domain_size))

    def variance(self, sums: Floats, retention: float, domain_size: int) -> Floats:
        """The variance of every question's estimate."""
        holder, anybody = mixing(retention, domain_size)
        asked = self.questions
        variance = holder * (asked.answers + sums[0]) + anybody * (asked.selected + sums[1])
        return np.asarray(variance + sums[2])

    def nothing(self) -> Floats:
        """The sums if no group is sampled."""
        return np.zeros((3, self.questions.weight.size))

    def by_class(self, policy: Policy, domain_size: int) -> Floats:
        """The sums if a sample size limits the groups of each class."""
        total, sampling = self.nothing(), policy.sampling
        parts = self._parts_of(policy)
        limits = sampling.limits_at(parts.sizes, parts.frequency, policy, domain_size)
        least = np.minimum.reduceat(limits, parts.starts)
        most = np.maximum.reduceat(limits, parts.starts)
        for part, low, high in zip(parts.members, least.tolist(), most.tolist(), strict=True):
            if low >= part.sizes[0]:
                continue
            if low == high:
                total += self._part(part, max(int(low), 1))
                continue
            frequency = self.frequency[part.groups]
            each = sampling.limits_at(part.sizes, frequency, policy, domain_size)
            sampled = part.sizes > each
            trials = np.maximum(each[sampled], 1.0).astype(np.int64)
            total += self.sums(part.groups[sampled], trials)
        return total

    def _parts_of(self, policy: Policy) -> Parts:
        sampling = policy.sampling
        if sampling not in self._parts:
            assert sampling.classes is not None
            classes = sampling.classes(self.frequency, policy)
            pairs = np.stack([round_up_to_octave(self.frequency), classes])
            distinct, _, number = distinct_columns(pairs)
            groups = [np.flatnonzero(number == one) for one in range(distinct.shape[1])[::-1]]
            shapes = [
                distinct_columns(np.stack([self.sizes[some], self.frequency[some]]))[0]
                for some in groups
            ]
            size, frequency = np.concatenate(shapes, axis=1)
            self._parts[sampling] = Parts(
                tuple(Part(some, self.sizes[some], some.tobytes()) for some in groups),
                np.cumsum([0, *(one.shape[1] for one in shapes[:-1])]),
                size.astype(np.int64),
                frequency,
            )
        return self._parts[sampling]

    def _part(self, part: Part, trials: int) -> NDArray[np.float32]:
        kept = self._kept.get((part.key, trials))
        if kept is not None:
            self._kept.move_to_end((part.key, trials))
            return kept
        larger = int(np.searchsorted(-part.sizes, -trials, side="left"))
        found = self.sums(part.groups[:larger], np.full(larger, trials, dtype=np.int64))
        self._kept[part.key, trials] = found.astype(np.float32)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return self._kept[part.key, trials]

    def sums(self, groups: Ints, trials: Ints) -> Floats:
        """What sampled groups add to A, B and E of every query if totals are exact."""
        cells, owner = self.cells_of(groups)
        spread = exact_spread(self.count[cells], owner, self.sizes[groups], trials)
        return self.total(groups, cells, owner, spread)

    def coin_sums(self, limits: Floats, *, systematic: bool) -> Floats:
        """The same for Algorithm 1, with a limit for every group."""
        groups = np.flatnonzero(self.sizes > limits)
        cells, owner = self.cells_of(groups)
        trials = np.maximum(limits[groups], 1.0)
        spread = coin_spread(
            self.count[cells], owner, self.sizes[groups], trials, systematic=systematic
        )
        return self.total(groups, cells, owner, spread)

    def cells_of(self, groups: Ints) -> tuple[Ints, Ints]:
        """The cells of some groups, and the position of each one's group among them."""
        length = self.starts[groups + 1] - self.starts[groups]
        return spans(self.starts[groups], length), np.repeat(np.arange(groups.size), length)

    def total(self, groups: Ints, cells: Ints, owner: Ints, spread: Spread) -> Floats:
        """What sampled groups with this spread add to A, B and E of every query."""
        rows, sizes = self.questions.weight.size, self.sizes[groups]
        more = spread.weight - sizes
        by_part = self.group_rows.total(more, groups, self.questions.parts)
        return np.stack(
            [
                self.cell_rows.total(self.count[cells] * (more / sizes)[owner], cells, rows),
                by_part[self.questions.part],
                self.cell_rows.total(spread.extra, cells, rows),
            ]
        )


def _incidence(pairs: list[tuple[Ints, Ints]], columns: int) -> Incidence:
    row = np.concatenate([rows for rows, _ in pairs])
    column = np.concatenate([found for _, found in pairs])
    order = np.argsort(column, kind="stable")
    begin = np.append(0, np.cumsum(np.bincount(column, minlength=columns)))
    return Incidence(row[order].astype(np.int32), begin)


Pairs = list[tuple[Ints, Ints]]


def _match(
    cube: Cube, workload: Workload, asked: Coded, codes: Ints, value: Ints, owner: Ints
) -> tuple[Questions, Pairs, Pairs]:
    """One attribute set at a time: a group satisfies at most one public half of each."""
    m = cube.schema.domain_size
    sets, first, which = distinct_columns(asked.columns >= 0)
    weight: list[Floats] = []
    part: list[Ints] = []
    values: list[Ints] = []
    shown: list[Ints] = []
    used: list[tuple[int, ...]] = []
    group_pairs: Pairs = []
    cell_pairs: Pairs = []
    parts = 0
    for one in np.argsort(first).tolist():
        attributes = tuple(np.flatnonzero(sets[:, one]).tolist())
        rows = np.flatnonzero(which == one)
        packed = np.zeros(codes.shape[1], dtype=np.int64)
        key = np.zeros(rows.size, dtype=np.int64)
        for attribute in attributes:
            base = len(cube.values[attribute])
            packed = packed * base + codes[attribute]
            key = key * base + asked.columns[attribute, rows]
        keys, begin, times = np.unique(
            key * m + asked.value[rows], return_index=True, return_counts=True
        )
        halves, half_of_key = np.unique(keys // m, return_inverse=True)
        inside, where = _look_up(halves, packed)
        group_pairs.append((where + parts, inside))
        half = np.full(packed.size, -1)
        half[inside] = where
        cells = np.flatnonzero(half[owner] >= 0)
        key_at = np.full(halves.size * m, -1)
        key_at[half_of_key * m + keys % m] = np.arange(keys.size)
        found = key_at[half[owner[cells]] * m + value[cells]]
        cell_pairs.append((found[found >= 0] + len(used), cells[found >= 0]))
        weight.append(times / len(workload))
        part.append(half_of_key + parts)
        values.append(keys % m)
        shown.append(rows[begin])
        used += [attributes] * keys.size
        parts += halves.size
    example = np.concatenate(shown)
    questions = Questions(
        np.concatenate(weight),
        np.concatenate(part),
        np.concatenate(values),
        parts,
        workload.answers[example].astype(np.float64),
        workload.selected[example].astype(np.float64),
        tuple(used),
    )
    return questions, group_pairs, cell_pairs


def _look_up(keys: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """The positions of ``wanted`` that occur among the sorted keys, and the key of each."""
    place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    inside = np.flatnonzero(keys[place] == wanted)
    return inside, place[inside]


def _codes(workload: Workload, name: str, values: list[Value]) -> Ints:
    """The position of the value that each query asks of a column, -1 if it asks for none."""
    asked = [(i, query[name]) for i, query in enumerate(workload.queries) if name in query]
    known = {_plain(value): i for i, value in enumerate(values)} if asked else {}
    codes = np.full(len(workload), -1, dtype=np.int64)
    codes[[i for i, _ in asked]] = [known[_plain(value)] for _, value in asked]
    return codes


def _plain(value: Value) -> object:
    """A value as a key: NaN equals nothing, not even itself."""
    return "not a number" if value != value else value  # noqa: PLR0124
