"""Logistic and linear regression on a release, corrected for the publication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.ask.comparisons import unknown_column
from reconpriv.ask.selections import Selected
from reconpriv.ask.sql.text import written_name
from reconpriv.columns.given_values import given_values
from reconpriv.columns.kinds import NUMBERS
from reconpriv.columns.schema import Schema, Value
from reconpriv.errors import InputError
from reconpriv.estimate.counts import coin_flips
from reconpriv.estimate.measures import has_numbers
from reconpriv.learning.fitting import Classes, ModelRows, Options, PreparedModel, classes_of
from reconpriv.learning.regression import EXACT, OPEN, Regression, coefficients
from reconpriv.learning.terms import ModelTerm, as_numbers, read_features, shown
from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.regression import (
    fit_linear,
    fit_logistic,
    level_counts,
    move_logistic,
)

_REST = "any other"
# A log-odds with a larger standard error than this is not normal enough for Wald's interval.
_ROUGH = 0.15
_CLEAR = 3.0  # a class must stand out of its noise by this many standard errors


def logistic_of(
    answerer: Answerer, selected: Selected, target: Value, features: Sequence[str], options: Options
) -> Regression:
    """The logistic regression that the original records would have: see ``Release.logistic``."""
    name = answerer.cells.schema.sensitive.name
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
        return _target_classes(answerer, target)

    model = PreparedModel.of(answerer, selected, wanted, options, classes, named=multinomial)
    x, counts, encodings = model.x, model.counts, model.encodings
    levels = _check_separation(model)
    fit = fit_logistic(x, counts)
    if not fit.converged:
        categories = [one.column for one in wanted if not one.numeric]
        raise _separated(f"some combination of {', '.join(categories) or 'the features'}")
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


def _target_classes(answerer: Answerer, target: Value) -> Classes:
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


def _check_separation(model: PreparedModel) -> Floats:
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
        raise _separated(
            f"among {among} the release suggests {found[row, which]:,.0f} with {name} ="
            f" {shown(model.classes.labels[int(which)])}"
        )
    return levels


def _separated(what: str) -> InputError:
    """The error for a model without a finite fit."""
    return InputError(
        f"There is no finite fit (separation): {what}.",
        hint="Merge rare values, leave a feature out, or select other records.",
    )


def _words(target: Value) -> str:
    if isinstance(target, list):
        return " or ".join(map(shown, target))
    return shown(target)


def linear_of(
    answerer: Answerer, selected: Selected, outcome: str, features: Sequence[str], options: Options
) -> Regression:
    """The least squares fit that the original records would have: see ``Release.linear``."""
    sensitive = answerer.cells.schema.sensitive.name
    wanted = read_features(features, answerer)
    _check_outcome(answerer, outcome, [one.column for one in wanted])
    used = any(one.column == sensitive for one in wanted)
    if options.merge and not used:
        raise InputError(f"Values of {sensitive!r} are merged, but it is not a feature.")

    def classes(totals: Floats) -> Classes:
        if used:
            return classes_of(answerer, options.merge, options.fixed, totals)
        return Classes((), np.ones((1, totals.size)))

    if not used:
        options = replace(options, margins=False)  # nothing is estimated
    model = PreparedModel.of(
        answerer, selected, wanted, options, classes, named=used, also=[outcome]
    )
    numbers = _outcome_numbers(answerer, outcome, model.rows)
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
    covariance, remarks = np.zeros_like(restore), model.remarks
    if used:
        covariance = restore @ fit.covariance @ restore.T
    else:
        rule = answerer.design.sampling_rule
        remarks = [coin_flips(rule) if rule.coin_flips else EXACT, *selected.remarks]
    table = coefficients(
        [(term, None) for term in terms], restore @ fit.coefficients, covariance,
        options.confidence,
    )  # fmt: skip
    return model.result("linear", outcome, table, covariance, remarks)


def _check_outcome(answerer: Answerer, outcome: str, features: Sequence[str]) -> None:
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
    if kinds[outcome] not in NUMBERS:
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


def _outcome_numbers(answerer: Answerer, outcome: str, rows: ModelRows) -> Floats:
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
