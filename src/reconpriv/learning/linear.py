"""Linear regression of a public number, with the sensitive attribute among the predictors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from reconpriv.errors import InputError
from reconpriv.learning.from_release import public_selection
from reconpriv.learning.model_rows import (
    Classes,
    ModelRows,
    answerer_of,
    check_reference,
    check_size,
    classes_of,
    encoded,
    gather,
    on_groups,
    remarks_of,
)
from reconpriv.learning.regression import EXACT, Regression, coefficients
from reconpriv.learning.terms import NUMERIC, Term, as_numbers, read_features, shown
from reconpriv.messages.arguments import checked
from reconpriv.queries.answer import Answerer, Selected
from reconpriv.queries.estimate import check_confidence, coin_flips
from reconpriv.queries.measures import has_numbers
from reconpriv.queries.sql import unknown_column
from reconpriv.queries.sql_text import written_name
from reconpriv.schema import Schema, Value
from reconpriv.theory.arrays import Floats
from reconpriv.theory.class_counts import Evidence
from reconpriv.theory.regression import fit_linear

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
    answerer = answerer_of(release, [outcome, *named])
    selected = public_selection(answerer, where, **equal)
    found = linear_of(
        answerer, outcome, named, selected,
        merge=merge, reference=reference, confidence=confidence, margins=margins,
    )  # fmt: skip
    return on_groups(release, found)


def linear_of(
    answerer: Answerer,
    outcome: str,
    features: Sequence[str],
    selected: Selected,
    *,
    merge: Mapping[str, Sequence[Value]] | None = None,
    reference: Mapping[str, Value] | None = None,
    confidence: float = 0.95,
    margins: bool = True,
) -> Regression:
    """The same on the cells of a release."""
    check_confidence(confidence)
    schema = answerer.cells.schema
    wanted = read_features(features, answerer)
    check_outcome(answerer, outcome, [one.column for one in wanted])
    sensitive = schema.sensitive.name
    public = [one for one in wanted if one.column != sensitive]
    used = len(public) < len(wanted)
    columns = [*(one.column for one in public), outcome]
    rows = gather(answerer, selected, columns, margins=margins and used)
    fixed = dict(reference or {})
    categories = [one.column for one in public if not one.numeric]
    check_reference(fixed, [*categories, sensitive] if used else categories)
    classes = Classes((), np.ones((1, schema.domain_size)))
    if used:
        classes = classes_of(answerer, merge, fixed, rows.counts.counts.sum(axis=0))
    elif merge:
        raise InputError(f"Values of {sensitive!r} are merged, but it is not a feature.")
    encodings, x = encoded(answerer, public, rows, rows.codes[:-1], fixed)
    check_size(len(encodings.terms) + len(classes.labels), 1, rows.sums.records.size)
    numbers = outcome_numbers(answerer, outcome, rows)
    counts = rows.evidence(classes.members)
    if used:
        _check_clear(counts, classes.labels, sensitive)
    fit = fit_linear(x, numbers, counts)
    if not fit.converged:
        raise InputError(
            f"The release is too noisy to tell the values of {sensitive!r} apart in this model.",
            hint="Merge its rare values, leave features out, or select more records.",
        )
    restore = np.eye(fit.coefficients.size)
    k = len(encodings.terms)
    restore[:k, :k] = encodings.restoring()
    covariance = restore @ fit.covariance @ restore.T if used else np.zeros_like(restore)
    terms = [term.name for term in encodings.terms]
    terms += [Term(sensitive, label, category=True).name for label in classes.labels[:-1]]
    said = {part.feature.column: part.values[part.reference] for part in encodings.parts
            if not part.feature.numeric}  # fmt: skip
    remarks = remarks_of(answerer, selected, margins=margins)
    if used:
        said[sensitive] = classes.labels[-1]
    else:
        coins = answerer.design.sampling.coins
        remarks = [coin_flips(answerer.design.sampling) if coins else EXACT, *selected.remarks]
    return Regression(
        kind="linear",
        outcome=outcome,
        features=tuple(one.text for one in wanted),
        condition=selected.text,
        coefficients=coefficients(
            [(term, None) for term in terms], restore @ fit.coefficients, covariance, confidence
        ),
        covariance=covariance,
        reference=said,
        confidence=confidence,
        records=int(rows.sums.records.sum()),
        groups=int(rows.sums.groups.sum()),
        trials=float(rows.sums.trials.sum()),
        remarks=tuple(remarks),
        margins=rows.margins,
    )


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


def _check_clear(counts: Evidence, labels: Sequence[Value], name: str) -> None:
    """Refuse a class that may as well have no member: its coefficient would divide by noise."""
    totals = counts.whole()
    errors = counts.errors()
    short = np.flatnonzero(totals < _CLEAR * errors)
    if short.size:
        i = int(short[np.argmin((totals / np.maximum(errors, 1e-300))[short])])
        raise InputError(
            f"The value {shown(labels[i])} of {name!r} is too rare for this release: it suggests"
            f" {totals[i]:,.0f} ± {errors[i]:,.0f} such records.",
            hint="Merge it with others, or select more records.",
        )
