"""Inference: a model learnt from the release guesses each person's sensitive value.

What a model knows about everybody is not a breach of anyone's privacy: it would know the same if
the person had stayed out of the table. So people are split. Some are published, the others held
out, and the same model guesses both: only the difference comes from being in the table.

People of a group have the same public values, so a model is a table of shares, a line per group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable, Publication, possible_rules
from reconpriv.attacks.held_out import SplitTable, split_people
from reconpriv.attacks.neighbourhoods import FAR, places_of
from reconpriv.attacks.pooling import with_model
from reconpriv.attacks.result import KNEW, AttackResult, Row
from reconpriv.attacks.statistics import Rate, difference_of_shares, true_positives
from reconpriv.cells.cube import Cube
from reconpriv.cells.sums import Sums
from reconpriv.columns.schema import json_value
from reconpriv.estimate.linear import selection_sums
from reconpriv.learning.classifiers import learned_shares, possible
from reconpriv.learning.distributions import (
    log_conditional,
    log_prior,
    release_table,
    sensitive_counts,
)
from reconpriv.theory.arrays import Floats, Ints

# So many published records make a group a larger one.
LARGE = 20
# The rate of false positives at which members are told from others.
FALSE_POSITIVES = 0.001
NAIVE_BAYES = "naive Bayes"
OWN_GROUP = "naive Bayes + group"
_SMOOTHING = 1.0


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

    @classmethod
    def mean(cls, every: Sequence[Guessed]) -> Guessed:
        """Over publications of the same people; a standard error is that of one publication."""

        def mean(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
            first, second = np.mean(pairs, axis=0).tolist()
            return first, second

        larger = [one.larger for one in every if one.larger is not None]
        return cls(
            inside=sum(one.inside for one in every),
            outside=sum(one.outside for one in every),
            difference=mean([one.difference for one in every]),
            larger=mean(larger) if larger else None,
            members=mean([one.members for one in every]),
            worst=_worst([one.worst for one in every if one.worst is not None]),
        )

    def row(self, people: int, others: int) -> Row:
        """The shares guessed right of so many people published and held out, and the rest."""
        larger, error = self.larger or (None, None)
        return {
            "in the table": self.inside / people,
            "held out": self.outside / others,
            "difference": self.difference[0],
            "its error": self.difference[1],
            "in larger groups": larger,
            "error there": error,
            "members found": self.members[0],
            "error of that": self.members[1],
            "by chance": FALSE_POSITIVES,
            "most among one value": None if self.worst is None else self.worst[1],
        }


def attack_infer(target: AttackedTable, *, keys: int = 1, classifier: Any = None) -> AttackResult:
    """Learn from a publication of most people and guess the values of all, for each sampling rule.

    ``classifier`` is a name in :data:`reconpriv.learning.classifiers.CLASSIFIERS` or an object
    with the interface of scikit-learn; without one, only naive Bayes is tried, by itself and
    together with the records of each person's group.
    """
    split, own = split_people(target), target.policy.sampling
    classifiers = [] if classifier is None else [classifier]

    def judged(inside: AttackedTable, rule: str, number: int) -> dict[str, Guessed]:
        published = inside.publication(number, rule)
        found = model_shares(published, target.raw, split.kept, classifiers)
        return {model: judge_guesses(split, shares) for model, shares in found.items()}

    found: dict[tuple[str, str], Guessed] = {}
    for rule in target.steps("sampling rule", possible_rules(target.policy)):
        each = [judged(split.inside, rule, number) for number in range(keys)]
        found |= {(rule, model): Guessed.mean([one[model] for one in each]) for model in each[0]}
    headline = [model for rule, model in found if rule == own][-1] if classifiers else OWN_GROUP
    mine, control = found[own, headline], judged(split.inside.shuffled(), own, 0)[headline]
    people, others = int(split.published.sum()), int(split.held_out.sum())
    what = f"values of people in the release, guessed by {headline} ({own})"
    success = Rate(mine.inside, people * keys, what)
    baseline = Rate(mine.outside, others * keys, "the same model on people held out")
    what = "the same from a release with the sensitive column shuffled"
    figures = {
        "people published": people,
        "people held out": others,
        "keys": keys,
        "larger groups have at least": f"{LARGE} people",
        "the most frequent value": target.overall.max(),
        "difference": _plus_minus(*mine.difference),
        f"members found at {FALSE_POSITIVES:g} false positives": _plus_minus(*mine.members),
    }
    if mine.worst is not None:
        value, *rate = mine.worst
        figures["among holders of one value, at most"] = f"{_plus_minus(*rate)} ({value})"
    if target.publication(0).tables:
        ignored = "; not used by the classifier, which learns from records"
        figures["margins"] = f"used by naive Bayes{ignored * len(classifiers)}"
    difference, error = mine.difference
    return AttackResult(
        name="infer",
        knew=KNEW,
        success=success,
        baseline=baseline,
        control=Rate(control.inside, people, what),
        figures=figures,
        table=tuple(
            {"sampling": rule, "model": model, **one.row(people * keys, others * keys)}
            for (rule, model), one in found.items()
        ),
        verdict=f"With sampling rule {own!r}, the value of a person in the table is guessed"
        f" right in {success.share:.1%}, that of a person held out in {baseline.share:.1%}; being"
        " in it"
        f" makes a difference of {100 * difference:.2f} points (standard error"
        f" {100 * error:.2f}).",
    )


def _plus_minus(share: float, error: float) -> str:
    return f"{100 * share:.2f} % ± {100 * error:.2f}"


def judge_guesses(split: SplitTable, shares: Floats) -> Guessed:
    """Compare what a model says, a line of shares per group, with the people of a table."""
    batch = split.target.batch
    group, value = batch.group_of_cell, batch.value
    right = shares.argmax(axis=1)[group] == value
    inside, outside = split.published, split.held_out
    confidence = shares[group, value]
    worst = []
    for one in np.flatnonzero(np.bincount(value, weights=outside) >= 1.0 / FALSE_POSITIVES):
        some = value == one
        found = true_positives(confidence[some], inside[some], outside[some], FALSE_POSITIVES)
        worst.append((json_value(split.target.schema.domain[int(one)]), *found))
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
        worst=_worst(worst),
    )


def _worst(found: list[tuple[Any, float, float]]) -> tuple[Any, float, float] | None:
    """The value with the largest rate less two standard errors: not a rare one, by chance."""
    return max(found, key=lambda one: one[1] - 2.0 * one[2], default=None)


def model_shares(
    published: Publication, people: Cube, kept: Ints, classifiers: Sequence[Any] = ()
) -> dict[str, Floats]:
    """What each model says about every group of ``people``, by name.

    ``kept`` are the groups of ``people`` that were published, in the order of ``published``.
    Classifiers learn from the records alone, naive Bayes from margins, too.
    """
    bayes, cube = naive_bayes_shares(published, people, kept), published.cube
    own, retention = bayes.copy(), published.policy.retention
    own[kept] = possible(with_model(cube, bayes[kept], retention=retention))
    shares, lines = {NAIVE_BAYES: bayes, OWN_GROUP: own}, features(people)
    for chosen in classifiers:
        name = chosen if isinstance(chosen, str) else type(chosen).__name__
        shares[name] = learned_shares(chosen, cube, lines[kept], lines, retention=retention)
    return shares


def naive_bayes_shares(published: Publication, people: Cube, kept: Ints) -> Floats:
    """The package's naive Bayes on reconstructed distributions, as ``ReconstructedNaiveBayes``."""
    from scipy.special import softmax  # noqa: PLC0415 - slow import

    cube, design, told = published.cube, published.design, published.measurements

    def by_value(selection: Ints, selections: int) -> Sums:
        return selection_sums(told, cube, lambda _: selection, selections, None)

    whole = by_value(np.zeros(cube.groups, dtype=np.int64), 1)
    class_counts = sensitive_counts(whole.observed[0], design.retention)
    logs = np.tile(log_prior(class_counts, _SMOOTHING), (people.groups, 1))
    for codes, values in zip(people.codes, people.values, strict=True):
        sums = by_value(codes[kept].astype(np.int64), len(values))
        conditional, _ = log_conditional(release_table(sums, design), class_counts, _SMOOTHING)
        # A value that was not published says nothing.
        logs += np.where(sums.records[:, None] > 0, conditional, 0.0)[codes]
    return np.asarray(softmax(logs, axis=1))


def features(people: Cube) -> Floats:
    """A line per group: an ordered attribute is its place, from 0 to 1, any other a 0 or 1 each."""
    columns = [np.zeros((people.groups, 0))]
    for i, (codes, values) in enumerate(zip(people.codes, people.values, strict=True)):
        places = places_of(people, i)
        if places is None:
            columns.append(np.eye(len(values))[codes])
            continue
        highest = max(int(places[places < FAR].max(initial=0)), 1)
        scaled = np.where(places == FAR, -1.0, places / highest)
        columns.append(scaled[codes][:, None])
    return np.concatenate(columns, axis=1)
