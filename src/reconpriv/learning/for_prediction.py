"""What the regressions of scikit-learn's kind learn from a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reconpriv.learning.from_release import public_selection
from reconpriv.learning.linear import check_outcome, outcome_numbers
from reconpriv.learning.logistic import logistic_features, target_classes
from reconpriv.learning.model_rows import answerer_of, encoded, gather
from reconpriv.learning.terms import Encodings, read_features
from reconpriv.theory.arrays import Floats
from reconpriv.theory.class_counts import Evidence

if TYPE_CHECKING:
    from reconpriv.release.release import Release


@dataclass(frozen=True)
class TrainingData:
    """Encoded rows and the counts of their classes; ``sensitive`` is the randomised feature."""

    retention: float
    features: list[str]
    encodings: Encodings
    x: Floats
    counts: Evidence
    labels: tuple[Any, ...]
    outcome: Floats
    sensitive: str | None = None


def logistic_data(
    release: Release,
    target: Any,
    features: Sequence[str] | None,
    where: str | None,
    *,
    margins: bool,
) -> TrainingData:
    """The rows of a logistic regression of the sensitive column, or of some of its values."""
    answerer = answerer_of(release, [] if features is None else features)
    schema = answerer.cells.schema
    chosen = [column.name for column in schema.public] if features is None else features
    wanted = logistic_features(answerer, chosen)
    columns = [one.column for one in wanted]
    rows = gather(answerer, public_selection(answerer, where), columns, margins=margins)
    every = target is None or (isinstance(target, str) and target == schema.sensitive.name)
    if every:
        labels, members = tuple(schema.domain), np.eye(schema.domain_size)
    else:
        labels, members = (False, True), target_classes(answerer, target).members[::-1]
    encodings, x = encoded(answerer, wanted, rows, rows.codes, {}, len(labels) - 1)
    return TrainingData(
        retention=answerer.design.retention,
        features=columns,
        encodings=encodings,
        x=x,
        counts=rows.evidence(members),
        labels=labels,
        outcome=np.zeros(0),
    )


def linear_data(
    release: Release,
    outcome: str,
    features: Sequence[str] | None,
    where: str | None,
    *,
    margins: bool,
) -> TrainingData:
    """The rows of a linear regression of a public number."""
    answerer = answerer_of(release, [outcome, *(features or [])])
    schema = answerer.cells.schema
    names = [column.name for column in schema.columns if column.name != outcome]
    wanted = read_features(names if features is None else features, answerer)
    check_outcome(answerer, outcome, [one.column for one in wanted])
    sensitive = schema.sensitive.name
    public = [one for one in wanted if one.column != sensitive]
    used = len(public) < len(wanted)
    selected, m = public_selection(answerer, where), schema.domain_size
    columns = [*(one.column for one in public), outcome]
    rows = gather(answerer, selected, columns, margins=margins and used)
    encodings, x = encoded(answerer, public, rows, rows.codes[:-1], {})
    return TrainingData(
        retention=answerer.design.retention if used else 1.0,
        features=[one.column for one in wanted],
        encodings=encodings,
        x=x,
        counts=rows.evidence(np.eye(m) if used else np.ones((1, m))),
        labels=tuple(schema.domain) if used else (None,),
        outcome=outcome_numbers(answerer, outcome, rows),
        sensitive=sensitive if used else None,
    )
