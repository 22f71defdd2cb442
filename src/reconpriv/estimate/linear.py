"""Sums over selections of groups from all measurements together: generalised least squares.

A count is that of the records plus a weighted sum of the distances of the margins from them. The
weights rest on how frequent a value is in the whole table, not on the records, so the combined
count is unbiased; its variance is that of these weights with the variances that the records show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from reconpriv.cells.cube import Cells, Cube, GroupShares
from reconpriv.cells.sums import Sums, ends_of, stacked_sums, sum_selections
from reconpriv.estimate.measurements import Measurements
from reconpriv.theory.arrays import Floats, Ints, quotient, spans

_PAIRS_AT_ONCE = 1 << 22  # of a question and a group

# The selection of each micro group of a part of the cells, or -1.
Selection = Callable[[Cube], Ints]

# The protection groups of each part of the cells, and what selections hold of them; read twice.
Holdings = Iterable[tuple[Cube, GroupShares]]


@dataclass(frozen=True)
class SelectionsIn:
    """What selections hold of the protection groups, part by part."""

    cells: Cells
    selection: Selection

    def __iter__(self) -> Iterator[tuple[Cube, GroupShares]]:
        for part in self.cells.parts():
            yield part.whole, part.shares(self.selection(part))


@dataclass(frozen=True)
class CountQuestions:
    """Counts: each of one selection of groups, and one value or the same set of values."""

    selection: Ints
    value: Ints
    values: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """How many values each question is about."""
        return 1 if self.values is None else len(self.values)

    @property
    def number(self) -> int:
        """How many questions there are."""
        return self.selection.size

    def part(self, some: slice) -> CountQuestions:
        """Some of them."""
        return replace(self, selection=self.selection[some], value=self.value[some])


def selection_sums(
    told: Measurements,
    cells: Cells,
    selection: Selection,
    selections: int,
    values: tuple[int, ...] | None,
) -> Sums:
    """The sums of a set of values in every selection, or (None) of each value."""
    parts = (sum_selections(one, selection(one), selections, values) for one in cells.parts())
    return weighed_in(told, reduce(Sums.__add__, parts), values, SelectionsIn(cells, selection))


def weighed_in(
    told: Measurements, sums: Sums, values: tuple[int, ...] | None, held: Holdings
) -> Sums:
    """The sums of a set of values, or (None) of each value, with margins weighed in."""
    rows, m = sums.records.size, told.design.domain_size
    if not told.rows or not rows or (values is not None and len(values) in (0, m)):
        return sums
    if values is not None:
        asked = CountQuestions(np.arange(rows), np.zeros(rows, dtype=np.int64), values)
        return combined(told, sums, asked, held)
    asked = CountQuestions(np.repeat(np.arange(rows), m), np.tile(np.arange(m), rows))
    found = combined(told, sums.at(asked.selection, asked.value), asked, held)
    alike = {name: getattr(sums, name) for name in ("groups", "records", "trials", "cut")}
    return replace(found.each(lambda column: column.reshape(rows, m)), **alike)


def combined(told: Measurements, sums: Sums, asked: CountQuestions, held: Holdings) -> Sums:
    """The sums of some questions, with margins weighed in.

    Whatever is computed from sums then holds for the combined count: O* is that of records
    which alone would give it, and every variance counts a group by the square of its weight.
    """
    if not told.rows or not asked.number:
        return sums
    if sums.ends is not None:
        ends = [
            combined(told, one, asked, [(cube, ends_of(some)[i]) for cube, some in held])
            for i, one in enumerate(sums.ends)
        ]
        whole = combined(told, replace(sums, ends=None), asked, held)
        return replace(whole, ends=(ends[0], ends[1]))
    many = max(1, _PAIRS_AT_ONCE // (4 * told.rows))

    def chunk(first: int) -> Sums:
        some = slice(first, first + many)
        return _combined(told, sums.each(lambda column: column[some]), asked.part(some), held)

    return stacked_sums([chunk(first) for first in range(0, asked.number, many)])


def _combined(told: Measurements, sums: Sums, asked: CountQuestions, held: Holdings) -> Sums:
    weights = _weights(told, asked, held)
    own = np.zeros((4, asked.number))
    for cube, shares in held:
        own += _within(told, cube, shares, asked, weights)
    records, squares, observed, moved = own
    outside = np.maximum(_variance_of_weights(told, weights, asked) - moved, 0.0)
    noise = told.noise(asked.size) * np.sum(weights * weights, axis=1)
    if asked.values is None:
        distance = told.distance.T[asked.value]
    else:
        distance = told.distance[:, list(asked.values)].sum(axis=1)[None]
    correction = np.sum(weights * distance, axis=1)
    # What is small beside these sums is weighed as they are on average.
    share = np.zeros_like(records)
    np.divide(records, sums.scaled_records, out=share, where=records > 0)
    return replace(
        sums,
        observed=sums.observed + told.design.retention * correction,
        scaled_records=records,
        scaled_squares=squares,
        scaled_observed=observed,
        sampled_squares=sums.sampled_squares * share,
        unsampled=sums.unsampled * share,
        uneven=sums.uneven * share,
        noise=sums.noise * share,
        other=outside + noise,
    )


def _weights(told: Measurements, asked: CountQuestions, held: Holdings) -> Floats:
    """λ of every question: see :class:`reconpriv.theory.margins.row_spectrum.RowSpectrum`."""
    chosen, place = np.unique(asked.selection, return_inverse=True)
    number = np.full(int(chosen[-1]) + 2, -1)
    number[chosen] = np.arange(chosen.size)
    unknown = np.zeros((chosen.size, told.rows))
    for cube, shares in held:
        line = number[np.minimum(shares.selection, number.size - 1)]
        known = shares.share * (cube.scale * cube.records)[shares.group]
        unknown += told.incidence(cube).sums_by(known, line, chosen.size, shares.group)
    if asked.values is None:
        share = told.shares[asked.value]
    else:
        share = np.full(asked.number, min(float(told.shares[list(asked.values)].sum()), 1.0))
    one_trial = told.one_trial(asked.size, share)
    return told.spectrum.weights(unknown, one_trial, told.noise(asked.size), place.reshape(-1))


def _variance_of_weights(told: Measurements, weights: Floats, asked: CountQuestions) -> Floats:
    """λ'B V B'λ over all groups, with the variances that the records show."""
    result = np.empty(asked.number)
    if asked.values is not None:
        return _squared(weights, told.unknown(list(asked.values)))
    for value in np.unique(asked.value).tolist():
        some = np.flatnonzero(asked.value == value)
        result[some] = _squared(weights[some], told.unknown([value]))
    return result


def _squared(lines: Floats, matrix: Floats) -> Floats:
    return np.asarray(np.einsum("ik,ik->i", lines @ matrix, lines))


def _within(
    told: Measurements, cube: Cube, shares: GroupShares, asked: CountQuestions, weights: Floats
) -> Floats:
    """Four sums over the groups of each question: a² s N, |a|³ s² N, a² s O and (w-a)² V.

    a is the weight of a group: its own, w, less what margins take off it.
    """
    rows, padded = told.incidence(cube).rows, np.pad(weights, ((0, 0), (0, 1)))
    scaled = cube.scale * cube.records
    total = np.zeros((4, asked.number))
    for entry, question in _pairs(asked.selection, shares.selection):
        group = shares.group[entry]
        moved = np.zeros(group.size)
        for column in rows.T:
            moved += padded[question, column[group]]
        weight = shares.share[entry] - moved
        square = weight * weight
        observed, variance = told.group_counts(cube, group, asked.value[question], asked.values)
        square *= cube.scale[group]
        added = (
            square * cube.records[group],
            square * np.abs(weight) * scaled[group],
            square * observed,
            moved * moved * variance,
        )
        for i, one in enumerate(added):
            total[i] += np.bincount(question, weights=one, minlength=asked.number)
    return total


def _pairs(selection: Ints, wanted: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Every entry with every question about its selection, so many at a time."""
    order = np.argsort(selection, kind="stable")
    begin = np.searchsorted(selection[order], np.arange(int(wanted.max(initial=0)) + 2))
    times = np.diff(begin)[wanted]
    entries = np.flatnonzero(times > 0)
    times = times[entries]
    ends = np.cumsum(times)
    first = 0
    while first < entries.size:
        base = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, base + _PAIRS_AT_ONCE, side="right")))
        some, each = entries[first:last], times[first:last]
        yield np.repeat(some, each), order[spans(begin[wanted[some]], each)]
        first = last


def share_of_margins(alone: Floats, combined: Floats) -> Floats:
    """How much of a count's precision comes from margins: what they take off its variance."""
    return np.clip(1.0 - quotient(combined, alone, 1.0), 0.0, 1.0)
