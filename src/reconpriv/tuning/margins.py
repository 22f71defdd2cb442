"""The variance of every query of a workload if margins are published too (theory.margins).

A query with groups q is estimated by q'D + λ'(M - B D), with the analysts' own weights λ
(queries.margins), so its variance is

    q'V q - 2 λ'B V q + λ'B V B'λ + σ²|λ|².

B V q has a number per query and margin row, B V B' one per pair of rows. Both are sums over groups
and cells: those of unsampled groups are made once, a design adds what its sampled groups change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reconpriv.core.cells import CellBatch
from reconpriv.core.margin_candidates import Candidates, candidates_of, may_exceed
from reconpriv.core.margin_plan import MarginPlan, count_margins, plan_margins
from reconpriv.core.margin_tables import MarginTotals, index_rows, rows_of
from reconpriv.core.sample_sizes import sample_limits
from reconpriv.policy import Policy
from reconpriv.schema import Schema
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.design import Spread, coin_spread, exact_spread, group_error, mixing
from reconpriv.theory.margins import RowSpectrum, cell_noise
from reconpriv.tuning.spread import Incidence, QueryVariances, spans


class Exposed(NamedTuple):
    """The adversary's error in the most exposed group, and the trials margins are worth there."""

    error: float
    told: float


@dataclass(frozen=True)
class MarginDesign:
    """How a policy with margins would sample, and what that does to queries and the adversary.

    ``effective`` are trials and what margins are worth beside them.
    """

    plan: MarginPlan
    limits: Floats
    trials: Floats
    effective: Floats
    variance: Floats
    exposed: Exposed

    @property
    def left_out(self) -> int:
        """How many rows of margins would give a group away, so are not published."""
        return int((~self.plan.rows).sum())


@dataclass(frozen=True)
class MarginVariances:
    """A workload and the margin tables of one choice, ready for any policy that names it.

    Groups are in the order of ``queries``; ``rows`` are their rows, a column per table, and
    ``value`` is the sensitive value of each cell.
    """

    schema: Schema
    batch: CellBatch
    queries: QueryVariances
    totals: MarginTotals
    rows: Ints
    value: Ints

    @classmethod
    def of(
        cls, schema: Schema, batch: CellBatch, queries: QueryVariances, policy: Policy
    ) -> MarginVariances:
        """Count the margins that a policy names; nothing else here depends on it."""
        # Without sampling there is nothing to compare with, which is quicker.
        plain = replace(policy, sample_size="none")
        totals = count_margins(lambda work: [work(iter([batch]))], plain, schema)
        rows = rows_of(index_rows(totals.tables, schema), batch.public, schema)[queries.order]
        cell = spans(batch.starts[queries.order], batch.cells_per_group[queries.order])
        return cls(schema, batch, queries, totals, rows, batch.value[cell])

    def design(self, policy: Policy) -> MarginDesign:
        """Everything about one policy with margins."""
        m, order = self.schema.domain_size, self.queries.order
        sizes = self.queries.sizes
        back = np.argsort(order)
        groups = candidates_of(self.batch, self.rows[back], policy, m).take(order)
        counts = policy.sampling.counts_margins
        if not counts:
            # Margins are worth what they are worth next to the trials of the sample.
            limits = sample_limits(self.batch, policy, m)[order]
            groups = replace(groups, limits=_trials(sizes, limits))
        plan = self._plan(policy, groups)
        worth = plan.counted.worth
        told = worth.trials(groups)
        if counts:
            limits = worth.limits(groups)
        trials = _trials(sizes, limits)
        exposed = self._most_exposed(policy, trials, told)
        variance = self._variance(policy, plan, trials)
        return MarginDesign(plan, limits, trials, trials + told, variance, exposed)

    def _plan(self, policy: Policy, groups: Candidates) -> MarginPlan:
        """The rows that would be published; all of them if the sample size does not count them."""
        trials = np.maximum(np.minimum(groups.limits, groups.sizes), 1.0)
        products = self._products(groups.sizes**2 / trials - groups.sizes)
        counts = policy.sampling.counts_margins
        some = may_exceed(groups, policy, self.schema.domain_size) if counts else np.arange(1)
        totals = replace(self.totals, products=products, candidates=groups.take(some))
        return plan_margins(totals, policy, self.schema, None)

    def _most_exposed(self, policy: Policy, trials: Floats, told: Floats) -> Exposed:
        some = np.flatnonzero(self.queries.frequency > 0.0)
        if not some.size:
            return Exposed(math.inf, 0.0)
        errors = group_error(
            self.queries.frequency[some],
            (trials + told)[some],
            retention=policy.retention,
            domain_size=self.schema.domain_size,
        )
        worst = int(errors.argmin())
        return Exposed(float(errors[worst]), float(told[some[worst]]))

    def _variance(self, policy: Policy, plan: MarginPlan, trials: Floats) -> Floats:
        """The variance of every question's estimate."""
        queries, m, p = self.queries, self.schema.domain_size, policy.retention
        holder, anybody = mixing(p, m)
        groups = np.flatnonzero(trials < queries.sizes)
        cells, owner = queries.cells_of(groups)
        spread = _spread(policy, queries, groups, cells, owner, trials[groups])
        sizes = queries.sizes[groups]
        # What sampling adds to N, for weights (U) and variances (W), and to each cell's variance.
        unknown = sizes**2 / trials[groups] - sizes
        more = spread.weight - sizes
        extra = holder * queries.count[cells] * (more / sizes)[owner] + spread.extra
        kept = np.flatnonzero(plan.rows)
        noise = plan.variance if policy.sampling.coins else cell_noise(plan.variance, m)
        weights = self._weights(policy, noise, groups, unknown, kept)
        told = holder * self._base.questions[:, kept]
        told += self._rows_of_cells(cells, extra)[:, kept]
        shared = anybody * (self._base.parts + self._rows_of_groups(groups, more))[:, kept]
        told += shared[queries.questions.part]
        result = queries.variance(queries.total(groups, cells, owner, spread), p, m)
        result += np.einsum("ik,ik->i", weights, noise * weights - 2.0 * told)
        square = np.ix_(kept, kept)
        alike = anybody * (self._base.products + self._pairs(groups, more))[square]
        asked, holders = queries.questions.value, self.value[cells]
        by_holder = np.argsort(holders, kind="stable")
        begin = np.searchsorted(holders[by_holder], np.arange(m + 1))
        for value in np.unique(asked).tolist():
            some, mine = np.flatnonzero(asked == value), by_holder[begin[value] : begin[value + 1]]
            own = holder * self._base.counts[value]
            own += self._pairs(groups[owner[mine]], extra[mine])
            lines = weights[some]
            result[some] += np.einsum("ik,ik->i", lines @ (own[square] + alike), lines)
        return result

    def _weights(
        self, policy: Policy, noise: float, groups: Ints, unknown: Floats, kept: Ints
    ) -> Floats:
        """λ of every question, as queries.margins has it."""
        holder, anybody = mixing(policy.retention, self.schema.domain_size)
        products = self._base.products + self._pairs(groups, unknown)
        spectrum = RowSpectrum.of(products[np.ix_(kept, kept)])
        parts = (self._base.parts + self._rows_of_groups(groups, unknown))[:, kept]
        asked = self.queries.questions
        one_trial = (holder * self._base.shares + anybody)[asked.value]
        return spectrum.weights(parts, one_trial, noise, asked.part)

    @cached_property
    def _base(self) -> _Base:
        queries, m = self.queries, self.schema.domain_size
        groups = np.arange(queries.sizes.size)
        cells, owner = queries.cells_of(groups)
        sizes, counts = queries.sizes.astype(np.float64), queries.count.astype(np.float64)
        by_value = np.zeros((m, self.totals.rows, self.totals.rows), dtype=np.float32)
        for value, matrix in enumerate(by_value):
            mine = np.flatnonzero(self.value == value)
            matrix[...] = self._pairs(owner[mine], counts[mine])
        whole = np.bincount(self.value, weights=counts, minlength=m)
        return _Base(
            self._rows_of_groups(groups, sizes),
            self._rows_of_cells(cells, counts),
            self._pairs(groups, sizes),
            by_value,
            whole / whole.sum(),
        )

    def _products(self, unknown: Floats) -> Floats:
        """B U B', from what is unknown about each group beyond its size."""
        some = np.flatnonzero(unknown)
        return np.asarray(self._base.products + self._pairs(some, unknown[some]))

    def _rows_of_groups(self, groups: Ints, values: Floats) -> Floats:
        """Sums over the groups of every public half of a query, by margin row."""
        asked = self.queries.questions.parts
        return self._by_row(self.queries.group_rows, groups, groups, values, asked)

    def _rows_of_cells(self, cells: Ints, values: Floats) -> Floats:
        """Sums over the cells of every query, by margin row."""
        group = np.searchsorted(self.queries.starts, cells, side="right") - 1
        asked = self.queries.questions.weight.size
        return self._by_row(self.queries.cell_rows, cells, group, values, asked)

    def _by_row(
        self, counted: Incidence, columns: Ints, group: Ints, values: Floats, lines: int
    ) -> Floats:
        length = counted.begin[columns + 1] - counted.begin[columns]
        line = counted.row[spans(counted.begin[columns], length)].astype(np.int64)
        k = self.totals.rows
        total = np.zeros(lines * k)
        line *= k
        owner, weights = np.repeat(group, length), np.repeat(values, length)
        for row in self.rows.T:
            total += np.bincount(line + row[owner], weights=weights, minlength=lines * k)
        return total.reshape(lines, k)

    def _pairs(self, groups: Ints, values: Floats) -> Floats:
        """Sums over groups by pair of rows."""
        k, rows = self.totals.rows, self.rows[groups].T
        tables = [(i, j) for i in range(len(rows)) for j in range(i, len(rows))]
        slot = np.concatenate([rows[i] * k + rows[j] for i, j in tables])
        total = np.bincount(slot, weights=np.tile(values, len(tables)), minlength=k * k)
        matrix = total.astype(np.float64).reshape(k, k)
        # Rows of one table share no group, so only the diagonal is there twice.
        return matrix + np.triu(matrix, 1).T


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


def _spread(
    policy: Policy, queries: QueryVariances, groups: Ints, cells: Ints, owner: Ints, trials: Floats
) -> Spread:
    count, sizes = queries.count[cells], queries.sizes[groups]
    if policy.sampling.coins:
        return coin_spread(count, owner, sizes, trials, systematic=policy.tail_bound.lattice)
    return exact_spread(count, owner, sizes, trials.astype(np.int64))


def _trials(sizes: Ints, limits: Floats) -> Floats:
    """The trials of each group; at least one, however strict the limit."""
    return np.where(sizes > limits, np.maximum(limits, 1.0), sizes)
