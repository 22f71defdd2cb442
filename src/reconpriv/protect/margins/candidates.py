"""The groups that margins may tell more about than a policy allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.policy.exposure import exposed_cells, largest_exposed
from reconpriv.policy.policy import Policy
from reconpriv.theory.arrays import Floats, Ints, spans
from reconpriv.theory.estimation.design import mixing


@dataclass(frozen=True)
class Candidates:
    """Groups with a class, one line each, and what a class may depend on.

    ``rows`` has a column per margin table; ``limits`` are the trials that the sampling rule allows
    without margins, and ``frequency`` is that of the group's class. ``exposed`` counts the exposed
    values of each group, whose position in the domain and frequency follow group by group; they
    decide one thing only, its excess (margin_limits).
    """

    rows: Ints
    sizes: Ints
    limits: Floats
    frequency: Floats
    exposed: Ints
    exposed_value: Ints
    exposed_frequency: Floats

    def take(self, some: Ints) -> Candidates:
        """Some of the groups, in this order."""
        length = self.exposed[some]
        cells = spans((np.cumsum(self.exposed) - self.exposed)[some], length)
        return Candidates(
            self.rows[some],
            self.sizes[some],
            self.limits[some],
            self.frequency[some],
            length,
            self.exposed_value[cells],
            self.exposed_frequency[cells],
        )

    @classmethod
    def joined(cls, parts: Sequence[Candidates]) -> Candidates:
        """The groups of all parts."""
        names = (one.name for one in fields(cls))
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


_NONE = np.zeros(0, dtype=np.int64)
NO_CANDIDATES = Candidates(
    np.zeros((0, 0), dtype=np.int64), _NONE, np.zeros(0), np.zeros(0), _NONE, _NONE, np.zeros(0)
)


def candidates_of(batch: CellBatch, rows: Ints, policy: Policy, domain_size: int) -> Candidates:
    """All groups of a batch; ``limits`` are infinite where the sampling rule counts no margins."""
    rule = policy.sampling_rule
    largest = largest_exposed(batch, policy)
    if not rule.counts_margins or rule.classes is None:
        limits, frequency = np.full(batch.groups, np.inf), largest
    else:
        limits = rule.limits(batch, policy, domain_size)
        frequency = rule.classes(largest, policy)
    if not rule.tells_excess:
        none = np.zeros(batch.groups, dtype=np.int64)
        return Candidates(rows, batch.sizes, limits, frequency, none, none[:0], np.zeros(0))
    cells = np.flatnonzero(exposed_cells(batch, policy))
    group = batch.group_of_cell[cells]
    return Candidates(
        rows,
        batch.sizes,
        limits,
        frequency,
        np.bincount(group, minlength=batch.groups),
        batch.value[cells],
        batch.count[cells] / batch.sizes[group],
    )


def may_exceed(groups: Candidates, policy: Policy, domain_size: int) -> Ints:
    """The groups that would get fewer trials if margins told about them and no other group."""
    most = most_from_margins(groups.sizes, groups.frequency, policy, domain_size)
    allowed = policy.sampling_rule.limits_of_classes(
        groups.sizes, groups.frequency, policy, domain_size, most
    )
    return np.flatnonzero(allowed < np.minimum(groups.limits, groups.sizes))


def most_from_margins(sizes: Ints, frequency: Floats, policy: Policy, domain_size: int) -> Floats:
    """More trials than margins can be worth about groups with a value of this frequency.

    Margins that tell about one group and no other give its count with a variance of σ²/A = 1/ρ,
    or a little less.
    """
    holder, anybody = mixing(policy.retention, domain_size)
    precision = policy.wanted_margins.rho / (1.0 - 1.0 / domain_size)
    return np.asarray(sizes * sizes * (holder * frequency + anybody) * precision)
