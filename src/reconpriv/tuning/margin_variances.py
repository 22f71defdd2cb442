"""The variance of every query of a workload if margins are published too (theory.margins).

A query with groups q is estimated by q'D + λ'(M - B D), with the analysts' own weights λ
(estimate.linear), so its variance is

    q'V q - 2 λ'B V q + λ'B V B'λ + σ²|λ|².

B V q has a number per query and margin row, B V B' one per pair of rows. Both are sums over groups
and cells: those of unsampled groups are made once, a design adds what its sampled groups change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reconpriv.columns.schema import Schema
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import own_trials
from reconpriv.protect.margins.candidates import candidates_of, may_exceed
from reconpriv.protect.margins.plan import count_margins, plan_margins
from reconpriv.protect.margins.planned import MarginPlan
from reconpriv.protect.margins.tables import MarginTotals, index_rows, rows_of
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.estimation.design import mixing
from reconpriv.theory.margins.incidence import Incidence
from reconpriv.theory.margins.row_spectrum import RowSpectrum, cell_noise
from reconpriv.tuning.query_variances import QueryVariances


class MarginDesign(NamedTuple):
    """The margins of a policy, and next to them the limit of each group and what they are worth.

    ``change`` is what they add to the variance of every question, given the trials of each group.
    """

    plan: MarginPlan
    limits: Floats
    told: Floats
    change: Callable[[Floats], Floats | float]


@dataclass(frozen=True)
class MarginVariances:
    """A workload and the margin tables of one choice, ready for any policy that names it.

    ``incidence`` has the margin rows of each group.
    """

    schema: Schema
    queries: QueryVariances
    totals: MarginTotals
    incidence: Incidence

    @classmethod
    def of(cls, schema: Schema, queries: QueryVariances, policy: Policy) -> MarginVariances:
        """Count the margins that a policy names; nothing else here depends on it."""
        # Without sampling there is nothing to compare with, which is quicker.
        plain = replace(policy, sampling="none")
        totals = count_margins(lambda work: [work(iter([queries.batch]))], plain, schema)
        indexes = index_rows(totals.tables, schema)
        rows = rows_of(indexes, queries.batch.public, schema)
        return cls(schema, queries, totals, Incidence(rows, totals.rows))

    def design(self, policy: Policy, limits: Floats) -> MarginDesign:
        """The rows that would be published, and how they change the ``limits`` of the groups.

        If the sampling rule does not count margins, all rows are published, and they are worth what
        they are worth next to the trials of the sample.
        """
        m, counts = self.schema.domain_size, policy.sampling_rule.counts_margins
        groups = candidates_of(self.queries.batch, self.incidence.rows, policy, m)
        if not counts:
            groups = replace(groups, limits=own_trials(groups.sizes, limits))
        trials = own_trials(groups.sizes, groups.limits)
        products = self._products(groups.sizes**2 / trials - groups.sizes)
        some = may_exceed(groups, policy, m) if counts else np.arange(1)
        totals = replace(self.totals, products=products, candidates=groups.take(some))
        plan = plan_margins(totals, policy, self.schema, None)
        change = partial(self.change, policy, plan)
        if not plan.rows.any():
            return MarginDesign(plan, limits, limits, change)
        assert plan.worth is not None
        lowered = plan.worth.limits(groups) if counts else limits
        return MarginDesign(plan, lowered, plan.worth.trials(groups), change)

    def change(self, policy: Policy, plan: MarginPlan, trials: Floats) -> Floats:
        """What margins add to the variance of every question's estimate, usually less than 0."""
        queries, m, p = self.queries, self.schema.domain_size, policy.retention
        holder, anybody = mixing(p, m)
        groups = np.flatnonzero(trials < queries.sizes)
        sampled = queries.sampled(policy, groups, trials[groups])
        cells, owner, more = sampled.cells, sampled.owner, sampled.more
        sizes = queries.sizes[groups]
        # What sampling adds to N, for weights (U) and variances (W), and to each cell's variance.
        unknown = sizes**2 / trials[groups] - sizes
        extra = holder * queries.batch.count[cells] * (more / sizes)[owner] + sampled.extra
        kept = np.flatnonzero(plan.rows)
        noise = plan.variance if policy.sampling_rule.coin_flips else cell_noise(plan.variance, m)
        weights = self._weights(policy, noise, groups, unknown, kept)
        told = holder * self._base.questions[:, kept]
        told += self._rows_of_cells(cells, extra)[:, kept]
        shared = anybody * (self._base.parts + self._rows_of_groups(groups, more))[:, kept]
        told += shared[queries.questions.part]
        result = np.einsum("ik,ik->i", weights, noise * weights - 2.0 * told)
        square = np.ix_(kept, kept)
        alike = anybody * (self._base.products + self.incidence.pairs(more, groups))[square]
        asked, holders = queries.questions.value, queries.batch.value[cells]
        by_holder = np.argsort(holders, kind="stable")
        begin = np.searchsorted(holders[by_holder], np.arange(m + 1))
        for value in np.unique(asked).tolist():
            some, mine = np.flatnonzero(asked == value), by_holder[begin[value] : begin[value + 1]]
            own = holder * self._base.counts[value]
            own += self.incidence.pairs(extra[mine], groups[owner[mine]])
            lines = weights[some]
            result[some] += np.einsum("ik,ik->i", lines @ (own[square] + alike), lines)
        return np.asarray(result)

    def _weights(
        self, policy: Policy, noise: float, groups: Ints, unknown: Floats, kept: Ints
    ) -> Floats:
        """λ of every question, as estimate.linear has it."""
        holder, anybody = mixing(policy.retention, self.schema.domain_size)
        products = self._base.products + self.incidence.pairs(unknown, groups)
        spectrum = RowSpectrum.of(products[np.ix_(kept, kept)])
        parts = (self._base.parts + self._rows_of_groups(groups, unknown))[:, kept]
        asked = self.queries.questions
        one_trial = (holder * self._base.shares + anybody)[asked.value]
        return spectrum.weights(parts, one_trial, noise, asked.part)

    @cached_property
    def _base(self) -> _Base:
        batch, m = self.queries.batch, self.schema.domain_size
        groups, cells = np.arange(batch.groups), np.arange(batch.count.size)
        sizes, counts = batch.sizes.astype(np.float64), batch.count.astype(np.float64)
        by_value = np.zeros((m, self.totals.rows, self.totals.rows), dtype=np.float32)
        for value, matrix in enumerate(by_value):
            mine = np.flatnonzero(batch.value == value)
            matrix[...] = self.incidence.pairs(counts[mine], batch.group_of_cell[mine])
        whole = np.bincount(batch.value, weights=counts, minlength=m)
        return _Base(
            self._rows_of_groups(groups, sizes),
            self._rows_of_cells(cells, counts),
            self.incidence.pairs(sizes, groups),
            by_value,
            whole / whole.sum(),
        )

    def _products(self, unknown: Floats) -> Floats:
        """B U B', from what is unknown about each group beyond its size."""
        some = np.flatnonzero(unknown)
        return np.asarray(self._base.products + self.incidence.pairs(unknown[some], some))

    def _rows_of_groups(self, groups: Ints, values: Floats) -> Floats:
        """Sums over the groups of every public half of a query, by margin row."""
        counted, halves = self.queries.group_rows, self.queries.questions.parts
        line, weighed, _ = counted.lines(values, groups)
        return self.incidence.sums_by(weighed, line, halves, counted.owners(groups))

    def _rows_of_cells(self, cells: Ints, values: Floats) -> Floats:
        """Sums over the cells of every query, by margin row."""
        counted, asked = self.queries.cell_rows, self.queries.questions.weight.size
        line, weighed, _ = counted.lines(values, cells)
        of_line = self.queries.batch.group_of_cell[counted.owners(cells)]
        return self.incidence.sums_by(weighed, line, asked, of_line)


@dataclass(frozen=True)
class _Base:
    """The sums over all groups as if none were sampled: of sizes, and of counts.

    ``parts`` and ``questions`` have a column per margin row, ``products`` and ``counts`` (one for
    each sensitive value) a number per pair of rows.
    """

    parts: Floats
    questions: Floats
    products: Floats
    counts: NDArray[np.float32]
    shares: Floats
