"""How far off counts from a release are expected to be, by the size of the answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.cells.cube import Cube
from reconpriv.cells.sums import sum_selections
from reconpriv.estimate.counts import Design
from reconpriv.estimate.linear import CountQuestions, SelectionsIn, combined
from reconpriv.estimate.set_counts import SetCounts
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.estimation.design import MEAN_ABSOLUTE
from reconpriv.theory.estimation.reconstruction import constrained_frequencies, observed_mean

# Tables larger than this are not tried: (combinations of public values) x (sensitive values).
_CELLS = 200_000
_ATTRIBUTES = 2  # public ones that a count asks about, at most
_FEWEST = 5
# With margins, pairs of a group and a count that are looked at in all, and counts of each table.
_PAIRS = 1 << 23
_AT_LEAST = 24
_PER_DECADE = 2


@dataclass(frozen=True)
class ErrorBand:
    """Answers from ``low`` to ``high`` records, with the expected relative error of such counts."""

    low: float
    high: float
    queries: int
    tenth: float
    median: float
    ninetieth: float


def error_bands(answerer: Answerer) -> tuple[ErrorBand, ...]:
    """Counts of one sensitive value with up to two public ones, grouped by size.

    The size of an answer is what the estimated distribution of the whole table would give: sorting
    counts by their own estimates would call small those that chance made small. The expected
    error is that of a normal estimate with the variance of this size under the release's design.
    """
    cube = answerer.cube
    overall = _overall(cube, answerer.design)
    tables = [
        chosen
        for size in range(_ATTRIBUTES + 1)
        for chosen in combinations(range(len(cube.codes)), size)
    ]
    counts, errors = [], []
    for chosen in tables:
        found = _one_table(answerer, chosen, overall, _PAIRS // len(tables))
        if found is not None:
            counts.append(found[0])
            errors.append(found[1])
    count, error = np.concatenate(counts), np.concatenate(errors)
    kept = count >= 1
    return _bands(count[kept], MEAN_ABSOLUTE * error[kept] / count[kept])


def _overall(cube: Cube, design: Design) -> Floats:
    """The sensitive distribution of the whole table, within [0, 1]."""
    observed = np.bincount(cube.value, weights=cube.count, minlength=design.domain_size)
    return constrained_frequencies(observed, retention=design.retention)


def _one_table(
    answerer: Answerer, chosen: tuple[int, ...], overall: Floats, pairs: int
) -> tuple[Floats, Floats] | None:
    """How large the counts of one table are, and their standard errors; all, or some of them."""
    cube, design = answerer.cube, answerer.design
    key = np.zeros(cube.groups, dtype=np.int64)
    for attribute in chosen:
        key = key * len(cube.values[attribute]) + cube.codes[attribute]
    keys, selection = np.unique(key, return_inverse=True)
    if keys.size * design.domain_size > _CELLS:
        return None
    selection = selection.reshape(-1)
    sums = sum_selections(cube, selection, keys.size, None)
    rows, values = np.divmod(np.arange(keys.size * design.domain_size), design.domain_size)
    if answerer.measurements.rows:
        some = _spread(rows.size, cube.groups * design.domain_size, pairs)
        rows, values = rows[some], values[some]
    held, asked = SelectionsIn(cube, lambda _: selection), CountQuestions(rows, values)
    found = combined(answerer.measurements, sums.at(rows, values), asked, held)
    typical = replace(
        found,
        scaled_observed=observed_mean(
            overall[values], found.scaled_records,
            retention=design.retention, domain_size=design.domain_size,
        ),
    )  # fmt: skip
    errors = np.sqrt(SetCounts(typical, design).variances)
    return sums.records[rows] * overall[values], errors


def _spread(counts: int, cost: int, pairs: int) -> Ints:
    """Which counts to look at, evenly spread: margins take time for each group of each count."""
    many = max(_AT_LEAST, counts * pairs // max(cost, 1))
    return np.unique(np.linspace(0, counts - 1, min(many, counts)).astype(np.int64))


def _bands(count: Floats, error: Floats) -> tuple[ErrorBand, ...]:
    step = np.floor(np.log10(count) * _PER_DECADE + 1e-9).astype(np.int64)
    bands = []
    for number in np.unique(step):
        inside = error[step == number]
        if inside.size >= _FEWEST:
            low, middle, high = np.quantile(inside, (0.1, 0.5, 0.9))
            start, end = (float(10.0 ** ((number + i) / _PER_DECADE)) for i in (0, 1))
            bands.append(ErrorBand(start, end, inside.size, low, middle, high))
    return tuple(bands)
