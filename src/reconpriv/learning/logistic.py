"""Logistic regression of the sensitive attribute on public ones, corrected for the publication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.ask.selections import Selected
from reconpriv.columns.given_values import given_values
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.learning.fitting import Options, PreparedModel, regression_on
from reconpriv.learning.model_rows import Classes, classes_of
from reconpriv.learning.regression import OPEN, Regression, coefficients
from reconpriv.learning.terms import read_features, shown
from reconpriv.messages.arguments import checked
from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.regression import fit_logistic, level_counts, move_logistic

if TYPE_CHECKING:
    from reconpriv.release.release import Release

_REST = "any other"
# A log-odds with a larger standard error than this is not normal enough for Wald's interval.
_ROUGH = 0.15


@checked
def logistic(
    release: Release,
    target: Value,
    features: Sequence[str] | str,
    where: str | None = None,
    *,
    merge: Mapping[str, Sequence[Value]] | None = None,
    reference: Mapping[str, Value] | None = None,
    confidence: float = 0.95,
    margins: bool = True,
    **equal: Value,
) -> Regression:
    """The logistic regression that the original records would have: see ``Release.logistic``."""
    named = [features] if isinstance(features, str) else list(features)
    chosen: dict[str, Any] = {"merge": merge, "reference": reference}

    def fit(answerer: Answerer, selected: Selected) -> Regression:
        return logistic_of(
            answerer, target, named, selected, confidence=confidence, margins=margins, **chosen
        )

    return regression_on(release, named, where, equal, fit)


def logistic_of(
    answerer: Answerer, target: Value, features: Sequence[str], selected: Selected, **chosen: Any
) -> Regression:
    """The same on the cells of a release; for what may be ``chosen`` see :class:`Options`."""
    options, name = Options(**chosen), answerer.cells.schema.sensitive.name
    wanted = read_features(features, answerer)
    if any(one.column == name for one in wanted):
        raise InputError(f"Column {name!r} is both the target and a feature.")
    multinomial = isinstance(target, str) and target == name
    if options.merge and not multinomial:
        raise InputError(
            "Values are merged only if the target is the sensitive column.",
            hint="A target may be a list of values.",
        )

    def classes(totals: Floats) -> Classes:
        if multinomial:
            return classes_of(answerer, options.merge, options.fixed, totals)
        return target_classes(answerer, target)

    model = PreparedModel.of(answerer, selected, wanted, options, classes, named=multinomial)
    x, counts, encodings = model.x, model.counts, model.encodings
    levels = check_separation(model)
    fit = fit_logistic(x, counts)
    if not fit.converged:
        categories = [one.column for one in wanted if not one.numeric]
        raise separated(f"some combination of {', '.join(categories) or 'the features'}")
    free = len(model.classes.labels) - 1
    back = np.kron(np.eye(free), encodings.restoring())
    estimates = back @ fit.coefficients.T.ravel()
    covariance = back @ fit.covariance @ back.T
    labels = model.classes.labels[:-1] if multinomial else (None,)
    table = coefficients(
        [(term.name, label) for label in labels for term in encodings.terms],
        estimates, covariance, options.confidence,
        move=lambda i, errors: move_logistic(x, counts.records, fit, back[i], errors, levels),
        rough=np.sqrt(np.maximum(np.diag(covariance), 0.0)) * np.tile(encodings.scales(), free)
        > _ROUGH,
    )  # fmt: skip
    endless = any(np.isinf([one.low, one.high]).any() for one in table)
    outcome = name if multinomial else f"{name} = {_words(target)}"
    remarks = [*model.remarks, OPEN] if endless else model.remarks
    kind = "multinomial" if multinomial else "logistic"
    return model.result(kind, outcome, table, covariance, remarks)


def target_classes(answerer: Answerer, target: Value) -> Classes:
    """The named values of the sensitive column, and the rest as the reference."""
    schema = answerer.cells.schema
    name = schema.sensitive.name
    public = [column.name for column in schema.public]
    if isinstance(target, str) and target in public and target not in schema.domain:
        raise InputError(
            f"The target {target!r} is a public column; a logistic regression explains the"
            f" sensitive column {name!r} or its values."
        )
    target = given_values(target)
    chosen = answerer.select(None, {name: target}).values
    if chosen is None or not chosen:
        raise InputError(
            f"The target holds {'every value' if chosen is None else 'no value'} of {name!r}, so"
            " there is nothing to explain."
        )
    members = np.zeros((2, schema.domain_size))
    members[0, list(chosen)] = 1.0
    members[1] = 1.0 - members[0]
    return Classes((_words(target), _REST), members)


def check_separation(model: PreparedModel) -> Floats:
    """Refuse counts that no finite coefficient has: none of the records with a value in a class.

    Returns the indicators of the values.
    """
    x, counts = model.x, model.counts
    names, levels = model.encodings.levels()
    levels = np.vstack([np.eye(x.shape[1])[:1], levels])
    found = level_counts(x, counts.records, counts.totals(x)[:, :-1], levels)
    row, which = np.unravel_index(found.argmin(), found.shape)
    if found[row, which] <= 0:
        among = "the selected records"
        if row > 0:
            column, value = names[int(row) - 1]
            among = f"records with {column} = {shown(value)}"
        name = model.answerer.cells.schema.sensitive.name
        raise separated(
            f"among {among} the release suggests {found[row, which]:,.0f} with {name} ="
            f" {shown(model.classes.labels[int(which)])}"
        )
    return levels


def separated(what: str) -> InputError:
    """The error for a model without a finite fit."""
    return InputError(
        f"There is no finite fit (separation): {what}.",
        hint="Merge rare values, leave a feature out, or select other records.",
    )


def _words(target: Value) -> str:
    if isinstance(target, list):
        return " or ".join(map(shown, target))
    return shown(target)
