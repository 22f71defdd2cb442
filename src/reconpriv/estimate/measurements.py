"""The linear measurements of the true cells that a release consists of (theory.margins).

Each group is measured by its own trials, and margins, if there are any, measure sums of groups.
Prepared once per release: the covariance of what is unknown about the rows of the margins, in
units of one trial's variance, and how far each margin is from what the records say. Without margins
there are no rows, nothing is known beyond the records, and every formula reduces to theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from reconpriv.cells.cell_batch import Encoded
from reconpriv.cells.cube import Cells, Cube
from reconpriv.estimate.counts import Design
from reconpriv.protect.margins.noise import adjusted
from reconpriv.protect.margins.tables import MarginTable, RowIndex, index_rows, rows_of
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.estimation.design import trial_variance
from reconpriv.theory.estimation.intervals import ROUNDING
from reconpriv.theory.margins.incidence import Incidence
from reconpriv.theory.margins.row_spectrum import RowSpectrum, cell_noise

_DENSE = 1 << 24  # counts held, with their variances, as a table of groups x values


@dataclass(frozen=True)
class Measurements:
    """The margins of a release with what its records say about their rows; possibly no rows.

    Matrices have a line and a column per row: ``products`` sums s N over the groups of two rows (s
    records per trial), ``observed`` s O for each sensitive value, ``uneven`` and ``squares`` what
    uneven copies and rounded quotas add. ``spectrum`` decomposes ``products``. ``distance`` is
    M - B D, a column per value; ``shares`` are the frequencies in the whole table.
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
    _incidence: dict[int, tuple[object, Incidence]] = field(default_factory=dict, repr=False)
    _counts: dict[tuple[int, ...] | None, tuple[object, tuple[Floats, Floats] | None]] = field(
        default_factory=dict, repr=False
    )

    @property
    def rows(self) -> int:
        """How many rows the margins have."""
        return int(self.products.shape[0])

    def alone(self) -> Measurements:
        """The records without the margins."""
        return records_alone(self.design)

    def incidence(self, cube: Cube) -> Incidence:
        """B for the protection groups of a part of the cells."""
        kept = self._incidence.get(id(cube.codes))
        if kept is None or kept[0] is not cube.codes:
            kept = cube.codes, Incidence(group_rows(self.indexes, cube), self.rows)
            self._incidence.clear()
            self._incidence[id(cube.codes)] = kept
        return kept[1]

    def noise(self, size: int) -> float:
        """The variance of a margin's count of a set of values."""
        if self.design.sampling_rule.coin_flips:  # the sizes of rows are not known exactly
            return self.variance * size
        return cell_noise(self.variance, self.design.domain_size, size)

    def one_trial(self, size: Floats | int, share: Floats) -> Floats:
        """v = (T + (R - T) f)/p² of sets of so many values that such shares of the records hold."""
        values = np.asarray(size, dtype=np.float64)
        return trial_variance(share, self.design.retention, self.design.domain_size, values)

    def alike(self, members: Floats) -> tuple[float, float]:
        """v and σ² for weights that all classes share, so that these still add up: the means.

        ``members`` has a line of 0 and 1 for each class, over the values.
        """
        sizes = members.sum(axis=1)
        one_trial = self.one_trial(sizes, members @ self.shares)
        noise = np.mean([self.noise(size) for size in sizes.astype(int).tolist()])
        return float(one_trial.mean()), float(noise)

    def unknown(self, values: list[int]) -> Floats:
        """B V B' for a set of values, with the variances that the records show."""
        observed = self.observed[values].sum(axis=0, dtype=np.float64)
        copies, quotas = self._beside_trials(values)
        trials = self._trial_variances(observed, self.products, len(values))
        return np.asarray(trials + copies * self.uneven + quotas * self.squares)

    def _trial_variances(self, observed: Floats, records: Floats | Ints, size: int) -> Floats:
        """The variance of counts of so many values, from what is published: linear, so unbiased."""
        count = self.design.reconstructed(observed, records, size)
        return self.design.count_variance(count, records, size)

    def _beside_trials(self, values: Sequence[int]) -> tuple[float, float]:
        """What uneven copies and rounded quotas add to a group's variance, per unit of each."""
        p = self.design.retention
        share = p * min(float(self.shares[list(values)].sum()), 1.0)
        share += self.design.stray(len(values))
        return share * (1.0 - share) / p**2, ROUNDING * float(self.rounding[list(values)].max())

    def group_counts(
        self, cube: Cube, group: Ints, value: Ints, values: tuple[int, ...] | None
    ) -> tuple[Floats, Floats]:
        """O and V of some groups: of a set of values, or (None) of one value for each group."""
        owner, kept = self._counts.get(values, (None, None))
        if owner is not cube.codes:
            kept = self._every_count(cube, values)
            self._counts.clear()
            self._counts[values] = cube.codes, kept
        m = cube.schema.domain_size
        slot = group if values is not None else group * m + value
        if kept is not None:
            return kept[0][slot], kept[1][slot]
        cells = cube.group * m + cube.value
        place = np.minimum(np.searchsorted(cells, slot), cells.size - 1)
        observed = np.where(cells[place] == slot, cube.count[place], 0).astype(np.float64)
        return observed, self._variances(cube, group, value, values, observed)

    def _every_count(
        self, cube: Cube, values: tuple[int, ...] | None
    ) -> tuple[Floats, Floats] | None:
        """O and V of all groups, or of each value in each; None if these are too many to keep."""
        group, m = np.arange(cube.groups), cube.schema.domain_size
        if values is not None:
            weights = np.where(np.isin(cube.value, values), cube.count, 0.0)
            total = np.bincount(cube.group, weights=weights, minlength=cube.groups)
            observed, value = total.astype(np.float64), group
        elif cube.groups * m <= _DENSE:
            observed = np.zeros(cube.groups * m)
            observed[cube.group * m + cube.value] = cube.count
            group, value = np.repeat(group, m), np.tile(np.arange(m), cube.groups)
        else:
            return None
        return observed, self._variances(cube, group, value, values, observed)

    def _variances(
        self, cube: Cube, group: Ints, value: Ints, values: tuple[int, ...] | None, observed: Floats
    ) -> Floats:
        """V of such counts, as the release shows it."""
        if values is None:
            beside = np.array(
                [self._beside_trials([one]) for one in range(cube.schema.domain_size)]
            )
            copies, quotas = beside[value].T
        else:
            copies, quotas = (np.asarray(one) for one in self._beside_trials(values))
        scale, records = cube.scale[group], cube.records[group]
        squares = np.where(cube.sampled[group], scale * scale, 0.0)
        size = 1 if values is None else len(values)
        variance = scale * self._trial_variances(observed, records, size)
        return np.asarray(variance + copies * cube.uneven[group] + quotas * squares)


def records_alone(design: Design) -> Measurements:
    """The measurements of a release without margins: no rows."""
    m, none = design.domain_size, np.zeros((0, 0))
    return Measurements(
        design, (), 0.0, np.zeros((0, m)), np.zeros(m), none,
        np.zeros((m, 0, 0), dtype=np.float32), none, none, RowSpectrum(none, np.zeros(0)),
        np.zeros(m),
    )  # fmt: skip


def prepare_margins(
    cells: Cells, tables: Sequence[MarginTable], variance: float, design: Design
) -> Measurements:
    """One pass over the cells of a release; margin rows are unions of its protection groups."""
    found = records_alone(design)
    k, m = sum(table.rows for table in tables), design.domain_size
    if not k:
        return found
    sizes, published = np.zeros(k), np.zeros((k, m))
    products, uneven, squares = (np.zeros((k, k)) for _ in range(3))
    observed = np.zeros((m, k, k), dtype=np.float32)
    whole, sampled, quotas = np.zeros(m), 0.0, 0.0
    for part in cells.parts():
        cube = part.whole
        if not found.indexes:
            found = replace(found, indexes=index_rows(tables, cube.schema))
        rows = Incidence(group_rows(found.indexes, cube), k)
        whole += np.bincount(cube.value, weights=cube.count, minlength=m)
        square = np.where(cube.sampled, cube.scale**2, 0.0)
        quotas += float(square.sum())
        sampled += float((cube.scale * cube.records)[cube.sampled].sum())
        sizes += rows.sums(cube.records)
        published += rows.sums_by(cube.count, cube.value, m, cube.group).T
        products += rows.pairs(cube.scale * cube.records)
        uneven += rows.pairs(cube.uneven)
        squares += rows.pairs(square)
        for value in range(m):
            mine = np.flatnonzero(cube.value == value)
            group = cube.group[mine]
            observed[value] += rows.pairs(cube.scale[group] * cube.count[mine], group)
    counts = np.concatenate([table.counts for table in tables])
    margins = (
        counts.astype(np.float64) if design.sampling_rule.coin_flips else adjusted(counts, sizes)
    )
    records = design.reconstructed(published, sizes[:, None])
    shares = np.clip(design.reconstructed(whole, whole.sum()) / whole.sum(), 0.0, 1.0)
    simple = sampled * shares * (1.0 - shares)
    return replace(
        found,
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


def group_rows(indexes: Sequence[RowIndex], cube: Cube) -> Ints:
    """The rows of every group of a cube."""
    if not indexes:
        return np.zeros((cube.groups, 0), dtype=np.int64)
    public = [Encoded(c, v) for c, v in zip(cube.codes, cube.values, strict=True)]
    return rows_of(indexes, public, cube.schema)
