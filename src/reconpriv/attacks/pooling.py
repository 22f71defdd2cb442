"""Groups estimated together with their neighbours, from a release alone: empirical Bayes.

F' of a group (Lemma 1) is unbiased with a known variance V. P, the mean of its neighbours' F' by
trials, has a known variance U, but neighbours hold a value with other frequencies than the group
itself. How far those scatter is measured on the release: if f and the true mean of the neighbours
differ by c f(1-f) in the mean square, besides the chance of finite groups, then

    E (F' - P)² = V + U + (c + 1/N + h) f(1-f),   h the mean of the neighbours' 1/N by their weights

and c follows by the method of moments from many groups. The best combination weighs F' and P by the
inverse of their mean squared errors, V and B = U + (c + 1/N + h) f(1-f), and has the error
VB/(V + B). Of several kinds of neighbourhood each cell takes the one with the smallest such error.
Where margins are published, a model of them is one more kind, with P known exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reconpriv.attacks.attacked_table import dense
from reconpriv.attacks.neighbourhoods import NeighbourKind, Neighbours, pairs_of, single_kinds
from reconpriv.attacks.statistics import Aligned
from reconpriv.cells.cube import Cube
from reconpriv.columns.schema import Schema
from reconpriv.theory.arrays import Flags, Floats, Ints, quotient
from reconpriv.theory.estimation.design import FrequencyVariance, frequency_variance
from reconpriv.theory.estimation.reconstruction import reconstruct_frequency

ALONE = "its own records alone"
MODEL = "a model of the margins"
_NONE, _MODEL = -1, -2
# Scatter is measured on this many groups, those with the most trials.
_MEASURED = 3_000
# Pairs of attributes are tried among so many of the best single kinds.
_BEST = 8
# How far a guess of f, which only sets the weights, is drawn to the whole table.
_CAUTION = 0.1


@dataclass(frozen=True)
class PooledGroups:
    """Some groups, estimated: a row per group, a column per sensitive value.

    ``alone`` is F' of the group's own records, ``estimate`` that of the best combination, and
    ``error`` its mean squared error as the adversary reckons it. ``chosen`` indexes ``kinds``; it
    is -1 where a group has no neighbour of any kind, and -2 where a model of the margins helps
    most. ``schema`` is that of the groups pooled.
    """

    schema: Schema
    alone: Floats
    estimate: Floats
    error: Floats
    chosen: Ints
    kinds: tuple[NeighbourKind, ...]

    def lines(self, places: Ints) -> PooledGroups:
        """Some of the groups, in any order."""
        alone, estimate, error = (one[places] for one in (self.alone, self.estimate, self.error))
        return PooledGroups(self.schema, alone, estimate, error, self.chosen[places], self.kinds)

    def words(self, values: Ints) -> tuple[str, ...]:
        """Which neighbours helped to estimate one value of each group."""
        chosen = self.chosen[np.arange(values.size), values]
        named = {_NONE: ALONE, _MODEL: MODEL}
        return tuple(named.get(i) or self.kinds[i].words(self.schema) for i in chosen.tolist())


def pool(
    cube: Cube, groups: Ints, *, retention: float, model: Floats | None = None
) -> PooledGroups:
    """Estimate some groups of a publication with the help of their neighbours.

    ``model`` is what a model of the margins says about every protection group, if any are
    published.
    Values dealt within a protection group say nothing about its parts, so these are all estimated
    like the protection group, whose neighbours are other protection groups.
    """
    if cube.whole is not cube:
        inside, places = np.unique(cube.within[groups], return_inverse=True)
        of_groups = pool(cube.whole, inside, retention=retention, model=model)
        return of_groups.lines(places.reshape(-1))
    records = _Records.of(cube, retention)
    found = [records.measure(kind) for kind in single_kinds(cube)]
    best = sorted(found, key=lambda one: one.typical_error)[:_BEST]
    found += [records.measure(kind) for kind in pairs_of(one.kind for one in best)]
    first = min(found, key=lambda one: one.typical_error)
    share = np.broadcast_to(records.overall, (groups.size, records.overall.size))
    # A first guess of f, the same for all kinds: the choice must not depend on their noise.
    guess, _ = records.combine(first, groups, share)
    share = np.clip(guess, 0.0, 1.0) * (1.0 - _CAUTION) + records.overall * _CAUTION
    alone = records.frequency[groups]
    estimate, error = alone.copy(), records.variance(groups, share)
    chosen = np.full(alone.shape, _NONE)
    candidates = [(i, records.combine(one, groups, share)) for i, one in enumerate(found)]
    if model is not None:
        candidates.append((_MODEL, records.combine_model(model, groups, share)))
    for i, (combined, expected) in candidates:
        better = expected < error
        estimate[better], error[better], chosen[better] = combined[better], expected[better], i
    kinds = tuple(one.kind for one in found)
    return PooledGroups(cube.schema, alone, np.clip(estimate, 0.0, 1.0), error, chosen, kinds)


def with_model(cube: Cube, shares: Floats, *, retention: float) -> Floats:
    """Every group of a publication, with what a model says about it in the place of neighbours.

    A part of a protection group is as far from what the model says about it as the whole is.
    """
    if cube.whole is not cube:
        mean = np.zeros((cube.whole.groups, shares.shape[1]))
        np.add.at(mean, cube.within, shares * cube.records[:, None])
        mean /= cube.whole.records[:, None]
        moved = with_model(cube.whole, mean, retention=retention) - mean
        return np.asarray(shares + moved[cube.within])
    records = _Records.of(cube, retention)
    return records.combine_model(shares, np.arange(cube.groups), shares)[0]


@dataclass(frozen=True)
class Scatter:
    """How far the groups of a table are from their neighbours of one kind: c of every value.

    ``typical_error`` is the mean error of the groups measured, over all values.
    """

    kind: NeighbourKind
    relative: Floats
    typical_error: float


@dataclass(frozen=True)
class _Around(Aligned):
    """The neighbours of some groups: P, what U is made of, and h."""

    mean: Floats
    level: Floats
    slope: Floats
    finite: Floats
    none: Flags

    def variance(self, share: Floats) -> Floats:
        """U, if f is ``share``."""
        return np.asarray(self.level[:, None] + self.slope[:, None] * share)


@dataclass(frozen=True)
class _Records:
    """F' of every group and value, with the variance that a release tells."""

    cube: Cube
    frequency: Floats
    spread: FrequencyVariance
    overall: Floats
    columns: Floats

    @classmethod
    def of(cls, cube: Cube, retention: float) -> _Records:
        m = cube.schema.domain_size
        counts = dense(cube)
        frequency = reconstruct_frequency(
            counts, cube.records[:, None], retention=retention, domain_size=m
        )
        overall = reconstruct_frequency(
            counts.sum(axis=0), cube.records.sum(), retention=retention, domain_size=m
        )
        spread = frequency_variance(cube.records, cube.trials, retention=retention, domain_size=m)
        # A value reconstructed as absent may occur nevertheless.
        floor = 1.0 / float(cube.records.sum())
        n = cube.trials
        # What is added up over neighbours: weights, what U and h are made of, and n F'.
        columns = np.column_stack(
            [
                n,
                n**2 * spread.level,
                n**2 * spread.slope,
                n**2 / cube.records,
                n[:, None] * frequency,
            ]
        )
        return cls(cube, frequency, spread, np.clip(overall, floor, 1.0), columns)

    @cached_property
    def measured(self) -> Ints:
        """The groups with the most trials: scatter is measured on these."""
        order = np.lexsort((-self.cube.records, -self.cube.trials))
        return np.sort(order[:_MEASURED])

    def variance(self, groups: Ints, share: Floats) -> Floats:
        """V, if f is ``share``; it is linear, so F' itself gives an unbiased estimate."""
        level, slope = self.spread.level[groups], self.spread.slope[groups]
        return np.asarray(level[:, None] + slope[:, None] * share)

    def around(self, kind: NeighbourKind, groups: Ints) -> _Around:
        """The neighbours of some groups, weighed by their trials."""
        sums = Neighbours.of(self.cube, kind, groups).sums(self.columns, groups)
        # Trials may be estimates, which are not whole; sums of floats are not exact.
        none = np.asarray(sums[:, 0] < 0.5)
        weight = np.where(none, 1.0, sums[:, 0])
        level, slope, finite = (sums[:, i] / weight**2 for i in (1, 2, 3))
        return _Around(sums[:, 4:] / weight[:, None], level, slope, finite, none)

    def measure(self, kind: NeighbourKind) -> Scatter:
        """c of every value by the method of moments, on the groups with the most trials."""
        around = self.around(kind, self.measured)
        some = np.flatnonzero(~around.none)
        if not some.size:
            return Scatter(kind, np.ones_like(self.overall), np.inf)
        relative, error = self.scatter(around.where(some), self.measured[some])
        return Scatter(kind, relative, error)

    def scatter(self, around: _Around, groups: Ints) -> tuple[Floats, float]:
        """c of every value, and the mean error of these groups, over all values."""
        frequency = self.frequency[groups]
        noise = self.variance(groups, frequency) + around.variance(around.mean)
        # E P(1-P) is that of the true mean, less U.
        spread = around.mean * (1.0 - around.mean) + around.variance(around.mean)
        finite = (1.0 / self.cube.records[groups] + around.finite)[:, None]
        excess = (frequency - around.mean) ** 2 - noise - finite * spread
        share = np.broadcast_to(self.overall, frequency.shape)
        # The variance of a square is that of its expectation, squared: known but for c.
        weight = (self.variance(groups, share) + around.variance(share)) ** -2.0
        above, below = (weight * excess).sum(axis=0), (weight * spread).sum(axis=0)
        relative = np.clip(quotient(above, below, 1.0), 0.0, 1.0)
        _, error = self.weigh(around, relative, groups, share)
        return relative, float(error.sum(axis=1).mean())

    def combine(self, scatter: Scatter, groups: Ints, share: Floats) -> tuple[Floats, Floats]:
        """The best combination of F' and P, and its error, if f is about ``share``."""
        around = self.around(scatter.kind, groups)
        return self.weigh(around, scatter.relative, groups, share)

    def combine_model(self, model: Floats, groups: Ints, share: Floats) -> tuple[Floats, Floats]:
        """The same with what a model says about every group, known exactly, in the place of P."""
        exact = np.zeros(len(model))
        around = _Around(model, exact, exact, exact, np.zeros(len(model), dtype=bool))
        relative, _ = self.scatter(around.where(self.measured), self.measured)
        return self.weigh(around.where(groups), relative, groups, share)

    def weigh(
        self, around: _Around, relative: Floats, groups: Ints, share: Floats
    ) -> tuple[Floats, Floats]:
        """The same with given neighbours and a given scatter."""
        own = self.variance(groups, share)
        finite = (1.0 / self.cube.records[groups] + around.finite)[:, None]
        other = around.variance(share) + (relative + finite) * share * (1.0 - share)
        # Without neighbours, the group's own estimate is all there is.
        weight = np.where(around.none[:, None], 0.0, own / (own + other))
        frequency = self.frequency[groups]
        return frequency + weight * (around.mean - frequency), own * (1.0 - weight)
