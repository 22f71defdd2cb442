"""Limits of totals that cut protection groups: they hold however the sensitive values are spread.

A release with protection groups tells how many records of such a group hold a value, and nothing
about where in it they are. A total whose weights differ within a group is therefore bounded over
all arrangements (theory.arrangements). Each bound is a weighted total of whole protection groups,
of which estimate and standard error are known. The limits of an average are the smallest and the
largest μ for which these bounds, of Σ (u - μ) over the records that count, may be 0 (as Fieller's).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.estimate.totals import WeightedGroups, WeightedTotal, summed_rows, weighted_rows
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.estimation.arrangements import Weights, lower_bound, upper_bound
from reconpriv.theory.estimation.combined_limits import Range
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
