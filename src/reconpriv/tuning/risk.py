"""What an adversary learns about groups from each one's own trials, by the exact tails of F'.

Policies differ in tolerance and in what they call exposed. To compare them, all are judged by one
yardstick: an estimate within ±50 % of the true share is close, whatever their tolerance.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from reconpriv.policy.policy import Policy
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.counts import ObservedCount
from reconpriv.theory.tails.exact_margins import within_epsilon

# An estimate of a share is close if it is within this much of it, relatively.
CLOSE = 0.5


class GroupRisk(NamedTuple):
    """The share of people whose group's most exposed value is estimated closely, and the worst.

    ``worst`` is the largest probability of such an estimate in one group, ``held_by`` the share of
    that group that holds the value; 0 if no group has an exposed value.
    """

    reconstructed: float
    worst: float
    held_by: float

    @classmethod
    def of(cls, chance: Floats, frequency: Floats, people: Ints) -> GroupRisk:
        """The chances of all groups; ``people`` are the records that each of them stands for."""
        worst = int(chance.argmax())
        share = float(chance @ people / people.sum())
        return cls(share, float(chance[worst]), float(frequency[worst]))


NOT_COUNTED = GroupRisk(math.nan, math.nan, math.nan)


@lru_cache
def yardstick(policy: Policy) -> Policy:
    """What risk is judged by: what a policy calls exposed, and the same closeness for all."""
    return replace(policy, tolerance=CLOSE)


def chances(
    frequency: Floats,
    trials: Floats,
    told: Floats,
    *,
    retention: float,
    domain_size: int,
    tolerance: float,
) -> Floats:
    """Pr[F is within the tolerance] of each group's most exposed value; 0 where none is exposed.

    F rests on the group's trials, rounded (those of Algorithm 1 vary around a mean), and on margins
    that are worth ``told`` of them.
    """
    found = np.zeros(frequency.size)
    some = np.flatnonzero(frequency > 0.0)
    if some.size:
        whole = np.maximum(np.round(trials[some]), 1.0)
        count = ObservedCount(whole, frequency[some], retention, domain_size, tolerance)
        found[some] = within_epsilon(count, told[some])
    return found
