"""The totals Σ (1[x <= v] - q) over some records, for every v at once: what a quantile is read off.

Every sum that a total needs is one over groups of its weight u, or of u². Here u is 1 - q for the
groups at or below v and -q for the others, so it is enough to sum the groups of each x once:

    Σ u = B - q W        Σ u² = (1-q)² B + q² (W - B)

with B the sum over the groups at or below v and W that over all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reconpriv.core.protected_cube import ProtectedCube
from reconpriv.queries.answer import Answerer
from reconpriv.queries.totals import Term, added_sums, joined_keys, summed_rows, weighed_part
from reconpriv.theory.arrays import Floats
from reconpriv.theory.weighted_totals import TotalSums, total_covariances, total_estimates

_AT_ONCE = 1 << 22  # rows x thresholds
_LINEAR = ("observed", "records")  # the sums of u; the others are of u²


@dataclass(frozen=True)
class StepTotals:
    """Estimates, their standard errors, and Σ u N, which is known: rows x thresholds."""

    estimates: Floats
    errors: Floats
    records: Floats


def step_totals(
    answerer: Answerer, term: Term, thresholds: Floats, share: float, by: Sequence[str]
) -> StepTotals | None:
    """The totals of the number that has to be ``present``, without margins.

    None if they do not fit into memory at once, or if there are protection groups: the weights
    within those are means, so their squares are not sums over x.
    """
    names = [column.name for column in answerer.cells.schema.public]
    attributes = [names.index(name) for name in by]
    number = term.present
    assert number is not None and term.values is not None
    found, steps = [], []
    for part in answerer.cells.parts():
        if isinstance(part, ProtectedCube):
            return None
        found.append(weighed_part(answerer, part, [term], attributes))
        group = found[-1][1].group
        steps.append(np.searchsorted(thresholds, number.of(part)[group]))
    keys, places = joined_keys([keys for keys, _ in found])
    rows, many = keys.shape[1], thresholds.size
    if rows * many > _AT_ONCE:
        return None
    values = np.array([term.values])
    sums: TotalSums | None = None
    for (_, items), place, step in zip(found, places, steps, strict=True):
        each = summed_rows(items, place[items.row] * many + step, rows * many, values)
        sums = each if sums is None else added_sums(sums, each)
    assert sums is not None
    below = _at_or_below(sums, rows, many, share)
    estimates = total_estimates(below, values, answerer.design.retention)
    covariances = total_covariances(below, values, answerer.design.retention)
    variances = np.maximum(covariances[:, 0, 0], 0.0)
    every = (estimates[:, 0], np.sqrt(variances), below.records[:, 0])
    return StepTotals(*(one.reshape(rows, many) for one in every))


def _at_or_below(sums: TotalSums, rows: int, many: int, share: float) -> TotalSums:
    """The sums with the weights of every threshold, from those of the groups of each x."""

    def weighed(name: str) -> Floats:
        own: Floats = getattr(sums, name)
        below = np.cumsum(own.reshape(rows, many, *own.shape[1:]), axis=1)
        every = below[:, -1:]
        if name in _LINEAR:
            found = below - share * every
        else:
            found = (1.0 - share) ** 2 * below + share**2 * (every - below)
        return np.asarray(found.reshape(own.shape))

    return TotalSums(*(weighed(name) for name in TotalSums.names()))
