"""Margins and groups: how many trials margins are worth, and which rows would give a group away.

To an adversary who wants one value of one group, margins are worth E trials (theory.margins). The
limit that a sampling rule sets counts them: a group that margins tell about gets fewer trials of
its own. A row that would leave a group less than one is not published.

E is counted value by value. Other groups are taken to hold a value as often as their rows do, and
the group itself at most as often as its rows let expect, times its excess: the smallest of 2, 4, 8,
… with which that is true of all its exposed values. So nothing is assumed about the group itself.

Everything here is a function of group sizes, classes, excesses and noisy counts, never of the true
ones: the number of trials of a group reveals its class, its excess, and nothing else. A sampling
rule whose trials may not depend on the class does not look at the excess either: every value may
then be as frequent as the class allows, and be held by nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.columns.schema import Schema
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import (
    own_trials,
    private_size,
    round_up_to_octave,
    sample_limits,
)
from reconpriv.protect.margins.candidates import Candidates, candidates_of, may_exceed
from reconpriv.protect.margins.planned import CostPart, TrialLimits
from reconpriv.protect.margins.tables import MarginTotals, RowIndex, rows_of
from reconpriv.theory.arrays import Flags, Floats, Ints, quotient
from reconpriv.theory.margins.main_effects import expected_frequencies
from reconpriv.theory.margins.row_spectrum import (
    row_precision,
    same_everywhere,
    trials_from_margins,
)

# The smallest excess: most groups hold no exposed value more often than twice as expected.
TYPICAL_EXCESS = 2.0
# From frequencies of a value in some of the groups to the trials that are left beside the class.
RoomBeside = Callable[[Floats, Ints], Floats]
# So many of the rows that were left out are tried again, fewer if that takes long.
_BROUGHT_BACK = 32
_OPERATIONS = 2e9
# Where the limit of a value that is less frequent than its class is looked up: steps of 1/64.
_STEPS = 64
# Where the most that margins tell is looked for first.
_FIRST = 64


@dataclass(frozen=True)
class ValuePrecision:
    """Q^-1 over the rows for one value, and what the other groups of a row hold of it.

    ``precision`` has zeros for rows that are not published; ``others`` are the frequencies of the
    value in each row.
    """

    others: Floats
    precision: Floats


@dataclass(frozen=True)
class MarginWorth:
    """What margins are worth about each group, in trials; picklable, so tasks can carry it.

    ``by_row`` and ``overall`` are frequencies of the values, as far as noisy counts tell.
    ``values`` has what rows tell of each value, ``unheld`` of a value that no other group holds. A
    value without a precision is not asked about.
    """

    policy: Policy
    domain_size: int
    by_row: Floats
    overall: Floats
    values: tuple[ValuePrecision, ...]
    unheld: ValuePrecision

    def trials(self, groups: Candidates) -> Floats:
        """The most trials that margins are worth about each group, for any of its exposed values.

        A value that is less frequent than its class has a larger limit than the class. What that
        leaves is taken off, so that the result counts towards the limit of the class.
        """
        if not self.policy.sampling_rule.counts_margins:
            return self._trials(groups)
        told = np.zeros(groups.sizes.size)
        some = may_exceed(groups, self.policy, self.domain_size)
        told[some] = self._trials(groups.take(some))
        return told

    def _trials(self, groups: Candidates) -> Floats:
        if not self.policy.sampling_rule.tells_excess:
            return self._alone(groups)
        deciding, room = self._deciding(groups), self._room(groups)
        told = np.zeros(groups.sizes.size)
        # A value that does not decide about the excess may be held by nobody else.
        some = np.flatnonzero(deciding > self.policy.exposed_above)
        told[some] = self._worth(groups, some, deciding[some], self.unheld)
        told[some] = np.maximum(told[some] - room(deciding[some], some), 0.0)
        own = self.highest_frequencies(groups)
        for value, one in enumerate(self.values):
            some = np.flatnonzero(own[:, value] > self.policy.exposed_above)
            if not some.size or not one.precision.size:
                continue
            mine = own[some, value]
            worth = self._worth(groups, some, mine, one) - room(mine, some)
            told[some] = np.maximum(told[some], worth)
        return told

    def highest_frequencies(self, groups: Candidates) -> Floats:
        """How often each group holds each value at most, as far as class and excess tell."""
        expected = expected_frequencies(groups.rows, self.by_row, self.overall)
        factor = excess(groups, expected, self._deciding(groups))
        return np.asarray(np.minimum(expected * factor[:, None], groups.frequency[:, None]))

    def limits(self, groups: Candidates) -> Floats:
        """The most trials of its own that each group may have next to margins."""
        return self.cost(groups)[0]

    def cost(self, groups: Candidates) -> tuple[Floats, Floats]:
        """The same, and the most that margins can be worth about each group.

        They are worth most if nobody else holds a value, and more from them never allows more
        trials. So only groups that would then get fewer trials are counted value by value.
        """
        limits, alone = groups.limits.copy(), np.zeros(groups.sizes.size)
        some = may_exceed(groups, self.policy, self.domain_size)
        few = groups.take(some)
        alone[some] = self._alone(few)
        fewer = self._limits(few, alone[some]) < np.minimum(few.limits, few.sizes)
        if fewer.any():
            limits[some[fewer]] = self.limits_by_value(few.take(np.flatnonzero(fewer)))
        return limits, alone

    def limits_by_value(self, groups: Candidates) -> Floats:
        """The same for few groups, whatever they may lose."""
        return self._limits(groups, self._trials(groups))

    def _alone(self, groups: Candidates) -> Floats:
        """What margins would be worth if nobody else held the most frequent value."""
        return self._worth(groups, np.arange(groups.sizes.size), groups.frequency, self.unheld)

    def may_be_given_away(self, groups: Candidates) -> Ints:
        """The groups that would keep less than one trial if nobody else held their values."""
        some = np.flatnonzero(groups.limits >= 1.0)
        few = groups.take(some)
        return some[self._limits(few, self._alone(few)) < 1.0]

    def most(self, groups: Candidates, alone: Floats) -> float:
        """The most trials that margins are worth about any group; ``alone`` is what they can be."""
        first = np.argsort(-alone, kind="stable")[:_FIRST]
        found = float(self.trials(groups.take(first)).max(initial=0.0))
        rest = np.setdiff1d(np.flatnonzero(alone > found), first)
        return max(found, float(self.trials(groups.take(rest)).max(initial=0.0)))

    def _limits(self, groups: Candidates, told: Floats) -> Floats:
        return self.policy.sampling_rule.limits_of_classes(
            groups.sizes, groups.frequency, self.policy, self.domain_size, told
        )

    def _deciding(self, groups: Candidates) -> Floats:
        """The frequency above which a value decides about the excess of its group.

        By a bound, a value that is half as frequent as the class may have twice as many trials, so
        it does not decide. Exact tails are judged for all frequencies of a class at once.
        """
        part = 0.0 if self.policy.tail_bound.exact else 0.5
        return np.asarray(np.maximum(part * groups.frequency, self.policy.exposed_above))

    def _worth(self, groups: Candidates, some: Ints, own: Floats, value: ValuePrecision) -> Floats:
        return trials_from_margins(
            groups.rows[some],
            groups.sizes[some],
            own_trials(groups.sizes, groups.limits)[some],
            own,
            value.others,
            value.precision,
            retention=self.policy.retention,
            domain_size=self.domain_size,
        )

    def _room(self, groups: Candidates) -> RoomBeside:
        """By how much the limit of a value exceeds that of its group's class."""
        if self.policy.tail_bound.exact:
            return lambda mine, _some: np.zeros(mine.size)
        steps = np.arange(1, _STEPS + 1) / _STEPS
        table = private_size(steps, self.policy, self.domain_size)

        def room(mine: Floats, some: Ints) -> Floats:
            place = np.clip(np.ceil(mine * _STEPS).astype(np.int64), 1, _STEPS) - 1
            return np.maximum(table[place] - groups.limits[some], 0.0)

        return room


def excess(groups: Candidates, expected: Floats, deciding: Floats) -> Floats:
    """The smallest of 2, 4, 8, … times which every deciding value was expected at least as often.

    Values decide that are more frequent in their group than ``deciding``.
    """
    owner = np.repeat(np.arange(groups.sizes.size), groups.exposed)
    ratio = groups.exposed_frequency / expected[owner, groups.exposed_value]
    largest = np.ones(groups.sizes.size)
    np.maximum.at(largest, owner, np.where(groups.exposed_frequency > deciding[owner], ratio, 1.0))
    return np.maximum(round_up_to_octave(largest), TYPICAL_EXCESS)


@dataclass(frozen=True)
class CountedLimits(TrialLimits):
    """Limits of trials that count what margins are worth, for batches of groups."""

    worth: MarginWorth
    indexes: tuple[RowIndex, ...]
    schema: Schema

    def lowered(self, batch: CellBatch, limits: Floats) -> Floats:  # noqa: ARG002
        """The limits of the sampling rule, lowered by what margins are worth about each group."""
        return self.worth.limits(self._groups(batch))

    def cost(self, batch: CellBatch) -> CostPart:
        """What margins cost the groups of a batch."""
        limits, groups = self._limits_without(batch), self._groups(batch)
        lowered, possible = self.worth.cost(groups)
        alone, trials = own_trials(batch.sizes, limits), own_trials(batch.sizes, lowered)
        return CostPart(
            groups=int((trials < alone).sum()),
            trials=round(float(alone.sum())),
            trials_lost=round(float((alone - trials).sum())),
            most=self.worth.most(groups, possible),
        )

    def beside(self, batch: CellBatch) -> dict[str, Floats]:
        """For every group: its own trials, those that margins are worth, and both together."""
        told = self.told(batch)
        own = own_trials(batch.sizes, self.lowered(batch, self._limits_without(batch)))
        return {"trials": own, "trials_from_margins": told, "effective_trials": own + told}

    def _limits_without(self, batch: CellBatch) -> Floats:
        return sample_limits(batch, self.worth.policy, self.worth.domain_size)

    def told(self, batch: CellBatch) -> Floats:
        """How many trials margins are worth about each group."""
        return self.worth.trials(self._groups(batch))

    def _groups(self, batch: CellBatch) -> Candidates:
        rows = rows_of(self.indexes, batch.public, self.schema)
        return candidates_of(batch, rows, self.worth.policy, self.worth.domain_size)


def publishable_rows(
    totals: MarginTotals,
    frequencies: Sequence[Floats],
    variance: float,
    policy: Policy,
    domain_size: int,
) -> tuple[MarginWorth, Flags]:
    """Leave out rows until every group that may have a trial keeps at least one.

    ``frequencies`` are those of the sensitive values in each row, table by table. Each group that
    margins would give away loses the row that tells most about it. What one group lost another may
    not have had to: in the end rows come back, the largest first, if no group is given away.
    """
    sizes = totals.tables[0].counts.sum(axis=1)
    by_row = np.concatenate(frequencies)
    empty = ValuePrecision(np.zeros(totals.rows), np.zeros((0, 0)))
    overall = np.asarray((sizes[:, None] * frequencies[0]).sum(axis=0) / sizes.sum())
    blank = MarginWorth(policy, domain_size, by_row, overall, (), empty)

    def worth_of(published: Flags, asked: Flags) -> MarginWorth:
        def told_by(others: Floats) -> ValuePrecision:
            precision = _precision(totals, published, variance, others, policy)
            return ValuePrecision(others, precision)

        values = (told_by(by_row[:, x]) if asked[x] else empty for x in range(domain_size))
        return replace(blank, values=tuple(values), unheld=told_by(np.zeros(totals.rows)))

    published = np.ones(totals.rows, dtype=bool)
    # What fewer rows tell is less, so no other group is given away by any of them.
    most = worth_of(published, np.zeros(domain_size, dtype=bool))
    groups = totals.candidates.take(most.may_be_given_away(totals.candidates))
    own = blank.highest_frequencies(groups)
    tells = policy.sampling_rule.tells_excess
    asked = np.asarray((own > policy.exposed_above).any(axis=0) & tells)
    # The value that most likely gives a group away.
    likely = (own - by_row[groups.rows].mean(axis=1)).argmax(axis=1)

    def given_away(worth: MarginWorth, published: Flags) -> Ints:
        if not policy.sampling_rule.counts_margins:
            return np.zeros(0, dtype=np.int64)
        kept = published[groups.rows].any(axis=1)
        return np.flatnonzero((worth.limits_by_value(groups) < 1.0) & kept)

    worth = worth_of(published, asked)
    while (bad := given_away(worth, published)).size:
        published[_telling_rows(groups.rows[bad], worth.unheld.precision)] = False
        worth = worth_of(published, asked)
    records = np.concatenate([table.counts.sum(axis=1) for table in totals.tables])
    left_out = np.flatnonzero(~published)
    tries = min(_BROUGHT_BACK, int(_OPERATIONS / (domain_size * float(totals.rows) ** 3)))
    for row in left_out[np.argsort(-records[left_out], kind="stable")][:tries]:
        published[row] = True
        first = np.zeros(domain_size, dtype=bool)
        first[likely[(groups.rows == row).any(axis=1)]] = True
        for some in (first & asked, asked):
            if given_away(worth_of(published, some), published).size:
                published[row] = False
                break
    return worth_of(published, np.full(domain_size, tells)), published


def _telling_rows(rows: Ints, precision: Floats) -> Ints:
    """The row that tells most about each group: without row j, b'Pb loses (P_j'b)²/P_jj."""
    own = precision[rows[:, :, None], rows[:, None, :]].sum(axis=2)
    diagonal = precision.diagonal()[rows]
    loss = quotient(own**2, diagonal, -1.0)
    return np.asarray(rows[np.arange(rows.shape[0]), same_everywhere(loss).argmax(axis=1)])


def _precision(
    totals: MarginTotals, published: Flags, variance: float, others: Floats, policy: Policy
) -> Floats:
    kept = np.flatnonzero(published)
    precision = np.zeros_like(totals.products)
    if kept.size and totals.candidates.sizes.size:
        some = np.ix_(kept, kept)
        precision[some] = row_precision(
            totals.products[some],
            variance,
            others[kept],
            retention=policy.retention,
            domain_size=totals.tables[0].counts.shape[1],
        )
    return precision
