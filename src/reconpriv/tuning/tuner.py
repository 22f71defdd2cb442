"""One pass over a table, then any policy: its violations, trials, error and risk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from reconpriv.core.cells import CellBatch
from reconpriv.core.cube import Cube, collect
from reconpriv.core.exposure import largest_exposed
from reconpriv.core.margins import NoMarginsError
from reconpriv.core.sample_sizes import sample_limits
from reconpriv.errors import PolicyError
from reconpriv.policy import Policy
from reconpriv.queries.workload import Workload, make_workload
from reconpriv.schema import Schema
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.design import group_error
from reconpriv.theory.perturbation import PRIOR, local_privacy_level, posterior_limit
from reconpriv.tuning.risk import NOT_COUNTED, GroupRisk, chances, group_risk, yardstick
from reconpriv.tuning.shapes import Shapes
from reconpriv.tuning.spread import Coded, QueryVariances

# An audit asks for the errors of one policy only, without margins.
if TYPE_CHECKING:
    from reconpriv.tuning.margins import MarginVariances
    from reconpriv.tuning.report import Setting

# How many notions of exposed are kept.
_KEPT = 64
# How many settings are kept: six sweeps, about 2 KB each.
_KEPT_SETTINGS = 8_192


@dataclass(frozen=True)
class Reduced:
    """Groups by their largest exposed frequency, and a workload on them, ready for any design."""

    batch: CellBatch
    domain_size: int
    frequency: Floats
    variances: QueryVariances
    counted: dict[object, MarginVariances] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        cube: Cube,
        batch: CellBatch,
        frequency: Floats,
        workload: Workload,
        asked: Coded | None,
    ) -> Reduced:
        """Sort the groups, and match them with the workload."""
        variances = QueryVariances.of(cube, batch, frequency, workload, asked)
        return cls(batch, cube.schema.domain_size, frequency, variances)

    @cached_property
    def shapes(self) -> Shapes:
        """The groups by size and frequency."""
        return Shapes.of(self.batch, self.domain_size, self.frequency)


@dataclass(frozen=True)
class Tuner:
    """The cells of a table and a workload, reduced to what a policy's figures depend on.

    ``plain`` is what it takes for policies to which every value is exposed.
    """

    cube: Cube
    batch: CellBatch
    workload: Workload
    plain: Reduced
    asked: Coded | None = None
    _reduced: dict[tuple[object, ...], Reduced] = field(default_factory=dict, repr=False)
    _judged: dict[tuple[object, ...], Shapes] = field(default_factory=dict, repr=False)
    _settings: dict[tuple[object, ...], Setting] = field(default_factory=dict, repr=False)

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
        plain = Reduced.of(cube, batch, batch.largest_frequencies, workload, asked)
        return cls(cube, batch, workload, plain, asked)

    def setting(
        self,
        policy: Policy,
        *,
        rho1: float = PRIOR,
        exposing: Policy | None = None,
        risk: bool = True,
    ) -> Setting:
        """What a policy would do to this table, without publishing it.

        ``exposing`` is the policy that says what counts as exposed where risk is counted; by
        default it is the policy itself. Without ``risk`` it is not counted, and is not a number.
        Settings are kept: the next sweep tries many of them again.
        """
        policy.check_sampling()
        if policy.protect is not None:
            raise PolicyError(
                "Policies with protection groups cannot be tuned yet.",
                hint="Compare audits with and without the protection.",
            )
        judge = yardstick(policy if exposing is None else exposing)
        key = policy, rho1, judge.exposure, risk
        if key not in self._settings:
            try:
                plan = self._plan(policy, judge if risk else None)
            except NoMarginsError:
                policy = replace(policy, margins=None)
                plan = self._plan(policy, judge if risk else None)
            if not plan.margins_left:
                # A release would have none, whose records are those of a policy without them.
                policy = replace(policy, margins=None)
            found = self._figures(policy, rho1, judge, plan)
            if len(self._settings) >= _KEPT_SETTINGS:
                self._settings.clear()
            self._settings[key] = found
            return found
        return self._settings[key]

    def _figures(self, policy: Policy, rho1: float, judge: Policy, plan: _Plan) -> Setting:
        from reconpriv.tuning.report import Setting  # noqa: PLC0415

        violating = self.reduced(policy).shapes.violations(policy)
        m, p = self.schema.domain_size, policy.retention
        return Setting(
            policy,
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
            error=float(np.dot(self.plain.variances.questions.weight, plan.errors)),
            group_error=plan.most_exposed,
            posterior=posterior_limit(p, m, rho1),
            local_dp_epsilon=local_privacy_level(p, m),
            margins=policy.wanted_margins,
            margin_trials=plan.margin_trials,
            margin_rows_left_out=plan.rows_left_out,
            exposed_above=policy.exposed_above,
            harmless=policy.harmless,
            news_only=policy.news_only,
            reconstructed=plan.risk.reconstructed,
            worst_group=plan.risk.worst,
            worst_share=plan.risk.held_by,
            judged_epsilon=judge.epsilon,
            judged_above=judge.exposed_above,
        )

    def settled(self, policy: Policy) -> Policy:
        """The policy with what it has to know about this table: harmless values, frequencies."""
        return policy.on_cells(self.schema, self.batch)

    def question_errors(self, policy: Policy) -> Floats:
        """The expected relative error of every distinct question of the workload."""
        policy.check_sampling()
        if policy.wanted_margins is not None:
            return self._with_margins(policy, None).errors
        if policy.sampling.classes is not None:
            return self._errors_by_class(policy)
        limits = sample_limits(self.batch, policy, self.schema.domain_size)
        return self._errors_by_group(policy, limits)

    @property
    def schema(self) -> Schema:
        """The columns and the sensitive domain."""
        return self.cube.schema

    @property
    def variances(self) -> QueryVariances:
        """The workload, ready for any design under which every value is exposed."""
        return self.plain.variances

    def reduced(self, policy: Policy) -> Reduced:
        """The cells by what this policy calls exposed."""
        if policy.tests_everything:
            return self.plain
        if policy.exposure not in self._reduced:
            if len(self._reduced) >= _KEPT:
                self._reduced.clear()
            self._reduced[policy.exposure] = Reduced.of(
                self.cube,
                self.batch,
                largest_exposed(self.batch, policy),
                self.workload,
                self.asked,
            )
        return self._reduced[policy.exposure]

    @property
    def records(self) -> int:
        """How many records there are."""
        return int(self._sizes.sum())

    @cached_property
    def _sizes(self) -> Ints:
        return self.batch.sizes

    def _plan(self, policy: Policy, judge: Policy | None) -> _Plan:
        """How a policy samples; without a yardstick, its risk is not counted."""
        if policy.wanted_margins is not None:
            return self._with_margins(policy, judge)
        by_class = policy.sampling.classes is not None
        plan = self._by_class if by_class else self._by_group
        return plan(policy, judge)

    def _judged_shapes(self, policy: Policy, judge: Policy) -> Shapes:
        """The groups by what a policy and its yardstick call exposed."""
        shapes = self.reduced(policy).shapes
        if policy.exposure == judge.exposure:
            return shapes
        key = policy.exposure, judge.exposure
        if key not in self._judged:
            if len(self._judged) >= _KEPT:
                self._judged.clear()
            both = (largest_exposed(self.batch, one) for one in (policy, judge))
            self._judged[key] = Shapes.of(self.batch, self.schema.domain_size, *both)
        return self._judged[key]

    def _by_class(self, policy: Policy, judge: Policy | None) -> _Plan:
        """A limit for each class of the largest frequency; groups of one shape share it."""
        reduced = self.reduced(policy)
        shapes, limits = reduced.shapes, reduced.shapes.limits(policy)
        sampled = np.where(shapes.size > limits, shapes.how_many, 0)
        trials = shapes.trials(limits)
        return _Plan(
            int(sampled.sum()),
            int(shapes.how_many @ trials),
            int(sampled[limits < 1.0].sum()),
            self._errors_by_class(policy),
            shapes.most_exposed(policy, trials),
            self._risk_of_shapes(policy, judge, shapes, trials),
        )

    def _risk_of_shapes(
        self, policy: Policy, judge: Policy | None, shapes: Shapes, trials: Floats
    ) -> GroupRisk:
        if judge is None:
            return NOT_COUNTED
        judged = self._judged_shapes(policy, judge)
        seen = trials if judged is shapes else judged.trials(judged.limits(policy))
        return judged.risk(policy, seen, judge.epsilon)

    def _by_group(self, policy: Policy, judge: Policy | None) -> _Plan:
        """Algorithm 1: a limit for each group; trials are the expected ones."""
        limits = sample_limits(self.batch, policy, self.schema.domain_size)
        sampled = self._sizes > limits
        trials = np.where(sampled, np.maximum(limits, 1.0), self._sizes)
        frequency = largest_exposed(self.batch, policy)
        some = frequency > 0.0
        error = group_error(
            frequency[some],
            trials[some],
            retention=policy.retention,
            domain_size=self.schema.domain_size,
        )
        return _Plan(
            int(sampled.sum()),
            round(float(trials.sum())),
            int((sampled & (limits < 1.0)).sum()),
            self._errors_by_group(policy, limits),
            float(error.min(initial=np.inf)),
            self._risk(policy, judge, trials),
        )

    def _risk(self, policy: Policy, judge: Policy | None, trials: Floats) -> GroupRisk:
        """What an adversary learns from each group's trials, or what counts as such."""
        if judge is None:
            return NOT_COUNTED
        judged = largest_exposed(self.batch, judge)
        chance = chances(
            judged,
            trials,
            retention=policy.retention,
            domain_size=self.schema.domain_size,
            epsilon=judge.epsilon,
        )
        return group_risk(chance, judged, self._sizes)

    def _with_margins(self, policy: Policy, judge: Policy | None) -> _Plan:
        """Limits that count what margins are worth, and answers that use margins."""
        variances = self.reduced(policy).variances
        found = self._margins(policy).design(policy)
        sampled = variances.sizes > found.limits
        effective = np.empty(found.trials.size)
        effective[variances.order] = found.effective
        return _Plan(
            int(sampled.sum()),
            round(float(found.trials.sum())),
            int((sampled & (found.limits < 1.0)).sum()),
            variances.questions.errors(found.variance),
            found.exposed.error,
            self._risk(policy, judge, effective),
            found.exposed.told,
            found.left_out,
            margins_left=bool(found.plan.rows.any()),
        )

    def _margins(self, policy: Policy) -> MarginVariances:
        """The margin tables that a policy names, counted once."""
        from reconpriv.tuning.margins import MarginVariances  # noqa: PLC0415

        margins = policy.wanted_margins
        assert margins is not None
        reduced = self.reduced(policy)
        if margins.tables not in reduced.counted:
            reduced.counted[margins.tables] = MarginVariances.of(
                self.schema, self.batch, reduced.variances, policy
            )
        return reduced.counted[margins.tables]

    def _errors_by_class(self, policy: Policy) -> Floats:
        variances = self.reduced(policy).variances
        return self._errors(policy, variances.by_class(policy, self.schema.domain_size))

    def _errors_by_group(self, policy: Policy, limits: Floats) -> Floats:
        variances = self.reduced(policy).variances
        systematic = policy.tail_bound.lattice
        sums = variances.coin_sums(limits[variances.order], systematic=systematic)
        return self._errors(policy, sums)

    def _errors(self, policy: Policy, sums: Floats) -> Floats:
        return self.plain.variances.errors(sums, policy.retention, self.schema.domain_size)


@dataclass(frozen=True)
class _Plan:
    """How a policy would sample, and what that does to queries and to the adversary."""

    sampled: int
    trials: int
    unattainable: int
    errors: Floats
    most_exposed: float
    risk: GroupRisk
    margin_trials: float = 0.0
    rows_left_out: int = 0
    margins_left: bool = True
