"""Totals in which records count with weights of either sign: sums of numbers, and averages.

W = Σ w c over groups, c the records of a group that hold one of some values, is P - Q: a count in
which the records of groups with w > 0 count w times, less one in which those with w < 0 count |w|
times. Each of the two has the limits of a count, which hold for few trials, rare values and weights
of any size (theory.intervals). No group is in both, so W has the limits of a difference. An average
is inside its limits if the sum of the distances from it is not told from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.cells.cube import GroupShares
from reconpriv.cells.sums import Sums, stacked_sums, sum_shares
from reconpriv.estimate.counts import Settings
from reconpriv.estimate.linear import CountQuestions, combined
from reconpriv.estimate.set_counts import SetCounts
from reconpriv.estimate.totals import WeightedGroups, WeightedTotal, weighted_rows
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.estimation.combined_limits import Parts, Range, combination_limits
from reconpriv.theory.estimation.intervals import last_inside


@dataclass(frozen=True)
class SignedTotals:
    """The groups of some rows with their weights in two totals, and sets of as many values each.

    There is a total for every row and set, sets varying fastest. ``alike`` are the groups of each
    part of the cells, those with the same row and weights as one.
    """

    answerer: Answerer
    parts: tuple[WeightedGroups, ...]
    alike: tuple[_Alike, ...]
    rows: int
    sets: tuple[tuple[int, ...], ...]
    settings: Settings

    @classmethod
    def of(
        cls,
        answerer: Answerer,
        wanted: Sequence[WeightedTotal],
        by: Sequence[str],
        sets: tuple[tuple[int, ...], ...],
        settings: Settings,
    ) -> SignedTotals:
        """The rows are those of :func:`totals` of the same totals."""
        rows, parts = weighted_rows(answerer, wanted, by)
        alike = tuple(_Alike.of(part, sets) for part in parts)
        return cls(answerer, tuple(parts), alike, rows.number, sets, settings)

    def limits(self, level: Floats, covariances: Floats) -> tuple[Floats, Floats]:
        """The limits of every first total less ``level`` times the second one."""
        counts = SetCounts.of(self._sums(level), self.sets[0], self.answerer.design, weighted=True)
        uncut = counts.uncut(self.settings, 2)
        count, low, high, least, most, variance = (one.reshape(-1, 2) for one in uncut[:6])
        matrices = variance[:, :, None] * np.eye(2)
        if self.answerer.told(margins=self.settings.margins).rows:
            slope = np.stack([np.ones_like(level), -level], axis=1)
            whole = np.einsum("ri,rij,rj->r", slope, covariances, slope)
            shared = (variance.sum(axis=1) - whole) / 2.0
            matrices += shared[:, None, None] * (1.0 - np.eye(2))
        parts = Parts(count, low, high, least, most, matrices)
        return combination_limits(np.array([1.0, -1.0]), parts, self.settings.z)

    def averages(
        self, value: Floats, covariances: Floats, guess: Range, possible: Range
    ) -> tuple[Floats, Floats]:
        """The limits of every first total over the second one, on both sides of an estimate.

        The search starts from a ``guess``, and ends within what is ``possible``.
        """
        start = np.clip(value, *possible)

        def excess(side: int, level: Floats) -> Floats:
            """How far beyond 0 the limit of the total is, as it is while a level is inside."""
            return (-1.0, 1.0)[side] * self.limits(level, covariances)[side]

        low = last_inside(partial(excess, 0), start, guess.low, possible.low)
        high = last_inside(partial(excess, 1), start, guess.high, possible.high)
        return low, high

    def _sums(self, level: Floats) -> Sums:
        """The sums of what adds to each total and of what takes from it, in turns."""
        levels = level.reshape(self.rows, len(self.sets))
        sums = reduce(Sums.__add__, (part.summed(levels) for part in self.alike))
        told = self.answerer.told(margins=self.settings.margins)
        if not told.rows:
            return sums
        shape = self.rows, len(self.sets), 2
        both, found = np.arange(2 * self.rows), []
        for i, values in enumerate(self.sets):
            own = sums.each(lambda column: column.reshape(shape)[:, i].reshape(-1))  # noqa: B023
            held = [(part.cube, _held(part, part.row, levels[:, i])) for part in self.parts]
            asked = CountQuestions(both, np.zeros_like(both), values)
            found.append(combined(told, own, asked, held))
        turned = stacked_sums(found)
        return turned.each(
            lambda column: column.reshape(shape[1], shape[0], 2).swapaxes(0, 1).reshape(-1)
        )


def _held(some: WeightedGroups, row: Ints, level: Floats) -> GroupShares:
    """What adds to each total and what takes from it, as groups with weights above 0."""
    weight = some.weights[0] - level[row] * some.weights[1]
    none = np.zeros(0, dtype=np.int64)
    return GroupShares(2 * row + (weight < 0), some.group, np.abs(weight), none, none)


@dataclass(frozen=True)
class _Alike:
    """Groups with the same row and weights, with their sums; ``sums`` are sets x such groups."""

    row: Ints
    weights: Floats
    sums: Sums

    @classmethod
    def of(cls, some: WeightedGroups, sets: tuple[tuple[int, ...], ...]) -> _Alike:
        """Sum the groups of a part, so that a search need not go through them again."""
        order = np.lexsort((some.weights[1], some.weights[0], some.row))
        columns = np.stack([some.row.astype(np.float64), *some.weights])[:, order]
        new = np.any(columns[:, 1:] != columns[:, :-1], axis=0)
        kind = np.zeros(order.size, dtype=np.int64)
        kind[order[1:]] = np.cumsum(new)
        first = order[np.concatenate([[0], np.flatnonzero(new) + 1])] if order.size else order
        none = np.zeros(0, dtype=np.int64)
        each = GroupShares(kind, some.group, np.ones(kind.size), none, none)
        sums = [sum_shares(some.cube, each, first.size, values) for values in sets]
        return cls(some.row[first], some.weights[:, first], stacked_sums(sums))

    def summed(self, level: Floats) -> Sums:
        """The sums of what adds to each total and of what takes from it, in turns."""
        sets = level.shape[1]
        weights = self.weights[0] - level.T[:, self.row] * self.weights[1]
        slot = 2 * (self.row * sets + np.arange(sets)[:, None]) + (weights < 0)
        return self.sums.weighted(np.abs(weights).reshape(-1), slot.reshape(-1), 2 * level.size)
