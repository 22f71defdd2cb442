"""Pooling: an adversary who looks beyond the group, at groups that differ in little from it.

Sampling limits the trials of each group, and no unbiased estimate from those alone does better than
Lemma 1. But people of 40 are much like people of 41. How much alike, the release itself tells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable, Publication, largest_values
from reconpriv.attacks.fitted_model import model_of_margins
from reconpriv.attacks.micro import GUESSES_ONLY, KNEW, possible_sizes, predicted_share
from reconpriv.attacks.pooling import Pooled, pool
from reconpriv.attacks.result import AttackResult, Row
from reconpriv.attacks.statistics import Rate, rate, relative_error, root_mean_square
from reconpriv.schema import json_value
from reconpriv.theory.arrays import Flags, Floats, Ints

MARGINS = "used: a model of them is tried like a kind of neighbours"


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


def pool_all(published: Publication, groups: Ints) -> Pooled:
    """Some groups of a publication, from their neighbours, and from its margins if it has any."""
    model = model_of_margins(published)
    return pool(published.cube, groups, retention=published.policy.retention, model=model)


def attack_pool(target: AttackedTable, *, keys: int = 5, worst: int = 5) -> AttackResult:
    """Estimate every violating group from its neighbours and itself, for each sample size."""
    exposed = target.only(target.violating())
    own, epsilon = target.policy.sample_size, target.policy.epsilon
    sizes = target.steps("sample size", possible_sizes(target.policy))
    found = {size: measure(target, size, keys) for size in sizes}
    table, mine = tuple(row for row, _ in found.values()), found[own][1]
    alone = "from their own records"
    if target.policy.protect is not None:
        alone = "from their protection groups"
    told = {} if target.policy.margins is None else {"margins": MARGINS}
    return AttackResult(
        name="pool",
        knew=KNEW,
        success=rate(
            mine.pooled <= epsilon, f"violating groups within ±ε, neighbours included ({own})"
        ),
        baseline=rate(mine.alone <= epsilon, f"the same {alone} alone ({own})"),
        control=_control(target, own),
        figures={
            "violating groups": exposed.batch.groups,
            "keys": keys,
            "a guess from the whole table": _whole_table(exposed, target.overall),
            "mostly pooled with": _most_used(mine),
            **told,
        },
        table=table,
        worst=_worst(exposed, mine, worst),
        verdict=_verdict(mine, own, epsilon, alone),
    )


def measure(target: AttackedTable, size: str, keys: int) -> tuple[Row, PooledErrors]:
    """One sample size: the violating groups, from themselves and with their neighbours.

    ``exact tails`` is what the policy allows the groups that it makes a promise about.
    """
    errors = pooled_errors(target, [target.publication(i, size) for i in range(keys)])
    return _row(target, size, errors), errors


def _row(target: AttackedTable, size: str, errors: PooledErrors) -> Row:
    epsilon, promised = target.policy.epsilon, target.by_promise()
    allowed = promised.violating()
    return {
        "sample size": size,
        "exact tails": float(predicted_share(promised.only(allowed), size).mean())
        if allowed.size
        else None,
        "alone": float((errors.alone <= epsilon).mean()),
        "pooled": float((errors.pooled <= epsilon).mean()),
        "rms error alone": root_mean_square(errors.alone),
        "rms error pooled": root_mean_square(errors.pooled),
        "claimed": root_mean_square(errors.claimed),
        "guess right alone": float(errors.right_alone.mean()),
        "guess right pooled": float(errors.right_pooled.mean()),
    }


def _control(target: AttackedTable, size: str) -> Rate:
    """A shuffled column: neighbours say what the whole table says, and nothing about the groups."""
    groups = target.violating()
    shuffled = target.shuffled().publication(0, size)
    error = pooled_errors(target, [shuffled], groups).pooled
    return rate(
        error <= target.policy.epsilon,
        "the same with the sensitive column shuffled: what a guess from the whole table gives",
    )


def _whole_table(exposed: AttackedTable, overall: Floats) -> Rate:
    """How often the share of a value in the whole table is within ±ε of that in the group."""
    error = relative_error(overall[exposed.values], exposed.frequency)
    return rate(error <= exposed.policy.epsilon, "violating groups within ±ε")


def _most_used(errors: PooledErrors) -> str:
    used, times = np.unique(np.concatenate(errors.words), return_counts=True)
    order = np.argsort(-times, kind="stable")[:3]
    return "; ".join(f"{used[i]} ({times[i] / times.sum():.0%})" for i in order)


def _worst(exposed: AttackedTable, errors: PooledErrors, how_many: int) -> tuple[Row, ...]:
    """The groups estimated best, on average over the keys."""
    mean = errors.pooled.mean(axis=0)
    return tuple(
        {
            "group": exposed.describe(int(g)),
            "size": int(exposed.batch.sizes[g]),
            "largest f": float(exposed.frequency[g]),
            "error alone": float(errors.alone[:, g].mean()),
            "error pooled": float(mean[g]),
            "pooled with": errors.words[0][g],
        }
        for g in np.argsort(mean, kind="stable")[:how_many]
    )


def _verdict(errors: PooledErrors, own: str, epsilon: float, alone: str) -> str:
    one, pooled = (float((e <= epsilon).mean()) for e in (errors.alone, errors.pooled))
    return (
        f"With sample size {own!r}, f is estimated within ±{epsilon:.0%} in {one:.1%} of the"
        f" violating groups {alone} and in {pooled:.1%} together with neighbouring"
        f" groups; the root mean square error is {root_mean_square(errors.alone):.0%} and"
        f" {root_mean_square(errors.pooled):.0%}."
    )


def guess_from_release(published: Publication, *, show: int = 20) -> AttackResult:
    """The adversary's guesses from a release alone; nothing here says whether they are right."""
    cube = published.cube
    order = np.argsort(-cube.trials, kind="stable")[:show]
    found = pool_all(published, order)
    guess = found.estimate.argmax(axis=1)
    words = found.words(guess)
    values = cube.group_table().take(order).to_pylist()
    table = tuple(
        {
            "group": {name: json_value(value) for name, value in public.items()},
            "records": int(cube.records[g]),
            "trials": float(cube.trials[g]),
            "guess": json_value(cube.schema.domain[int(guess[i])]),
            "F' alone": float(found.alone[i, guess[i]]),
            "pooled": float(found.estimate[i, guess[i]]),
            "give or take": float(np.sqrt(found.error[i, guess[i]])),
            "pooled with": words[i],
        }
        for i, (g, public) in enumerate(zip(order, values, strict=True))
    )
    return AttackResult(
        name="pool",
        knew=KNEW,
        table=table,
        figures={"groups": cube.groups, **({"margins": MARGINS} if published.tables else {})},
        verdict=GUESSES_ONLY,
    )
