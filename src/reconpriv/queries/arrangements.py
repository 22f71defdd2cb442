"""Limits of totals that cut protection groups: they hold however the sensitive values are spread.

A release with protection groups tells how many records of such a group hold a value, and nothing
about where in it they are. A total whose weights differ within a group is therefore bounded over
all arrangements (theory.arrangements). Each bound is a weighted total of whole protection groups,
of which estimate and standard error are known. The limits of an average are the smallest and the
largest μ for which these bounds, of Σ (u - μ) over the records that count, may be 0 (as Fieller's).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.core.protected_cube import ProtectedCube
from reconpriv.queries.answer import Answerer
from reconpriv.queries.totals import Items, Spread, Term, summed_rows, weighed_part
from reconpriv.theory.arrangements import Bound, Weights, lower_bound, upper_bound
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.combined_limits import Range
from reconpriv.theory.weighted_totals import total_covariances, total_estimates

_ROUNDS = 30  # of narrowing down the limit of an average
_NONE = 1e-9  # a total that is rounding error, as a share of the records


@dataclass(frozen=True)
class Arranged:
    """The records of some rows by protection group, for terms whose weights differ within it.

    ``spread`` has the weights of every micro group in each term; ``outside`` is the number of
    records of each protection group that are not in its row.
    """

    items: Items
    spread: Spread
    rows: int
    outside: Floats
    retention: float

    def limits(self, weight: Floats, values: Floats, turn: Floats, z: float) -> Range:
        """The least and the most that Σ v b can be in every row, z standard errors included.

        ``weight`` is v of every micro group. b of a row is its line of ``turn`` times ``values``.
        """
        b, row = turn @ values, self.items.row
        least, most = b.min(axis=1), b.max(axis=1)
        share = self._pooled(values, turn, least, most)[row]
        micro = np.concatenate([weight, np.zeros(self.outside.size)])
        records = np.concatenate([self.spread.records, self.outside])
        item = np.concatenate([self.spread.item, np.arange(self.outside.size)])
        some = records > 0
        weights = Weights.of(micro[some], records[some], item[some], self.outside.size)
        ends = [
            self._limit(bound(weights, share, least[row], most[row]), values, turn, side * z)
            for side, bound in ((-1.0, lower_bound), (1.0, upper_bound))
        ]
        # Whatever values its records hold.
        products = np.stack([weights.weight * end[row][weights.group] for end in (least, most)])
        possible = [self._by_row(weights.summed(end)) for end in (products.min(0), products.max(0))]
        return Range(*(np.clip(end, *possible) for end in ends))

    def _limit(self, bound: Bound, values: Floats, turn: Floats, z: float) -> Floats:
        """The estimate of a bound and z standard errors."""
        estimates, covariances = self._totals(bound.weight, values)
        variance = np.einsum("ri,rij,rj->r", turn, covariances, turn)
        found = (turn * estimates).sum(axis=1) + self._by_row(bound.constant)
        return np.asarray(found + z * np.sqrt(np.maximum(variance, 0.0)))

    def _totals(self, weight: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Totals over whole protection groups, with one weight for all records of each."""
        items = replace(self.items, weights=np.tile(weight, (values.shape[0], 1)))
        sums = summed_rows(items, items.row, self.rows, values)
        estimates = total_estimates(sums, values, self.retention)
        return estimates, total_covariances(sums, values, self.retention)

    def _pooled(self, values: Floats, turn: Floats, least: Floats, most: Floats) -> Floats:
        """How far b is from its least to its most, on average over the groups of a row."""
        whole, _ = self._totals(np.ones(self.outside.size), values)
        records = self._by_row(self.items.cube.records[self.items.group])
        mean = (turn * whole).sum(axis=1) / np.maximum(records, 1.0)
        span = np.where(most > least, most - least, 1.0)
        return np.asarray(np.clip((mean - least) / span, 0.0, 1.0))

    def _by_row(self, of_items: Floats | Ints) -> Floats:
        total = np.bincount(self.items.row, weights=of_items, minlength=self.rows)
        return np.asarray(total, dtype=np.float64)

    def sums(self, values: Floats, z: float) -> Range:
        """The limits of the total of the first term, with b instead of its own values."""
        return self.limits(self.spread.weights[0], values[:1], np.ones((self.rows, 1)), z)

    def averages(self, values: Floats, z: float, within: Range, possible: Range) -> Range:
        """The limits of the first total over the second one, from limits ``within`` them.

        ``values`` has a line of b for each of the two. The two terms have the same records, and
        differ in their weights or in their values.
        """
        top, bottom = self.spread.weights
        row = self.items.row[self.spread.item]
        records = np.maximum(self._by_row(self.items.cube.records[self.items.group]), 1.0)
        same = bool((values[0] == values[1]).all())

        def end(mu: Floats, side: int) -> Floats:
            if same:
                turn = np.ones((self.rows, 1))
                found = self.limits(top - mu[row] * bottom, values[:1], turn, z)
            else:
                turn = np.stack([np.ones(self.rows), -mu], axis=1)
                found = self.limits(bottom, values, turn, z)
            return np.asarray(found[side] / records)

        low = _border(possible.low, within.low, lambda mu: end(mu, 0) <= _NONE)
        high = _border(possible.high, within.high, lambda mu: end(mu, 1) >= -_NONE)
        return Range(low, high)


def _border(outside: Floats, inside: Floats, holds: Callable[[Floats], Flags]) -> Floats:
    """The number nearest to ``outside`` that holds, by bisection from one inside that does."""
    far, near = outside + 0.0, inside + 0.0
    near = np.where(holds(far), far, near)
    for _ in range(_ROUNDS):
        middle = (far + near) / 2.0
        good = holds(middle)
        near, far = np.where(good, middle, near), np.where(good, far, middle)
    return near


def arranged(answerer: Answerer, terms: Sequence[Term], by: Sequence[str] = ()) -> Arranged | None:
    """The arrangements of the rows that :func:`totals` gives for one or two terms.

    Both are of the same records. None if no protection group is cut.
    """
    cube = answerer.cells
    if not isinstance(cube, ProtectedCube):
        return None
    names = [column.name for column in cube.schema.public]
    keys, items = weighed_part(answerer, cube, terms, [names.index(name) for name in by])
    if not np.any(items.cut):
        return None
    assert items.spread is not None
    spread = items.spread
    inside = np.bincount(spread.item, weights=spread.records, minlength=items.group.size)
    outside = np.asarray(items.cube.records[items.group] - inside, dtype=np.float64)
    return Arranged(items, spread, keys.shape[1], outside, answerer.design.retention)
