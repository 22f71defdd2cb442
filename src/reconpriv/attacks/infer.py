"""Inference: a model learnt from the release guesses each person's sensitive value.

What a model knows about everybody is not a breach of anyone's privacy: it would know the same if
the person had stayed out of the table. So people are split. Some are published, the others held
out, and the same model guesses both: only the difference comes from being in the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable, Publication
from reconpriv.attacks.held_out import SplitTable, split_people
from reconpriv.attacks.inference import OWN_GROUP, model_shares
from reconpriv.attacks.micro import KNEW, possible_sizes
from reconpriv.attacks.result import AttackResult, Row
from reconpriv.attacks.statistics import (
    Rate,
    difference_of_shares,
    true_positives,
)
from reconpriv.queries.estimate import Design
from reconpriv.schema import json_value
from reconpriv.theory.arrays import Floats

# So many published records make a group a larger one.
LARGE = 20
# The rate of false positives at which members are told from others.
FALSE_POSITIVES = 0.001


@dataclass(frozen=True)
class Guessed:
    """How a model guesses the people of a table, over one publication or the mean of several.

    ``inside`` and ``outside`` count right guesses about those published and those held out;
    ``difference`` of the two shares and ``members``, the rate of true positives, have standard
    errors. ``larger`` is the difference among people of groups with at least 20 published records,
    None if there are none. ``worst`` is the value whose holders are told apart best, with
    their rate and its standard error, None if too few people were held out.
    """

    inside: int
    outside: int
    difference: tuple[float, float]
    larger: tuple[float, float] | None
    members: tuple[float, float]
    worst: tuple[Any, float, float] | None


def attack_infer(target: AttackedTable, *, keys: int = 1, classifier: Any = None) -> AttackResult:
    """Learn from a publication of most people and guess the values of all, for each sample size.

    ``classifier`` is a name in :data:`reconpriv.learning.classifiers.CLASSIFIERS` or an object
    with the interface of scikit-learn; without one, only naive Bayes is tried, by itself and
    together with the records of each person's group.
    """
    split = split_people(target)
    classifiers = [] if classifier is None else [classifier]
    found = {
        (size, model): guessed
        for size in target.steps("sample size", possible_sizes(target.policy))
        for model, guessed in _measure(split, size, keys, classifiers).items()
    }
    own = target.policy.sample_size
    models = [model for size, model in found if size == own]
    headline = models[-1] if classifiers else OWN_GROUP
    mine = found[own, headline]
    people, others = int(split.published.sum()), int(split.held_out.sum())
    told = {} if target.policy.margins is None else {"margins": _margins(classifiers)}
    return AttackResult(
        name="infer",
        knew=KNEW,
        success=Rate(mine.inside, people * keys, f"values of people in the release, guessed by"
                     f" {headline} ({own})"),
        baseline=Rate(mine.outside, others * keys, "the same model on people held out"),
        control=_control(split, own, headline, classifiers),
        figures={
            "people published": people,
            "people held out": others,
            "keys": keys,
            "larger groups have at least": f"{LARGE} people",
            "the most frequent value": float(target.overall.max()),
            "difference": _plus_minus(*mine.difference),
            f"members found at {FALSE_POSITIVES:g} false positives": _plus_minus(*mine.members),
            **_worst_figure(mine),
            **told,
        },
        table=tuple(_row(split, size, model, one, keys) for (size, model), one in found.items()),
        verdict=_verdict(mine, people * keys, others * keys, own),
    )  # fmt: skip


def _measure(
    split: SplitTable, size: str, keys: int, classifiers: Sequence[Any]
) -> dict[str, Guessed]:
    each: dict[str, list[Guessed]] = {}
    for number in range(keys):
        published = split.inside.publication(number, size)
        for model, shares in _shares(split, published, classifiers).items():
            each.setdefault(model, []).append(judge_guesses(split, shares))
    return {model: _mean(every) for model, every in each.items()}


def _margins(classifiers: Sequence[Any]) -> str:
    """What margins are used for."""
    return "used by naive Bayes" + (
        "; not used by the classifier, which learns from records" if classifiers else ""
    )


def _shares(
    split: SplitTable, published: Publication, classifiers: Sequence[Any]
) -> dict[str, Floats]:
    design = Design.of(published.policy, published.cube.schema)
    return model_shares(published, split.target.raw, split.kept, design, classifiers)


def judge_guesses(split: SplitTable, shares: Floats) -> Guessed:
    """Compare what a model says, a line of shares per group, with the people of a table."""
    batch = split.target.batch
    group, value = batch.group_of_cell, batch.value
    right = shares.argmax(axis=1)[group] == value
    inside, outside = split.published, split.held_out
    confidence = shares[group, value]
    worst = None
    for one in np.flatnonzero(np.bincount(value, weights=outside) >= 1.0 / FALSE_POSITIVES):
        some = value == one
        found = true_positives(confidence[some], inside[some], outside[some], FALSE_POSITIVES)
        if worst is None or _at_least(found) > _at_least(worst[1:]):
            worst = (json_value(split.target.schema.domain[int(one)]), *found)
    # By size, not by whether they were sampled: `octave` samples groups where many of those who are
    # published hold one value, so the two parts of such a group differ without any model.
    some = (np.add.reduceat(inside, batch.starts) >= LARGE)[group]
    both = inside[some].any() and outside[some].any()
    return Guessed(
        inside=int(inside[right].sum()),
        outside=int(outside[right].sum()),
        difference=difference_of_shares(right, inside, outside),
        larger=difference_of_shares(right[some], inside[some], outside[some]) if both else None,
        members=true_positives(confidence, inside, outside, FALSE_POSITIVES),
        worst=worst,
    )


def _at_least(found: tuple[float, float]) -> float:
    """The rate less two standard errors: a rare value must not be the worst by chance."""
    return found[0] - 2.0 * found[1]


def _mean(every: list[Guessed]) -> Guessed:
    """Over publications of the same people; a standard error is that of one publication."""
    worst = [one.worst for one in every if one.worst is not None]
    larger = [one.larger for one in every if one.larger is not None]
    return Guessed(
        inside=sum(one.inside for one in every),
        outside=sum(one.outside for one in every),
        difference=_means([one.difference for one in every]),
        larger=_means(larger) if larger else None,
        members=_means([one.members for one in every]),
        worst=max(worst, key=lambda one: _at_least(one[1:]), default=None),
    )


def _means(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    first, second = np.mean(pairs, axis=0)
    return float(first), float(second)


def _control(split: SplitTable, size: str, model: str, classifiers: Sequence[Any]) -> Rate:
    """The release of a shuffled column: what it says about people's true values is nothing."""
    shuffled = split.inside.shuffled()
    shares = _shares(split, shuffled.publication(0, size), classifiers)[model]
    right = judge_guesses(split, shares).inside
    what = "the same from a release with the sensitive column shuffled"
    return Rate(right, int(split.published.sum()), what)


def _row(split: SplitTable, size: str, model: str, found: Guessed, keys: int) -> Row:
    return {
        "sample size": size,
        "model": model,
        "in the table": found.inside / (int(split.published.sum()) * keys),
        "held out": found.outside / (int(split.held_out.sum()) * keys),
        "difference": found.difference[0],
        "its error": found.difference[1],
        "in larger groups": None if found.larger is None else found.larger[0],
        "error there": None if found.larger is None else found.larger[1],
        "members found": found.members[0],
        "error of that": found.members[1],
        "by chance": FALSE_POSITIVES,
        "most among one value": None if found.worst is None else found.worst[1],
    }


def _worst_figure(found: Guessed) -> Row:
    if found.worst is None:
        return {}
    value, share, error = found.worst
    return {"among holders of one value, at most": f"{_plus_minus(share, error)} ({value})"}


def _plus_minus(number: float, error: float) -> str:
    return f"{100 * number:.2f} % ± {100 * error:.2f}"


def _verdict(found: Guessed, people: int, others: int, own: str) -> str:
    difference, error = found.difference
    return (
        f"With sample size {own!r}, the value of a person in the table is guessed right in"
        f" {found.inside / people:.1%}, that of a person held out in {found.outside / others:.1%};"
        f" being in it makes a difference of {100 * difference:.2f} points (standard error"
        f" {100 * error:.2f})."
    )
