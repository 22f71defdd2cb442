"""What a policy gives analysts and adversaries, over many keys: one table, one policy.

The analysts' error is that of the paper's pool. The adversary estimates the largest frequency of
a group, without bias, from its records and the margins, with the true variances as weights
(attacks.best_estimate). What margins are worth about a group is counted with the true
frequencies of all groups, which the publisher may not use.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable, Publication
from reconpriv.attacks.best_estimate import WHOLE, BestEstimates, best_estimates, combined_share
from reconpriv.core.cells import CellBatch
from reconpriv.core.exposure import exposed_cells
from reconpriv.policy import Policy
from reconpriv.queries.estimate import Design
from reconpriv.queries.margins import prepare_margins
from reconpriv.queries.workload import mean_relative_error
from reconpriv.research.error import Prepared, prepare_cells
from reconpriv.research.margins import combined_estimates
from reconpriv.research.results import Row
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.privacy import private_group_sizes

STANDARD_ERRORS = 3.0


@dataclass(frozen=True)
class Cells:
    """Exposed values of groups, one entry each; ``limits`` is s of this value in its group.

    ``violating`` are those whose group exceeds it if every record is a trial.
    """

    groups: Ints
    values: Ints
    limits: Floats

    @classmethod
    def of(cls, batch: CellBatch, policy: Policy, domain_size: int) -> Cells:
        """Every cell that a policy tests, with the most trials at which it passes by itself."""
        cells = np.flatnonzero(exposed_cells(batch, policy))
        groups, count = batch.group_of_cell[cells], batch.count[cells]
        others = batch.sizes[groups] - count
        # Each cell is a group of its own here: the holders, and everybody else if there is any.
        pairs = np.stack([count, others], axis=1)
        there = pairs > 0
        starts = np.cumsum(there.sum(axis=1)) - there.sum(axis=1)
        tested = np.broadcast_to([True, False], pairs.shape)[there]
        limits = private_group_sizes(
            pairs[there], starts, exposed=tested, **policy.parameters(domain_size)
        )
        return cls(groups, batch.value[cells], limits)


@dataclass
class Tails:
    """How often estimates of each exposed value were too high and too low."""

    high: Ints
    low: Ints
    keys: int = 0

    @classmethod
    def of(cls, cells: int) -> Tails:
        """Nothing seen yet."""
        return cls(np.zeros(cells, dtype=np.int64), np.zeros(cells, dtype=np.int64))

    def add(self, estimate: Floats, truth: Floats, epsilon: float) -> None:
        """Count the estimates of one release."""
        self.high += estimate > (1.0 + epsilon) * truth + WHOLE
        self.low += estimate < (1.0 - epsilon) * truth - WHOLE
        self.keys += 1

    def below(self, delta: float) -> int:
        """How many cells have a tail below δ by more than three standard errors."""
        error = np.sqrt(delta * (1.0 - delta) / self.keys)
        least = self.keys * (delta - STANDARD_ERRORS * error)
        return int((np.minimum(self.high, self.low) < least).sum())

    @property
    def smallest(self) -> float:
        """The smallest tail of all cells."""
        return float(np.minimum(self.high, self.low).min(initial=self.keys) / self.keys)


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

    def error(self, published: Publication) -> float:
        """The mean relative error of the pool, from records and margins if there are any."""
        policy, cube = published.policy, published.cube
        if not published.tables:
            found = self.prepared.plan.estimates(cube, policy.retention)
        else:
            design = Design.of(policy, cube.schema)
            ready = prepare_margins(cube, published.tables, published.variance, design)
            found = combined_estimates(self.prepared.plan, cube, ready)
        return mean_relative_error(found, self.prepared.workload.answers)


@dataclass
class Measured:
    """What is found about one policy, key after key."""

    errors: list[float] = field(default_factory=list)
    right: list[float] = field(default_factory=list)
    expected: float = 0.0
    trials: list[float] = field(default_factory=list)
    over: list[int] = field(default_factory=list)
    largest_of_limit: float = 0.0
    rows: list[int] = field(default_factory=list)


def measure(one: OneTable, policy: Policy, keys: int, tail_keys: int) -> Row:
    """Publish with many keys; ask the pool with the first of them, and attack with all.

    Tails need more keys than a mean does, so only policies with margins are published
    ``tail_keys`` times.
    """
    target = AttackedTable(one.target.schema, policy, one.target.batch)
    found = Measured()
    values = one.target.values[one.attacked]
    cells = Cells.of(target.batch, policy, target.schema.domain_size)
    own, both = Tails.of(cells.groups.size), Tails.of(cells.groups.size)
    counted = policy.margins is not None
    for number in range(max(keys, tail_keys) if counted else keys):
        published = target.publication(number)
        if number < keys:
            found.errors.append(one.error(published))
            best = best_estimates(target, published, one.attacked, values)
            _attack(found, best, policy.epsilon, first=number == 0)
        if counted:
            best = best_estimates(target, published, cells.groups, cells.values)
            own.add(best.alone, best.truth, policy.epsilon)
            both.add(best.combined, best.truth, policy.epsilon)
            _count_over(found, best, cells)
            found.rows.append(sum(table.rows for table in published.tables))
    row = _summed(found, one)
    return row | (_about_margins(found, target, cells, own, both) if counted else _NO_MARGINS)


def _attack(found: Measured, best: BestEstimates, epsilon: float, *, first: bool) -> None:
    """How many of the attacked groups are estimated within ±ε."""
    if not best.groups.size:
        return
    off = np.abs(best.combined - best.truth)
    found.right.append(float((off <= epsilon * best.truth + WHOLE).mean()))
    found.trials.append(float(best.trials.mean()))
    if first:
        found.expected = float(combined_share(best, epsilon).mean())


def _count_over(found: Measured, best: BestEstimates, cells: Cells) -> None:
    """Groups in which some value has more trials, those from margins included, than its limit."""
    limited = (best.sizes > cells.limits) & (cells.limits >= 1.0)
    of_limit = best.effective_trials[limited] / cells.limits[limited]
    over = best.groups[limited][of_limit > 1.0 + WHOLE]
    found.over.append(int(np.unique(over).size))
    found.largest_of_limit = max(found.largest_of_limit, float(of_limit.max(initial=0.0)))


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
        "error": float(errors.mean()),
        "spread": float(errors.std(ddof=1)) if errors.size > 1 else 0.0,
        "right": float(np.mean(found.right)) if some else "",
        "right_expected": found.expected if some else "",
        "trials": float(np.mean(found.trials)) if some else "",
        "keys": errors.size,
        "queries": len(one.prepared.workload),
    }


_MARGINS = (
    "tail_keys", "exposed", "below_own", "smallest_own", "below_both", "smallest_both",
    "violating_groups", "over_limit", "largest_of_limit", "rows", "rows_left_out",
)  # fmt: skip
_NO_MARGINS: Row = dict.fromkeys(_MARGINS, "")


def _about_margins(
    found: Measured, target: AttackedTable, cells: Cells, own: Tails, both: Tails
) -> Row:
    """Whether the promise holds with margins, and what they leave out."""
    plan = target.margins(target.policy, None)
    assert plan is not None
    delta, rows = target.policy.delta, float(np.mean(found.rows))
    numbers = (
        both.keys, cells.groups.size, own.below(delta), own.smallest, both.below(delta),
        both.smallest, target.violating().size, float(np.mean(found.over)),
        found.largest_of_limit, rows, plan.totals.rows - rows,
    )  # fmt: skip
    return dict(zip(_MARGINS, numbers, strict=True))
