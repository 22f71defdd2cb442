"""What protection groups cost analysts: the expected error of a workload, without publishing.

A question that holds shares w_G of protection groups is answered by Σ w_G est_G. Its variance is
Σ w_G² V(est_G); its bias is Σ w_G c_G minus the true count, since the records that it asks about
need not be like the rest of their group.
"""

from __future__ import annotations

import numpy as np

from reconpriv.core.coarsening import Coarsened
from reconpriv.core.cube import Cube
from reconpriv.core.protected_cube import ProtectedCube, cells_of_parts, with_protection
from reconpriv.core.sample_sizes import sample_limits
from reconpriv.policy import Policy
from reconpriv.queries.answer import Answerer
from reconpriv.queries.estimate import Design
from reconpriv.queries.plan import Subset, plan_queries
from reconpriv.queries.workload import Workload
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.design import exact_spread, mean_absolute_error, mixing


def expected_error(raw: Cube, groups: Coarsened, policy: Policy, workload: Workload) -> float:
    """The mean of E|est - ans|/ans over a workload on the raw cells."""
    truth = Answerer(raw, Design(1.0, raw.schema.domain_size, "none"))
    plan = plan_queries(raw, [truth.select(None, query) for query in workload.queries])
    cube = with_protection(raw, groups.cube, groups.within)
    by_cell, by_group = _variances(groups.cube, policy)
    errors = np.zeros(len(workload))
    for subset in plan.subsets:
        answers = workload.answers[subset.queries]
        errors[subset.queries] = _errors(cube, subset, by_cell, by_group, answers) / answers
    return float(errors.mean())


def _variances(groups: Cube, policy: Policy) -> tuple[Floats, Floats]:
    """V(est) of every cell, in two parts: its own, and what every value of its group has."""
    m = groups.schema.domain_size
    limits = sample_limits(groups.as_batch(), policy, m)
    trials = np.minimum(np.maximum(limits, 1.0), groups.records).astype(np.int64)
    spread = exact_spread(groups.count, groups.group, groups.records, trials)
    holder, anybody = mixing(policy.retention, m)
    held = (spread.weight / groups.records)[groups.group] * groups.count
    return np.asarray(holder * held + spread.extra), np.asarray(anybody * spread.weight)


def _errors(
    cube: ProtectedCube, subset: Subset, by_cell: Floats, by_group: Floats, answers: Ints
) -> Floats:
    """E|est - ans| of the questions on one set of attributes."""
    whole, m = cube.whole, cube.schema.domain_size
    parts = cube.parts_in(subset.positions)
    cell, part = cells_of_parts(whole, parts)
    slot = parts.selection[part] * m + whole.value[cell]
    asked, size = subset.rows * m + subset.values, subset.keys * m
    share = parts.share
    mean = np.bincount(slot, share[part] * whole.count[cell], minlength=size)[asked]
    own = np.bincount(slot, share[part] ** 2 * by_cell[cell], minlength=size)[asked]
    all_values = np.bincount(
        parts.selection, share**2 * by_group[parts.group], minlength=subset.keys
    )
    return mean_absolute_error(mean - answers, own + all_values[subset.rows])
