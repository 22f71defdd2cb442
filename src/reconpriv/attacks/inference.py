"""Models that guess a person's sensitive value from the public ones, learnt from a publication.

People of a group have the same public values, so a model is a table of shares, a line per group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reconpriv.attacks.neighbourhoods import FAR, places_of
from reconpriv.attacks.pooling import with_model
from reconpriv.core.cube import Cube
from reconpriv.learning.classifiers import learned_shares, possible
from reconpriv.learning.distributions import (
    log_conditional,
    log_prior,
    release_table,
    sensitive_counts,
)
from reconpriv.queries.estimate import Design
from reconpriv.theory.arrays import Floats, Ints

NAIVE_BAYES = "naive Bayes"
OWN_GROUP = "naive Bayes + group"
_SMOOTHING = 1.0


def model_shares(
    published: Cube, people: Cube, kept: Ints, design: Design, classifiers: Sequence[Any] = ()
) -> dict[str, Floats]:
    """What each model says about every group of ``people``, by name.

    ``kept`` are the groups of ``people`` that were published, in the order of ``published``.
    """
    bayes = naive_bayes_shares(published, people, kept, design)
    own = bayes.copy()
    own[kept] = possible(with_model(published, bayes[kept], retention=design.retention))
    shares = {NAIVE_BAYES: bayes, OWN_GROUP: own}
    for chosen in classifiers:
        lines = features(people)
        name = chosen if isinstance(chosen, str) else type(chosen).__name__
        shares[name] = learned_shares(
            chosen, published, lines[kept], lines, retention=design.retention
        )
    return shares


def naive_bayes_shares(published: Cube, people: Cube, kept: Ints, design: Design) -> Floats:
    """The package's naive Bayes on reconstructed distributions, as ``ReconstructedNaiveBayes``."""
    from scipy.special import softmax  # noqa: PLC0415 - slow import

    m = design.domain_size
    observed = np.bincount(published.value, weights=published.count, minlength=m)
    class_counts = sensitive_counts(observed.astype(np.float64), design.retention)
    logs = np.tile(log_prior(class_counts, _SMOOTHING), (people.groups, 1))
    for codes, values in zip(people.codes, people.values, strict=True):
        sums = published.sums(codes[kept].astype(np.int64), len(values), None)
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
