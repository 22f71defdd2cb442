"""Totals in which records count with weights of either sign: sums of numbers, and averages.

W = Σ w c over groups, c the records of a group that hold one of some values, is P - Q: a count in
which the records of groups with w > 0 count w times, less one in which those with w < 0 count |w|
times. Each of the two has the limits of a count, which hold for few trials, rare values and weights
of any size (theory.intervals). No group is in both, so W has the limits of a difference. An average
is inside its limits if the sum of the distances from it is not told from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial, reduce

import numpy as np

from reconpriv.core.cube import Cube, Sums
from reconpriv.queries import estimate as est
from reconpriv.queries.answer import Answerer, Settings
from reconpriv.queries.margins import Asked
from reconpriv.queries.pieces import uncut_limits
from reconpriv.queries.totals import Items, Term, joined_keys, weighed_part
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.combined_limits import Parts, Range, combination_limits
from reconpriv.theory.intervals import last_inside


@dataclass(frozen=True)
class Signed:
    """The groups of some rows with their weights in two terms, and sets of as many values each.

    There is a total for every row and set, sets varying fastest. Each part of the cells has its
    groups with their rows, and what they sum up to.
    """

    answerer: Answerer
    parts: tuple[tuple[Items, Ints], ...]
    alike: tuple[_Alike, ...]
    rows: int
    sets: tuple[tuple[int, ...], ...]
    settings: Settings

    @classmethod
    def of(
        cls,
        answerer: Answerer,
        terms: Sequence[Term],
        by: Sequence[str],
        sets: tuple[tuple[int, ...], ...],
        settings: Settings,
    ) -> Signed:
        """The rows are those of totals of the same terms."""
        names = [column.name for column in answerer.cells.schema.public]
        attributes = [names.index(name) for name in by]
        found = [weighed_part(answerer, part, terms, attributes) for part in answerer.cells.parts()]
        keys, places = joined_keys([keys for keys, _ in found])
        parts = tuple(
            (items, place[items.row]) for (_, items), place in zip(found, places, strict=True)
        )
        alike = tuple(
            _Alike.of(items, row, _observed(items.cube, sets)[:, items.group])
            for items, row in parts
        )
        return cls(answerer, parts, alike, keys.shape[1], sets, settings)

    def limits(self, level: Floats, covariances: Floats) -> tuple[Floats, Floats]:
        """The limits of every first total less ``level`` times the second one."""
        design, size = self.answerer.design, len(self.sets[0])
        rounded = est.runs(self.sets[0], design.domain_size)
        sums = self._sums(level)
        columns = uncut_limits(sums, self.sets[0], design, self.settings, 2, weighted=True)
        variances = est.count_variances(sums, size, rounded, design).reshape(-1, 2)
        matrices = variances[:, :, None] * np.eye(2)
        if self.answerer.margins is not None and self.settings.margins:
            shared = (variances.sum(axis=1) - _variance(level, covariances)) / 2.0
            matrices += shared[:, None, None] * (1.0 - np.eye(2))
        count, low, high, least, most = (column.reshape(-1, 2) for column in columns)
        parts = Parts(count, low, high, least, most, matrices)
        z = est.quantile(self.settings.confidence, self.settings.intervals)
        return combination_limits(np.array([1.0, -1.0]), parts, z)

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
        every = reduce(Sums.__add__, (part.summed(levels) for part in self.alike))
        if self.answerer.margins is None or not self.settings.margins:
            return every
        weighed = [_weighed(items.weights, row, levels) for items, row in self.parts]
        columns = [column.reshape(self.rows, len(self.sets), 2) for column in every.columns()]
        for i in range(len(self.sets)):
            own = Sums(*(column[:, i].reshape(-1) for column in columns))
            combined = self._with_margins(i, own, [weights[i] for weights in weighed])
            for column, one in zip(columns, combined.columns(), strict=True):
                column[:, i] = one.reshape(self.rows, 2)
        return Sums(*(column.reshape(-1) for column in columns))

    def _with_margins(self, which: int, sums: Sums, weighed: list[Floats]) -> Sums:
        """The same for one set, with margins weighed in."""
        assert self.answerer.margins is not None
        selection, weights = {}, {}
        for (items, row), weight in zip(self.parts, weighed, strict=True):
            where, by_group = np.full(items.cube.groups, -1), np.zeros(items.cube.groups)
            where[items.group], by_group[items.group] = 2 * row + (weight < 0), np.abs(weight)
            selection[id(items.cube)], weights[id(items.cube)] = where, by_group
        both = np.arange(2 * self.rows)
        return self.answerer.margins.combine(
            _Held(tuple(items.cube for items, _ in self.parts)),
            sums,
            Asked(both, np.zeros_like(both), self.sets[which]),
            lambda part: selection[id(part)],
            lambda part: weights[id(part)],
        )


@dataclass(frozen=True)
class _Held:
    """Parts of cells that are in memory, to be read again."""

    cubes: tuple[Cube, ...]

    def parts(self) -> Iterator[Cube]:
        return iter(self.cubes)


def _observed(cube: Cube, sets: tuple[tuple[int, ...], ...]) -> Floats:
    """How many records are published with a value of each set, sets x groups."""
    found = np.zeros((len(sets), cube.groups))
    for i, values in enumerate(sets):
        cells = np.flatnonzero(np.isin(cube.value, values))
        found[i] = np.bincount(cube.group[cells], weights=cube.count[cells], minlength=cube.groups)
    return found


def _weighed(weights: Floats, row: Ints, level: Floats) -> Floats:
    """The weights in the first term less ``level`` times those in the second; by set."""
    return np.asarray(weights[0] - level.T[:, row] * weights[1])


def _variance(level: Floats, covariances: Floats) -> Floats:
    """That of every first total less ``level`` times the second one."""
    slope = np.stack([np.ones_like(level), -level], axis=1)
    return np.asarray(np.einsum("ri,rij,rj->r", slope, covariances, slope))


# By which power of its weight a group counts in each sum; what is left out is not weighted.
_POWERS = {
    "records": 1, "observed": 1, "scaled_records": 2, "sampled_squares": 2, "unsampled": 2,
    "uneven": 2, "scaled_observed": 2, "noise": 2, "scaled_squares": 3,
}  # fmt: skip


@dataclass(frozen=True)
class _Alike:
    """Groups with the same row and weights, with their sums; ``sums`` are sets x such groups."""

    row: Ints
    weights: Floats
    sums: Sums

    @classmethod
    def of(cls, items: Items, row: Ints, observed: Floats) -> _Alike:
        """Sum the groups of a part, so that a search need not go through them again."""
        cube, group = items.cube, items.group
        order = np.lexsort((items.weights[1], items.weights[0], row))
        columns = np.stack([row.astype(np.float64), *items.weights])[:, order]
        new = np.any(columns[:, 1:] != columns[:, :-1], axis=0)
        kind = np.zeros(group.size, dtype=np.int64)
        kind[order[1:]] = np.cumsum(new)
        first = order[np.concatenate([[0], np.flatnonzero(new) + 1])] if order.size else order
        n, scale, sampled = cube.records[group], cube.scale[group], cube.sampled[group]
        share = observed / n

        def total(of: Floats) -> Floats:
            lines = np.broadcast_to(of, observed.shape)
            found = [np.bincount(kind, weights=line, minlength=first.size) for line in lines]
            return np.asarray(found, dtype=np.float64)

        uneven = cube.uneven[group]
        sums = Sums(
            groups=total(np.ones(1)),
            records=total(n.astype(np.float64)),
            trials=total(cube.trials[group]),
            scaled_records=total(scale * n),
            scaled_squares=total(scale**2 * n),
            sampled_squares=total(np.where(sampled, scale**2, 0.0)),
            unsampled=total(np.where(sampled, 0.0, scale * n)),
            uneven=total(uneven),
            observed=total(observed),
            scaled_observed=total(scale * observed),
            noise=total(uneven * (share if cube.coins else share * (1.0 - share))),
            other=total(np.zeros(1)),
            cut=total(np.zeros(1)),
        )
        return cls(row[first], items.weights[:, first], sums)

    def summed(self, level: Floats) -> Sums:
        """The sums of what adds to each total and of what takes from it, in turns."""
        weights = _weighed(self.weights, self.row, level)
        sets = np.arange(len(weights))[:, None]
        slot = (2 * (self.row * len(weights) + sets) + (weights < 0)).reshape(-1)
        powers = [np.abs(weights) ** power for power in range(4)]
        columns = {
            one.name: getattr(self.sums, one.name) * powers[_POWERS.get(one.name, 0)]
            for one in fields(Sums)
        }
        totals = {
            name: np.bincount(slot, weights=column.reshape(-1), minlength=2 * level.size)
            for name, column in columns.items()
        }
        return Sums(**{name: column.astype(np.float64) for name, column in totals.items()})
