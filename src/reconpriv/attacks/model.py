"""A model of everybody: what people of that age, sex and job are like, learnt from margins alone.

It needs no record of the group that it is asked about. Whether its success is a disclosure or a
statistic is decided by groups that were held out: whatever it finds out about those, it knows about
everybody like them, and nothing that a publisher does to one group can change that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable, Publication, largest_values
from reconpriv.attacks.best_estimate import best_estimates
from reconpriv.attacks.fitted_model import fitted_model
from reconpriv.attacks.held_out import PARTS, SplitTable, split_people, without_groups
from reconpriv.attacks.micro import GUESSES_ONLY, KNEW, possible_sizes
from reconpriv.attacks.pooling import with_model
from reconpriv.attacks.result import AttackResult, Row
from reconpriv.attacks.statistics import (
    Rate,
    paired_difference,
    rate,
    relative_error,
    root_mean_square,
)
from reconpriv.core.cube import Cube
from reconpriv.schema import json_value
from reconpriv.theory.arrays import Flags, Floats, Ints

# So that both parts of a group are alike, this many of the people are published.
_HALF = 0.5


@dataclass(frozen=True)
class ModelErrors:
    """|F' - f|/f of the most exposed value of some groups: a row per key, a column per group.

    ``inside`` is that of the model of a release that the group is in, ``outside`` of one that it
    was left out of, and ``combined`` of the model with the group's own records. ``unbiased`` rests
    on the group alone: its records, and the margins that it is part of; it is None for protection
    groups. ``right`` says whether the value guessed is the most frequent one.

    ``people`` and ``people_outside`` say whether the model is within ±ε of the frequency among half
    of the group's people, if only that half is published, and if only the other one is.
    """

    inside: Floats
    outside: Floats
    combined: Floats
    unbiased: Floats | None
    right: Flags
    right_outside: Flags
    people: Flags
    people_outside: Flags

    def difference(self, epsilon: float) -> tuple[float, float]:
        """How much more often a group is estimated within ±ε if it is there, with its error."""
        return paired_difference(self.inside <= epsilon, self.outside <= epsilon)

    @property
    def people_difference(self) -> tuple[float, float]:
        """The same for the half of a group that is in the table."""
        return paired_difference(self.people, self.people_outside)


def model_errors(target: AttackedTable, size: str, keys: int) -> ModelErrors:
    """Attack the groups that violate the policy: in the table, and held out."""
    groups = target.violating()
    top, truth = target.values[groups], target.frequency[groups]
    most, retention = largest_values(target.raw)[groups], target.policy.retention
    every, split = np.arange(groups.size), split_people(target, _HALF)
    found: dict[str, list[Any]] = {name: [] for name in ModelErrors.__dataclass_fields__}
    for number in range(keys):
        published = target.publication(number, size)
        shares = fitted_model(published, target.raw)
        own = with_model(published.cube, shares, retention=retention)[groups]
        shares, outside = shares[groups], held_out_shares(target, size, number)[groups]
        for name, one in (("inside", shares), ("outside", outside), ("combined", own)):
            found[name].append(relative_error(one[every, top], truth))
        if target.policy.protect is None:
            alone = best_estimates(target, published, groups, top)
            found["unbiased"].append(relative_error(alone.combined, truth))
        found["right"].append(shares.argmax(axis=1) == most)
        found["right_outside"].append(outside.argmax(axis=1) == most)
        both = halves_told(split, size, number)
        found["people"].append(both[0])
        found["people_outside"].append(both[1])
    arrays = {name: np.array(lines) if lines else None for name, lines in found.items()}
    return ModelErrors(**arrays)  # type: ignore[arg-type]


def held_out_shares(target: AttackedTable, size: str, number: int) -> Floats:
    """What the model says about every group, from a release of the table without it."""
    shares = np.tile(target.overall, (target.batch.groups, 1))
    for part in without_groups(target):
        published = part.inside.publication(number, size)
        shares[part.out] = fitted_model(published, target.raw, part.kept)[part.out]
    return shares


def halves_told(split: SplitTable, size: str, number: int) -> tuple[Flags, Flags]:
    """Whether a model of half of the people is within ±ε for each violating group's two halves."""
    target = split.target
    groups, batch = target.violating(), target.batch
    shares = fitted_model(split.inside.publication(number, size), target.raw, split.kept)
    top = target.values[groups]
    hit, guess = batch.value == target.values[batch.group_of_cell], shares[groups, top]
    told = []
    for count in (split.published, split.held_out):
        holders = np.add.reduceat(np.where(hit, count, 0), batch.starts)[groups]
        f = holders / np.maximum(np.add.reduceat(count, batch.starts)[groups], 1)
        told.append(np.abs(guess - f) <= target.policy.epsilon * f)
    return told[0], told[1]


def attack_model(target: AttackedTable, *, keys: int = 1, worst: int = 5) -> AttackResult:
    """Fit the model to margins alone and estimate every violating group, for each sample size."""
    exposed = target.only(target.violating())
    own, epsilon = target.policy.sample_size, target.policy.epsilon
    sizes = target.steps("sample size", possible_sizes(target.policy))
    found = {size: model_errors(target, size, keys) for size in sizes}
    mine = found[own]
    guess = relative_error(target.overall[exposed.values], exposed.frequency)
    from_records = target.policy.margins is None
    return AttackResult(
        name="model",
        knew=KNEW,
        success=rate(
            mine.inside <= epsilon,
            f"violating groups within ±ε, by the model alone ({own})",
        ),
        baseline=rate(mine.outside <= epsilon, "the same groups, held out of the table"),
        control=_control(target, own),
        figures={
            "violating groups": exposed.batch.groups,
            "keys": keys,
            "held out at a time": f"1 in {PARTS} of all groups",
            "fitted to": "margins estimated from the records"
            if from_records
            else "the published margins",
            "difference": _points(*mine.difference(epsilon)),
            "half of each group in the table": rate(mine.people, "violating groups, that half"),
            "the other half, held out": rate(mine.people_outside, "violating groups, that half"),
            "difference of the halves": _points(*mine.people_difference),
            "with the group's own records": rate(mine.combined <= epsilon, "violating groups"),
            "a guess from the whole table": rate(guess <= epsilon, "violating groups within ±ε"),
        },
        table=tuple(_row(size, errors, epsilon) for size, errors in found.items()),
        worst=_worst(exposed, mine, worst),
        verdict=_verdict(mine, own, epsilon),
    )


def _points(difference: float, error: float) -> str:
    return f"{100 * difference:.1f} points ± {100 * error:.1f}"


def _row(size: str, errors: ModelErrors, epsilon: float) -> Row:
    difference, error = errors.difference(epsilon)
    return {
        "sample size": size,
        "unbiased": None if errors.unbiased is None else float((errors.unbiased <= epsilon).mean()),
        "in the table": float((errors.inside <= epsilon).mean()),
        "held out": float((errors.outside <= epsilon).mean()),
        "difference": difference,
        "its error": error,
        "half in": float(errors.people.mean()),
        "half out": float(errors.people_outside.mean()),
        "difference of halves": errors.people_difference[0],
        "error of that": errors.people_difference[1],
        "with own records": float((errors.combined <= epsilon).mean()),
        "rms error in the table": root_mean_square(errors.inside),
        "rms error held out": root_mean_square(errors.outside),
        "rms error with own records": root_mean_square(errors.combined),
        "guess right": float(errors.right.mean()),
        "guess right held out": float(errors.right_outside.mean()),
    }


def _control(target: AttackedTable, size: str) -> Rate:
    """A shuffled column: public values say nothing, and the model is the whole table's shares."""
    groups = target.violating()
    shares = fitted_model(target.shuffled().publication(0, size), target.raw)
    found = shares[groups, target.values[groups]]
    return rate(
        relative_error(found, target.frequency[groups]) <= target.policy.epsilon,
        "the same with the sensitive column shuffled: what a guess from the whole table gives",
    )


def _worst(exposed: AttackedTable, errors: ModelErrors, how_many: int) -> tuple[Row, ...]:
    """The groups that being in the table gives away most, by the mean errors over the keys."""
    inside, outside = errors.inside.mean(axis=0), errors.outside.mean(axis=0)
    return tuple(
        {
            "group": exposed.describe(int(g)),
            "size": int(exposed.batch.sizes[g]),
            "largest f": float(exposed.frequency[g]),
            "error in the table": float(inside[g]),
            "error held out": float(outside[g]),
        }
        for g in np.argsort(inside - outside, kind="stable")[:how_many]
    )


def _verdict(errors: ModelErrors, own: str, epsilon: float) -> str:
    inside, outside = (float((e <= epsilon).mean()) for e in (errors.inside, errors.outside))
    difference, error = errors.difference(epsilon)
    people, spread = errors.people_difference
    return (
        f"With sample size {own!r}, a model of everybody gives f within ±{epsilon:.0%} in"
        f" {inside:.1%} of the violating groups, and in {outside:.1%} of them if they are held out:"
        f" being in the table makes a difference of {100 * difference:.1f} points (standard error"
        f" {100 * error:.1f}) to a group, and of {100 * people:.1f} ({100 * spread:.1f}) to a"
        " random half of one."
    )


def guess_from_release(published: Publication, *, show: int = 20) -> AttackResult:
    """The model's guesses from a release alone; nothing here says whether they are right."""
    cube: Cube = published.cube
    shares = fitted_model(published, cube)
    combined = with_model(cube, shares, retention=published.policy.retention)
    order: Ints = np.argsort(-cube.trials, kind="stable")[:show]
    guess = shares[order].argmax(axis=1)
    values = cube.group_table().take(order).to_pylist()
    table = tuple(
        {
            "group": {name: json_value(value) for name, value in public.items()},
            "records": int(cube.records[g]),
            "trials": float(cube.trials[g]),
            "guess": json_value(cube.schema.domain[int(guess[i])]),
            "model": float(shares[g, guess[i]]),
            "with own records": float(combined[g, guess[i]]),
        }
        for i, (g, public) in enumerate(zip(order, values, strict=True))
    )
    return AttackResult(
        name="model",
        knew=KNEW,
        table=table,
        figures={"groups": cube.groups},
        verdict=GUESSES_ONLY,
    )
