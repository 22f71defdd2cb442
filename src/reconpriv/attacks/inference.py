"""Models that guess a person's sensitive value from the public ones, learnt from a publication.

People of a group have the same public values, so a model is a table of shares, a line per group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reconpriv.attacks.attacked_table import Publication
from reconpriv.attacks.neighbourhoods import FAR, places_of
from reconpriv.attacks.pooling import with_model
from reconpriv.cells.cube import Cube
from reconpriv.cells.sums import Sums
from reconpriv.estimate.counts import Design
from reconpriv.estimate.linear import selection_sums
from reconpriv.estimate.measurements import prepare_margins
from reconpriv.learning.classifiers import learned_shares, possible
from reconpriv.learning.distributions import (
    log_conditional,
    log_prior,
    release_table,
    sensitive_counts,
)
from reconpriv.theory.arrays import Floats, Ints

NAIVE_BAYES = "naive Bayes"
OWN_GROUP = "naive Bayes + group"
_SMOOTHING = 1.0


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

    cube, design = published.cube, Design.of(published.policy, published.cube.schema)
    told = prepare_margins(cube, published.tables, published.variance, design)

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
    columns: list[Floats] = []
    for i, (codes, values) in enumerate(zip(people.codes, people.values, strict=True)):
        places = places_of(people, i)
        if places is None:
            columns.append(np.eye(len(values))[codes])
            continue
        highest = max(int(places[places < FAR].max(initial=0)), 1)
        scaled = np.where(places == FAR, -1.0, places / highest)
        columns.append(scaled[codes][:, None])
    return np.concatenate(columns, axis=1)
