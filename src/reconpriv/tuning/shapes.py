"""Groups by what a policy sees of them: size and largest exposed frequency."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reconpriv.core.cells import CellBatch
from reconpriv.core.sample_sizes import private_as_they_are, private_size
from reconpriv.policy import Policy
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.design import group_error
from reconpriv.tuning.risk import GroupRisk, chances, group_risk

# How many audits are kept: sample sizes share them, and a slider moves back and forth.
_KEPT = 4096
# How many pairs of p and ε are kept: one number per shape.
_KEPT_PAIRS = 256


@dataclass(frozen=True)
class Shapes:
    """Distinct (|g|, largest exposed frequency, 0 for none), with the number of groups of each.

    ``judged`` is the largest frequency that a yardstick calls exposed: its risk is counted.
    """

    batch: CellBatch
    domain_size: int
    size: Ints
    frequency: Floats
    judged: Floats
    how_many: Ints
    _violations: dict[tuple[object, ...], tuple[int, int]] = field(default_factory=dict, repr=False)
    _whole: dict[tuple[float, float], Floats] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        batch: CellBatch,
        domain_size: int,
        frequency: Floats,
        judged: Floats | None = None,
    ) -> Shapes:
        """Count the shapes of one batch of whole groups with these largest exposed frequencies.

        Without ``judged``, risk is counted by the same frequencies.
        """
        judged = frequency if judged is None else judged
        (size, largest, seen), groups = np.unique(
            np.stack([batch.sizes.astype(np.float64), frequency, judged]),
            axis=1,
            return_counts=True,
        )
        return cls(batch, domain_size, size.astype(np.int64), largest, seen, groups)

    def violations(self, policy: Policy) -> tuple[int, int]:
        """Violating groups and their records, as an audit counts them."""
        key = (policy.retention, policy.epsilon, policy.delta, policy.tail_bound)
        if key not in self._violations:
            if len(self._violations) >= _KEPT:
                self._violations.clear()
            self._violations[key] = self._count_violations(policy)
        return self._violations[key]

    def _count_violations(self, policy: Policy) -> tuple[int, int]:
        bound = policy.tail_bound
        if bound.lattice or not bound.worst_at_largest_frequency:
            private = private_as_they_are(self.batch, policy, self.domain_size)
            return int((~private).sum()), int(self.batch.sizes[~private].sum())
        limits = private_size(self.frequency, policy, self.domain_size)
        groups = np.where(self.size > limits, self.how_many, 0)
        return int(groups.sum()), int(groups @ self.size)

    def limits(self, policy: Policy) -> Floats:
        """The most trials that the policy's sample size allows each shape."""
        return policy.sampling.limits_at(self.size, self.frequency, policy, self.domain_size)

    def most_exposed(self, policy: Policy, trials: Floats) -> float:
        """The smallest expected error of F' over all groups, given each one's number of trials."""
        some = self.frequency > 0.0
        errors = group_error(
            self.frequency[some],
            trials[some],
            retention=policy.retention,
            domain_size=self.domain_size,
        )
        return float(errors.min(initial=np.inf))

    def trials(self, limits: Floats) -> Floats:
        """The trials of each shape; at least one, however strict the limit."""
        sampled = self.size > limits
        return np.where(sampled, np.maximum(limits, 1.0), self.size)

    def risk(self, policy: Policy, trials: Floats, epsilon: float) -> GroupRisk:
        """What an adversary learns from each group's own trials; within ±ε is close."""
        whole = self._chances_if_whole(policy.retention, epsilon)
        sampled = np.flatnonzero(trials < self.size)
        unknown = np.flatnonzero((trials >= self.size) & np.isnan(whole))
        chance = whole.copy()
        for some in (sampled, unknown):
            chance[some] = chances(
                self.judged[some],
                trials[some],
                retention=policy.retention,
                domain_size=self.domain_size,
                epsilon=epsilon,
            )
        whole[unknown] = chance[unknown]
        return group_risk(chance, self.judged, self.how_many * self.size)

    def _chances_if_whole(self, retention: float, epsilon: float) -> Floats:
        """The adversary's chances in groups that are not sampled, as far as they are known.

        They depend on p and ε alone: every δ and sample size shares them.
        """
        if (retention, epsilon) not in self._whole:
            if len(self._whole) >= _KEPT_PAIRS:
                self._whole.clear()
            self._whole[retention, epsilon] = np.full(self.size.size, np.nan)
        return self._whole[retention, epsilon]
