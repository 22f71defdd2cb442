"""Limits of totals: with weights of either sign, and where protection groups are cut.

W = Σ w c over groups, c the records of a group that hold one of some values, is P - Q: a count in
which the records of groups with w > 0 count w times, less one in which those with w < 0 count |w|
times. Each of the two has the limits of a count, which hold for few trials, rare values and weights
of any size (theory.intervals). No group is in both, so W has the limits of a difference. An average
is inside its limits if the sum of the distances from it is not told from 0.

A release with protection groups tells how many records of such a group hold a value, and nothing
about where in it they are. A total whose weights differ within a group is therefore bounded over
all arrangements (theory.arrangements). Each bound is a weighted total of whole protection groups,
of which estimate and standard error are known. The limits of an average are the smallest and the
largest μ for which these bounds, of Σ (u - μ) over the records that count, may be 0 (as Fieller's).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.cells.cube import GroupShares
from reconpriv.cells.sums import Sums, stacked_sums, sum_shares
from reconpriv.estimate.counts import Settings
from reconpriv.estimate.linear import CountQuestions, combined
from reconpriv.estimate.set_counts import SetCounts
from reconpriv.estimate.totals import WeightedGroups, WeightedTotal, summed_rows, weighted_rows
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.estimation.arrangements import Weights, lower_bound, upper_bound
from reconpriv.theory.estimation.combined_limits import Parts, Range, combination_limits
from reconpriv.theory.estimation.intervals import last_inside
from reconpriv.theory.estimation.weighted_totals import total_covariances, total_estimates
from reconpriv.theory.search import last_contained

_ROUNDS = 30  # of narrowing down the limit of an average
_NONE = 1e-9  # a total that is rounding error, as a share of the records


@dataclass(frozen=True)
class Arranged:
    """The records of some rows by protection group, for totals whose weights differ within it.

    ``outside`` is the number of records of each protection group that are not in its row.
    """

    held: WeightedGroups
    rows: int
    outside: Floats
    retention: float

    def limits(self, weight: Floats, values: Floats, turn: Floats, z: float) -> Range:
        """The least and the most that Σ v b can be in every row, z standard errors included.

        ``weight`` is v of every micro group. b of a row is its line of ``turn`` times ``values``.
        """
        b, row = turn @ values, self.held.row
        least, most = b.min(axis=1), b.max(axis=1)
        whole, _ = self._totals(np.ones(self.outside.size), values)
        mean = (turn * whole).sum(axis=1) / self.records
        span = np.where(most > least, most - least, 1.0)
        # How far b is from its least to its most, on average over the groups of a row.
        share = np.clip((mean - least) / span, 0.0, 1.0)[row]
        micro = np.concatenate([weight, np.zeros(self.outside.size)])
        records = np.concatenate([self.held.records, self.outside])
        item = np.concatenate([self.held.entry, np.arange(self.outside.size)])
        some = records > 0
        weights = Weights.of(micro[some], records[some], item[some], self.outside.size)
        ends = []
        for bound, side in ((lower_bound, -z), (upper_bound, z)):
            line, constant = bound(weights, share, least[row], most[row])
            estimates, covariances = self._totals(line, values)
            variance = np.einsum("ri,rij,rj->r", turn, covariances, turn)
            found = (turn * estimates).sum(axis=1) + self._by_row(constant)
            ends.append(found + side * np.sqrt(np.maximum(variance, 0.0)))
        # Whatever values its records hold.
        products = np.stack([weights.weight * end[row][weights.group] for end in (least, most)])
        possible = [self._by_row(weights.summed(end)) for end in (products.min(0), products.max(0))]
        return Range(*(np.clip(end, *possible) for end in ends))

    def _totals(self, weight: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Totals over whole protection groups, with one weight for all records of each."""
        held = replace(self.held, weights=np.tile(weight, (values.shape[0], 1)))
        sums = summed_rows(held, held.row, self.rows, values)
        estimates = total_estimates(sums, values, self.retention)
        return estimates, total_covariances(sums, values, self.retention)

    @property
    def records(self) -> Floats:
        """The records of the protection groups of every row, at least 1."""
        return np.maximum(self._by_row(self.held.cube.records[self.held.group]), 1.0)

    def _by_row(self, of_groups: Floats | Ints) -> Floats:
        total = np.bincount(self.held.row, weights=of_groups, minlength=self.rows)
        return np.asarray(total, dtype=np.float64)

    def sums(self, values: Floats, z: float) -> Range:
        """The limits of the first total, with b instead of its own values."""
        return self.limits(self.held.own[0], values[:1], np.ones((self.rows, 1)), z)

    def averages(self, values: Floats, z: float, within: Range, possible: Range) -> Range:
        """The limits of the first total over the second one, from limits ``within`` them.

        ``values`` has a line of b for each of the two. The two totals have the same records, and
        differ in their weights or in their values.
        """
        top, bottom = self.held.own
        row, records = self.held.row[self.held.entry], self.records
        same = bool((values[0] == values[1]).all())

        def end(mu: Floats, side: int) -> Floats:
            if same:
                turn = np.ones((self.rows, 1))
                found = self.limits(top - mu[row] * bottom, values[:1], turn, z)
            else:
                turn = np.stack([np.ones(self.rows), -mu], axis=1)
                found = self.limits(bottom, values, turn, z)
            return np.asarray(found[side] / records)

        low = last_contained(within.low, possible.low, lambda mu: end(mu, 0) <= _NONE, _ROUNDS)
        high = last_contained(within.high, possible.high, lambda mu: end(mu, 1) >= -_NONE, _ROUNDS)
        return Range(low, high)


def arranged(
    answerer: Answerer, wanted: Sequence[WeightedTotal], by: Sequence[str] = ()
) -> Arranged | None:
    """The arrangements of the rows that :func:`totals` gives for one or two totals.

    Both are of the same records. None if no protection group is cut.
    """
    rows, parts = weighted_rows(answerer, wanted, by)
    if len(parts) > 1 or not np.any(parts[0].cut):
        return None
    held = parts[0]
    inside = np.bincount(held.entry, weights=held.records, minlength=held.group.size)
    outside = np.asarray(held.cube.records[held.group] - inside, dtype=np.float64)
    return Arranged(held, rows.number, outside, answerer.design.retention)


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
        if self.answerer.told(margins=self.settings.how.margins).rows:
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
        told = self.answerer.told(margins=self.settings.how.margins)
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
