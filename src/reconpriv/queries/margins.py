"""Counts from records and margins together: generalised least squares (theory.margins).

Prepared once per release: the covariance of what is unknown about the rows of the margins, in
units of one trial's variance, and how far each margin is from what the records say. A count is
then that of the records plus a weighted sum of these distances. The weights rest on how frequent a
value is in the whole table, not on the records, so the combined count is unbiased; its variance is
that of these weights with the variances that the records show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reconpriv.core.cells import Encoded
from reconpriv.core.cube import Cells, Cube, Sums
from reconpriv.core.margin_noise import adjusted
from reconpriv.core.margin_tables import MarginTable, RowIndex, index_rows, rows_of
from reconpriv.queries.cell_variances import CellVariances, TrialVariance
from reconpriv.queries.estimate import Design
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.intervals import ROUNDING
from reconpriv.theory.margins import RowSpectrum, cell_noise
from reconpriv.theory.perturbation import keep_probability, replacement_probability
from reconpriv.theory.reconstruction import reconstruct_count

_PAIRS_AT_ONCE = 1 << 22  # of a question and a group

# The selection of each group of a part, or -1; and how often each of its records counts.
Selection = Callable[[Cube], Ints]
Weight = Callable[[Cube], Floats]


class InParts(Protocol):
    """Cells that are read one part at a time, as often as needed."""

    def parts(self) -> Iterator[Cube]:
        """Every part, from the first."""
        ...


def once(part: Cube) -> Floats:
    """Every record counts once."""
    return np.ones(part.groups)


@dataclass(frozen=True)
class Asked:
    """Questions: each about one selection of groups, and one value or the same set of values."""

    selection: Ints
    value: Ints
    values: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """How many values each question is about."""
        return 1 if self.values is None else len(self.values)

    @property
    def questions(self) -> int:
        """How many there are."""
        return self.selection.size

    def part(self, some: slice) -> Asked:
        """Some of them."""
        return replace(self, selection=self.selection[some], value=self.value[some])


@dataclass(frozen=True)
class PreparedMargins:
    """The margins of a release with what its records say about their rows.

    Matrices have a line and a column per row: ``products`` sums s N over the groups of two rows (s
    records per trial), ``observed`` s O for each sensitive value, ``uneven`` and ``squares`` what
    uneven copies and rounded quotas add. ``spectrum`` decomposes ``products``.
    ``distance`` is M - B D, a column per value; ``shares`` are the frequencies in the whole table.
    """

    design: Design
    indexes: tuple[RowIndex, ...]
    variance: float
    distance: Floats
    shares: Floats
    products: Floats
    observed: NDArray[np.float32]
    uneven: Floats
    squares: Floats
    spectrum: RowSpectrum
    rounding: Floats
    _rows: dict[int, tuple[object, Ints]] = field(default_factory=dict, repr=False)
    _cells: dict[tuple[int, ...] | None, tuple[object, CellVariances]] = field(
        default_factory=dict, repr=False
    )

    @property
    def rows(self) -> int:
        """How many rows the margins have."""
        return int(self.products.shape[0])

    def rows_of(self, part: Cube) -> Ints:
        """The rows of every group of a part; -1 where a table has none."""
        kept = self._rows.get(id(part.codes))
        if kept is not None and kept[0] is part.codes:
            return kept[1]
        found = group_rows(self.indexes, part)
        self._rows.clear()
        self._rows[id(part.codes)] = part.codes, found
        return found

    def noise(self, size: int) -> float:
        """The variance of a margin's count of a set of values."""
        if self.design.sampling.coins:  # the sizes of rows are not known exactly
            return self.variance * size
        return cell_noise(self.variance, self.design.domain_size, size)

    def combine(
        self,
        cells: InParts,
        sums: Sums,
        asked: Asked,
        selection: Selection,
        weight: Weight = once,
    ) -> Sums:
        """The sums of some questions, with margins weighed in.

        Whatever is computed from sums then holds for the combined count: O* is that of records
        which alone would give it, and every variance counts a group by the square of its weight.
        """
        many = max(1, _PAIRS_AT_ONCE // (4 * self.rows))
        pieces = [
            self._combine(cells, _take(sums, some), asked.part(some), selection, weight)
            for some in (slice(i, i + many) for i in range(0, max(asked.questions, 1), many))
        ]
        return pieces[0] if len(pieces) == 1 else _join(pieces)

    def combine_by_value(self, cells: InParts, sums: Sums, selection: Selection) -> Sums:
        """The sums by sensitive value of every selection, with margins weighed in."""
        rows, m = sums.observed.shape
        asked = Asked(np.repeat(np.arange(rows), m), np.tile(np.arange(m), rows))
        found = self.combine(cells, sums.at(asked.selection, asked.value), asked, selection)
        shaped = Sums(*(column.reshape(rows, m) for column in found.columns()))
        alike = {name: getattr(sums, name) for name in ("groups", "records", "trials", "cut")}
        return replace(shaped, **alike)

    def _combine(
        self, cells: InParts, sums: Sums, asked: Asked, selection: Selection, weight: Weight
    ) -> Sums:
        weights = self._weights(cells, asked, selection, weight)
        own = np.zeros((4, asked.questions))
        for part in cells.parts():
            own += self._within(part, asked, selection(part), weight(part), weights)
        records, squares, observed, moved = own
        outside = np.maximum(self._variance_of_weights(weights, asked) - moved, 0.0)
        noise = self.noise(asked.size) * np.sum(weights * weights, axis=1)
        correction = np.einsum("ik,ik->i", weights, self._distance(asked))
        # What is small beside these sums is weighed as they are on average.
        share = np.zeros_like(records)
        np.divide(records, sums.scaled_records, out=share, where=records > 0)
        return replace(
            sums,
            observed=sums.observed + self.design.retention * correction,
            scaled_records=records,
            scaled_squares=squares,
            scaled_observed=observed,
            sampled_squares=sums.sampled_squares * share,
            unsampled=sums.unsampled * share,
            uneven=sums.uneven * share,
            noise=sums.noise * share,
            other=outside + noise,
        )

    def _weights(
        self, cells: InParts, asked: Asked, selection: Selection, weight: Weight
    ) -> Floats:
        """λ of every question: see :class:`reconpriv.theory.margins.RowSpectrum`."""
        chosen, place = np.unique(asked.selection, return_inverse=True)
        number = np.full(int(chosen.max(initial=0)) + 2, -1)
        number[chosen] = np.arange(chosen.size)
        unknown = np.zeros(chosen.size * self.rows)
        for part in cells.parts():
            wanted = selection(part)
            line = np.where(wanted > chosen.max(initial=-1), -1, wanted)
            line = np.where(line >= 0, number[line], -1)
            known = weight(part) * part.scale * part.records
            for rows in self.rows_of(part).T:
                inside = np.flatnonzero((line >= 0) & (rows >= 0))
                slot = line[inside] * self.rows + rows[inside]
                unknown += np.bincount(slot, weights=known[inside], minlength=unknown.size)
        return self.spectrum.weights(
            unknown.reshape(chosen.size, self.rows),
            self._one_trial(asked),
            self.noise(asked.size),
            place.reshape(-1),
        )

    def _one_trial(self, asked: Asked) -> Floats:
        """v of every question, with the frequency of its values in the whole table."""
        if asked.values is None:
            share = self.shares[asked.value]
        else:
            share = np.full(asked.questions, min(float(self.shares[list(asked.values)].sum()), 1.0))
        return self.one_trial(asked.size, share)

    def one_trial(self, size: Floats | int, share: Floats) -> Floats:
        """v = (T + (R - T) f)/p² of sets of so many values that such shares of the records hold."""
        p, m = self.design.retention, self.design.domain_size
        stray = size * replacement_probability(p, m)
        kept = keep_probability(p, m) + stray - replacement_probability(p, m)
        low, high = stray * (1.0 - stray), kept * (1.0 - kept)
        return np.asarray((low + (high - low) * share) / p**2)

    def alike(self, members: Floats) -> tuple[float, float]:
        """v and σ² for weights that all classes share, so that these still add up: the means.

        ``members`` has a line of 0 and 1 for each class, over the values.
        """
        sizes = members.sum(axis=1)
        one_trial = self.one_trial(sizes, members @ self.shares)
        noise = np.mean([self.noise(size) for size in sizes.astype(int).tolist()])
        return float(one_trial.mean()), float(noise)

    def _distance(self, asked: Asked) -> Floats:
        if asked.values is None:
            return np.asarray(self.distance.T[asked.value])
        one = self.distance[:, list(asked.values)].sum(axis=1)
        return np.broadcast_to(one, (asked.questions, self.rows))

    def _variance_of_weights(self, weights: Floats, asked: Asked) -> Floats:
        """λ'B V B'λ over all groups, with the variances that the records show."""
        result = np.empty(asked.questions)
        if asked.values is not None:
            matrix = self._unknown(list(asked.values))
            return np.asarray(np.einsum("ik,ik->i", weights @ matrix, weights))
        for value in np.unique(asked.value).tolist():
            some = np.flatnonzero(asked.value == value)
            lines = weights[some]
            result[some] = np.einsum("ik,ik->i", lines @ self._unknown([value]), lines)
        return result

    def _unknown(self, values: list[int]) -> Floats:
        """B V B' for a set of values."""
        variance = TrialVariance.of(self.design, len(values))
        observed = self.observed[values].sum(axis=0, dtype=np.float64)
        copies, quotas = self._extra(values)
        return np.asarray(
            variance.by_count * observed
            + variance.by_record * self.products
            + copies * self.uneven
            + quotas * self.squares
        )

    def _extra(self, values: Sequence[int]) -> tuple[float, float]:
        """What uneven copies and rounded quotas add to a group's variance, per unit of each."""
        p = self.design.retention
        share = p * min(float(self.shares[list(values)].sum()), 1.0)
        share += len(values) * replacement_probability(p, self.design.domain_size)
        return share * (1.0 - share) / p**2, ROUNDING * float(self.rounding[list(values)].max())

    def _within(
        self, part: Cube, asked: Asked, wanted: Ints, own: Floats, weights: Floats
    ) -> Floats:
        """Four sums over the groups of each question: a² s N, |a|³ s² N, a² s O and (w-a)² V.

        a is the weight of a group: its own, w, less what margins take off it.
        """
        rows, padded = self.rows_of(part), np.pad(weights, ((0, 0), (0, 1)))
        scaled = part.scale * part.records
        cells = self._cells_of(part, asked.values)
        total = np.zeros((4, asked.questions))
        for group, question in _pairs(asked.selection, wanted):
            moved = np.zeros(group.size)
            for column in rows.T:
                moved += padded[question, column[group]]
            weight = own[group] - moved
            square = weight * weight
            scale = part.scale[group]
            observed, variance = cells.at(group, asked.value[question])
            records = square * scaled[group]
            added = (
                records,
                records * np.abs(weight) * scale,
                square * scale * observed,
                moved * moved * variance,
            )
            for i, one in enumerate(added):
                total[i] += np.bincount(question, weights=one, minlength=asked.questions)
        return total

    def _cells_of(self, part: Cube, values: tuple[int, ...] | None) -> CellVariances:
        """What is published about a set of values, or about each value, in every group."""
        kept = self._cells.get(values)
        if kept is not None and kept[0] is part.codes:
            return kept[1]
        found = CellVariances.of(self, part, values)
        self._cells.clear()
        self._cells[values] = part.codes, found
        return found

    def own_variance(
        self, part: Cube, group: Ints, observed: Floats, values: Sequence[int]
    ) -> Floats:
        """V: the variance of the count of some values in a group, from what is published."""
        variance = TrialVariance.of(self.design, len(values))
        copies, quotas = self._extra(values)
        scale, records = part.scale[group], part.records[group]
        perturbed = scale * (variance.by_count * observed + variance.by_record * records)
        squares = np.where(part.sampled[group], scale * scale, 0.0)
        return np.asarray(perturbed + copies * part.uneven[group] + quotas * squares)


def _pairs(selection: Ints, wanted: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Every group with every question about its selection, so many at a time."""
    order = np.argsort(selection, kind="stable")
    begin = np.searchsorted(selection[order], np.arange(int(wanted.max(initial=0)) + 2))
    groups = np.flatnonzero(wanted >= 0)
    times = np.diff(begin)[wanted[groups]]
    groups, times = groups[times > 0], times[times > 0]
    ends = np.cumsum(times)
    first = 0
    while first < groups.size:
        base = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, base + _PAIRS_AT_ONCE, side="right")))
        some, each = groups[first:last], times[first:last]
        group = np.repeat(some, each)
        step = np.arange(group.size) - np.repeat(np.cumsum(each) - each, each)
        yield group, order[begin[wanted[group]] + step]
        first = last


def prepare_margins(
    cells: Cells, tables: Sequence[MarginTable], variance: float, design: Design
) -> PreparedMargins:
    """One pass over the cells of a release."""
    indexes = index_rows(tables, cells.schema)
    k, m = sum(table.rows for table in tables), cells.schema.domain_size
    sizes, published = np.zeros(k), np.zeros((k, m))
    products, uneven, squares = (np.zeros((k, k)) for _ in range(3))
    observed = np.zeros((m, k, k), dtype=np.float32)
    whole, sampled, quotas = np.zeros(m), 0.0, 0.0
    for part in cells.parts():
        rows = group_rows(indexes, part)
        whole += np.bincount(part.value, weights=part.count, minlength=m)
        square = np.where(part.sampled, part.scale**2, 0.0)
        quotas += float(square.sum())
        sampled += float((part.scale * part.records)[part.sampled].sum())
        for column in rows.T:
            inside = column >= 0
            sizes += np.bincount(column[inside], weights=part.records[inside], minlength=k)
            cell = np.flatnonzero(inside[part.group])
            slot = column[part.group[cell]] * m + part.value[cell]
            found = np.bincount(slot, weights=part.count[cell], minlength=k * m)
            published += found.reshape(k, m)
        weights = (part.scale * part.records, part.uneven, square)
        by_value = _by_value(part)
        for i, one in enumerate(rows.T):
            for other in rows.T[i:]:
                slot = np.where((one >= 0) & (other >= 0), one * k + other, -1)
                for matrix, weight in zip((products, uneven, squares), weights, strict=True):
                    _add(matrix, slot, weight)
                for counts_of, (group, count) in zip(observed, by_value, strict=True):
                    _add(counts_of, slot[group], count)
    for matrix in (products, uneven, squares, *observed):
        _mirror(matrix)
    counts = np.concatenate([table.counts for table in tables])
    margins = counts.astype(np.float64) if design.sampling.coins else adjusted(counts, sizes)
    p = design.retention
    records = reconstruct_count(published, sizes[:, None], retention=p, domain_size=m)
    shares = np.clip(
        reconstruct_count(whole, whole.sum(), retention=p, domain_size=m) / whole.sum(), 0.0, 1.0
    )
    simple = sampled * shares * (1.0 - shares)
    return PreparedMargins(
        design=design,
        indexes=indexes,
        variance=variance,
        distance=margins - records,
        shares=shares,
        products=products,
        observed=observed,
        uneven=uneven,
        squares=squares,
        spectrum=RowSpectrum.of(products),
        # As in the interval of a count: no more than a simple sample would vary.
        rounding=simple / np.maximum(ROUNDING * quotas + simple, 1.0),
    )


def group_rows(indexes: Sequence[RowIndex], part: Cube) -> Ints:
    """The rows of every group of a part of the cells."""
    public = [Encoded(c, v) for c, v in zip(part.codes, part.values, strict=True)]
    return rows_of(indexes, public, part.schema)


def _by_value(part: Cube) -> list[tuple[Ints, Floats]]:
    """The cells of each sensitive value: their groups, and s times their counts."""
    order = np.argsort(part.value, kind="stable")
    group = part.group[order]
    scaled = part.scale[group] * part.count[order]
    ends = np.searchsorted(part.value[order], np.arange(1, part.schema.domain_size))
    return list(zip(np.split(group, ends), np.split(scaled, ends), strict=True))


def _add(matrix: NDArray[np.floating], slot: Ints, weight: Floats) -> None:
    """Add weights to the pair of rows that each has in its slot, or to none (-1)."""
    inside = slot >= 0
    if not inside.all():
        slot, weight = slot[inside], weight[inside]
    matrix += np.bincount(slot, weights=weight, minlength=matrix.size).reshape(matrix.shape)


def _mirror(matrix: NDArray[np.floating]) -> None:
    """Fill the lower triangle; rows of one table share no group, so only their diagonal is set."""
    matrix += np.triu(matrix, 1).T


def _take(sums: Sums, some: slice) -> Sums:
    return Sums(*(column[some] for column in sums.columns()))


def _join(pieces: Sequence[Sums]) -> Sums:
    return Sums(*(np.concatenate(c) for c in zip(*(p.columns() for p in pieces), strict=True)))


def share_of_margins(alone: Floats, combined: Floats) -> Floats:
    """How much of a count's precision comes from margins: what they take off its variance."""
    some: Flags = alone > 0
    share = np.zeros(alone.shape)
    np.divide(combined, alone, out=share, where=some)
    return np.where(some, np.clip(1.0 - share, 0.0, 1.0), 0.0)
