"""The table under attack, held as cells, with its publications and its shuffled copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from reconpriv.attacks.result import Row, as_rows
from reconpriv.attacks.statistics import Rate, rate, relative_error
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.cube import Cube, collect
from reconpriv.cells.randomness import Key, Randomness, Words, repeatable_key, unit_interval
from reconpriv.columns.schema import Schema, json_value
from reconpriv.engines.base import Progress, no_progress
from reconpriv.errors import InputError, PolicyError
from reconpriv.estimate.counts import Design
from reconpriv.estimate.measurements import Measurements, prepare_margins
from reconpriv.policy.exposure import frequency_of, most_exposed
from reconpriv.policy.policy import Policy
from reconpriv.policy.protection import NO_COARSENING, Coarsening
from reconpriv.policy.sampling_rules import SAMPLING_RULES, private_as_they_are
from reconpriv.protect.coarsening import find_coarsening, pooled
from reconpriv.protect.margins.plan import count_margins, plan_margins
from reconpriv.protect.margins.planned import UNCOUNTED, MarginPlan, TrialLimits
from reconpriv.protect.margins.tables import MarginTable, MarginTotals
from reconpriv.protect.publish_cube import published_cube
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.estimation.reconstruction import reconstruct_frequency

if TYPE_CHECKING:
    from reconpriv.table import Table

T = TypeVar("T")


def attack_key(number: int, purpose: str = "publication") -> Key:
    """A repeatable key: a lab is about spread, not secrecy. Never one of the publisher's keys."""
    return repeatable_key(f"reconpriv attack {purpose} {number}")


def words_of(key: Key, count: int) -> Words:
    """So many random words that a key gives."""
    index = np.arange(count, dtype=np.uint64)
    return Randomness(key).words(np.zeros_like(index), index)[:, 0]


def uniform_words(count: int, purpose: str) -> Words:
    """Repeatable random words for a shuffle or a bootstrap."""
    return words_of(attack_key(0, purpose), count)


@dataclass(frozen=True)
class Publication:
    """Records in memory and the margins beside them, none if the policy asks for none.

    ``counted`` says how many trials the margins are worth; as limits of the groups.
    """

    policy: Policy
    cube: Cube
    tables: tuple[MarginTable, ...] = ()
    variance: float = 0.0
    counted: TrialLimits = UNCOUNTED
    coarsening: Coarsening = NO_COARSENING

    @cached_property
    def design(self) -> Design:
        """What an estimate needs to know of the policy."""
        return Design.of(self.policy, self.cube.schema)

    @cached_property
    def measurements(self) -> Measurements:
        """Records and margins as an analyst combines them."""
        return prepare_margins(self.cube, self.tables, self.variance, self.design)


@dataclass(frozen=True)
class AttackedTable:
    """A publisher's own table: the truth that every attack is measured against.

    ``whole`` is the table that these groups are part of, and ``places`` is where in it they are:
    margins and protection groups are those of all its groups.
    """

    schema: Schema
    policy: Policy
    batch: CellBatch
    whole: AttackedTable | None = None
    places: Ints | None = None
    progress: Progress = field(default=no_progress, repr=False, compare=False)
    _totals: dict[tuple[Policy, Coarsening], MarginTotals] = field(
        init=False, repr=False, default_factory=dict
    )

    @classmethod
    def of(cls, table: Table, policy: Policy, progress: Progress | None = None) -> AttackedTable:
        """The table's cells in memory; its groups are micro groups."""
        heard = progress or no_progress
        batch = collect(table.batches(progress=heard), table.schema).as_batch()
        heard("grouping", 0.0)
        return cls(table.schema, table.fitted(policy), batch, progress=heard)

    def steps(self, what: str, items: Sequence[T]) -> Iterator[T]:
        """Go through some items, and tell which of them is under way."""
        for number, item in enumerate(items):
            self.progress(f"{what} {number + 1} of {len(items)}", number / len(items))
            yield item

    def by_promise(self) -> AttackedTable:
        """The same people by the groups that the policy makes a promise about."""
        if not self.policy.wanted_protection:
            return self
        coarsening = self.coarsening(self.policy, attack_key(0))
        return AttackedTable(
            coarsening.coarse(self.schema),
            replace(self.policy, protect=None),
            pooled(self.batch, self.schema, coarsening).whole,
            progress=self.progress,
        )

    @cached_property
    def raw(self) -> Cube:
        """The truth as a cube."""
        return collect([self.batch], self.schema)

    @cached_property
    def frequency(self) -> Floats:
        """How frequent each group's most exposed value is in it."""
        return frequency_of(self.batch, self.values)

    @cached_property
    def values(self) -> Ints:
        """The most exposed value of every group: the one that an adversary is after."""
        return most_exposed(self.batch, self.policy)

    @cached_property
    def overall(self) -> Floats:
        """The sensitive distribution of the whole table: what is known without the groups."""
        m = self.schema.domain_size
        total = np.bincount(self.batch.value, weights=self.batch.count, minlength=m)
        return np.asarray(total / total.sum())

    def violating(self, least: int = 1) -> Ints:
        """The groups of a minimum size that perturbation alone would expose."""
        private = private_as_they_are(self.batch, self.policy, self.schema.domain_size)
        return np.flatnonzero(~private & (self.batch.sizes >= least))

    @cached_property
    def exposed(self) -> AttackedTable:
        """The groups that violate the policy, and no others; an error if there is none."""
        return self.only(self.violating())

    @property
    def shares_of_whole(self) -> Floats:
        """How frequent each group's most exposed value is in the whole table: the baseline."""
        return (self.whole or self).overall[self.values]

    def within(self, estimates: Floats, what: str, tolerance: float | None = None) -> Rate:
        """How often estimates of the groups' most exposed values are within the tolerance.

        ``estimates`` are frequencies with a column per group.
        """
        near = self.policy.tolerance if tolerance is None else tolerance
        return rate(relative_error(estimates, self.frequency) <= near, what)

    def rows(self, groups: Ints, columns: Mapping[str, Any]) -> tuple[Row, ...]:
        """What some groups are, and what was found out about each; for the publisher only."""
        known: dict[str, Any] = {
            "group": [self.describe(int(group)) for group in groups],
            "size": self.batch.sizes[groups],
            "largest f": self.frequency[groups],
        }
        return as_rows(known | dict(columns))

    def first(self, score: Floats, how_many: int, columns: Mapping[str, Any]) -> tuple[Row, ...]:
        """The groups with the smallest scores; ``columns`` have an entry per group."""
        order = np.argsort(score, kind="stable")[:how_many]
        return self.rows(order, {k: np.asarray(v)[order] for k, v in columns.items()})

    def only(self, groups: Ints) -> AttackedTable:
        """The same table with these groups only, each published as in the whole table."""
        if not groups.size:
            raise InputError(
                "No group of this table that is large enough violates the policy: there is nothing"
                " to attack.",
                hint="Attack a stricter policy (a larger tolerance or doubt, or values exposed"
                " above a smaller share), or a table with larger groups.",
            )
        batch = self.batch.take(groups)
        places = groups if self.places is None else self.places[groups]
        return AttackedTable(
            self.schema, self.policy, batch, self.whole or self, places, self.progress
        )

    def publish(self, number: int, sampling: str | None = None) -> Cube:
        """The records of :meth:`publication`."""
        return self.publication(number, sampling).cube

    def publication(self, number: int, sampling: str | None = None) -> Publication:
        """A publication in memory with the lab's key of this number."""
        policy = replace(self.policy, sampling=sampling or self.policy.sampling)
        return self.publication_as(policy, attack_key(number))

    def publication_as(self, policy: Policy, key: Key) -> Publication:
        """A publication in memory with any policy and key.

        With protection groups it holds dealt rows, and what they rest on.
        """
        plan = self.margins(policy, key)
        cube = self._cube(policy, key, plan.counted)
        coarsening = self.coarsening(policy, key)
        return Publication(policy, cube, plan.published, plan.variance, plan.counted, coarsening)

    def coarsening(self, policy: Policy, key: Key) -> Coarsening:
        """How a policy makes protection groups of this table."""
        if self.whole is not None:
            return self.whole.coarsening(policy, key)
        return find_coarsening(policy, self.schema, self.raw.map_groups, key)

    def margins(self, policy: Policy, key: Key | None) -> MarginPlan:
        """The margins that a policy asks for, with a key's noise or, without one, with none."""
        if self.whole is not None:
            return self.whole.margins(policy, key)
        coarsening = self.coarsening(policy, key or attack_key(0))
        schema = coarsening.coarse(self.schema)
        if (policy, coarsening) not in self._totals:
            batch = pooled(self.batch, self.schema, coarsening)
            totals = count_margins(lambda work: [work(iter([batch]))], policy, schema)
            self._totals[policy, coarsening] = totals
        return plan_margins(self._totals[policy, coarsening], policy, schema, key)

    def _cube(self, policy: Policy, key: Key, counted: TrialLimits) -> Cube:
        if policy.wanted_protection and self.whole is not None and self.places is not None:
            found = self.whole._cube(policy, key, counted)
            return found.only(self.places, self.raw)
        return published_cube(self.raw, policy, key, counted)

    def shuffled(self) -> AttackedTable:
        """The control: the sensitive column shuffled over all records, so groups mean nothing."""
        values = np.repeat(self.batch.value, self.batch.count)
        values = values[np.argsort(uniform_words(values.size, "shuffle"), kind="stable")]
        group = np.repeat(np.arange(self.batch.groups), self.batch.sizes)
        shuffled = np.unique(group * self.schema.domain_size + values, return_counts=True)
        return AttackedTable(self.schema, self.policy, self.of_cells(*shuffled)[0])

    @property
    def cells(self) -> Ints:
        """A number for each cell: group x domain size + value."""
        return np.asarray(self.batch.group_of_cell * self.schema.domain_size + self.batch.value)

    def of_cells(self, cells: Ints, count: Ints) -> tuple[CellBatch, Ints]:
        """The groups that have any of these cells, and where they are in this table."""
        m = self.schema.domain_size
        places, starts = np.unique(cells // m, return_index=True)
        public = tuple(column.take(places) for column in self.batch.public)
        return CellBatch(public, starts, cells % m, count), places

    def describe(self, group: int) -> dict[str, object]:
        """The public values of a group, for the publisher only."""
        values = self.batch.public_values(group, self.schema)
        return {name: json_value(value) for name, value in values.items()}


def possible_rules(policy: Policy) -> list[str]:
    """The sampling rules that work with the bound and, where groups are protected, keep totals."""

    def works(rule: str) -> bool:
        try:
            return replace(policy, sampling=rule).can_sample
        except PolicyError:
            return False

    return [*filter(works, reversed(SAMPLING_RULES))]


def dense(cube: Cube, groups: Ints | None = None) -> Ints:
    """Counts with one row per group and one column per value of the domain."""
    m = cube.schema.domain_size
    wanted = np.arange(cube.groups) if groups is None else groups
    row = np.full(cube.groups, -1)
    row[wanted] = np.arange(wanted.size)
    inside = row[cube.group] >= 0
    slot = row[cube.group[inside]] * m + cube.value[inside]
    counts = np.bincount(slot, weights=cube.count[inside], minlength=wanted.size * m)
    return counts.astype(np.int64).reshape(wanted.size, m)


def largest_values(cube: Cube) -> Ints:
    """The most frequent value of every group; the first in case of a tie."""
    return cube.value[first_cells(cube, -cube.count)]


def first_cells(cube: Cube, place: Floats | Ints) -> Ints:
    """The cell of each group whose place is the smallest; the first in case of a tie."""
    order = np.lexsort((place, cube.group))
    return order[np.searchsorted(cube.group[order], np.arange(cube.groups))]


def guessed_right(target: AttackedTable, guess: Ints) -> Flags:
    """Where a guess is the most frequent value of its group, or one of them."""
    return np.asarray(count_of(target.raw, guess) == target.batch.largest_counts)


def count_of(cube: Cube, values: Ints) -> Ints:
    """How many records of each group have the value given for it."""
    hit = cube.value == values[cube.group]
    counts = np.bincount(cube.group[hit], weights=cube.count[hit], minlength=cube.groups)
    return counts.astype(np.int64)


def frequency_in(cube: Cube, values: Ints, retention: float) -> Floats:
    """F' of the value given for each group, from its records (Lemma 1)."""
    m = cube.schema.domain_size
    return reconstruct_frequency(
        count_of(cube, values), cube.records, retention=retention, domain_size=m
    )


def uniforms(count: int, purpose: str) -> Floats:
    """Repeatable numbers in [0, 1)."""
    return unit_interval(uniform_words(count, purpose))
