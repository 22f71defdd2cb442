"""Classifiers of scikit-learn that learn a randomised attribute, and what they say when corrected.

A classifier trained on published records learns the published value, which is kept with probability
p and otherwise drawn evenly: q = pf + t for each value. So its probabilities are corrected like
shares, by Lemma 1, whatever the classifier. scikit-learn is an extra, imported when it is used.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reconpriv.cells.cube import Cube
from reconpriv.errors import InputError
from reconpriv.extras import needs
from reconpriv.learning import NO_SCIKIT_LEARN
from reconpriv.registry import Registry
from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.reconstruction import reconstruct_frequency


@dataclass(frozen=True)
class Classifier:
    """A classifier by name, with what it is."""

    name: str
    explanation: str
    make: Callable[[], Any]


def _forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier  # type: ignore[import-untyped]

    # Leaves are limited, since each holds a share for every value.
    return RandomForestClassifier(n_estimators=20, max_leaf_nodes=4_000, random_state=0)


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=30, random_state=0)


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    return LogisticRegression(max_iter=200)


CLASSIFIERS = Registry(
    "classifier",
    (
        Classifier("forest", "A random forest, which can learn single groups by heart.", _forest),
        Classifier("boosting", "Gradient-boosted trees.", _boosting),
        Classifier("logistic", "Logistic regression.", _logistic),
    ),
    InputError,
)


def make_classifier(chosen: Any) -> Any:
    """A classifier by its name in :data:`CLASSIFIERS`, or a fresh copy of an object."""
    with needs("learn", NO_SCIKIT_LEARN):
        from sklearn.base import clone  # type: ignore[import-untyped]

    if isinstance(chosen, str):
        return CLASSIFIERS.find(chosen).make()
    if not all(hasattr(chosen, method) for method in ("fit", "predict_proba", "get_params")):
        raise InputError(
            f"A classifier needs fit and predict_proba, as in scikit-learn; got"
            f" {type(chosen).__name__}.",
            hint=f"Choose one by name: {', '.join(CLASSIFIERS)}.",
        )
    return clone(chosen)


def learned_shares(
    chosen: Any, cube: Cube, features: Floats, wanted: Floats, *, retention: float
) -> Floats:
    """Train on published records; the corrected share of every value for each line of ``wanted``.

    ``features`` has a line per group of the cube. Shares are possible ones: none is negative.
    """
    from sklearn.utils.validation import has_fit_parameter  # type: ignore[import-untyped]

    model = make_classifier(chosen)
    if has_fit_parameter(model, "sample_weight"):
        model.fit(features[cube.group], cube.value, sample_weight=cube.count)
    else:
        records = np.repeat(np.arange(cube.group.size), cube.count)
        model.fit(features[cube.group[records]], cube.value[records])
    m = cube.schema.domain_size
    published = np.zeros((wanted.shape[0], m))
    published[:, np.asarray(model.classes_, dtype=np.int64)] = model.predict_proba(wanted)
    shares = reconstruct_frequency(published, 1.0, retention=retention, domain_size=m)
    return possible(shares)


def possible(shares: Floats) -> Floats:
    """Shares without negative ones, that add up to 1; the largest stays the largest."""
    kept = np.maximum(shares, 0.0)
    # All shares add up to 1 before, so some are positive.
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))
