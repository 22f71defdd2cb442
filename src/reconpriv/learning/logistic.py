"""Logistic regression of the sensitive attribute on public ones, corrected for the publication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from reconpriv.errors import InputError
from reconpriv.given_values import given_values
from reconpriv.learning.from_release import public_selection
from reconpriv.learning.model_rows import (
    Classes,
    answerer_of,
    check_reference,
    classes_of,
    encoded,
    gather,
    on_groups,
    remarks_of,
)
from reconpriv.learning.regression import OPEN, Regression, coefficients
from reconpriv.learning.terms import Encodings, Feature, read_features, shown
from reconpriv.messages.arguments import checked
from reconpriv.queries.answer import Answerer, Selected
from reconpriv.queries.estimate import check_confidence
from reconpriv.schema import Value
from reconpriv.theory.arrays import Floats
from reconpriv.theory.class_counts import Evidence
from reconpriv.theory.regression import fit_logistic, level_counts, move_logistic

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
    answerer = answerer_of(release, [features] if isinstance(features, str) else features)
    selected = public_selection(answerer, where, **equal)
    found = logistic_of(
        answerer, target, features, selected,
        merge=merge, reference=reference, confidence=confidence, margins=margins,
    )  # fmt: skip
    return on_groups(release, found)


def logistic_of(
    answerer: Answerer,
    target: Value,
    features: Sequence[str] | str,
    selected: Selected,
    *,
    merge: Mapping[str, Sequence[Value]] | None = None,
    reference: Mapping[str, Value] | None = None,
    confidence: float = 0.95,
    margins: bool = True,
) -> Regression:
    """The same on the cells of a release."""
    check_confidence(confidence)
    wanted = logistic_features(answerer, features)
    multinomial = isinstance(target, str) and target == answerer.cells.schema.sensitive.name
    rows = gather(answerer, selected, [one.column for one in wanted], margins=margins)
    fixed = dict(reference or {})
    if multinomial:
        classes = classes_of(answerer, merge, fixed, rows.counts.counts.sum(axis=0))
    elif merge:
        raise InputError(
            "Values are merged only if the target is the sensitive column.",
            hint="A target may be a list of values.",
        )
    else:
        classes = target_classes(answerer, target)
    categories = [one.column for one in wanted if not one.numeric]
    check_reference(
        fixed, [*categories, answerer.cells.schema.sensitive.name] if multinomial else categories
    )
    encodings, x = encoded(answerer, wanted, rows, rows.codes, fixed, len(classes.labels) - 1)
    counts = rows.evidence(classes.members)
    name = answerer.cells.schema.sensitive.name
    levels = check_separation(encodings, x, counts, classes.labels, name)
    fit = fit_logistic(x, counts)
    if not fit.converged:
        raise separated(f"some combination of {', '.join(categories) or 'the features'}")
    back = np.kron(np.eye(len(classes.labels) - 1), encodings.restoring())
    estimates = back @ fit.coefficients.T.ravel()
    covariance = back @ fit.covariance @ back.T
    labels = classes.labels[:-1] if multinomial else (None,)
    terms = [(term.name, label) for label in labels for term in encodings.terms]
    said = {part.feature.column: part.values[part.reference] for part in encodings.parts
            if not part.feature.numeric}  # fmt: skip
    if multinomial:
        said[name] = classes.labels[-1]
    scales = np.tile(encodings.scales(), len(classes.labels) - 1)
    table = coefficients(
        terms, estimates, covariance, confidence,
        move=lambda i, errors: move_logistic(x, counts.records, fit, back[i], errors, levels),
        rough=np.sqrt(np.maximum(np.diag(covariance), 0.0)) * scales > _ROUGH,
    )  # fmt: skip
    remarks = remarks_of(answerer, selected, margins=margins)
    if any(np.isinf([one.low, one.high]).any() for one in table):
        remarks.append(OPEN)
    return Regression(
        kind="multinomial" if multinomial else "logistic",
        outcome=name if multinomial else f"{name} = {_words(target)}",
        features=tuple(one.text for one in wanted),
        condition=selected.text,
        coefficients=table,
        covariance=covariance,
        reference=said,
        confidence=confidence,
        records=int(rows.sums.records.sum()),
        groups=int(rows.sums.groups.sum()),
        trials=float(rows.sums.trials.sum()),
        remarks=tuple(remarks),
        margins=rows.margins,
    )


def logistic_features(answerer: Answerer, features: Sequence[str] | str) -> list[Feature]:
    """The features of a model that explains the sensitive column."""
    found = read_features(features, answerer)
    sensitive = answerer.cells.schema.sensitive.name
    if any(one.column == sensitive for one in found):
        raise InputError(f"Column {sensitive!r} is both the target and a feature.")
    return found


def target_classes(answerer: Answerer, target: Value) -> Classes:
    """The named values of the sensitive column, and the rest as the reference."""
    schema = answerer.cells.schema
    name = schema.sensitive.name
    public = [column.name for column in schema.public]
    if isinstance(target, str) and target in public and target not in schema.domain:
        raise InputError(
            f"The target {target!r} is a public column; a logistic regression explains the"
            f" sensitive column {name!r} or its values.",
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


def check_separation(
    encodings: Encodings, x: Floats, counts: Evidence, labels: Sequence[Value], name: str
) -> Floats:
    """Refuse counts that no finite coefficient has: none of the records with a value in a class.

    Returns the indicators of the values.
    """
    names, levels = encodings.levels()
    everybody = np.eye(x.shape[1])[:1]
    levels = np.vstack([everybody, levels])
    wanted = counts.totals(x)[:, :-1]
    found = level_counts(x, counts.records, wanted, levels)
    row, which = np.unravel_index(found.argmin(), found.shape)
    if found[row, which] <= 0:
        among = "the selected records"
        if row > 0:
            column, value = names[int(row) - 1]
            among = f"records with {column} = {shown(value)}"
        raise separated(
            f"among {among} the release suggests {found[row, which]:,.0f} with {name} ="
            f" {shown(labels[int(which)])}"
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
