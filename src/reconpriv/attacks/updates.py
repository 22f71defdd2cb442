"""A series of releases with one key while the table changes: how many different trials it shows.

Trial i of a cell has the same words in every release, and a release with n trials of a cell shows
trials 0 to n-1. So a series shows as many different trials of a cell as its largest release does,
and of a group the sum over its cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable, attack_key, frequency_in, uniforms
from reconpriv.attacks.result import AttackResult, Row
from reconpriv.attacks.statistics import Rate, rate, relative_error, root_mean_square
from reconpriv.policy.exposure import frequency_of
from reconpriv.protect.kernel import Kernel, excess_over
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.margins.concentrated import epsilon_of

REPLACED = 0.01
USUAL, IN_AND_OUT = "1 % replaced", "one person in and out"
KNEW = (
    "every release of the series, the policy; not the key; and, which nobody can know, which"
    " trials of two releases are the same"
)


@dataclass(frozen=True)
class State:
    """The table at one release, and where each of its groups is in the first one."""

    table: AttackedTable
    places: Ints

    @property
    def cells(self) -> Ints:
        """Its cells, named as in the first table."""
        group, value = np.divmod(self.table.cells, self.table.schema.domain_size)
        return np.asarray(self.places[group] * self.table.schema.domain_size + value)

    def only(self, groups: Ints) -> AttackedTable:
        """These groups of the first table, all of which must still be there."""
        return self.table.only(np.searchsorted(self.places, groups))


def attack_updates(target: AttackedTable, *, updates: int = 10, worst: int = 5) -> AttackResult:
    """Publish a table with one key, replace some records, publish again, and so on."""
    violating, near = target.exposed.places, target.policy.tolerance
    assert violating is not None
    usual = _follow(target, list(replaced(target, updates)), violating)
    hostile = _follow(target, list(in_and_out(target, violating, updates)), violating)

    def within(estimates: Floats, truth: Floats, what: str) -> Rate:
        return rate(relative_error(estimates, truth) <= near, what)

    truth, growth = usual.truth, usual.growth
    hit = within(
        usual.together, truth, f"violating groups within the tolerance, {updates} updates, one key"
    )
    one = within(
        usual.alone, truth, "violating groups within the tolerance, from the last release alone"
    )
    fresh = within(usual.fresh, truth, "the same, each release with a key of its own")
    figures = {
        "one release": one,
        f"{updates + 1} fresh keys": fresh,
        "one person in and out": within(
            hostile.together, hostile.truth, "the same, hostile series"
        ),
        "groups over their limit": usual.over(1.0),
        "groups over their limit by a tenth": usual.over(1.1),
        "groups over their limit, hostile series": hostile.over(1.0),
        "by a tenth, hostile series": hostile.over(1.1),
        "groups": target.batch.groups,
    }
    margins = target.policy.wanted_margins
    if margins:
        spent = epsilon_of((updates + 1) * margins.rho, margins.delta)
        figures["ε of the margins of all releases"] = spent
    return AttackResult(
        name="updates",
        knew=KNEW,
        success=hit,
        baseline=within(
            target.overall[target.values[usual.groups]], truth, "the same from the whole table"
        ),
        control=replace(one, what="the same if nothing changes: all releases are the same"),
        figures=figures,
        table=tuple(
            {"series": name, **step}
            for name, series in ((USUAL, usual), (IN_AND_OUT, hostile))
            for step in series.steps
        ),
        worst=target.first(
            -usual.excess, worst, {"limit": usual.limits, "different trials": usual.distinct}
        ),
        verdict=f"After {updates} updates of 1 % of the records, one key has shown"
        f" {np.mean(growth):.2f} times as many trials of a violating group as one release does, and"
        f" {np.max(growth):.2f} times at most; f can be estimated within ±{near:.0%} in"
        f" {hit.share:.1%} of these groups, from one release in {one.share:.1%} and from as"
        f" many releases with fresh keys in {fresh.share:.1%}.",
    )


@dataclass(frozen=True)
class Series:
    """What a series of releases has shown.

    ``groups`` are the violating groups that are there throughout; ``truth`` is f in the last table,
    and ``together``, ``alone`` and ``fresh`` are F' from every different trial, from the last
    release alone and from fresh keys. ``distinct``, ``drawn`` and ``limits`` have one figure for
    every group of the first table, ``drawn`` being the trials of the first release and ``limits``
    those of the last one.
    """

    groups: Ints
    truth: Floats
    together: Floats
    alone: Floats
    fresh: Floats
    distinct: Ints
    drawn: Ints
    limits: Floats
    steps: tuple[Row, ...]

    @property
    def excess(self) -> Floats:
        """How many times its limit each group has shown."""
        return excess_over(self.distinct, self.limits)

    @property
    def growth(self) -> Floats:
        """How many times as many trials of each violating group as the first release does."""
        return self.distinct[self.groups] / np.maximum(self.drawn[self.groups], 1)

    def over(self, times: float) -> int:
        """How many groups have shown more than so many times their limit."""
        return int(np.count_nonzero(self.excess > times))


def _follow(target: AttackedTable, states: list[State], violating: Ints) -> Series:
    groups = reduce(np.intersect1d, [state.places for state in states], violating)
    m, count, p = target.schema.domain_size, target.batch.groups, target.policy.retention
    # The most trials of each cell that any release has shown; a cell is group x m + value.
    seen, values = np.zeros(count * m, dtype=np.int64), target.values[groups]
    found: Series | None = None
    single: list[Floats] = []
    fresh: list[Floats] = []
    for number, state in enumerate(target.steps("release", states)):
        kernel = _kernel(state.table)
        seen = with_trials(seen, state, kernel)
        limits = np.full(count, np.inf)  # a group that is gone has no limit
        limits[state.places] = kernel.limits(state.table.batch)
        distinct = seen.reshape(count, m).sum(axis=1)
        chosen = state.only(groups)
        own = replace(chosen, policy=replace(target.policy, margins=None))
        single.append(frequency_in(own.publish(0), values, p))
        fresh.append(frequency_in(own.publish(number), values, p))
        # A value that has left the group is still estimated: as one record, the smallest share.
        truth = np.maximum(frequency_of(chosen.batch, values), 1.0 / chosen.batch.sizes)
        found = Series(
            groups,
            truth,
            _together(target, seen, groups),
            single[-1],
            np.asarray(np.mean(fresh, axis=0)),
            distinct,
            distinct if found is None else found.drawn,
            limits,
            () if found is None else found.steps,
        )
        step = {
            "releases": number + 1,
            "trials, mean growth": found.growth.mean(),
            "largest": found.growth.max(),
            "groups over limit": found.over(1.0),
            "by a tenth": found.over(1.1),
            "error, all trials": root_mean_square(relative_error(found.together, truth)),
            "error, average": root_mean_square(relative_error(np.mean(single, axis=0), truth)),
            "error, fresh keys": root_mean_square(relative_error(found.fresh, truth)),
        }
        found = replace(found, steps=(*found.steps, step))
    assert found is not None
    return found


def with_trials(seen: Ints, state: State, kernel: Kernel) -> Ints:
    """The most trials of each cell that any release has shown, after one more."""
    most = seen.copy()
    np.maximum.at(most, state.cells, kernel.draw(state.table.batch).trials)
    return most


def replaced(target: AttackedTable, updates: int, share: float = REPLACED) -> Iterator[State]:
    """The table itself, then after every update: a share of the records leave, others join.

    Who joins is drawn from the first table, so that groups stay what they are.
    """
    first = np.repeat(target.cells, target.batch.count)
    records, some = first.copy(), max(1, round(share * first.size))
    yield _state(target, records)
    for number in range(updates):
        leave = np.argsort(uniforms(first.size, f"who leaves {number}"), kind="stable")[:some]
        join = (uniforms(some, f"who joins {number}") * first.size).astype(np.int64)
        records[leave] = first[join]
        yield _state(target, records)


def in_and_out(target: AttackedTable, groups: Ints, updates: int) -> Iterator[State]:
    """One person, each time with another value, joins each of these groups and leaves again."""
    m, base = target.schema.domain_size, np.repeat(target.cells, target.batch.count)
    yield _state(target, base)
    for number in range(updates):
        person = groups * m + (number // 2) % m
        yield _state(target, base if number % 2 else np.concatenate([base, person]))


def _state(target: AttackedTable, records: Ints) -> State:
    """The table of these records, each given by its cell."""
    batch, places = target.of_cells(*np.unique(records, return_counts=True))
    policy = target.policy.on(target.schema)
    return State(AttackedTable(target.schema, policy, batch), places)


def _kernel(table: AttackedTable) -> Kernel:
    policy, key = table.policy, attack_key(0)
    return Kernel(table.schema, policy, key, table.margins(policy, key).counted)


def _together(target: AttackedTable, seen: Ints, groups: Ints) -> Floats:
    """F' from every different trial, each counted once: no unbiased estimate does better."""
    cells = np.flatnonzero(seen)
    cells = cells[np.isin(cells // target.schema.domain_size, groups)]
    batch, _ = target.of_cells(cells, seen[cells])
    plain = replace(target.policy, sampling="none", margins=None)
    union = AttackedTable(target.schema, plain, batch)
    return frequency_in(union.publish(0), target.values[groups], plain.retention)
