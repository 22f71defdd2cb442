"""Groups by what a policy sees of them: size, largest count, and the octave of their frequency."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reconpriv.core.audit import judge
from reconpriv.core.cells import CellBatch
from reconpriv.core.kernel import round_up_to_octave
from reconpriv.policy import Policy
from reconpriv.theory.design import group_error
from reconpriv.theory.privacy import largest_private_size

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Audits kept: sample sizes share them, and a slider comes back.
_KEPT = 4096


@dataclass(frozen=True)
class Octave:
    """The groups whose largest frequency rounds up to ``frequency``, sorted by size.

    ``records[i]`` is the total of the i smallest.
    """

    frequency: float
    sizes: Ints
    records: Ints

    def sampled(self, limit: float) -> tuple[int, int]:
        """How many groups are larger than the limit, and their records."""
        below = int(np.searchsorted(self.sizes, limit, side="right"))
        return self.sizes.size - below, int(self.records[-1] - self.records[below])


@dataclass(frozen=True)
class Shapes:
    """Distinct (|g|, largest count) with how many groups have them, and the groups by octave.

    ``front`` are the shapes that no other of their octave, ``front_octave``, exceeds both in size
    and in frequency: the most exposed group is one of them.
    """

    batch: CellBatch
    domain_size: int
    size: Ints
    frequency: Floats
    groups: Ints
    octaves: tuple[Octave, ...]
    front: Ints
    front_octave: Ints
    _violations: dict[tuple[object, ...], tuple[int, int]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, batch: CellBatch, domain_size: int) -> Shapes:
        """Count the shapes of one batch of whole groups."""
        sizes = batch.sizes
        top = np.maximum.reduceat(batch.count, batch.starts)
        pairs, groups = np.unique(np.stack([sizes, top]), axis=1, return_counts=True)
        size, frequency = pairs[0], pairs[1] / pairs[0]
        rounded = round_up_to_octave(frequency)
        octaves, fronts = [], []
        for value in np.unique(rounded)[::-1]:
            member = np.flatnonzero(rounded == value)
            sizes_there = np.repeat(size[member], groups[member])
            records = np.concatenate([[0], np.cumsum(sizes_there)])
            octaves.append(Octave(float(value), sizes_there, records))
            fronts.append(member[_front(size[member], frequency[member])])
        number = np.repeat(np.arange(len(fronts)), [front.size for front in fronts])
        front = np.concatenate(fronts)
        return cls(batch, domain_size, size, frequency, groups, tuple(octaves), front, number)

    def limits(self, policy: Policy) -> Floats | None:
        """s_g of every shape; None where the largest frequency is not known to decide."""
        bound = policy.tail_bound
        if bound.lattice or not bound.worst_at_largest_frequency:
            return None
        return sizes_of(self.frequency, policy, self.domain_size)

    def violations(self, policy: Policy) -> tuple[int, int]:
        """Violating groups and their records, as an audit counts them."""
        key = (policy.retention, policy.epsilon, policy.delta, policy.tail_bound)
        if key not in self._violations:
            if len(self._violations) >= _KEPT:
                self._violations.clear()
            self._violations[key] = self._count_violations(policy)
        return self._violations[key]

    def _count_violations(self, policy: Policy) -> tuple[int, int]:
        limits = self.limits(policy)
        if limits is None:
            _, private = judge(self.batch, policy, self.domain_size)
            return int((~private).sum()), int(self.batch.sizes[~private].sum())
        groups = np.where(self.size > limits, self.groups, 0)
        return int(groups.sum()), int(groups @ self.size)

    def most_exposed(self, policy: Policy, limits: Floats) -> float:
        """The smallest expected error of F' over all groups, where sizes are limited by octave."""
        most = np.maximum(limits, 1.0)[self.front_octave]
        errors = group_error(
            self.frequency[self.front],
            np.minimum(self.size[self.front], most),
            retention=policy.retention,
            domain_size=self.domain_size,
        )
        return float(errors.min())


def sizes_of(frequency: Floats, policy: Policy, domain_size: int) -> Floats:
    """s_g by largest frequency under a policy (Theorems 4 and 5)."""
    return largest_private_size(
        frequency,
        retention=policy.retention,
        domain_size=domain_size,
        epsilon=policy.epsilon,
        delta=policy.delta,
        bound=policy.tail_bound,
    )


def _front(size: Ints, frequency: Floats) -> Ints:
    """The shapes for which no other has both a larger size and a larger frequency."""
    order = np.lexsort((-frequency, -size))
    best = np.maximum.accumulate(frequency[order])
    return np.asarray(order[np.append(True, best[1:] > best[:-1])])
