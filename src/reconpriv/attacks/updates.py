"""A series of releases with one key while the table changes: how many different trials it shows.

Trial i of a cell has the same words in every release, and a release with n trials of a cell shows
trials 0 to n-1. So a series shows as many different trials of a cell as its largest release does,
and of a group the sum over its cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable, attack_key, count_of, uniforms
from reconpriv.attacks.result import AttackResult, Row
from reconpriv.attacks.statistics import rate, relative_error
from reconpriv.core.cells import CellBatch
from reconpriv.core.exposure import frequency_of
from reconpriv.core.kernel import Kernel, excess_over
from reconpriv.policy import Policy
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.concentrated import epsilon_of
from reconpriv.theory.reconstruction import reconstruct_frequency

REPLACED = 0.01
USUAL, IN_AND_OUT = "1 % replaced", "one person in and out"
KNEW = (
    "every release of the series, the policy; not the key; and, which nobody can know, which"
    " trials of two releases are the same"
)


@dataclass(frozen=True)
class Seen:
    """The trials of each cell that a series has shown; a cell is group x domain size + value."""

    cells: Ints
    trials: Ints

    def after(self, cells: Ints, drawn: Ints) -> Seen:
        """The same after one more release."""
        both, place = np.unique(np.concatenate([self.cells, cells]), return_inverse=True)
        most = np.zeros(both.size, dtype=np.int64)
        np.maximum.at(most, place, np.concatenate([self.trials, drawn]))
        return Seen(both, most)


NOTHING = Seen(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True)
class State:
    """The table at one release, and where each of its groups is in the first one."""

    table: AttackedTable
    places: Ints

    @property
    def cells(self) -> Ints:
        """Its cells, named as in the first table."""
        batch, m = self.table.batch, self.table.schema.domain_size
        return np.asarray(self.places[batch.group_of_cell] * m + batch.value)

    def only(self, groups: Ints) -> AttackedTable:
        """These groups of the first table, all of which must still be there."""
        return self.table.only(np.searchsorted(self.places, groups))


def attack_updates(target: AttackedTable, *, updates: int = 10, worst: int = 5) -> AttackResult:
    """Publish a table with one key, replace some records, publish again, and so on."""
    violating = target.violating()
    target.only(violating)  # refuses a table without any
    usual = _follow(target, list(replaced(target, updates)), violating)
    hostile = _follow(target, list(in_and_out(target, violating, updates)), violating)
    near = target.policy.epsilon
    truth, overall = usual.truth, target.overall[target.values[usual.groups]]
    hit = relative_error(usual.together, truth) <= near
    one = relative_error(usual.alone, truth) <= near
    fresh = relative_error(usual.fresh, truth) <= near
    growth = usual.distinct[usual.groups] / usual.drawn[usual.groups]
    figures = {
        "one release": rate(one, "violating groups within ε, from the last release alone"),
        f"{updates + 1} fresh keys": rate(fresh, "the same, each release with a key of its own"),
        "one person in and out": rate(
            relative_error(hostile.together, hostile.truth) <= near, "the same, hostile series"
        ),
        "groups over their limit": int(np.count_nonzero(usual.excess > 1.0)),
        "groups over their limit by a tenth": int(np.count_nonzero(usual.excess > 1.1)),
        "groups over their limit, hostile series": int(np.count_nonzero(hostile.excess > 1.0)),
        "by a tenth, hostile series": int(np.count_nonzero(hostile.excess > 1.1)),
        "groups": target.batch.groups,
    }
    margins = target.policy.wanted_margins
    if margins is not None:
        spent = epsilon_of((updates + 1) * margins.rho, margins.delta)
        figures["ε of the margins of all releases"] = spent
    return AttackResult(
        name="updates",
        knew=KNEW,
        success=rate(hit, f"violating groups within ε, {updates} updates, one key"),
        baseline=rate(relative_error(overall, truth) <= near, "the same from the whole table"),
        control=rate(one, "the same if nothing changes: all releases are the same"),
        figures=figures,
        table=(*_rows(USUAL, usual), *_rows(IN_AND_OUT, hostile)),
        worst=_worst(target, usual, worst),
        verdict=f"After {updates} updates of 1 % of the records, one key has shown"
        f" {np.mean(growth):.2f} times as many trials of a violating group as one release does, and"
        f" {np.max(growth):.2f} times at most; f can be estimated within ±{near:.0%} in"
        f" {np.mean(hit):.1%} of these groups, from one release in {np.mean(one):.1%} and from as"
        f" many releases with fresh keys in {np.mean(fresh):.1%}.",
    )


@dataclass(frozen=True)
class Series:
    """What a series of releases has shown.

    ``groups`` are the violating groups that are there throughout; ``truth`` is f in the last table,
    and ``together``, ``alone`` and ``fresh`` are F' from every different trial, from the last
    release alone and from fresh keys. ``distinct``, ``drawn`` and ``limits`` have one figure for
    every group of the first table, limits being those of the last release.
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


def _follow(target: AttackedTable, states: list[State], violating: Ints) -> Series:
    groups = violating
    for state in states:
        groups = groups[np.isin(groups, state.places)]
    m, count = target.schema.domain_size, target.batch.groups
    seen, steps, fresh, single = NOTHING, [], [], []
    drawn, values = np.zeros(count, np.int64), target.values[groups]
    for number, state in enumerate(target.steps("release", states)):
        kernel = _kernel(state.table)
        _, _, trials = kernel.trials(state.table.batch)
        seen = seen.after(state.cells, trials)
        if number == 0:
            drawn = _by_group(state.cells, trials, m, count)
        limits = np.full(count, np.inf)  # a group that is gone has no limit
        limits[state.places] = kernel.limits(state.table.batch)
        distinct = _by_group(seen.cells, seen.trials, m, count)
        chosen = state.only(groups)
        own = replace(chosen, policy=replace(target.policy, margins=None))
        single.append(_estimate(own, values, 0))
        fresh.append(_estimate(own, values, number))
        together = _together(target, seen, groups)
        # A value that has left the group is still estimated: as one record, the smallest share.
        truth = np.maximum(frequency_of(chosen.batch, values), 1.0 / chosen.batch.sizes)
        growth = distinct[groups] / np.maximum(drawn[groups], 1)
        excess = excess_over(distinct, limits)
        steps.append(
            {
                "releases": number + 1,
                "trials, mean growth": float(growth.mean()),
                "largest": float(growth.max()),
                "groups over limit": int(np.count_nonzero(excess > 1.0)),
                "by a tenth": int(np.count_nonzero(excess > 1.1)),
                "error, all trials": _rms(together, truth),
                "error, average": _rms(np.mean(single, axis=0), truth),
                "error, fresh keys": _rms(np.mean(fresh, axis=0), truth),
            }
        )
    return Series(
        groups,
        truth,
        together,
        single[-1],
        np.asarray(np.mean(fresh, axis=0)),
        distinct,
        drawn,
        limits,
        tuple(steps),
    )


def replaced(target: AttackedTable, updates: int, share: float = REPLACED) -> Iterator[State]:
    """The table itself, then after every update: a share of the records leave, others join.

    Who joins is drawn from the first table, so that groups stay what they are.
    """
    batch, m = target.batch, target.schema.domain_size
    first = np.repeat(batch.group_of_cell * m + batch.value, batch.count)
    records, some = first.copy(), max(1, round(share * first.size))
    yield _state(target, records)
    for number in range(updates):
        leave = np.argsort(uniforms(first.size, f"who leaves {number}"), kind="stable")[:some]
        join = (uniforms(some, f"who joins {number}") * first.size).astype(np.int64)
        records[leave] = first[join]
        yield _state(target, records)


def in_and_out(target: AttackedTable, groups: Ints, updates: int) -> Iterator[State]:
    """One person, each time with another value, joins each of these groups and leaves again."""
    batch, m = target.batch, target.schema.domain_size
    base = np.repeat(batch.group_of_cell * m + batch.value, batch.count)
    yield _state(target, base)
    for number in range(updates):
        person = groups * m + (number // 2) % m
        yield _state(target, base if number % 2 else np.concatenate([base, person]))


def _state(target: AttackedTable, records: Ints) -> State:
    """The table of these records, each given by its cell."""
    m = target.schema.domain_size
    cells, count = np.unique(records, return_counts=True)
    places, starts = np.unique(cells // m, return_index=True)
    public = tuple(column.take(places) for column in target.batch.public)
    batch = CellBatch(public, starts, cells % m, count)
    policy = target.policy.on_cells(target.schema, batch)
    return State(AttackedTable(target.schema, policy, batch), places)


def _kernel(table: AttackedTable) -> Kernel:
    policy, key = table.policy, attack_key(0)
    plan = table.margins(policy, key) if policy.sampling.counts_margins else None
    return Kernel(table.schema, policy, key, None if plan is None else plan.counted)


def _together(target: AttackedTable, seen: Seen, groups: Ints) -> Floats:
    """F' from every different trial, each counted once: no unbiased estimate does better."""
    m = target.schema.domain_size
    inside = np.isin(seen.cells // m, groups) & (seen.trials > 0)
    cells = seen.cells[inside]
    places, starts = np.unique(cells // m, return_index=True)
    public = tuple(column.take(places) for column in target.batch.public)
    batch = CellBatch(public, starts, cells % m, seen.trials[inside])
    plain: Policy = replace(target.policy, sample_size="none", margins=None)
    union = AttackedTable(target.schema, plain, batch)
    return _estimate(union, target.values[groups], 0)


def _estimate(table: AttackedTable, values: Ints, number: int) -> Floats:
    published = table.publish(number)
    return reconstruct_frequency(
        count_of(published, values),
        published.records,
        retention=table.policy.retention,
        domain_size=table.schema.domain_size,
    )


def _by_group(cells: Ints, trials: Ints, m: int, groups: int) -> Ints:
    return np.bincount(cells // m, weights=trials, minlength=groups).astype(np.int64)


def _rms(found: Floats, truth: Floats) -> float:
    return float(np.sqrt(np.mean(((found - truth) / truth) ** 2)))


def _rows(name: str, series: Series) -> Iterator[Row]:
    for step in series.steps:
        yield {"series": name, **step}


def _worst(target: AttackedTable, series: Series, worst: int) -> tuple[Row, ...]:
    return tuple(
        {
            "group": target.describe(int(group)),
            "records": int(target.batch.sizes[group]),
            "limit": float(series.limits[group]),
            "different trials": int(series.distinct[group]),
        }
        for group in np.argsort(-series.excess, kind="stable")[:worst]
    )
