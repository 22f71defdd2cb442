"""What a policy gives analysts and adversaries, over many keys: one table, one policy.

The analysts' error is that of the paper's pool. The adversary estimates the largest frequency of
a group, without bias, from its records and the margins, with the true variances as weights
(attacks.best_estimate).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lab.promise_check import PromiseCheck
from reconpriv.ask.workload import mean_relative_error
from reconpriv.attacks.attacked_table import AttackedTable, Publication
from reconpriv.attacks.best_estimate import WHOLE, BestEstimates, best_estimates, combined_share
from reconpriv.attacks.model import model_errors
from reconpriv.estimate.counts import Design
from reconpriv.estimate.measurements import prepare_margins
from reconpriv.policy.policy import Policy
from reconpriv.research.margins import combined_estimates
from reconpriv.research.results import Row
from reconpriv.research.sweeps import Prepared, mean_and_spread, prepare_cells
from reconpriv.theory.arrays import Floats, Ints

# Queries have conditions on so many public columns.
COLUMNS = (1, 2, 3)
# What a model tells hardly depends on the key.
MODEL_KEYS = 2


@dataclass(frozen=True)
class OneTable:
    """A table in memory with its pool of queries, and the groups that all policies are tried on.

    They are those that violate ``promise`` unless they are sampled.
    """

    target: AttackedTable
    prepared: Prepared
    attacked: Ints

    @classmethod
    def of(cls, target: AttackedTable, queries: int) -> OneTable:
        """The table; its policy says which groups are attacked."""
        prepared = prepare_cells([target.batch], target.schema, queries)
        return cls(target, prepared, target.violating())

    def errors(self, published: Publication) -> Floats:
        """The mean relative error of the pool, and of its queries over 1, 2 and 3 columns.

        Answers are from records and margins if there are any.
        """
        policy, cube = published.policy, published.cube
        design = Design.of(policy, cube.schema)
        ready = prepare_margins(cube, published.tables, published.variance, design)
        found = combined_estimates(self.prepared.plan, cube, ready)
        workload = self.prepared.workload
        columns = np.array([len(query) - 1 for query in workload.queries])
        parts = (columns > 0, *(columns == count for count in COLUMNS))
        return np.array([mean_relative_error(found[one], workload.answers[one]) for one in parts])


@dataclass
class Measured:
    """What is found about one policy, key after key."""

    errors: list[Floats] = field(default_factory=list)
    right: list[float] = field(default_factory=list)
    expected: float = 0.0
    trials: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)


def measure(one: OneTable, policy: Policy, keys: int, tail_keys: int) -> Row:
    """Publish with many keys; ask the pool with the first of them, and attack with all.

    Tails need more keys than a mean does, so only policies with margins are published
    ``tail_keys`` times.
    """
    target = AttackedTable(one.target.schema, policy, one.target.batch)
    found, values = Measured(), one.target.values[one.attacked]
    promised = policy.margins and policy.sampling_rule.counts_margins
    check = PromiseCheck.of(target) if promised else None
    for number in range(keys if check is None else max(keys, tail_keys)):
        published = target.publication(number)
        if number < keys:
            found.errors.append(one.errors(published))
            best = best_estimates(target, published, one.attacked, values)
            _attack(found, best, policy.tolerance, first=number == 0)
        if check is not None:
            check.add(published)
            found.rows.append(sum(table.rows for table in published.tables))
    return _summed(found, one) | _about_margins(found, target, check)


def _attack(found: Measured, best: BestEstimates, epsilon: float, *, first: bool) -> None:
    """How many of the attacked groups are estimated within ±ε."""
    if not best.groups.size:
        return
    off = np.abs(best.combined - best.truth)
    found.right.append(float((off <= epsilon * best.truth + WHOLE).mean()))
    found.trials.append(float(best.trials.mean()))
    if first:
        found.expected = float(combined_share(best, epsilon).mean())


def _summed(found: Measured, one: OneTable) -> Row:
    batch = one.target.batch
    errors = np.array(found.errors)
    some = bool(found.right)
    return {
        "records": int(batch.sizes.sum()),
        "groups": batch.groups,
        "public_columns": len(one.target.schema.public),
        "values": one.target.schema.domain_size,
        "attacked_groups": one.attacked.size,
        "attacked_records": int(batch.sizes[one.attacked].sum()),
        **mean_and_spread(errors[:, 0]),
        **{f"error_{count}": float(errors[:, count].mean()) for count in COLUMNS},
        "right": float(np.mean(found.right)) if some else "",
        "right_expected": found.expected if some else "",
        "trials": float(np.mean(found.trials)) if some else "",
        "keys": len(errors),
        "queries": len(one.prepared.workload),
    }


def _about_margins(found: Measured, target: AttackedTable, check: PromiseCheck | None) -> Row:
    """Whether the promise holds with margins, and what they leave out."""
    if check is None:
        return {}
    plan = target.margins(target.policy, None)
    assert plan is not None
    rows = float(np.mean(found.rows))
    model = model_errors(target, target.policy.sampling, MODEL_KEYS)
    return check.row() | {
        "model_right": float((model.inside <= target.policy.tolerance).mean()),
        "model_right_held_out": float((model.outside <= target.policy.tolerance).mean()),
        "violating_groups": target.violating().size,
        "rows": rows,
        "rows_left_out": plan.totals.rows - rows,
    }
