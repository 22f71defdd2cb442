"""Pooling: an adversary who looks beyond the group, at groups that differ in little from it.

Sampling limits the trials of each group, and no unbiased estimate from those alone does better than
Lemma 1. But people of 40 are much like people of 41. How much alike, the release itself tells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reconpriv.attacks.attacked_table import (
    AttackedTable,
    Publication,
    largest_values,
    possible_rules,
)
from reconpriv.attacks.fitted_model import model_of_margins
from reconpriv.attacks.from_release import Columns, guess_groups, publication_of
from reconpriv.attacks.micro import predicted_share
from reconpriv.attacks.pooling import PooledGroups, pool
from reconpriv.attacks.result import KNEW, AttackResult, Row
from reconpriv.attacks.statistics import rate, relative_error, root_mean_square
from reconpriv.cells.cube import Cube
from reconpriv.policy.exposure import largest_exposed, most_exposed
from reconpriv.policy.policy import Policy
from reconpriv.release.folder import ReleaseFolder
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.tuning.risk import yardstick

# Groups times sensitive values that take a few seconds.
POOLED_CELLS = 1 << 21
MARGINS = {"margins": "used: a model of them is tried like a kind of neighbours"}


@dataclass(frozen=True)
class PooledErrors:
    """|F' - f|/f of the most frequent value of some groups, over several publications.

    A row per publication, a column per group. ``claimed`` is the error that the adversary expects,
    as a standard deviation over f, ``right`` whether the value guessed is the most frequent one,
    and ``words`` say which neighbours were used.
    """

    alone: Floats
    pooled: Floats
    claimed: Floats
    right_alone: Flags
    right_pooled: Flags
    words: tuple[tuple[str, ...], ...]


def pooled_errors(
    target: AttackedTable, published: list[Publication], groups: Ints | None = None
) -> PooledErrors:
    """Attack publications of a table in memory; by default, the groups that violate its policy.

    The table is the truth to compare with; the adversary sees the publications and nothing else.
    """
    groups = target.violating() if groups is None else groups
    top, truth = target.values[groups], target.frequency[groups]
    most, every = largest_values(target.raw)[groups], np.arange(groups.size)
    each = [pool_all(one, groups) for one in published]
    return PooledErrors(
        alone=np.array([relative_error(one.alone[every, top], truth) for one in each]),
        pooled=np.array([relative_error(one.estimate[every, top], truth) for one in each]),
        claimed=np.array([np.sqrt(one.error[every, top]) / truth for one in each]),
        right_alone=np.array([one.alone.argmax(axis=1) == most for one in each]),
        right_pooled=np.array([one.estimate.argmax(axis=1) == most for one in each]),
        words=tuple(one.words(top) for one in each),
    )


def pool_all(published: Publication, groups: Ints) -> PooledGroups:
    """Some groups of a publication, from their neighbours, and from its margins if it has any."""
    model = model_of_margins(published)
    return pool(published.cube, groups, retention=published.policy.retention, model=model)


def attack_pool(target: AttackedTable, *, keys: int = 5, worst: int = 5) -> AttackResult:
    """Estimate every violating group from its neighbours and itself, for each sampling rule."""
    exposed, own, tolerance = target.exposed, target.policy.sampling, target.policy.tolerance
    rules = target.steps("sampling rule", possible_rules(target.policy))
    found = {rule: measure(target, rule, keys) for rule in rules}
    mine = found[own][1]
    of_promise = target.by_promise() is not target
    alone = f"from their {'protection groups' if of_promise else 'own records'}"
    control = pooled_errors(target, [target.shuffled().publication(0, own)])
    pooled = mine.pooled.mean(axis=0)
    return AttackResult(
        name="pool",
        knew=KNEW,
        success=rate(
            mine.pooled <= tolerance,
            f"violating groups within the tolerance, neighbours included ({own})",
        ),
        baseline=rate(mine.alone <= tolerance, f"the same {alone} alone ({own})"),
        control=rate(
            control.pooled <= tolerance,
            "the same with the sensitive column shuffled: what a guess from the whole table gives",
        ),
        figures={
            "violating groups": exposed.batch.groups,
            "keys": keys,
            "a guess from the whole table": exposed.within(
                exposed.shares_of_whole, "violating groups within the tolerance"
            ),
            "mostly pooled with": _most_used(mine),
            **(MARGINS if target.publication(0).tables else {}),
        },
        table=tuple(row for row, _ in found.values()),
        worst=exposed.first(
            pooled,
            worst,
            {
                "error alone": mine.alone.mean(axis=0),
                "error pooled": pooled,
                "pooled with": mine.words[0],
            },
        ),
        verdict=f"With sampling rule {own!r}, f is estimated within ±{tolerance:.0%} in"
        f" {np.mean(mine.alone <= tolerance):.1%} of the violating groups {alone} and in"
        f" {np.mean(mine.pooled <= tolerance):.1%} together with neighbouring groups; the root mean"
        f" square error is {root_mean_square(mine.alone):.0%} and"
        f" {root_mean_square(mine.pooled):.0%}.",
    )


def measure(target: AttackedTable, rule: str, keys: int) -> tuple[Row, PooledErrors]:
    """One sampling rule: the violating groups, from themselves and with their neighbours.

    ``exact tails`` is what the policy allows the groups that it makes a promise about.
    """
    errors = pooled_errors(target, [target.publication(i, rule) for i in range(keys)])
    tolerance, promised = target.policy.tolerance, target.by_promise()
    allowed = promised.violating().size
    row = {
        "sampling": rule,
        "exact tails": float(predicted_share(promised.exposed, rule).mean()) if allowed else None,
        "alone": float((errors.alone <= tolerance).mean()),
        "pooled": float((errors.pooled <= tolerance).mean()),
        "rms error alone": root_mean_square(errors.alone),
        "rms error pooled": root_mean_square(errors.pooled),
        "claimed": root_mean_square(errors.claimed),
        "guess right alone": float(errors.right_alone.mean()),
        "guess right pooled": float(errors.right_pooled.mean()),
    }
    return row, errors


def _most_used(errors: PooledErrors) -> str:
    used, times = np.unique(np.concatenate(errors.words), return_counts=True)
    order = np.argsort(-times, kind="stable")[:3]
    return "; ".join(f"{used[i]} ({times[i] / times.sum():.0%})" for i in order)


def guess_from_release(release: ReleaseFolder, *, show: int = 20) -> AttackResult:
    """The value of each group that is estimated to be the most frequent with its neighbours."""
    published = publication_of(release)
    return guess_groups("pool", published, guess, show, MARGINS if published.tables else None)


def guess(published: Publication, groups: Ints) -> tuple[Ints, Columns]:
    """The value with the largest pooled estimate, and what it was pooled with."""
    found, every = pool_all(published, groups), np.arange(groups.size)
    guessed = found.estimate.argmax(axis=1)
    return guessed, {
        "F' alone": found.alone[every, guessed],
        "pooled": found.estimate[every, guessed],
        "give or take": np.sqrt(found.error[every, guessed]),
        "pooled with": found.words(guessed),
    }


def quickly_pooled(cube: Cube) -> bool:
    """True if pooling takes seconds at most, so that nobody need ask for it."""
    return cube.groups * cube.schema.domain_size <= POOLED_CELLS


def pooled_share(cube: Cube, policy: Policy, exposing: Policy | None = None) -> float:
    """The share of people whose group's most exposed value is estimated closely by pooling.

    What counts as exposed is up to ``exposing``, by default the policy itself; what counts as
    close is the same for all policies.
    Measured on a publication in memory with the lab's own key, margins included.
    """
    judge = yardstick(policy if exposing is None else exposing)
    batch = cube.as_batch()
    frequency = largest_exposed(batch, judge)
    groups = np.flatnonzero(frequency > 0.0)
    if not groups.size:
        return 0.0
    top, truth = most_exposed(batch, judge)[groups], frequency[groups]
    target = AttackedTable(cube.schema, replace(policy, unattainable="one-trial"), batch)
    seen = pool_all(target.publication(0), groups)
    estimate = seen.estimate[np.arange(groups.size), top]
    told = groups[relative_error(estimate, truth) <= judge.tolerance]
    return float(batch.sizes[told].sum() / batch.sizes.sum())
