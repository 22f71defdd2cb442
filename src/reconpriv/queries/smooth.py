"""The smoothed count: the unbiased one, leaning on a main-effects model where that is precise.

The areas of a question are the combinations of the public columns that it names, over the whole
release: they are what the model is fitted to and judged by (theory.small_areas). An answer that the
model would not improve, or that fails the model's own tests, is refused. In a table or a batch such
a row is answered by the unbiased count and says so, unless no row is left to be smoothed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from reconpriv.core.cube import Cube, combinations
from reconpriv.core.protected_cube import ProtectedCube
from reconpriv.errors import InputError
from reconpriv.queries import estimate as est
from reconpriv.queries.estimate import Estimate
from reconpriv.queries.impossible import IMPOSSIBLE, impossible
from reconpriv.queries.sql_text import quoted_names
from reconpriv.theory.arrays import Ints
from reconpriv.theory.small_areas import (
    Composite,
    Layout,
    departure,
    main_effects,
    possible_totals,
)

if TYPE_CHECKING:
    from reconpriv.core.cube import Sums
    from reconpriv.queries.answer import Answerer, Selected, Settings
    from reconpriv.queries.estimate import Design

MODEL = (
    "leans on a model without interactions of {columns}: the interval holds on average over the"
    " combinations of these columns, not for each of them"
)
NOT_SMOOTHED = "answered without smoothing: {reason}"
HINT = "Use the estimator 'mle'."

_LEAST_FREEDOM = 10  # combinations beyond the parameters, to judge the model by
_MOST_PARAMETERS = 1_500  # of which a matrix is inverted
_ROUNDS = 4  # of fitting the model and weighing the areas by what it leaves
_FAR = 3.0  # standard errors between an area and the model
_LARGEST_ERROR = 0.9  # of the variance without the model: its use has to be worth its assumption
# The combinations that people ask about, and those with much to gain, depart more than the average
# one: without this allowance squared errors were 1.2 times what was promised (tools/smooth_tables).
_CAUTION = 1.5
_FAR_SHARE = 0.01  # of the areas may be so far; 0.3 % are, if departures are normal


@dataclass(frozen=True)
class Areas:
    """The areas of some public columns, with the direct and the composite count of some values.

    ``cube`` has a group for every area, by the codes of these columns. ``composite`` is None, and
    ``reason`` says why, if the model cannot be used for any area.
    """

    cube: Cube
    columns: tuple[str, ...]
    composite: Composite | None
    reason: str = ""


@dataclass(frozen=True)
class Question:
    """A direct answer, and the areas that it adds up."""

    direct: Estimate
    areas: Areas
    members: Ints


def smoothed(
    answerer: Answerer,
    selected: Selected,
    by: Sequence[str],
    settings: Settings,
    rows: list[tuple[dict[str, object], Estimate]],
) -> list[tuple[dict[str, object], Estimate]]:
    """The rows of a table, each with its composite count in place of the direct one."""
    check_release(answerer)
    questions = _of_table(answerer, selected, by, [one for _, one in rows])
    answers = _answered(questions, [one for _, one in rows], settings)
    return [(labels, one) for (labels, _), one in zip(rows, answers, strict=True)]


def smoothed_many(
    answerer: Answerer, queries: Sequence[Selected], settings: Settings, direct: list[Estimate]
) -> list[Estimate]:
    """The same for many counts; those about the same columns and values share their model."""
    check_release(answerer)
    named = [(_attributes(answerer, query, ()), query.values or ()) for query in queries]
    questions: list[Question | None] = [None] * len(queries)
    key, areas = None, None
    for i in sorted(range(len(queries)), key=lambda i: named[i]):
        if direct[i].exact:
            continue
        if areas is None or key != named[i]:
            key, areas = named[i], _areas(answerer, *named[i])
        members = np.flatnonzero(answerer.mask(queries[i], areas.cube))
        questions[i] = Question(direct[i], areas, members)
    return _answered(questions, direct, settings)


def check_release(answerer: Answerer) -> None:
    """Refuse a release whose groups have no known variances of their own."""
    if not answerer.design.sampling.trials_known:
        raise InputError(
            "Smoothing weighs counts by their variances, and a release made with sample size"
            f" {answerer.design.sample_size!r} keeps secret what they rest on.",
            hint=HINT,
        )
    if isinstance(answerer.cells, ProtectedCube):
        raise InputError(
            "Smoothing compares combinations of public values, and this release knows only those"
            " of its protection groups.",
            hint=HINT,
        )


def _answered(
    questions: Sequence[Question | None], direct: list[Estimate], settings: Settings
) -> list[Estimate]:
    """Smooth what can be; refuse if that is nothing at all. Exact answers stay as they are."""
    answers, reasons, done = list(direct), [], False
    for i, one in enumerate(questions):
        if one is None or one.direct.exact:
            continue
        found = _smooth(one, settings)
        if isinstance(found, Estimate):
            answers[i], done = found, True
        else:
            reasons.append(found)
            remark = NOT_SMOOTHED.format(reason=found)
            answers[i] = replace(one.direct, remarks=(*one.direct.remarks, remark))
    if reasons and not done:
        rows = "This" if len(questions) == 1 else "No row of this"
        verb = "cannot" if len(questions) == 1 else "can"
        raise InputError(f"{rows} {verb} be smoothed: {reasons[0]}.", hint=HINT)
    return answers


def _of_table(
    answerer: Answerer, selected: Selected, by: Sequence[str], direct: list[Estimate]
) -> list[Question | None]:
    """The question of every row: combinations of public values, by sensitive value if asked."""
    sensitive = answerer.cells.schema.sensitive.name
    public = [name for name in by if name != sensitive]
    names = [column.name for column in answerer.cells.schema.public]
    attributes = _attributes(answerer, selected, public)
    values: list[tuple[int, ...]] = [selected.values or ()]
    if sensitive in by:
        every = range(answerer.design.domain_size)
        values = [(one,) for one in (every if selected.values is None else selected.values)]
    elif all(one.exact for one in direct):
        return [None] * len(direct)
    columns = []
    for some in values:
        areas = _areas(answerer, attributes, some)
        inside = answerer.mask(selected, areas.cube)
        keys, row = combinations(areas.cube, [names.index(name) for name in public], inside)
        order = np.argsort(row, kind="stable")
        ends = np.searchsorted(row[order], np.arange(keys.shape[1] + 1))
        columns.append((areas, [order[a:b] for a, b in pairwise(ends)]))
    places = [(areas, rows[i]) for i in range(len(columns[0][1])) for areas, rows in columns]
    return [
        Question(one, areas, members) for one, (areas, members) in zip(direct, places, strict=True)
    ]


def _attributes(answerer: Answerer, selected: Selected, by: Sequence[str]) -> tuple[int, ...]:
    """The public columns that a question names."""
    names = [column.name for column in answerer.cells.schema.public]
    used = {*selected.equalities, *(index for index, _ in selected.members)}
    used |= {names.index(name) for name in by}
    for condition in selected.conditions:
        used |= {names.index(name) for name in quoted_names(condition) if name in names}
    return tuple(sorted(used))


def _areas(answerer: Answerer, attributes: tuple[int, ...], values: tuple[int, ...]) -> Areas:
    """Every combination of some columns in the release, with the model of some values."""
    columns = tuple(answerer.cells.schema.public[i].name for i in attributes)
    codes, sums = answerer.area_sums(list(columns), values)
    cube = _as_cube(answerer, attributes, codes, sums)
    reason, composite = "", None
    if len(attributes) < 2:
        reason = "it takes conditions on two public columns or more"
    else:
        layout = Layout.of(codes)
        freedom = layout.areas - layout.free
        if freedom < _LEAST_FREEDOM:
            reason = f"{_listed(columns)} have too few combinations to judge a model by"
        elif layout.parameters > _MOST_PARAMETERS:
            reason = f"{_listed(columns)} have too many values for a model"
        else:
            composite = fit_areas(layout, sums, values, answerer.design)
            reason = _failure(composite, columns)
    return Areas(cube, columns, None if reason else composite, reason)


def _as_cube(answerer: Answerer, attributes: tuple[int, ...], codes: Ints, sums: Sums) -> Cube:
    """Areas in the form of groups, for conditions to be evaluated on; other columns are not set."""
    unset = np.zeros(sums.records.size, dtype=np.int32)
    public = [unset] * len(answerer.cells.schema.public)
    for line, attribute in zip(codes, attributes, strict=True):
        public[attribute] = line.astype(np.int32)
    none = np.zeros(0, dtype=np.int64)
    records = sums.records.astype(np.int64)
    return Cube(
        schema=answerer.cells.schema,
        codes=tuple(public),
        values=answerer.cells.values,
        records=records,
        trials=sums.trials,
        group=none,
        value=none,
        count=none,
    )


def fit_areas(
    layout: Layout, sums: Sums, values: tuple[int, ...], design: Design
) -> Composite | None:
    """Fit the model and weigh the areas by what it leaves, in turn; None if it does not settle."""
    size, rounded = len(values), est.runs(values, design.domain_size)
    records = sums.records
    direct = est.mle_counts(sums, size, design)
    variance = est.count_variances(sums, size, rounded, design)
    weight = np.ones(records.size)
    found = None
    for _ in range(_ROUNDS):
        totals = possible_totals(
            layout, weight * records, weight * direct, layout.sums(weight**2 * variance)
        )
        shares = main_effects(layout, weight * records, totals)
        if shares is None:
            return None
        synthetic = records * shares
        variance = est.variances_at(sums, shares, size, rounded, design)
        binomial = synthetic * (1.0 - shares)
        left = departure(direct - synthetic, variance, binomial, layout.areas - layout.free)
        found = Composite(layout, direct, synthetic, variance, binomial, left)
        weight = binomial / (variance + found.model)
    return found


def _failure(found: Composite | None, columns: tuple[str, ...]) -> str:
    """Why the model is not to be used for any area; empty if it may be."""
    if found is None:
        return f"no model fits the combinations of {_listed(columns)}"
    if found.departure.strong > 0.5:
        return f"{_listed(columns)} interact too strongly for the model"
    far = int(np.sum(np.abs(found.departures) > _FAR))
    if far > 1 + _FAR_SHARE * found.layout.areas:
        return (
            f"{far:,} of {found.layout.areas:,} combinations of {_listed(columns)} are more than"
            f" {_FAR:g} standard errors from the model"
        )
    return ""


def _smooth(one: Question, settings: Settings) -> Estimate | str:
    """The composite answer, or why there is none."""
    found = one.areas.composite
    if found is None:
        return one.areas.reason
    if abs(found.departure_of(one.members)) > _FAR:
        return f"this count is more than {_FAR:g} standard errors from the model"
    error = found.mean_squared_error(one.members, _CAUTION)
    alone = float(found.variance[one.members].sum())
    if not error <= _LARGEST_ERROR * alone:
        return "the model would hardly make this count more precise"
    count = float(found.counts[one.members].sum())
    records = float(one.direct.records)
    half = est.quantile(settings.confidence, settings.intervals) * float(np.sqrt(error))
    centre = min(max(count, 0.0), records)
    remarks = [mark for mark in one.direct.remarks if mark not in IMPOSSIBLE]
    remarks += impossible(count, 0.0, records)
    remarks.append(MODEL.format(columns=_listed(one.areas.columns)))
    return replace(
        one.direct,
        count=count,
        low=max(centre - half, 0.0),
        high=min(centre + half, records),
        standard_error=float(np.sqrt(error)),
        estimator=settings.estimator,
        remarks=tuple(remarks),
        mean_squared_error=error,
        from_model=1.0 - error / alone,
    )


def _listed(columns: Sequence[str]) -> str:
    *first, last = columns
    return f"{', '.join(first)} and {last}" if first else last
