"""One pass over a table, then any policy: its violations, trials, error and risk.

There is one design for every policy: the limit of each group, what margins are worth beside its
trials (nothing without margins), and from these the analysts' error and the adversary's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from reconpriv.ask.workload import Workload, make_workload
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.cube import Cube, collect
from reconpriv.cells.randomness import Key
from reconpriv.columns.schema import Schema
from reconpriv.policy.exposure import largest_exposed
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import (
    own_trials,
    private_as_they_are,
    private_size,
    sample_limits,
)
from reconpriv.protect.coarsening import find_coarsening, pooled_cube
from reconpriv.protect.margins.planned import NO_MARGIN_PLAN
from reconpriv.theory.arrays import Floats, Ints, distinct_columns
from reconpriv.theory.estimation.design import group_error
from reconpriv.theory.perturbation import PRIOR, local_privacy_level, posterior_limit
from reconpriv.tuning.margin_variances import MarginDesign, MarginVariances
from reconpriv.tuning.query_variances import QueryVariances
from reconpriv.tuning.risk import NOT_COUNTED, GroupRisk, chances, yardstick

# An audit asks for the errors of one policy only.
if TYPE_CHECKING:
    from reconpriv.tuning.report import Setting

T = TypeVar("T")
# How much is remembered: six sweeps of settings, about 2 KB each, and what they share.
_REMEMBERED = 16_384


@dataclass(frozen=True)
class GroupLines:
    """The groups of a table, those that a policy and a yardstick see alike in one line.

    ``frequency`` is the largest exposed one, ``judged`` the largest that the yardstick calls
    exposed; 0 stands for none. ``how_many`` groups share each line; ``line`` is that of each group.
    ``key`` identifies the lines.
    """

    size: Ints
    frequency: Floats
    judged: Floats
    how_many: Ints
    line: Ints
    key: tuple[object, ...]


@dataclass(frozen=True)
class Tuner:
    """The cells of a table and a workload, reduced to what a policy's figures depend on."""

    cube: Cube
    batch: CellBatch
    workload: Workload
    queries: QueryVariances
    _known: dict[tuple[object, ...], Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, batches: Iterable[CellBatch], schema: Schema, *, queries: int = 5_000, seed: int = 0
    ) -> Tuner:
        """Read the cells once; the workload is the standard one (section 6.1)."""
        cube = collect(batches, schema)
        return cls.on(cube, make_workload(cube, queries=queries, seed=seed))

    @classmethod
    def on(cls, cube: Cube, workload: Workload) -> Tuner:
        """Cells in memory, judged by a workload on them, or on a table that they are a part of.

        If they make up protection groups, these are the groups that are judged.
        """
        queries = QueryVariances.of(cube, workload)
        return cls(cube.whole, queries.batch, workload, queries)

    @property
    def schema(self) -> Schema:
        """The columns and the sensitive domain."""
        return self.cube.schema

    @property
    def records(self) -> int:
        """How many records there are."""
        return int(self.queries.sizes.sum())

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
        Settings are kept: the next sweep tries many of them again. A policy whose margins would
        have no row is judged without them, as it would be published.
        """
        policy.check_sampling()
        groups, judge = self.by_promise(policy), yardstick(policy if exposing is None else exposing)
        key = "setting", policy, rho1, judge.exposure, risk
        return groups._once(key, lambda: groups._setting(policy, rho1, judge, risk=risk))

    def by_promise(self, policy: Policy) -> Tuner:
        """The same table and workload by the groups that a policy makes a promise about."""
        if not policy.protect:
            return self

        def make() -> Tuner:
            found = find_coarsening(policy, self.schema, self.cube.map_groups, Key.test())
            return Tuner.on(pooled_cube(self.cube, found), self.workload)

        merged = policy.retention if policy.wanted_protection.merges else None
        return self._once(("groups", policy.wanted_protection, merged), make)

    def question_errors(self, policy: Policy) -> Floats:
        """The expected relative error of every distinct question of the workload."""
        policy.check_sampling()
        return self.by_promise(policy)._design(policy.unprotected(), policy).errors

    def _setting(self, policy: Policy, rho1: float, judge: Policy, *, risk: bool) -> Setting:
        from reconpriv.tuning.report import Setting  # noqa: PLC0415

        design = self._design(policy.unprotected(), judge)
        whole = replace(design.policy, protect=policy.protect)
        policy, lines, m, p = design.policy, design.lines, self.schema.domain_size, policy.retention
        sampled = np.where(lines.size > design.limits, lines.how_many, 0)
        exposed = np.flatnonzero(lines.frequency > 0.0)
        effective = design.trials + design.told
        errors = group_error(
            lines.frequency[exposed], effective[exposed], retention=p, domain_size=m
        )
        told = float(design.told[exposed[errors.argmin()]]) if exposed.size else 0.0
        violating = self._once(
            ("violations", policy.exposure, p, policy.tolerance, policy.doubt, policy.tail_bound),
            lambda: self._violations(policy),
        )
        found = self._risk(design, judge) if risk else NOT_COUNTED
        return Setting(
            whole,
            retention=p,
            tolerance=policy.tolerance,
            doubt=policy.doubt,
            bound=policy.tail_bound.name,
            sampling=policy.sampling,
            violating_groups=violating[0],
            violating_records=violating[1],
            sampled_groups=int(sampled.sum()),
            trials=round(float(lines.how_many @ design.trials)),
            unattainable_groups=int(sampled[design.limits < 1.0].sum()),
            error=float(np.dot(self.queries.questions.weight, design.errors)),
            group_error=float(errors.min(initial=np.inf)),
            posterior=posterior_limit(p, m, rho1),
            local_dp_epsilon=local_privacy_level(p, m),
            margins=policy.wanted_margins,
            margin_trials=told,
            margin_rows_left_out=design.rows_left_out,
            exposed_above=policy.exposed_above,
            harmless=policy.harmless,
            reconstructed=found.reconstructed,
            worst_group=found.worst,
            worst_share=found.held_by,
            judged_tolerance=judge.tolerance,
            judged_above=judge.exposed_above,
        )

    def _violations(self, policy: Policy) -> tuple[int, int]:
        """Violating groups and their records, as an audit counts them."""
        bound, m = policy.tail_bound, self.schema.domain_size
        if bound.exact or not bound.worst_at_largest_frequency:
            private = private_as_they_are(self.batch, policy, m)
            return int((~private).sum()), int(self.queries.sizes[~private].sum())
        lines = self._lines(policy, policy)
        limits = private_size(lines.frequency, policy, m)
        groups = np.where(lines.size > limits, lines.how_many, 0)
        return int(groups.sum()), int(groups @ lines.size)

    def _design(self, policy: Policy, judge: Policy) -> _Design:
        """How a policy samples, and how far off its answers would be."""
        lines, m, queries = self._lines(policy, judge), self.schema.domain_size, self.queries
        if policy.sampling_rule.classes is None:
            limits = sample_limits(self.batch, policy, m)
        else:
            limits = policy.sampling_rule.limits_at(lines.size, lines.frequency, policy, m)
        beside = self._beside(policy, limits)
        if beside.plan.margins != policy.wanted_margins:
            return self._design(replace(policy, margins=None), judge)
        trials = own_trials(lines.size, beside.limits)
        members = self._once(
            ("classes", policy.sampling_rule, lines.key),
            lambda: queries.members(lines.frequency[lines.line], lines.line, policy),
        )
        sums = queries.sums(policy, members, beside.limits, lines.line)
        variance = queries.variance(sums, policy.retention) + beside.change(trials)
        errors = queries.questions.errors(variance)
        left_out = int((~beside.plan.rows).sum())
        return _Design(policy, lines, beside.limits, trials, beside.told, errors, left_out)

    def _lines(self, policy: Policy, judge: Policy) -> GroupLines:
        """The groups as policy and yardstick see them; each in a line of its own if limits ask."""
        together = policy.sampling_rule.classes is not None and not policy.margins
        key = "lines", policy.exposure, judge.exposure, together

        def make() -> GroupLines:
            both = [largest_exposed(self.batch, one) for one in (policy, judge)]
            matrix = np.stack([self.queries.sizes.astype(np.float64), *both])
            line = np.arange(self.batch.groups)
            if together:
                matrix, _, line = distinct_columns(matrix)
            size, frequency, judged = matrix
            return GroupLines(
                size.astype(np.int64), frequency, judged, np.bincount(line), line, key
            )

        return self._once(key, make)

    def _beside(self, policy: Policy, limits: Floats) -> MarginDesign:
        """The margins of a policy, whose tables are counted once; none if none has a row."""
        if policy.margins:
            found = self._once(
                ("margins", policy.wanted_margins.tables),
                lambda: MarginVariances.of(self.schema, self.queries, policy),
            ).design(policy, limits)
            if found.plan.rows.any():
                return found
        return MarginDesign(NO_MARGIN_PLAN, limits, np.zeros(limits.size), lambda _: 0.0)

    def _risk(self, design: _Design, judge: Policy) -> GroupRisk:
        """What an adversary learns from each group's trials and the margins.

        The chances in groups that are not sampled depend on p and the tolerance alone: every doubt
        and sampling rule shares them.
        """
        lines, policy = design.lines, design.policy
        shared = "chances", lines.key, policy.retention, judge.tolerance
        whole = self._once(shared, lambda: np.full(lines.size.size, np.nan))
        alone = (design.trials >= lines.size) & (design.told == 0.0)
        chance = whole.copy()
        unknown = np.flatnonzero(~alone | np.isnan(whole))
        chance[unknown] = chances(
            lines.judged[unknown],
            design.trials[unknown],
            design.told[unknown],
            retention=policy.retention,
            domain_size=self.schema.domain_size,
            tolerance=judge.tolerance,
        )
        whole[alone] = chance[alone]
        return GroupRisk.of(chance, lines.judged, lines.how_many * lines.size)

    def _once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """What is made for a key, made once: settings share it, and a slider moves back."""
        if key not in self._known:
            found = make()
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = found
        kept: T = self._known[key]
        return kept


@dataclass(frozen=True)
class _Design:
    """How a policy samples the groups, line by line, and the error of every question.

    ``policy`` is without margins if none of their rows would be published.
    """

    policy: Policy
    lines: GroupLines
    limits: Floats
    trials: Floats
    told: Floats
    errors: Floats
    rows_left_out: int
