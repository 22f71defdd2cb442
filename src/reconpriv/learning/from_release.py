"""The cross tables that naive Bayes needs, from the cells of a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.ask.comparisons import check_distinct, unknown_column
from reconpriv.ask.selections import Selected
from reconpriv.errors import InputError
from reconpriv.learning.distributions import (
    CrossTable,
    exact_table,
    release_table,
    sensitive_counts,
)
from reconpriv.theory.arrays import Floats, Ints

if TYPE_CHECKING:
    from reconpriv.release.release import Release


@dataclass(frozen=True)
class LearnedTables:
    """What a classifier learns from a release; ``sensitive`` is the randomised feature, if any.

    If the randomised column is not used, the records are as good as raw: retention 1.
    """

    retention: float
    domain: list[Any] | None
    sensitive: str | None
    features: list[str]
    classes: list[Any]
    class_counts: Floats
    categories: list[list[Any]]
    tables: list[CrossTable]


def learn_tables(
    release: Release,
    target: str | None,
    features: Sequence[str] | None,
    where: str | None,
    *,
    margins: bool = True,
) -> LearnedTables:
    """One cross table of target and feature for every feature."""
    answerer = release.answerer
    sensitive = answerer.cells.schema.sensitive.name
    names = release.column_names()
    target = sensitive if target is None else target
    chosen = _features(names, target, features)
    selected = public_selection(answerer, where)
    by = [] if target == sensitive else [target]
    keys, sums = answerer.sums_by_value(selected, by, margins=margins)
    if target == sensitive:
        class_counts = sensitive_counts(sums.observed.sum(axis=0), answerer.design.retention)
    else:
        class_counts = _spread(sums.records[:, None], keys, len(answerer.known[target]))[:, 0]
    if not class_counts.sum() > 0:
        raise InputError("No record satisfies the condition.")
    randomised = sensitive in (target, *chosen)
    return LearnedTables(
        retention=answerer.design.retention if randomised else 1.0,
        domain=list(answerer.cells.schema.domain) if randomised else None,
        sensitive=sensitive if sensitive in chosen else None,
        features=chosen,
        classes=list(answerer.known[target]),
        class_counts=class_counts,
        categories=[list(answerer.known[name]) for name in chosen],
        tables=[_cross_table(answerer, selected, name, target, margins) for name in chosen],
    )


def public_selection(answerer: Answerer, where: str | None, **equal: Any) -> Selected:
    """The groups that satisfy a condition, which must not involve the sensitive attribute."""
    selected = answerer.select(where, equal)
    if selected.values is not None:
        name = answerer.cells.schema.sensitive.name
        raise InputError(
            f"The condition restricts the sensitive column {name!r}, which is randomised: a model"
            " cannot tell which records satisfy it.",
            hint="Condition on public columns, or ask for shares and averages by GROUP BY, which"
            " take such a condition.",
        )
    return selected


def _features(names: list[str], target: str, features: Sequence[str] | None) -> list[str]:
    """The columns to learn from: those named, or all but the target."""
    if isinstance(features, str):
        features = [features]
    chosen = [name for name in names if name != target] if features is None else list(features)
    for name in (target, *chosen):
        if name not in names:
            raise unknown_column(name, names)
    check_distinct(chosen)
    if target in chosen:
        raise InputError(f"Column {target!r} is both the target and a feature.")
    if not chosen:
        raise InputError("There is no feature to learn from.", hint="Name at least one column.")
    return chosen


def _cross_table(
    answerer: Answerer, selected: Selected, name: str, target: str, margins: bool
) -> CrossTable:
    """A feature given the target: a row for each of its values, a column for each class."""
    sensitive, known = answerer.cells.schema.sensitive.name, answerer.known
    if sensitive not in (name, target):
        # Sizes are exact: margins have nothing to add.
        pairs, sums = answerer.sums_by_value(selected, [name, target], margins=False)
        counts = np.zeros((len(known[name]), len(known[target])))
        counts[pairs[0], pairs[1]] = sums.records
        return exact_table(counts)
    public = name if target == sensitive else target
    keys, sums = answerer.sums_by_value(selected, [public], margins=margins)
    found = release_table(sums, answerer.design)
    both = [_spread(one, keys, len(known[public])) for one in (found.counts, found.variances)]
    return CrossTable(*(both if target == sensitive else (one.T for one in both)))


def _spread(rows: Floats, keys: Ints, values: int) -> Floats:
    """Put rows of the values that occur at the positions of all values."""
    table = np.zeros((values, rows.shape[1]))
    table[keys[0]] = rows
    return table
