"""How many people pooling exposes: the figure beside the one from each group's own trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable
from reconpriv.attacks.pool import pool_all
from reconpriv.attacks.statistics import relative_error
from reconpriv.cells.cube import Cube
from reconpriv.policy.exposure import largest_exposed, most_exposed
from reconpriv.policy.policy import Policy
from reconpriv.tuning.risk import yardstick

# Groups times sensitive values that take a few seconds.
POOLED_CELLS = 1 << 21


def quickly_pooled(cube: Cube) -> bool:
    """Whether pooling takes seconds at most, so that nobody need ask for it."""
    return cube.groups * cube.schema.domain_size <= POOLED_CELLS


def pooled_share(
    cube: Cube, policy: Policy, exposing: Policy | None = None, *, keys: int = 1
) -> float:
    """The share of people whose group's most exposed value is estimated closely by pooling.

    What counts as exposed is up to ``exposing``, by default the policy itself; what counts as
    close is the same for all policies.
    Measured on publications in memory with the lab's own keys, margins included.
    """
    judge = yardstick(policy if exposing is None else exposing)
    batch = cube.as_batch()
    frequency = largest_exposed(batch, judge)
    groups = np.flatnonzero(frequency > 0.0)
    if not groups.size:
        return 0.0
    top, truth = most_exposed(batch, judge)[groups], frequency[groups]
    target = AttackedTable(cube.schema, replace(policy, unattainable="one-trial"), batch)
    people, found = batch.sizes[groups], 0.0
    for number in range(keys):
        seen = pool_all(target.publication(number), groups)
        estimate = seen.estimate[np.arange(groups.size), top]
        found += float(people[relative_error(estimate, truth) <= judge.epsilon].sum())
    return found / keys / float(batch.sizes.sum())
