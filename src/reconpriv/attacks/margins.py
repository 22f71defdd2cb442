"""Margins alone (Example 2): the ratio of two noisy counts of a margin row, and what it gives away.

That a ratio tells the frequency of a value in a row is what margins are for: a row is an aggregate.
A row that is little more than one group tells the same about that group; such rows are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable, Publication, attack_key
from reconpriv.attacks.best_estimate import WHOLE, best_estimates, limits_of, within_reach
from reconpriv.attacks.result import AttackResult, Row
from reconpriv.attacks.statistics import Aligned, Rate, rate, relative_error, score
from reconpriv.policy.margin_settings import Margins
from reconpriv.protect.margins.noise import noisy_tables
from reconpriv.protect.margins.planned import MarginPlan
from reconpriv.protect.margins.tables import MarginTable, index_rows, table_name
from reconpriv.theory.arrays import Flags, Floats, Ints

KNEW = "every public value of a person, and the margins; not the records, not the key"
# The margins that are attacked if the policy has none: what it would mean to add some.
_ASSUMED = Margins(1.0)
# A group gives a row its frequencies if it is at least this much of it.
_MOST = 0.5


def attack_margins(target: AttackedTable, *, keys: int = 5, worst: int = 5) -> AttackResult:
    """The ratio of two noisy counts for every cell of every margin, for several keys."""
    own = target.policy.wanted_margins
    target = replace(target, policy=replace(target.policy, margins=own or _ASSUMED))
    tolerance, groups = target.policy.tolerance, target.violating()
    target.only(groups)  # raises an error if there is none
    seen = [
        one for number in target.steps("key", range(keys)) for one in noisy_ratios(target, number)
    ]
    every, plan = NoisyRatios.join(seen), target.margins(target.policy, attack_key(0))
    within, told = every.error <= tolerance, every.group_error <= tolerance
    half = "violating groups that are half of their row or more"
    all_told = rate(
        told[every.most], f"{half}: f within the tolerance by the row, if every row were published"
    )
    published = (told & every.published)[every.most]
    now_told = rate(published, f"{half}: the same by the rows that are published")
    return AttackResult(
        name="margins",
        knew=KNEW,
        success=rate(
            within, "published cells within the tolerance of a value's frequency in the row"
        ),
        baseline=rate(
            every.error_of_table <= tolerance, "the same by its frequency in the whole table"
        ),
        control=_control(target, plan),
        figures={
            "ε of the margins": plan.margins.epsilon,
            "σ of the margins": float(np.sqrt(plan.variance)),
            "keys": keys,
            # Every row may be left out.
            "predicted": every.predicted.mean() if within.size else None,
            "z": score(within.astype(np.float64), every.predicted) if within.size else None,
            "over the noisy size of the row": rate(
                every.error_over_noise <= tolerance, "published cells"
            ),
            "the most frequent value of each row": rate(within[every.first], "published cells"),
            "groups that every row would tell": all_told,
            "groups that published rows tell": now_told,
            "groups about which every row would tell all that is allowed": _given_away(
                target, groups, plan
            ),
        },
        table=tuple(_rows(target, plan, seen)),
        worst=_worst(target, seen[: len(plan.tables)], worst),
        verdict=_verdict(all_told, now_told, plan, assumed=not own),
    )


@dataclass(frozen=True)
class NoisyRatios(Aligned):
    """One margin table of one key: its published cells, and every violating group in its row.

    ``error`` is that of a noisy count over the public size of its row, ``error_over_noise`` over
    the sum of the row's noisy counts, ``error_of_table`` that of a guess from the whole table;
    ``predicted`` is the chance that the first is within the tolerance, and ``first`` marks the most
    frequent value of each row. ``share`` is how much of its row a group is, ``group_error`` how far
    the row is from the group's largest frequency, ``published`` whether it is there.
    """

    error: Floats
    error_over_noise: Floats
    error_of_table: Floats
    predicted: Floats
    first: Flags
    groups: Ints
    share: Floats
    group_error: Floats
    published: Flags

    @property
    def most(self) -> Flags:
        """The groups that are half of their row or more."""
        return np.asarray(self.share >= _MOST)


def noisy_ratios(target: AttackedTable, number: int) -> Iterator[NoisyRatios]:
    """Every margin table as it is published with the lab's key of this number."""
    key, groups = attack_key(number), target.violating()
    plan = target.margins(target.policy, key)
    tables = noisy_tables(plan.totals.tables, plan.variance, target.schema, key)
    top = target.values[groups]
    for planned, true, noisy in zip(plan.tables, plan.totals.tables, tables, strict=True):
        row = _row_of_groups(target, true)
        there = _row_of_groups(target, planned.table) >= 0
        kept = np.unique(row[there])
        sizes = true.counts.sum(axis=1)
        own, mine = row[groups], noisy.counts[row[groups], top] / sizes[row[groups]]
        yield NoisyRatios(
            *_cells(target, true.counts[kept], noisy.counts[kept], plan.variance),
            groups=groups,
            share=target.batch.sizes[groups] / sizes[own],
            group_error=relative_error(mine, target.frequency[groups]),
            published=there[groups],
        )


def _cells(
    target: AttackedTable, true: Ints, noisy: Ints, variance: float
) -> tuple[Floats, Floats, Floats, Floats, Flags]:
    """The errors of the cells that somebody is in, and the chance of one within the tolerance."""
    row, value = np.nonzero(true)
    count, sizes = true[row, value], true.sum(axis=1)[row]
    f = count / sizes
    found = noisy[row, value]
    total = np.maximum(noisy.sum(axis=1), 1)[row]
    # The noise is whole, so at most tc is at most ⌊tc⌋, for a tolerance t.
    reach = np.floor(target.policy.tolerance * count + WHOLE) + 0.5
    return (
        # Without the size, which is that of both: an error of exactly the tolerance must count as
        # one.
        relative_error(found.astype(np.float64), count.astype(np.float64)),
        relative_error(found / total, f),
        relative_error(target.overall[value], f),
        within_reach(reach, np.array(variance)),
        count == true.max(axis=1)[row],
    )


def _row_of_groups(target: AttackedTable, table: MarginTable) -> Ints:
    """The row of every group; -1 if it is left out."""
    if not table.rows:
        return np.full(target.batch.groups, -1)
    (index,) = index_rows([table], target.schema)
    return index.rows(target.batch.public, target.schema)


def _rows(target: AttackedTable, plan: MarginPlan, seen: list[NoisyRatios]) -> Iterator[Row]:
    """One line for each margin table, over all keys."""
    tolerance = target.policy.tolerance
    for i, one in enumerate(plan.tables):
        looks = seen[i :: len(plan.tables)]
        every = NoisyRatios.join(looks)
        told, most = every.group_error <= tolerance, every.most
        now_told, within = told & every.published, every.error <= tolerance
        yield {
            "table": table_name(one.table.attributes, target.schema),
            "rows": one.table.rows,
            "left out": one.left_out,
            "cells within tolerance": within.mean() if within.size else None,
            "groups within tolerance, every row": told.mean(),
            "published rows": now_told.mean(),
            "half of their row": looks[0].most.sum(),
            "of these within tolerance, every row": told[most].mean() if most.any() else None,
            "of these, published rows": now_told[most].mean() if most.any() else None,
        }


def _control(target: AttackedTable, plan: MarginPlan) -> Rate:
    """The margins of a shuffled sensitive column must not tell the true rows apart."""
    other = target.shuffled().margins(target.policy, attack_key(0))
    noisy = noisy_tables(other.totals.tables, other.variance, target.schema, attack_key(0))
    errors = [
        _cells(target, one.counts, shuffled.counts, other.variance)[0]
        for one, shuffled in zip(plan.totals.tables, noisy, strict=True)
    ]
    what = "the same with the sensitive column shuffled, all rows"
    return rate(np.concatenate(errors) <= target.policy.tolerance, what)


def _given_away(target: AttackedTable, groups: Ints, plan: MarginPlan) -> Rate:
    """Groups that would be left less than one trial of their own if every row were published."""
    key = attack_key(0)
    tables = noisy_tables(plan.totals.tables, plan.variance, target.schema, key)
    cube = target.publication_as(replace(target.policy, margins=None), key).cube
    published = Publication(target.policy, cube, tables, plan.variance)
    found = best_estimates(target, published, groups, target.values[groups])
    limits = limits_of(target, published, groups)
    return rate((limits - found.worth < 1.0) & (limits >= 1.0), "violating groups")


def _worst(target: AttackedTable, looks: list[NoisyRatios], how_many: int) -> tuple[Row, ...]:
    """The groups that are most of a row, whether it is published or not."""
    share = np.array([look.share for look in looks])
    order = np.argsort(-share.max(axis=0), kind="stable")[:how_many]
    place = share.argmax(axis=0)[order]
    published, error = (
        np.array([getattr(look, name) for look in looks])[place, order]
        for name in ("published", "group_error")
    )
    return target.rows(
        looks[0].groups[order],
        {
            "share of its row": share[place, order],
            "row": np.where(published, "published", "left out"),
            "error by the row": error,
        },
    )


def _verdict(all_told: Rate, now_told: Rate, plan: MarginPlan, *, assumed: bool) -> str:
    said = "The policy has no margins; these are the ones of ε = "
    said = f"{said}{plan.margins.epsilon:.3g}. " if assumed else ""
    left_out = sum(one.left_out for one in plan.tables)
    rows = f"{plan.totals.rows:,} rows"
    if not all_told.trials:
        return f"{said}No violating group is half of one of the {rows}: rows are aggregates."
    return (
        f"{said}Where a violating group is half of its row or more, that row alone would give its f"
        f" within the tolerance in {all_told.share:.1%}; as {left_out:,} of {rows} are left out,"
        " it does so in"
        f" {now_told.share:.1%}."
    )
