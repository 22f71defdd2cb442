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
    if target == sensitive:
        classes = list(answerer.cells.schema.domain)
        class_counts, tables = _of_sensitive(answerer, selected, chosen, margins)
    else:
        classes = list(answerer.known[target])
        class_counts, tables = _of_public(answerer, selected, target, chosen, margins)
    if not class_counts.sum() > 0:
        raise InputError("No record satisfies the condition.")
    randomised = sensitive in (target, *chosen)
    return LearnedTables(
        retention=answerer.design.retention if randomised else 1.0,
        domain=list(answerer.cells.schema.domain) if randomised else None,
        sensitive=sensitive if sensitive in chosen else None,
        features=chosen,
        classes=classes,
        class_counts=class_counts,
        categories=[list(answerer.known[name]) for name in chosen],
        tables=tables,
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


def _of_sensitive(
    answerer: Answerer, selected: Selected, features: list[str], margins: bool
) -> tuple[Floats, list[CrossTable]]:
    """The sensitive attribute given public ones."""
    _, whole = answerer.sums_by_value(selected, [], margins=margins)
    class_counts = sensitive_counts(whole.observed.sum(axis=0), answerer.design.retention)
    tables = []
    for name in features:
        keys, sums = answerer.sums_by_value(selected, [name], margins=margins)
        table = release_table(sums, answerer.design)
        values = len(answerer.known[name])
        tables.append(
            CrossTable(_spread(table.counts, keys, values), _spread(table.variances, keys, values))
        )
    return class_counts, tables


def _of_public(
    answerer: Answerer, selected: Selected, target: str, features: list[str], margins: bool
) -> tuple[Floats, list[CrossTable]]:
    """A public attribute given others and the sensitive one."""
    keys, by_class = answerer.sums_by_value(selected, [target], margins=margins)
    classes = len(answerer.known[target])
    class_counts = _spread(by_class.records[:, None], keys, classes)[:, 0]
    tables = []
    for name in features:
        if name == answerer.cells.schema.sensitive.name:
            table = release_table(by_class, answerer.design)
            tables.append(
                CrossTable(
                    _spread(table.counts, keys, classes).T,
                    _spread(table.variances, keys, classes).T,
                )
            )
            continue
        # Sizes are exact: margins have nothing to add.
        pairs, sums = answerer.sums_by_value(selected, [name, target], margins=False)
        counts = np.zeros((len(answerer.known[name]), classes))
        counts[pairs[0], pairs[1]] = sums.records
        tables.append(exact_table(counts))
    return class_counts, tables


def _spread(rows: Floats, keys: Ints, values: int) -> Floats:
    """Put rows of the values that occur at the positions of all values."""
    table = np.zeros((values, rows.shape[1]))
    table[keys[0]] = rows
    return table
