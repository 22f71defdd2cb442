"""Counts that lean on a model: that no two public columns act on the sensitive one jointly.

This is a composite estimator. The direct one is the unbiased count of a question; the synthetic one
is that of a model (theory.main_effects), fitted once to the marginals of the sensitive values by
each public column. How far true counts are from the model is judged for each set of public columns
by all its cells, and theory.shrinkage weighs the two estimates accordingly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from reconpriv.answers.figure import IMPOSSIBLE
from reconpriv.ask.sql.text import quoted_names
from reconpriv.cells.cube import Cube, combinations
from reconpriv.errors import InputError
from reconpriv.estimate import counts as est
from reconpriv.estimate.counts import Estimate
from reconpriv.estimate.set_counts import SetCounts
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.estimation.shrinkage import estimated_departure, model_error, shrunk
from reconpriv.theory.margins.main_effects import main_effects, positive_counts

if TYPE_CHECKING:
    from reconpriv.answers.answerer import Answerer
    from reconpriv.ask.selections import Selected

LEANS = (
    "leans on a model: that each public column shifts the sensitive value in the same way whatever"
    " the others are"
)
WITHOUT_MODEL = "answered without the model: {reason}"
HINT = "Use the estimator 'mle'."
_ONE_COLUMN = WITHOUT_MODEL.format(reason="it takes conditions on two public columns or more")
_JOINTLY = WITHOUT_MODEL.format(reason="these columns act on the sensitive value jointly")
_NO_GAIN = WITHOUT_MODEL.format(reason="it would not make this count more precise")
_LARGEST_DEPARTURE = 1.0  # σ² at which odds are typically off by a factor of e; usual is below 0.5
# Estimated margins never agree to the last digit, so the fit need not go on until they do.
_TOLERANCE, _ROUNDS = 1e-4, 30


@dataclass(frozen=True)
class Model:
    """The model of a release: how many records of each group it expects to hold each value.

    For each public column, ``places`` has the row of every group, and ``doubts`` the variance of a
    row's counts relative to their squares. ``departures`` keeps σ² of sets of columns.
    """

    cube: Cube
    counts: Floats
    places: tuple[Ints, ...]
    doubts: tuple[Floats, ...]
    departures: dict[tuple[int, ...], float] = field(default_factory=dict, repr=False)

    def departure(self, answerer: Answerer, attributes: tuple[int, ...]) -> float:
        """σ² of a set of columns, from the records alone in all their combinations."""
        if attributes not in self.departures:
            _, cell = combinations(self.cube, attributes, np.ones(self.cube.groups, dtype=bool))
            sums = answerer.every_sums(attributes, margins=False)
            found = SetCounts(sums, answerer.design)
            expected = _added(self.counts, cell, sums.records.size)
            shared = np.zeros_like(expected)
            for attribute in attributes:
                row = _of_cells(self.places[attribute], cell, sums.records.size)
                shared += self.doubts[attribute][row] * expected**2
            self.departures[attributes] = estimated_departure(
                found.number - expected,
                found.variances,
                shared,
                _binomial(expected, sums.records[:, None]),
            )
        return self.departures[attributes]


def fit_model(answerer: Answerer) -> Model:
    """Fit the model to a release that is held in memory and whose counts have known variances."""
    cube, design = answerer.cells, answerer.design
    if not design.sampling_rule.trials_known:
        raise InputError(
            "A model is weighed against counts by their variances, and a release made with sampling"
            f" rule {design.sampling!r} keeps secret what they rest on.",
            hint=HINT,
        )
    if not isinstance(cube, Cube):
        raise InputError(
            "A model is fitted to all groups at once, and this release has too many to be held in"
            " memory.",
            hint=HINT,
        )
    if cube.whole is not cube:
        raise InputError(
            "A model is fitted to combinations of public values, and this release knows only those"
            " of its protection groups.",
            hint=HINT,
        )
    everything = np.ones(cube.groups, dtype=bool)
    places, margins, doubts = [], [], []
    for attribute in range(len(cube.codes)):
        sums = answerer.every_sums((attribute,))
        found = SetCounts(sums, design)
        counts = positive_counts(found.number, sums.records.astype(np.int64))
        places.append(combinations(cube, [attribute], everything)[1])
        margins.append(counts)
        doubts.append(found.variances / counts**2)
    first = np.cumsum([0, *(one.shape[0] for one in margins[:-1])])
    frequencies = main_effects(
        np.stack(places, axis=1) + first, cube.records, np.concatenate(margins),
        tolerance=_TOLERANCE, most_rounds=_ROUNDS,
    )  # fmt: skip
    counts = frequencies * cube.records[:, None]
    return Model(cube, counts, tuple(places), tuple(doubts))


def lean_table(
    answerer: Answerer,
    selected: Selected,
    by: Sequence[str],
    rows: list[tuple[dict[str, object], Estimate]],
) -> list[tuple[dict[str, object], Estimate]]:
    """The rows of a table, each with its shrunk count in place of the unbiased one."""
    sensitive = answerer.cells.schema.sensitive.name
    public = [name for name in by if name != sensitive]
    sets: list[tuple[int, ...]] = [selected.values or ()]
    if sensitive in by:
        every = range(answerer.design.domain_size)
        sets = [(one,) for one in (every if selected.values is None else selected.values)]
    answers = _lean(answerer, selected, public, sets, [one for _, one in rows])
    return [(labels, one) for (labels, _), one in zip(rows, answers, strict=True)]


def lean_many(
    answerer: Answerer, queries: Sequence[Selected], unbiased: Sequence[Estimate]
) -> list[Estimate]:
    """The same for many counts."""
    return [
        _lean(answerer, query, (), [query.values or ()], [one])[0]
        for query, one in zip(queries, unbiased, strict=True)
    ]


def _lean(
    answerer: Answerer,
    selected: Selected,
    by: Sequence[str],
    sets: list[tuple[int, ...]],
    unbiased: list[Estimate],
) -> list[Estimate]:
    """Shrunk counts, for combinations of public values by sets of sensitive ones."""
    if all(one.exact for one in unbiased):
        return unbiased
    model, attributes = answerer.model, _attributes(answerer, selected, by)
    why = _ONE_COLUMN if len(attributes) < 2 else None
    if why is None and model.departure(answerer, attributes) > _LARGEST_DEPARTURE:
        why = _JOINTLY
    if why is not None:
        return [one if one.exact else with_remark(one, why) for one in unbiased]
    expected = _expected(answerer, model, selected, attributes, by, sets)
    figures = zip(unbiased, *expected.reshape(3, -1), strict=True)
    return [one if one.exact else _shrink(one, *figure) for one, *figure in figures]


def with_remark(one: Estimate, remark: str) -> Estimate:
    """An estimate with one more remark."""
    return replace(one, remarks=(*one.remarks, remark))


def _attributes(answerer: Answerer, selected: Selected, by: Sequence[str]) -> tuple[int, ...]:
    """The public columns that a question names."""
    names = [column.name for column in answerer.cells.schema.public]
    used = {*selected.equalities, *(index for index, _ in selected.members)}
    used |= {names.index(name) for name in by}
    for condition in selected.conditions:
        used |= {names.index(name) for name in quoted_names(condition) if name in names}
    return tuple(sorted(used))


def _expected(
    answerer: Answerer,
    model: Model,
    selected: Selected,
    attributes: tuple[int, ...],
    by: Sequence[str],
    sets: list[tuple[int, ...]],
) -> Floats:
    """S, E and A of theory.shrinkage: for every row, which adds up cells of columns, and set."""
    cube = model.cube
    names = [column.name for column in cube.schema.public]
    inside = answerer.mask(selected, cube)
    keys, row = combinations(cube, [names.index(name) for name in by], inside)
    cells, cell = combinations(cube, attributes, inside)
    rows, size = keys.shape[1], cells.shape[1]
    row_of = _of_cells(row, cell, size)
    records = _added(cube.records[:, None], cell, size)[:, 0]
    departure = model.departure(answerer, attributes)
    result = np.zeros((3, rows, len(sets)))
    for i, values in enumerate(sets):
        each = _added(model.counts[:, list(values)], cell, size)
        count = each.sum(axis=1)
        error = model_error(_binomial(count, records), departure)
        result[0, :, i] = np.bincount(row_of, weights=count, minlength=rows)
        result[2, :, i] = np.bincount(row_of, weights=error, minlength=rows)
        for attribute in attributes:
            place, doubt = model.places[attribute], model.doubts[attribute]
            # A row of the table may have several cells in one row of the margin.
            slot = row_of * doubt.shape[0] + _of_cells(place, cell, size)
            slots, where = np.unique(slot, return_inverse=True)
            part = _added(each, where, slots.size)
            told = (doubt[slots % doubt.shape[0]][:, list(values)] * part**2).sum(axis=1)
            result[1, :, i] += np.bincount(slots // doubt.shape[0], weights=told, minlength=rows)
    return result


def _shrink(one: Estimate, count: float, shared: float, error: float) -> Estimate:
    """An unbiased answer, shrunk; it has a mean squared error in place of an interval."""
    variance = one.standard_error**2
    found = shrunk(*(np.array([x]) for x in (one.count, count, variance, shared, error)))
    left = float(found.error[0])
    if not left < variance:
        return with_remark(one, _NO_GAIN)
    remarks = [
        est.SINGLE if mark == est.MICRO else mark for mark in one.remarks if mark not in IMPOSSIBLE
    ]
    return replace(
        one,
        value=min(max(float(found.count[0]), 0.0), float(one.records)),
        low=np.nan,
        high=np.nan,
        standard_error=float(np.sqrt(left)),
        estimator="model",
        remarks=(*remarks, LEANS),
        mean_squared_error=left,
        from_model=1.0 - left / variance,
    )


def _added(lines: Floats | Ints, cell: Ints, size: int) -> Floats:
    """Lines of numbers, added up by their cell (-1: none)."""
    inside = np.flatnonzero(cell >= 0)
    where = cell[inside]
    columns = [np.bincount(where, weights=one[inside], minlength=size) for one in lines.T]
    return np.stack(columns, axis=1) if columns else np.zeros((size, 0))


def _of_cells(group: Ints, cell: Ints, size: int) -> Ints:
    """A number that the groups of a cell have in common, for every cell."""
    inside = cell >= 0
    found = np.zeros(size, dtype=np.int64)
    found[cell[inside]] = group[inside]
    return found


def _binomial(count: Floats, records: Floats) -> Floats:
    return np.asarray(np.maximum(count * (1.0 - count / records), 0.0))
