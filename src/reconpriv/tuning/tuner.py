"""One pass over a table, then any policy: its violations, trials, error and risk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from reconpriv.core.cells import CellBatch
from reconpriv.core.cube import Cube, collect
from reconpriv.core.sample_sizes import sample_limits
from reconpriv.errors import PolicyError
from reconpriv.policy import Policy
from reconpriv.queries.workload import Workload, make_workload
from reconpriv.schema import Schema
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.design import group_error
from reconpriv.theory.perturbation import PRIOR, local_privacy_level, posterior_limit
from reconpriv.tuning.margins import MarginVariances
from reconpriv.tuning.report import Setting
from reconpriv.tuning.shapes import Shapes
from reconpriv.tuning.spread import Coded, QueryVariances


@dataclass(frozen=True)
class Tuner:
    """The cells of a table and a workload, reduced to what a policy's figures depend on."""

    schema: Schema
    batch: CellBatch
    workload: Workload
    shapes: Shapes
    variances: QueryVariances
    _counted: dict[object, MarginVariances] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        batches: Iterable[CellBatch],
        schema: Schema,
        *,
        workload: Workload | None = None,
        queries: int = 5_000,
        seed: int = 0,
    ) -> Tuner:
        """Read the cells once; the default workload is the standard one (section 6.1)."""
        cube = collect(batches, schema)
        pool = make_workload(cube, queries=queries, seed=seed) if workload is None else workload
        return cls.on(cube, pool)

    @classmethod
    def on(cls, cube: Cube, workload: Workload, asked: Coded | None = None) -> Tuner:
        """Cells in memory, judged by a workload whose codes may already be known."""
        batch = cube.as_batch()
        shapes = Shapes.of(batch, cube.schema.domain_size)
        variances = QueryVariances.of(cube, batch, workload, asked)
        return cls(cube.schema, batch, workload, shapes, variances)

    def setting(self, policy: Policy, *, rho1: float = PRIOR) -> Setting:
        """What a policy would do to this table, without publishing it."""
        policy.check_sampling()
        if policy.protect is not None:
            raise PolicyError(
                "The error of a policy with protection groups cannot be predicted yet.",
                hint="Publish with it and compare, or leave the protection out.",
            )
        violating = self.shapes.violations(policy)
        m, p = self.schema.domain_size, policy.retention
        plan = self._plan(policy)
        return Setting(
            retention=p,
            epsilon=policy.epsilon,
            delta=policy.delta,
            bound=policy.tail_bound.name,
            sample_size=policy.sample_size,
            violating_groups=violating[0],
            violating_records=violating[1],
            sampled_groups=plan.sampled,
            trials=plan.trials,
            unattainable_groups=plan.unattainable,
            error=float(np.dot(self.variances.questions.weight, plan.errors)),
            group_error=plan.most_exposed,
            posterior=posterior_limit(p, m, rho1),
            local_dp_epsilon=local_privacy_level(p, m),
            margins=policy.wanted_margins,
            margin_trials=plan.margin_trials,
            margin_rows_left_out=plan.rows_left_out,
        )

    def question_errors(self, policy: Policy) -> Floats:
        """The expected relative error of every distinct question of the workload."""
        policy.check_sampling()
        return self._plan(policy).errors

    @property
    def records(self) -> int:
        """How many records there are."""
        return int(self._sizes.sum())

    @cached_property
    def _sizes(self) -> Ints:
        return self.batch.sizes

    def _plan(self, policy: Policy) -> _Plan:
        if policy.wanted_margins is not None:
            return self._with_margins(policy)
        by_class = policy.sampling.classes is not None
        return self._by_class(policy) if by_class else self._by_group(policy)

    def _by_class(self, policy: Policy) -> _Plan:
        """A limit for each class of the largest frequency; groups of one shape share it."""
        shapes, limits = self.shapes, self.shapes.limits(policy)
        sampled = np.where(shapes.size > limits, shapes.how_many, 0)
        trials = np.where(sampled, np.maximum(np.minimum(limits, shapes.size), 1.0), shapes.size)
        return _Plan(
            int(sampled.sum()),
            int(shapes.how_many @ trials),
            int(sampled[limits < 1.0].sum()),
            self._errors(policy, self.variances.by_class(policy, self.schema.domain_size)),
            shapes.most_exposed(policy, trials),
        )

    def _by_group(self, policy: Policy) -> _Plan:
        """Algorithm 1: a limit for each group; trials are the expected ones."""
        limits = sample_limits(self.batch, policy, self.schema.domain_size)
        sampled = self._sizes > limits
        trials = np.where(sampled, np.maximum(limits, 1.0), self._sizes)
        error = group_error(
            self._frequency, trials, retention=policy.retention, domain_size=self.schema.domain_size
        )
        return _Plan(
            int(sampled.sum()),
            round(float(trials.sum())),
            int((sampled & (limits < 1.0)).sum()),
            self._errors(
                policy,
                self.variances.coin_sums(
                    limits[self.variances.order], systematic=policy.tail_bound.lattice
                ),
            ),
            float(error.min()),
        )

    def _with_margins(self, policy: Policy) -> _Plan:
        """Limits that count what margins are worth, and answers that use margins."""
        found = self._margins(policy).design(policy)
        sampled = self.variances.sizes > found.limits
        return _Plan(
            int(sampled.sum()),
            round(float(found.trials.sum())),
            int((sampled & (found.limits < 1.0)).sum()),
            self.variances.questions.errors(found.variance),
            found.exposed.error,
            found.exposed.told,
            found.left_out,
        )

    def _margins(self, policy: Policy) -> MarginVariances:
        """The margin tables that a policy names, counted once."""
        margins = policy.wanted_margins
        assert margins is not None
        if margins.tables not in self._counted:
            self._counted[margins.tables] = MarginVariances.of(
                self.schema, self.batch, self.variances, policy
            )
        return self._counted[margins.tables]

    def _errors(self, policy: Policy, sums: Floats) -> Floats:
        return self.variances.errors(sums, policy.retention, self.schema.domain_size)

    @cached_property
    def _frequency(self) -> Floats:
        return self.batch.largest_frequencies


@dataclass(frozen=True)
class _Plan:
    """How a policy would sample, and what that does to queries and to the adversary."""

    sampled: int
    trials: int
    unattainable: int
    errors: Floats
    most_exposed: float
    margin_trials: float = 0.0
    rows_left_out: int = 0
