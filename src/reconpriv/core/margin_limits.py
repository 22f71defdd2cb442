"""Margins and groups: how many trials margins are worth, and which rows would give a group away.

To an adversary who wants one group, margins are worth a number of trials (theory.margins). The
limit that a sample size sets counts them: a group that margins tell about gets fewer trials of its
own. A row that would leave a group less than one is not published.

Everything here is a function of group sizes, classes and noisy counts, never of the true ones: what
the number of trials reveals about a group is still its class and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.core.cells import CellBatch
from reconpriv.core.margin_tables import (
    Candidates,
    MarginTotals,
    RowIndex,
    index_rows,
    limits_and_classes,
    rows_of,
)
from reconpriv.policy import Policy
from reconpriv.schema import Schema
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.margins import row_precision, trials_from_margins

# A group may hold a value this many times as often as any of its rows does; what margins are worth
# is counted for such a value. More would count a kind of group that real tables hardly have.
TYPICAL_EXCESS = 2.0
# Sensitive values are put into classes by how frequent they are in the whole table: ½, ¼, …
_RAREST = 2.0**-6


@dataclass(frozen=True)
class ValueClass:
    """Sensitive values of about the same frequency in the whole table: at least ``others``.

    ``precision`` has zeros for rows that are not published. ``largest`` is the largest frequency
    of a value of this class in each row, as far as noisy counts tell.
    """

    others: float
    precision: Floats
    largest: Floats


@dataclass(frozen=True)
class MarginWorth:
    """What margins are worth about each group, in trials; picklable, so tasks can carry it."""

    policy: Policy
    domain_size: int
    classes: tuple[ValueClass, ...]

    def trials(self, groups: Candidates) -> Floats:
        """How many trials margins are worth about each group, for the value they tell most of."""
        own_trials = np.maximum(np.minimum(groups.limits, groups.sizes), 1.0)
        told = np.zeros(groups.sizes.size)
        tables = np.ascontiguousarray(groups.rows.T)
        for one in self.classes:
            own = np.minimum(groups.frequency, TYPICAL_EXCESS * one.largest[tables].max(axis=0))
            found = trials_from_margins(
                groups.rows,
                groups.sizes,
                own_trials,
                own,
                one.others,
                one.precision,
                retention=self.policy.retention,
                domain_size=self.domain_size,
            )
            told = np.maximum(told, found)
        return told


@dataclass(frozen=True)
class CountedLimits:
    """Limits of trials that count what margins are worth, for batches of groups."""

    worth: MarginWorth
    indexes: tuple[RowIndex, ...]
    schema: Schema

    def lowered(self, batch: CellBatch, limits: Floats) -> Floats:
        """The limits of a sample size, each less what margins are worth about the group."""
        groups = self._groups(batch)
        return limits if groups is None else lowered(groups, self.worth.trials(groups))

    def told(self, batch: CellBatch) -> Floats | None:
        """How many trials margins are worth about each group; None if they are not counted."""
        groups = self._groups(batch)
        return None if groups is None else self.worth.trials(groups)

    def _groups(self, batch: CellBatch) -> Candidates | None:
        found = limits_and_classes(batch, self.worth.policy, self.worth.domain_size)
        if found is None:
            return None
        rows = rows_of(self.indexes, batch.public, self.schema)
        return Candidates(rows, batch.sizes, *found)


def lowered(groups: Candidates, told: Floats) -> Floats:
    """The most trials that each group may have: with those from margins, no more than its limit."""
    exceeded = groups.sizes + told > groups.limits
    return np.where(exceeded, np.floor(groups.limits - told), groups.limits)


def settle_rows(
    totals: MarginTotals,
    frequencies: Sequence[Floats],
    variance: float,
    policy: Policy,
    domain_size: int,
) -> tuple[MarginWorth, Flags]:
    """Leave out rows until every group that may have a trial keeps at least one.

    ``frequencies`` are those of the sensitive values in each row, table by table. Of the rows of a
    group that margins would give away, the one that tells most about it goes: the one whose other
    groups vary least.
    """
    published = np.ones(totals.rows, dtype=bool)
    groups = totals.candidates
    unknown = groups.sizes**2 / np.maximum(np.minimum(groups.limits, groups.sizes), 1.0)
    values = _value_classes(totals, frequencies)
    while True:
        classes = tuple(
            replace(one, precision=_precision(totals, published, variance, one.others, policy))
            for one in values
        )
        worth = MarginWorth(policy, domain_size, classes)
        told = worth.trials(groups)
        given_away = (
            (groups.sizes + told > groups.limits)
            & (groups.limits - told < 1.0)
            & (groups.limits >= 1.0)
            & published[groups.rows].any(axis=1)
        )
        if not given_away.any():
            return worth, published
        others = totals.products.diagonal()[groups.rows] - unknown[:, None]
        others = np.where(published[groups.rows], others, np.inf)[given_away]
        worst = groups.rows[given_away][np.arange(others.shape[0]), others.argmin(axis=1)]
        published[worst] = False


def _value_classes(totals: MarginTotals, frequencies: Sequence[Floats]) -> list[ValueClass]:
    """The sensitive values by frequency in the whole table, as the rows of one table show it."""
    sizes = totals.tables[0].counts.sum(axis=1)
    overall = sizes @ frequencies[0] / sizes.sum()
    # The largest power of ½ that is not above it; the rarest values count as absent elsewhere.
    floor = np.ldexp(1.0, np.frexp(np.maximum(overall, _RAREST / 2))[1] - 1)
    floor = np.where(floor < _RAREST, 0.0, floor)
    by_row = np.concatenate(frequencies)
    return [
        ValueClass(float(others), np.zeros((0, 0)), by_row[:, floor == others].max(axis=1))
        for others in np.unique(floor)
    ]


def _precision(
    totals: MarginTotals, published: Flags, variance: float, others: float, policy: Policy
) -> Floats:
    kept = np.flatnonzero(published)
    precision = np.zeros_like(totals.products)
    if kept.size and totals.candidates.sizes.size:
        some = np.ix_(kept, kept)
        precision[some] = row_precision(
            totals.products[some],
            variance,
            others,
            retention=policy.retention,
            domain_size=totals.tables[0].counts.shape[1],
        )
    return precision


def counted_limits(worth: MarginWorth, totals: MarginTotals, schema: Schema) -> CountedLimits:
    """The limits for every batch of the table that these margins were counted on."""
    return CountedLimits(worth, index_rows(totals.tables, schema), schema)


def effective_trials(worth: MarginWorth, groups: Candidates, trials: Ints | Floats) -> Floats:
    """A group's own trials and those that margins are worth."""
    return np.asarray(trials + worth.trials(groups))
