"""A classifier learned from a release, evaluated on the records of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reconpriv.columns.schema import json_value
from reconpriv.engines.local import read_all
from reconpriv.errors import InputError
from reconpriv.learning import ReconstructedNaiveBayes
from reconpriv.learning.categories import encode
from reconpriv.learning.naive_bayes import joint_log_proba

if TYPE_CHECKING:
    from reconpriv.release.release import Release


@dataclass(frozen=True)
class Learned:
    """What was learned, and how well it predicts if there was a test table.

    ``margins`` says whether it was learned from margins, too.
    """

    target: str
    features: tuple[str, ...]
    sensitive: str | None
    classes: tuple[Any, ...]
    prior: tuple[float, ...]
    conditional: dict[str, dict[str, Any]]
    tested: int = 0
    accuracy: float | None = None
    log_loss: float | None = None
    baseline: float | None = None
    margins: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Its fields as JSON has them."""
        result: dict[str, Any] = {
            "target": self.target,
            "features": list(self.features),
            "reconstructed": self.sensitive,
            "margins": self.margins,
            "classes": [json_value(value) for value in self.classes],
            "prior": list(self.prior),
            "conditional": self.conditional,
        }
        if self.accuracy is not None:
            result["test"] = {
                "records": self.tested,
                "accuracy": self.accuracy,
                "log_loss": self.log_loss,
                "most_frequent_class": self.baseline,
            }
        return result


def learn(
    release: Release,
    target: str | None,
    features: Sequence[str] | None,
    *,
    where: str | None = None,
    alpha: float = 1.0,
    test: str | None = None,
    margins: bool = True,
) -> Learned:
    """Learn from a release; ``test`` is a table file to predict, with true sensitive values."""
    model = ReconstructedNaiveBayes.from_release(
        release, target, features, where=where, alpha=alpha, margins=margins
    )
    schema = release.answerer.cells.schema
    name = schema.sensitive.name if target is None else target
    names = [str(feature) for feature in model.feature_names_in_]
    randomised = schema.sensitive.name in (name, *names)
    figures = {} if test is None else _judge(model, name, names, test)
    return Learned(
        target=name,
        features=tuple(names),
        sensitive=schema.sensitive.name if randomised else None,
        classes=tuple(model.classes_.tolist()),
        prior=tuple(np.exp(model.class_log_prior_).tolist()),
        conditional={
            feature: {
                "values": [json_value(value) for value in values.tolist()],
                "probability": np.exp(logs).tolist(),
                "kept": kept.tolist(),
            }
            for feature, values, logs, kept in zip(
                names, model.categories_, model.feature_log_prob_, model.kept_, strict=True
            )
        },
        margins=randomised and release.answerer.told(margins=margins).rows > 0,
        **figures,
    )


def _judge(
    model: ReconstructedNaiveBayes, target: str, names: list[str], test: str
) -> dict[str, Any]:
    """Accuracy, log-loss and the share of the most frequent class, on the records of a table."""
    from scipy.special import log_softmax  # noqa: PLC0415 - slow import

    table = read_all(test)
    for name in (target, *names):
        if name not in table.column_names:
            raise InputError(
                f"The test table has no column {name!r}.",
                hint=f"It has: {', '.join(table.column_names)}.",
            )
    known = encode(table[target].to_pylist(), model.classes_.tolist())
    if not known.size:
        raise InputError("The test table has no records.")
    if known.min() < 0:
        raise InputError(
            f"The test table holds values of {target!r} that the release does not have.",
            hint="Leave those records out.",
        )
    # As columns of Python objects: an array would convert dates and missing integers.
    logs = log_softmax(joint_log_proba(model, [table[name].to_pylist() for name in names]), axis=1)
    counts = np.bincount(known)
    return {
        "tested": int(known.size),
        "accuracy": float((logs.argmax(axis=1) == known).mean()),
        "log_loss": float(-logs[np.arange(known.size), known].mean()),
        "baseline": float(counts.max() / known.size),
    }
