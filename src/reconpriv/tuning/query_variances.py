"""The variance of every query of a workload under a design, from sums made once.

By theory.design the variance of a query is (α A + β B)/p² + E. Without sampling, A is the true
answer, B the number of records it selects, and E is 0. What a sampled group adds to all three
depends on its number of trials n, but not on p, so the sums of each class at each n are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reconpriv.ask.workload import Workload
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.cube import Cube
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import round_up_to_octave
from reconpriv.theory.arrays import Floats, Ints, distinct_columns, spans
from reconpriv.theory.estimation.design import (
    MEAN_ABSOLUTE,
    coin_spread,
    exact_spread,
    mean_absolute_error,
    mixing,
)

# How many sums are kept: each holds three numbers per query, 30 KB for the standard workload.
_KEPT = 4096


@dataclass(frozen=True)
class Questions:
    """The distinct queries of a workload: how often each occurs, and what it selects.

    ``part`` identifies the public half of a query, ``value`` the sensitive value it asks for;
    ``answers`` and ``selected`` are true counts; ``attributes`` are the positions of its public
    columns. A query that cuts protection groups is answered by their shares: ``bias`` is how far
    off that is on average. ``held`` and ``among`` are what the variance of one trial is taken of:
    the answers and the records selected, if no group is cut.
    """

    weight: Floats
    part: Ints
    value: Ints
    parts: int
    answers: Floats
    selected: Floats
    attributes: tuple[tuple[int, ...], ...]
    held: Floats
    among: Floats
    bias: Floats

    def errors(self, variance: Floats) -> Floats:
        """E|est - ans|/ans of every question, taking estimates as normal."""
        variance = np.maximum(variance, 0.0)
        if self.bias.any():
            return np.asarray(mean_absolute_error(self.bias, variance) / self.answers)
        return np.asarray(MEAN_ABSOLUTE * np.sqrt(variance) / self.answers)


@dataclass(frozen=True)
class QueryIncidence:
    """Which columns (groups or cells) count in which rows, sorted by column, by which share each.

    Without shares, they count as a whole.
    """

    row: NDArray[np.int32]
    begin: Ints
    share: Floats | None = None

    def total(self, values: Floats, columns: Ints, rows: int) -> Floats:
        """Sum variances of the given columns into rows: with the squares of their shares."""
        row, weighed, share = self.lines(values, columns)
        return np.bincount(row, weights=weighed * share, minlength=rows).astype(np.float64)

    def lines(self, values: Floats, columns: Ints) -> tuple[Ints, Floats, Floats]:
        """The rows that the columns count in, their values by share, and these shares."""
        length = self.begin[columns + 1] - self.begin[columns]
        place = spans(self.begin[columns], length)
        share = np.ones(place.size) if self.share is None else self.share[place]
        return self.row[place].astype(np.int64), np.repeat(values, length) * share, share

    def owners(self, columns: Ints) -> Ints:
        """The columns, each as often as it counts in some row."""
        return np.repeat(columns, self.begin[columns + 1] - self.begin[columns])


@dataclass(frozen=True)
class ClassMembers:
    """The groups of one octave and one class of a sampling rule, largest first.

    ``lines`` are those of the same groups among distinct ones. ``key`` identifies the groups:
    sampling rules that put the same groups together share their sums.
    """

    groups: Ints
    sizes: Ints
    lines: Ints
    key: bytes


@dataclass(frozen=True)
class QueryVariances:
    """A workload on the cells of a table, ready for any design."""

    batch: CellBatch
    domain_size: int
    questions: Questions
    group_rows: QueryIncidence
    cell_rows: QueryIncidence
    _kept: OrderedDict[tuple[bytes, int], NDArray[np.float32]] = field(
        default_factory=OrderedDict, repr=False
    )

    @classmethod
    def of(cls, cube: Cube, workload: Workload) -> QueryVariances:
        """Find which query counts which groups and cells, or which share of protection groups."""
        batch = cube.as_batch()
        questions, group_rows, cell_rows = _match(cube, workload, batch)
        if cube.whole is not cube:
            return _by_share(cube, questions, group_rows)
        return cls(
            batch,
            cube.schema.domain_size,
            questions,
            _incidence(group_rows, batch.groups),
            _incidence(cell_rows, batch.count.size),
        )

    @cached_property
    def sizes(self) -> Ints:
        """|g| of every group."""
        return self.batch.sizes

    @cached_property
    def ends(self) -> Ints:
        """Where the cells of each group start, and the number of all cells."""
        return np.append(self.batch.starts, self.batch.count.size)

    def variance(self, sums: Floats, retention: float) -> Floats:
        """The variance of every question's estimate."""
        holder, anybody = mixing(retention, self.domain_size)
        asked = self.questions
        variance = holder * (asked.held + sums[0]) + anybody * (asked.among + sums[1])
        return np.asarray(variance + sums[2])

    def members(self, frequency: Floats, line: Ints, policy: Policy) -> tuple[ClassMembers, ...]:
        """The groups by octave and class of their largest exposed frequency."""
        octave = round_up_to_octave(frequency)
        classes = policy.sampling_rule.classes
        pairs = np.stack([octave, octave if classes is None else classes(frequency, policy)])
        distinct, _, number = distinct_columns(pairs)
        found = []
        for one in range(distinct.shape[1])[::-1]:
            groups = np.flatnonzero(number == one)
            groups = groups[np.argsort(-self.sizes[groups], kind="stable")]
            # Without the counts, numpy would import numpy.ma.
            lines, _ = np.unique(line[groups], return_counts=True)
            found.append(ClassMembers(groups, self.sizes[groups], lines, groups.tobytes()))
        return tuple(found)

    def sums(
        self, policy: Policy, members: Sequence[ClassMembers], limits: Floats, line: Ints
    ) -> Floats:
        """What sampling adds to A, B and E of every query, given the limit of each line."""
        total = np.zeros((3, self.questions.weight.size))
        for some in members:
            own = limits[some.lines]
            low, high = own.min(), own.max()
            if low >= some.sizes[0]:
                continue
            if low == high and not policy.sampling_rule.coin_flips:
                total += self._of_class(policy, some, max(int(low), 1))
                continue
            each = limits[line[some.groups]]
            sampled = some.sizes > each
            total += self.sums_of(policy, some.groups[sampled], np.maximum(each[sampled], 1.0))
        return total

    def _of_class(self, policy: Policy, some: ClassMembers, trials: int) -> NDArray[np.float32]:
        kept = self._kept.get((some.key, trials))
        if kept is not None:
            self._kept.move_to_end((some.key, trials))
            return kept
        larger = some.groups[: int(np.searchsorted(-some.sizes, -trials, side="left"))]
        found = self.sums_of(policy, larger, np.full(larger.size, float(trials)))
        self._kept[some.key, trials] = found.astype(np.float32)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return self._kept[some.key, trials]

    def sums_of(self, policy: Policy, groups: Ints, trials: Floats) -> Floats:
        """The same for some groups, which are sampled, with their trials."""
        sampled = self.sampled(policy, groups, trials)
        rows, sizes = self.questions.weight.size, self.sizes[sampled.groups]
        by_part = self.group_rows.total(sampled.more, sampled.groups, self.questions.parts)
        held = self.batch.count[sampled.cells] * (sampled.more / sizes)[sampled.owner]
        return np.stack(
            [
                self.cell_rows.total(held, sampled.cells, rows),
                by_part[self.questions.part],
                self.cell_rows.total(sampled.extra, sampled.cells, rows),
            ]
        )

    def sampled(self, policy: Policy, groups: Ints, trials: Floats) -> Sampled:
        """What sampling does to some groups and their cells."""
        groups, order = np.sort(groups), np.argsort(groups)
        trials = trials[order]
        length = self.ends[groups + 1] - self.ends[groups]
        cells = spans(self.ends[groups], length)
        owner = np.repeat(np.arange(groups.size), length)
        count, sizes = self.batch.count[cells], self.sizes[groups]
        if policy.sampling_rule.coin_flips:
            exact = policy.tail_bound.exact
            spread = coin_spread(count, owner, sizes, trials, systematic=exact)
        else:
            spread = exact_spread(count, owner, sizes, trials.astype(np.int64))
        return Sampled(groups, trials, cells, owner, spread.weight - sizes, spread.extra)


class Sampled(NamedTuple):
    """Sampled groups: their cells, with the place of each one's group, and what sampling adds.

    ``more`` is added to the weight of each group, ``extra`` to the variance of each cell.
    """

    groups: Ints
    trials: Floats
    cells: Ints
    owner: Ints
    more: Floats
    extra: Floats


def _by_share(cube: Cube, questions: Questions, group_rows: RowPairs) -> QueryVariances:
    """The same by protection groups: a query holds a share of each, and of each of its cells."""
    whole, m = cube.whole, cube.schema.domain_size
    part, micro = (np.concatenate(column) for column in zip(*group_rows, strict=True))
    entries, entry = np.unique(part * whole.groups + cube.within[micro], return_inverse=True)
    part, group = np.divmod(entries, whole.groups)
    records = np.bincount(entry.reshape(-1), weights=cube.records[micro], minlength=entries.size)
    share = np.asarray(records / whole.records[group])
    # Every question has the entries of its part, and of their groups the cell of its value.
    begin = np.searchsorted(part, np.arange(questions.parts + 1))
    length = np.diff(begin)[questions.part]
    line = np.repeat(np.arange(length.size), length)
    of_entry = spans(begin[questions.part], length)
    cells = whole.group * m + whole.value
    wanted = group[of_entry] * m + questions.value[line]
    place = np.minimum(np.searchsorted(cells, wanted), cells.size - 1)
    inside = np.flatnonzero(cells[place] == wanted)
    line, cell, part_of = line[inside], place[inside], share[of_entry[inside]]

    def summed(power: int) -> Floats:
        weights = part_of**power * whole.count[cell]
        return np.bincount(line, weights=weights, minlength=length.size).astype(np.float64)

    squares = share**2 * whole.records[group]
    among = np.bincount(part, squares, questions.parts).astype(np.float64)[questions.part]
    return QueryVariances(
        whole.as_batch(),
        m,
        replace(questions, held=summed(2), among=among, bias=summed(1) - questions.answers),
        _incidence([(part, group)], whole.groups, share),
        _incidence([(line, cell)], whole.count.size, part_of),
    )


def _incidence(pairs: RowPairs, columns: int, share: Floats | None = None) -> QueryIncidence:
    row = np.concatenate([rows for rows, _ in pairs])
    column = np.concatenate([found for _, found in pairs])
    order = np.argsort(column, kind="stable")
    begin = np.append(0, np.cumsum(np.bincount(column, minlength=columns)))
    return QueryIncidence(
        row[order].astype(np.int32), begin, None if share is None else share[order]
    )


RowPairs = list[tuple[Ints, Ints]]


def _match(
    cube: Cube, workload: Workload, batch: CellBatch
) -> tuple[Questions, RowPairs, RowPairs]:
    """One attribute set at a time: a group satisfies at most one public half of each."""
    m = cube.schema.domain_size
    codes = np.stack([column.astype(np.int64) for column in cube.codes])
    value, owner = batch.value, batch.group_of_cell
    sets, first, which = distinct_columns(workload.codes >= 0)
    weight: list[Floats] = []
    part: list[Ints] = []
    values: list[Ints] = []
    shown: list[Ints] = []
    used: list[tuple[int, ...]] = []
    group_pairs: RowPairs = []
    cell_pairs: RowPairs = []
    parts = 0
    for one in np.argsort(first).tolist():
        attributes = tuple(np.flatnonzero(sets[:, one]).tolist())
        rows = np.flatnonzero(which == one)
        packed = np.zeros(codes.shape[1], dtype=np.int64)
        key = np.zeros(rows.size, dtype=np.int64)
        for attribute in attributes:
            base = len(cube.values[attribute])
            packed = packed * base + codes[attribute]
            key = key * base + workload.codes[attribute, rows]
        keys, begin, times = np.unique(
            key * m + workload.value[rows], return_index=True, return_counts=True
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
    answers, selected = (
        one[example].astype(np.float64) for one in (workload.answers, workload.selected)
    )
    questions = Questions(
        np.concatenate(weight),
        np.concatenate(part),
        np.concatenate(values),
        parts,
        answers,
        selected,
        tuple(used),
        answers,
        selected,
        np.zeros(example.size),
    )
    return questions, group_pairs, cell_pairs


def _look_up(keys: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """The positions of ``wanted`` that occur among the sorted keys, and the key of each."""
    place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    inside = np.flatnonzero(keys[place] == wanted)
    return inside, place[inside]
