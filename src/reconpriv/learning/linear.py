"""Linear regression of a public number, with the sensitive attribute among the predictors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.ask.comparisons import unknown_column
from reconpriv.ask.selections import Selected
from reconpriv.ask.sql.text import written_name
from reconpriv.columns.schema import Schema, Value
from reconpriv.errors import InputError
from reconpriv.estimate.counts import coin_flips
from reconpriv.estimate.measures import has_numbers
from reconpriv.learning.fitting import Options, PreparedModel, regression_on
from reconpriv.learning.model_rows import Classes, ModelRows, classes_of
from reconpriv.learning.regression import EXACT, Regression, coefficients
from reconpriv.learning.terms import NUMERIC, ModelTerm, as_numbers, read_features, shown
from reconpriv.messages.arguments import checked
from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.regression import fit_linear

if TYPE_CHECKING:
    from reconpriv.release.release import Release

_CLEAR = 3.0  # a class must stand out of its noise by this many standard errors


@checked
def linear(
    release: Release,
    outcome: str,
    features: Sequence[str] | str,
    where: str | None = None,
    *,
    merge: Mapping[str, Sequence[Value]] | None = None,
    reference: Mapping[str, Value] | None = None,
    confidence: float = 0.95,
    margins: bool = True,
    **equal: Value,
) -> Regression:
    """The least squares fit that the original records would have: see ``Release.linear``."""
    named = [features] if isinstance(features, str) else list(features)
    chosen: dict[str, Any] = {"merge": merge, "reference": reference}

    def fit(answerer: Answerer, selected: Selected) -> Regression:
        return linear_of(
            answerer, outcome, named, selected, confidence=confidence, margins=margins, **chosen
        )

    return regression_on(release, [outcome, *named], where, equal, fit)


def linear_of(
    answerer: Answerer, outcome: str, features: Sequence[str], selected: Selected, **chosen: Any
) -> Regression:
    """The same on the cells of a release; for what may be ``chosen`` see :class:`Options`."""
    options, sensitive = Options(**chosen), answerer.cells.schema.sensitive.name
    wanted = read_features(features, answerer)
    check_outcome(answerer, outcome, [one.column for one in wanted])
    used = any(one.column == sensitive for one in wanted)
    if options.merge and not used:
        raise InputError(f"Values of {sensitive!r} are merged, but it is not a feature.")

    def classes(totals: Floats) -> Classes:
        if used:
            return classes_of(answerer, options.merge, options.fixed, totals)
        return Classes((), np.ones((1, totals.size)))

    model = PreparedModel.of(
        answerer, selected, wanted, options, classes, named=used, also=[outcome], margins=used
    )
    numbers = outcome_numbers(answerer, outcome, model.rows)
    if used:
        _check_clear(model, sensitive)
    fit = fit_linear(model.x, numbers, model.counts)
    if not fit.converged:
        raise InputError(
            f"The release is too noisy to tell the values of {sensitive!r} apart in this model.",
            hint="Merge its rare values, leave features out, or select more records.",
        )
    terms = [term.name for term in model.encodings.terms]
    restore = np.eye(fit.coefficients.size)
    restore[: len(terms), : len(terms)] = model.encodings.restoring()
    labels = model.classes.labels[:-1]
    terms += [ModelTerm(sensitive, label, category=True).name for label in labels]
    covariance, remarks = np.zeros_like(restore), None
    if used:
        covariance = restore @ fit.covariance @ restore.T
    else:
        sampling = answerer.design.sampling
        remarks = [coin_flips(sampling) if sampling.coins else EXACT, *selected.remarks]
    table = coefficients(
        [(term, None) for term in terms], restore @ fit.coefficients, covariance,
        options.confidence,
    )  # fmt: skip
    return model.result("linear", outcome, table, covariance, remarks)


def check_outcome(answerer: Answerer, outcome: str, features: Sequence[str]) -> None:
    """Refuse an outcome that is no public number."""
    schema = answerer.cells.schema
    kinds = {column.name: column.kind for column in schema.columns}
    if outcome not in kinds:
        raise unknown_column(outcome, list(kinds))
    if outcome == schema.sensitive.name:
        raise InputError(
            f"The outcome {outcome!r} is the sensitive column; a linear regression explains a"
            " public number.",
            hint=_instead(schema, outcome, features),
        )
    if kinds[outcome] not in NUMERIC:
        binned = has_numbers(schema, outcome)
        what = "bins" if binned else f"{kinds[outcome].value} values"
        raise InputError(
            f"The outcome {outcome!r} holds {what}; a linear regression explains a number.",
            hint=f"Ask for {_average(outcome, features)} instead." if binned else "",
        )
    if outcome in features:
        raise InputError(f"Column {outcome!r} is both the outcome and a feature.")


def _instead(schema: Schema, outcome: str, features: Sequence[str]) -> str:
    """What answers a question about the sensitive column."""
    logistic = "fit a logistic regression with it as the target"
    if not has_numbers(schema, outcome):
        return f"{logistic.capitalize()}."
    return f"Ask for {_average(outcome, features)}, or {logistic}."


def _average(outcome: str, features: Sequence[str]) -> str:
    """The averages that a regression on categories would compare."""
    by = ", ".join(written_name(name) for name in features if name != outcome)
    return f"avg({written_name(outcome)})" + (f" GROUP BY {by}" if by else "")


def outcome_numbers(answerer: Answerer, outcome: str, rows: ModelRows) -> Floats:
    """The outcome of every row, whose last column it is."""
    occurring, place = np.unique(rows.codes[-1], return_inverse=True)
    numbers = as_numbers(outcome, answerer.known[outcome], occurring)[place]
    if occurring.size == 1:
        raise InputError(
            f"The outcome {outcome!r} is {numbers[0]:g} in all selected records, so there is"
            " nothing to explain."
        )
    return numbers


def _check_clear(model: PreparedModel, name: str) -> None:
    """Refuse a class that may as well have no member: its coefficient would divide by noise."""
    totals, errors = model.counts.whole(), model.counts.errors()
    short = np.flatnonzero(totals < _CLEAR * errors)
    if short.size:
        i = int(short[np.argmin((totals / np.maximum(errors, 1e-300))[short])])
        raise InputError(
            f"The value {shown(model.classes.labels[i])} of {name!r} is too rare for this release:"
            f" it suggests {totals[i]:,.0f} ± {errors[i]:,.0f} such records.",
            hint="Merge it with others, or select more records.",
        )
