"""How many people pooling exposes: the figure beside the one from each group's own trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable
from reconpriv.attacks.pooling import pool
from reconpriv.attacks.statistics import relative_error
from reconpriv.core.cube import Cube
from reconpriv.core.exposure import largest_exposed, most_exposed
from reconpriv.policy import Policy

# Groups times sensitive values that take a few seconds.
POOLED_CELLS = 1 << 21


def pooled_share(
    cube: Cube, policy: Policy, yardstick: Policy | None = None, *, keys: int = 1
) -> float:
    """The share of people whose group's most exposed value is estimated within ±ε by pooling.

    What counts as exposed and as close is up to ``yardstick``, by default the policy itself.
    Measured on publications in memory with the lab's own keys. Margins, which may tell a group
    more, are left aside.
    """
    judge = policy if yardstick is None else yardstick
    batch = cube.as_batch()
    frequency = largest_exposed(batch, judge)
    groups = np.flatnonzero(frequency > 0.0)
    if not groups.size:
        return 0.0
    top, truth = most_exposed(batch, judge)[groups], frequency[groups]
    target = AttackedTable(cube.schema, replace(policy, unattainable="one-trial"), batch)
    people, found = batch.sizes[groups], 0.0
    for number in range(keys):
        seen = pool(target.publication(number).cube, groups, retention=policy.retention)
        estimate = seen.estimate[np.arange(groups.size), top]
        found += float(people[relative_error(estimate, truth) <= judge.epsilon].sum())
    return found / keys / float(batch.sizes.sum())
