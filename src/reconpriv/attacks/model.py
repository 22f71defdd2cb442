"""A model of everybody: what people of that age, sex and job are like, learnt from margins alone.

It needs no record of the group that it is asked about. Whether its success is a disclosure or a
statistic is decided by groups that were held out: whatever it finds out about those, it knows about
everybody like them, and nothing that a publisher does to one group can change that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reconpriv.attacks.attacked_table import (
    AttackedTable,
    Publication,
    largest_values,
    possible_rules,
)
from reconpriv.attacks.best_estimate import best_estimates
from reconpriv.attacks.fitted_model import fitted_model
from reconpriv.attacks.from_release import Columns, guess_groups, publication_of
from reconpriv.attacks.held_out import PARTS, SplitTable, split_people, without_groups
from reconpriv.attacks.pooling import with_model
from reconpriv.attacks.result import KNEW, AttackResult, Row
from reconpriv.attacks.statistics import paired_difference, rate, relative_error, root_mean_square
from reconpriv.release.folder import ReleaseFolder
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

    ``people`` and ``people_outside`` say whether the model is within the tolerance of the frequency
    among half of the group's people, if only that half is published, and if only the other one is.
    """

    inside: Floats
    outside: Floats
    combined: Floats
    unbiased: Floats | None
    right: Flags
    right_outside: Flags
    people: Flags
    people_outside: Flags

    def difference(self, tolerance: float) -> tuple[float, float]:
        """How much more often a group is estimated closely if it is there, with its error."""
        return paired_difference(self.inside <= tolerance, self.outside <= tolerance)

    @property
    def people_difference(self) -> tuple[float, float]:
        """The same for the half of a group that is in the table."""
        return paired_difference(self.people, self.people_outside)

    def row(self, tolerance: float) -> Row:
        """The shares within the tolerance, the differences and the errors."""
        difference, error = self.difference(tolerance)
        people, error_of_people = self.people_difference
        return {
            "unbiased": None if self.unbiased is None else (self.unbiased <= tolerance).mean(),
            "in the table": (self.inside <= tolerance).mean(),
            "held out": (self.outside <= tolerance).mean(),
            "difference": difference,
            "its error": error,
            "half in": self.people.mean(),
            "half out": self.people_outside.mean(),
            "difference of halves": people,
            "error of that": error_of_people,
            "with own records": (self.combined <= tolerance).mean(),
            "rms error in the table": root_mean_square(self.inside),
            "rms error held out": root_mean_square(self.outside),
            "rms error with own records": root_mean_square(self.combined),
            "guess right": self.right.mean(),
            "guess right held out": self.right_outside.mean(),
        }


def model_errors(target: AttackedTable, rule: str, keys: int) -> ModelErrors:
    """Attack the groups that violate the policy: in the table, and held out."""
    groups = target.violating()
    top, truth = target.values[groups], target.frequency[groups]
    most, retention = largest_values(target.raw)[groups], target.policy.retention
    every, split = np.arange(groups.size), split_people(target, _HALF)
    promised = target.by_promise() is target
    found: list[tuple[Any, ...]] = []
    for number in range(keys):
        published = target.publication(number, rule)
        shares = fitted_model(published, target.raw)
        own = with_model(published.cube, shares, retention=retention)[groups]
        shares, outside = shares[groups], held_out_shares(target, rule, number)[groups]
        estimates = [one[every, top] for one in (shares, outside, own)]
        if promised:
            estimates.append(best_estimates(target, published, groups, top).combined)
        errors = [relative_error(one, truth) for one in estimates]
        right = [one.argmax(axis=1) == most for one in (shares, outside)]
        found.append((*errors, *right, *halves_told(split, rule, number)))
    arrays: list[Any] = [np.array(column) for column in zip(*found, strict=True)]
    return ModelErrors(*arrays if promised else (*arrays[:3], None, *arrays[3:]))


def held_out_shares(target: AttackedTable, rule: str, number: int) -> Floats:
    """What the model says about every group, from a release of the table without it."""
    shares = np.tile(target.overall, (target.batch.groups, 1))
    for part in without_groups(target):
        published = part.inside.publication(number, rule)
        shares[part.out] = fitted_model(published, target.raw, part.kept)[part.out]
    return shares


def halves_told(split: SplitTable, rule: str, number: int) -> tuple[Flags, Flags]:
    """Where a model of half the people is close enough, for both halves of violating groups."""
    target = split.target
    groups, batch = target.violating(), target.batch
    shares = fitted_model(split.inside.publication(number, rule), target.raw, split.kept)
    top = target.values[groups]
    hit, guess = batch.value == target.values[batch.group_of_cell], shares[groups, top]
    told = []
    for count in (split.published, split.held_out):
        holders = np.add.reduceat(np.where(hit, count, 0), batch.starts)[groups]
        f = holders / np.maximum(np.add.reduceat(count, batch.starts)[groups], 1)
        told.append(np.abs(guess - f) <= target.policy.tolerance * f)
    return told[0], told[1]


def attack_model(target: AttackedTable, *, keys: int = 1, worst: int = 5) -> AttackResult:
    """Fit the model to margins alone and estimate every violating group, for each sampling rule."""
    exposed, own, tolerance = target.exposed, target.policy.sampling, target.policy.tolerance
    rules = target.steps("sampling rule", possible_rules(target.policy))
    found = {rule: model_errors(target, rule, keys) for rule in rules}
    mine = found[own]
    inside, outside = mine.inside.mean(axis=0), mine.outside.mean(axis=0)
    margins = "the published margins"
    if not target.publication(0).tables:
        margins = "margins estimated from the records"
    # Public values then say nothing, and the model is the whole table's shares.
    shuffled = fitted_model(target.shuffled().publication(0, own), target.raw)
    return AttackResult(
        name="model",
        knew=KNEW,
        success=rate(
            mine.inside <= tolerance,
            f"violating groups within the tolerance, by the model alone ({own})",
        ),
        baseline=rate(mine.outside <= tolerance, "the same groups, held out of the table"),
        control=exposed.within(
            shuffled[target.violating(), exposed.values],
            "the same with the sensitive column shuffled: what a guess from the whole table gives",
        ),
        figures={
            "violating groups": exposed.batch.groups,
            "keys": keys,
            "held out at a time": f"1 in {PARTS} of all groups",
            "fitted to": margins,
            "difference": _points(*mine.difference(tolerance)),
            "half of each group in the table": rate(mine.people, "violating groups, that half"),
            "the other half, held out": rate(mine.people_outside, "violating groups, that half"),
            "difference of the halves": _points(*mine.people_difference),
            "with the group's own records": rate(mine.combined <= tolerance, "violating groups"),
            "a guess from the whole table": exposed.within(
                exposed.shares_of_whole, "violating groups within the tolerance"
            ),
        },
        table=tuple({"sampling": rule, **one.row(tolerance)} for rule, one in found.items()),
        worst=exposed.first(
            inside - outside, worst, {"error in the table": inside, "error held out": outside}
        ),
        verdict=_verdict(mine, own, tolerance),
    )


def _points(difference: float, error: float) -> str:
    return f"{100 * difference:.1f} points ± {100 * error:.1f}"


def _verdict(errors: ModelErrors, own: str, tolerance: float) -> str:
    inside, outside = (float((e <= tolerance).mean()) for e in (errors.inside, errors.outside))
    difference, error = errors.difference(tolerance)
    people, spread = errors.people_difference
    return (
        f"With sampling rule {own!r}, a model of everybody gives f within ±{tolerance:.0%} in"
        f" {inside:.1%} of the violating groups, and in {outside:.1%} of them if they are held out:"
        f" being in the table makes a difference of {100 * difference:.1f} points (standard error"
        f" {100 * error:.1f}) to a group, and of {100 * people:.1f} ({100 * spread:.1f}) to a"
        " random half of one."
    )


def guess_from_release(release: ReleaseFolder, *, show: int = 20) -> AttackResult:
    """The value of each group that the model finds the most frequent."""
    return guess_groups("model", publication_of(release), guess, show)


def guess(published: Publication, groups: Ints) -> tuple[Ints, Columns]:
    """The most frequent value by the model, and its share with and without own records."""
    shares = fitted_model(published, published.cube)
    combined = with_model(published.cube, shares, retention=published.policy.retention)
    guessed = shares[groups].argmax(axis=1)
    return guessed, {
        "model": shares[groups, guessed],
        "with own records": combined[groups, guessed],
    }
