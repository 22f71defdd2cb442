"""The variance of the counts of single groups, as the records show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reconpriv.core.cube import Cube
from reconpriv.queries.estimate import Design
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.perturbation import replacement_probability

if TYPE_CHECKING:
    from reconpriv.queries.margins import PreparedMargins

_DENSE = 1 << 25  # counts held as a table of groups x values


@dataclass(frozen=True)
class TrialVariance:
    """The variance of a count of some values: s (by_count O + by_record N) for each group.

    Linear in the published count O, so it is unbiased, and it is never negative.
    """

    by_count: float
    by_record: float
    stray: float

    @classmethod
    def of(cls, design: Design, size: int) -> TrialVariance:
        """For a set of so many values."""
        p, t = design.retention, replacement_probability(design.retention, design.domain_size)
        stray, kept = size * t, p + size * t
        slope = (kept * (1.0 - kept) - stray * (1.0 - stray)) / p
        level = stray * (1.0 - stray) - slope * stray
        return cls(slope / p**2, level / p**2, stray)


@dataclass(frozen=True)
class CellVariances:
    """O and V of a set of values, or of each value, in every group of a part.

    For each value there is a table of groups x values, if that is not too large: ``width`` is then
    the number of values. For a set ``width`` is 0. Without tables the cells are searched.
    """

    prepared: PreparedMargins
    part: Cube
    observed: Floats | None
    variance: Floats | None
    width: int

    @classmethod
    def of(
        cls, prepared: PreparedMargins, part: Cube, values: tuple[int, ...] | None
    ) -> CellVariances:
        """Count and judge the cells of a part."""
        m = part.schema.domain_size
        every = np.arange(part.groups)
        if values is not None:
            member = np.zeros(m, dtype=bool)
            member[list(values)] = True
            weights = np.where(member[part.value], part.count, 0)
            total = np.bincount(part.group, weights=weights, minlength=part.groups)
            observed = total.astype(np.float64)
            return cls(
                prepared, part, observed, prepared.own_variance(part, every, observed, values), 0
            )
        if part.groups * m > _DENSE:
            return cls(prepared, part, None, None, m)
        observed, variance = np.zeros((2, part.groups, m))
        observed[part.group, part.value] = part.count
        for value in range(m):
            variance[:, value] = prepared.own_variance(part, every, observed[:, value], [value])
        return cls(prepared, part, observed.reshape(-1), variance.reshape(-1), m)

    def at(self, group: Ints, value: Ints) -> tuple[Floats, Floats]:
        """O and V of these groups, for the set or for these values."""
        slot = group * self.width + value if self.width else group
        if self.observed is not None and self.variance is not None:
            return self.observed[slot], self.variance[slot]
        keys = self.part.group * self.width + self.part.value
        place = np.minimum(np.searchsorted(keys, slot), keys.size - 1)
        observed = np.where(keys[place] == slot, self.part.count[place], 0).astype(np.float64)
        variance = np.empty(group.size)
        for one in np.unique(value).tolist():
            some = np.flatnonzero(value == one)
            variance[some] = self.prepared.own_variance(
                self.part, group[some], observed[some], [one]
            )
        return observed, variance
