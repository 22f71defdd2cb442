"""The table under attack, held as cells, with its publications and its shuffled copy."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from reconpriv.core.cells import CellBatch
from reconpriv.core.coarsening import coarsen, settle
from reconpriv.core.cube import Cube, collect
from reconpriv.core.exposure import frequency_of, most_exposed
from reconpriv.core.kernel import Kernel
from reconpriv.core.margin_limits import CountedLimits
from reconpriv.core.margin_plan import MarginPlan, count_margins, plan_margins
from reconpriv.core.margin_tables import MarginTable, MarginTotals
from reconpriv.core.protected import protected_cube, publish_protected
from reconpriv.core.randomness import Key, Randomness, Words, unit_interval
from reconpriv.core.sample_sizes import private_as_they_are
from reconpriv.engines.base import Progress, no_progress
from reconpriv.errors import InputError
from reconpriv.policy import Policy
from reconpriv.queries.plan import publish_cube
from reconpriv.schema import Schema, json_value
from reconpriv.theory.arrays import Floats, Ints

if TYPE_CHECKING:
    from reconpriv.table import Table

T = TypeVar("T")


def attack_key(number: int, purpose: str = "publication") -> Key:
    """A repeatable key: a lab is about spread, not secrecy. Never one of the publisher's keys."""
    text = f"reconpriv attack {purpose} {number}"
    return Key(hashlib.blake2b(text.encode(), digest_size=32).digest())


def uniform_words(count: int, purpose: str) -> Words:
    """Repeatable random words for a shuffle or a bootstrap."""
    randomness = Randomness(attack_key(0, purpose))
    return randomness.words(np.zeros(count, np.uint64), np.arange(count, dtype=np.uint64))[:, 0]


@dataclass(frozen=True)
class Publication:
    """Records in memory and the margins beside them, none if the policy asks for none.

    ``counted`` says how many trials the margins are worth; it is None where nothing counts them.
    """

    policy: Policy
    cube: Cube
    tables: tuple[MarginTable, ...] = ()
    variance: float = 0.0
    counted: CountedLimits | None = None


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
    _totals: dict[Policy, MarginTotals] = field(init=False, repr=False, default_factory=dict)

    @classmethod
    def of(cls, table: Table, policy: Policy, progress: Progress | None = None) -> AttackedTable:
        """Read the table's cells into memory; its groups are micro groups.

        ``progress`` is told what the attack is doing.
        """
        heard = progress or no_progress
        batch = collect(table.batches(progress=heard), table.schema).as_batch()
        heard("grouping", 0.0)
        return cls(table.schema, table.settled(policy), batch, progress=heard)

    @classmethod
    def of_groups(
        cls, table: Table, policy: Policy, progress: Progress | None = None
    ) -> AttackedTable:
        """The same, by the groups that the policy makes a promise about: its protection groups."""
        return cls.of(table, policy, progress).by_promise()

    def steps(self, what: str, items: Sequence[T]) -> Iterator[T]:
        """Go through some items, and tell which of them is under way."""
        for number, item in enumerate(items):
            self.progress(f"{what} {number + 1} of {len(items)}", number / len(items))
            yield item

    def by_promise(self) -> AttackedTable:
        """The same people by the groups that the policy makes a promise about."""
        protection = self.policy.wanted_protection
        if protection is None:
            return self
        settled = settle(protection, self.raw, self.policy.retention, attack_key(0))
        found = coarsen(self.raw, settled).cube
        return AttackedTable(
            found.schema,
            replace(self.policy, protect=None),
            found.as_batch(),
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

    def only(self, groups: Ints) -> AttackedTable:
        """The same table with these groups only, each published as in the whole table."""
        if not groups.size:
            raise InputError(
                "No group of this table that is large enough violates the policy: there is nothing"
                " to attack.",
                hint="Attack a stricter policy (a larger ε or δ, or values exposed above a smaller"
                " share), or a table with larger groups.",
            )
        wanted = np.isin(self.batch.group_of_cell, groups)
        count = self.batch.cells_per_group[groups]
        batch = CellBatch(
            tuple(column.take(groups) for column in self.batch.public),
            np.cumsum(count) - count,
            self.batch.value[wanted],
            self.batch.count[wanted],
        )
        places = groups if self.places is None else self.places[groups]
        return AttackedTable(
            self.schema, self.policy, batch, self.whole or self, places, self.progress
        )

    def publish(self, number: int, sample_size: str | None = None) -> Cube:
        """A publication in memory with the lab's key of this number.

        Protection groups come as a :class:`ProtectedCube`: dealt rows, and what they rest on.
        """
        policy = replace(self.policy, sample_size=sample_size or self.policy.sample_size)
        return self.publish_as(policy, attack_key(number))

    def publish_as(self, policy: Policy, key: Key) -> Cube:
        """A publication in memory with any policy and key."""
        # Only margins that are counted change the records.
        counting = policy.sampling.counts_margins
        plan = self.margins(policy, key) if counting else None
        return self._cube(policy, key, None if plan is None else plan.counted)

    def publication(self, number: int, sample_size: str | None = None) -> Publication:
        """The same as :meth:`publish`, with the margins."""
        policy = replace(self.policy, sample_size=sample_size or self.policy.sample_size)
        plan = self.margins(policy, attack_key(number))
        if plan is None:
            return Publication(policy, self._cube(policy, attack_key(number), None))
        cube = self._cube(policy, attack_key(number), plan.counted)
        return Publication(policy, cube, plan.published, plan.variance, plan.counted)

    def margins(self, policy: Policy, key: Key | None) -> MarginPlan | None:
        """The margins that a policy asks for, with a key's noise or, without one, with none."""
        if policy.margins is None:
            return None
        if self.whole is not None:
            return self.whole.margins(policy, key)
        if policy not in self._totals:
            self._totals[policy] = count_margins(
                lambda work: [work(iter([self.batch]))], policy, self.schema
            )
        return plan_margins(self._totals[policy], policy, self.schema, key)

    def _cube(self, policy: Policy, key: Key, counted: CountedLimits | None) -> Cube:
        if policy.protect is not None:
            raw = self.raw if self.whole is None else self.whole.raw
            dealt = protected_cube(raw, publish_protected(raw, policy, key))
            return dealt if self.places is None else dealt.only(self.places, self.raw)
        return publish_cube(self.raw, [self.batch], Kernel(self.schema, policy, key, counted))

    def shuffled(self) -> AttackedTable:
        """The control: the sensitive column shuffled over all records, so groups mean nothing."""
        values = np.repeat(self.batch.value, self.batch.count)
        values = values[np.argsort(uniform_words(values.size, "shuffle"), kind="stable")]
        group = np.repeat(np.arange(self.batch.groups), self.batch.sizes)
        m = self.schema.domain_size
        cells, count = np.unique(group * m + values, return_counts=True)
        starts = np.searchsorted(cells, np.arange(self.batch.groups) * m)
        batch = CellBatch(self.batch.public, starts, cells % m, count)
        return AttackedTable(self.schema, self.policy, batch)

    def describe(self, group: int) -> dict[str, object]:
        """The public values of a group, for the publisher only."""
        values = self.batch.public_values(group, self.schema)
        return {name: json_value(value) for name, value in values.items()}


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
    order = np.lexsort((cube.value, -cube.count, cube.group))
    first = np.searchsorted(cube.group[order], np.arange(cube.groups))
    return cube.value[order[first]]


def count_of(cube: Cube, values: Ints) -> Ints:
    """How many records of each group have the value given for it."""
    hit = cube.value == values[cube.group]
    counts = np.bincount(cube.group[hit], weights=cube.count[hit], minlength=cube.groups)
    return counts.astype(np.int64)


def uniforms(count: int, purpose: str) -> Floats:
    """Repeatable numbers in [0, 1)."""
    return unit_interval(uniform_words(count, purpose))
