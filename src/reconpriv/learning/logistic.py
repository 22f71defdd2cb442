"""Logistic regression of the sensitive attribute on public ones, corrected for the publication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from reconpriv.errors import InputError
from reconpriv.learning.model_rows import (
    Classes,
    ModelRows,
    answerer_of,
    check_reference,
    classes_of,
    encoded,
    gather,
    remarks_of,
    selection,
)
from reconpriv.learning.regression import Regression, coefficients
from reconpriv.learning.terms import Encodings, Feature, read_features, shown
from reconpriv.queries.answer import Answerer
from reconpriv.queries.estimate import check_confidence
from reconpriv.schema import Value
from reconpriv.theory.arrays import Floats
from reconpriv.theory.class_counts import ClassCounts
from reconpriv.theory.regression import Fit, fit_logistic

if TYPE_CHECKING:
    from reconpriv.release.release import Release

_REST = "any other"


def logistic(
    release: Release,
    target: Value,
    features: Sequence[str] | str,
    where: str | None = None,
    *,
    merge: Mapping[str, Sequence[Value]] | None = None,
    reference: Mapping[str, Value] | None = None,
    confidence: float = 0.95,
    **equal: Value,
) -> Regression:
    """The logistic regression that the original records would have: see ``Release.logistic``."""
    check_confidence(confidence)
    answerer = answerer_of(release, [])
    wanted = _features(release, answerer, features)
    multinomial = isinstance(target, str) and target == answerer.cells.schema.sensitive.name
    selected = selection(answerer, where, equal)
    rows = gather(answerer, selected, [one.column for one in wanted])
    fixed = dict(reference or {})
    classes = _classes(answerer, target, multinomial, merge, fixed, rows)
    categories = [one.column for one in wanted if not one.numeric]
    check_reference(
        fixed, [*categories, answerer.cells.schema.sensitive.name] if multinomial else categories
    )
    encodings, x = encoded(answerer, wanted, rows, rows.codes, fixed, len(classes.labels) - 1)
    counts = rows.counts.merged(classes.members)
    name = answerer.cells.schema.sensitive.name
    check_separation(encodings, x, counts, classes.labels, name)
    fit = fit_logistic(x, counts)
    if not fit.converged:
        raise separated(f"some combination of {', '.join(categories) or 'the features'}")
    estimates, covariance = restored(fit, encodings)
    labels = classes.labels[:-1] if multinomial else (None,)
    terms = [(term.name, label) for label in labels for term in encodings.terms]
    said = {part.feature.column: part.values[part.reference] for part in encodings.parts
            if not part.feature.numeric}  # fmt: skip
    if multinomial:
        said[name] = classes.labels[-1]
    return Regression(
        kind="multinomial" if multinomial else "logistic",
        outcome=name if multinomial else f"{name} = {_words(target)}",
        features=tuple(one.column for one in wanted),
        condition=selected.text,
        coefficients=coefficients(terms, estimates, covariance, confidence),
        covariance=covariance,
        reference=said,
        confidence=confidence,
        records=int(rows.sums.records.sum()),
        groups=int(rows.sums.groups.sum()),
        trials=float(rows.sums.trials.sum()),
        remarks=tuple(remarks_of(release, selected, answerer.design)),
    )


def _features(release: Release, answerer: Answerer, features: Sequence[str] | str) -> list[Feature]:
    answerer_of(release, [features] if isinstance(features, str) else features)
    found = read_features(features, answerer)
    sensitive = answerer.cells.schema.sensitive.name
    if any(one.column == sensitive for one in found):
        raise InputError(f"Column {sensitive!r} is both the target and a feature.")
    return found


def _classes(
    answerer: Answerer,
    target: Value,
    multinomial: bool,
    merge: Mapping[str, Sequence[Value]] | None,
    reference: Mapping[str, Value],
    rows: ModelRows,
) -> Classes:
    """The classes of the target: all values, or the named ones against the rest."""
    schema = answerer.cells.schema
    name = schema.sensitive.name
    if multinomial:
        return classes_of(answerer, merge, reference, rows.counts.counts.sum(axis=0))
    if merge:
        raise InputError(
            "Values are merged only if the target is the sensitive column.",
            hint="A target may be a list of values.",
        )
    public = [column.name for column in schema.public]
    if isinstance(target, str) and target in public and target not in schema.domain:
        raise InputError(
            f"The target {target!r} is a public column; a logistic regression explains the"
            f" sensitive column {name!r} or its values.",
        )
    if not isinstance(target, str) and isinstance(target, Sequence | set | frozenset):
        target = list(target)
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
    encodings: Encodings, x: Floats, counts: ClassCounts, labels: Sequence[Value], name: str
) -> None:
    """Refuse counts that no finite coefficient has: none, or all, of the records with a value."""
    totals = counts.counts.sum(axis=0)
    _refuse(name, labels, totals, "the selected records")
    terms = encodings.terms
    for part in encodings.parts:
        column = part.feature.column
        places = {
            term.value: i for i, term in enumerate(terms) if term.column == column and term.category
        }
        rest = totals
        for value, place in places.items():
            found = x[:, place] @ counts.counts
            rest = rest - found
            _refuse(name, labels, found, f"records with {column} = {shown(value)}")
        if places:
            first = shown(part.values[part.reference])
            _refuse(name, labels, rest, f"records with {column} = {first}")


def _refuse(name: str, labels: Sequence[Value], found: Floats, among: str) -> None:
    if found.min() > 0:
        return
    which = int(found.argmin())
    raise separated(
        f"among {among} the release suggests {found[which]:,.0f} with {name} ="
        f" {shown(labels[which])}"
    )


def separated(what: str) -> InputError:
    """The error for a model without a finite fit."""
    return InputError(
        f"There is no finite fit (separation): {what}.",
        hint="Merge rare values, leave a feature out, or select other records.",
    )


def restored(fit: Fit, encodings: Encodings) -> tuple[Floats, Floats]:
    """Coefficients of the numbers as they are, class by class, and their covariance."""
    back = encodings.restoring()
    whole = np.kron(np.eye(fit.coefficients.shape[1]), back)
    estimates = (back @ fit.coefficients).T.ravel()
    return estimates, np.asarray(whole @ fit.covariance @ whole.T)


def _words(target: Value) -> str:
    if isinstance(target, list | tuple | set | frozenset):
        return " or ".join(map(shown, target))
    return shown(target)
