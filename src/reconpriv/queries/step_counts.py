"""How many of some records are at or below each value, and how many are above it.

A quantile is read off these two counts, which have the limits of counts. A record is counted in the
row that its public values put it into; the steps of a row are the values that occur in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reconpriv.core.cube import Cube, Sums, combinations
from reconpriv.core.protected_cube import ProtectedCube, stacked_sums
from reconpriv.errors import InputError
from reconpriv.queries import estimate as est
from reconpriv.queries.answer import Answerer, Selected, Settings, key_positions
from reconpriv.queries.margins import Asked
from reconpriv.queries.pieces import uncut_limits
from reconpriv.queries.totals import Number, joined_keys
from reconpriv.theory.arrays import Flags, Floats, Ints

_MOST = 1 << 23  # steps held at once


class Counted(NamedTuple):
    """Numbers with their limits and variances; ``cut`` where a protection group is cut.

    ``low`` and ``high`` are uncut; ``least`` and ``most`` are possible, and hold for two counts
    together (theory.combined_limits).
    """

    number: Floats
    low: Floats
    high: Floats
    least: Floats
    most: Floats
    variance: Floats
    cut: Flags

    def of_rows(self, row: Ints) -> Counted:
        """Those of some rows, each as often as it is named."""
        *numbers, cut = self
        return Counted._make([*(column[row] for column in numbers), cut[row]])

    def less(self, other: Counted) -> Counted:
        """How many are left of a known number of records."""
        ends = (other.high, other.low, other.most, other.least)
        left = [self.number - one for one in (other.number, *ends)]
        return Counted._make([*left, other.variance, other.cut])


Sides = tuple[Counted, Counted]
"""The counts at or below a step, and above it."""


@dataclass(frozen=True)
class Rows:
    """The records of a selection by combinations of public values, and how to estimate."""

    answerer: Answerer
    selected: Selected
    number: Number | None
    attributes: tuple[int, ...]
    keys: Ints
    settings: Settings

    @property
    def many(self) -> int:
        """How many rows there are."""
        return int(self.keys.shape[1])

    @property
    def z(self) -> float:
        """The normal quantile of the intervals."""
        return est.quantile(self.settings.confidence, self.settings.intervals)

    def inside(self, part: Cube) -> Flags:
        """The groups of a part that count: those of the selection that have a number."""
        found = self.answerer.mask(self.selected, part)
        return found if self.number is None else found & ~np.isnan(self.number.of(part))

    def of(self, part: Cube) -> Ints:
        """The row of every group of a part; -1 outside."""
        inside = self.inside(part)
        if isinstance(self.answerer.cells, Cube):
            return combinations(part, self.attributes, inside)[1]
        listed = [tuple(key) for key in self.keys.T.tolist()]
        return np.where(inside, key_positions(part, self.attributes, listed), -1)

    def counted(self, values: tuple[int, ...]) -> Counted:
        """The records of every row that hold one of some values."""
        return self.of_sums(self.sums(self.of, values), values)

    def sums(self, selection: Callable[[Cube], Ints], values: tuple[int, ...]) -> Sums:
        """The sums of some values, over a selection of groups of each row."""
        answerer = self.answerer
        sums: Sums | None = None
        for part in answerer.cells.parts():
            one = part.sums(selection(part), self.many, values)
            sums = one if sums is None else sums + one
        assert sums is not None
        margins = answerer.margins if self.settings.margins else None
        if margins is not None and len(values) < answerer.design.domain_size:
            asked = Asked(np.arange(self.many), np.zeros(self.many, dtype=np.int64), values)
            sums = margins.combine(answerer.cells, sums, asked, selection)
        return sums

    def of_sums(self, sums: Sums, values: tuple[int, ...]) -> Counted:
        """The counts of some values from their sums."""
        design, settings = self.answerer.design, self.settings
        if len(values) == design.domain_size:  # how many records there are
            noise = sums.noise if design.sampling.coins else np.zeros(sums.records.shape)
            half = est.quantile(settings.confidence, settings.intervals) * np.sqrt(noise)
            never = np.zeros(half.shape, dtype=bool)
            low, high = np.maximum(sums.records - half, 0.0), sums.records + half
            return Counted(sums.records, low, high, low, high, noise, never)
        size, rounded = len(values), est.runs(values, design.domain_size)
        count, low, high, least, most = uncut_limits(sums, values, design, settings, 2)
        variance = est.count_variances(sums, size, rounded, design)
        return Counted(count, low, high, least, most, variance, sums.cut > 0)


@dataclass(frozen=True)
class Steps:
    """The values that occur in each row: ``row`` and ``place``, in order."""

    rows: Rows
    number: Number
    values: tuple[int, ...]
    row: Ints
    place: Ints

    @property
    def many(self) -> Ints:
        """How many steps every row has."""
        return np.bincount(self.row, minlength=self.rows.many)

    @property
    def starts(self) -> Ints:
        """The first step of every row."""
        return np.searchsorted(self.row, np.arange(self.rows.many))

    def every(self) -> Counted:
        """All records of every row."""
        return self.rows.counted(self.values)

    def at_once(self) -> Sides | None:
        """The counts of all steps; None with margins or protection groups.

        Sums over groups add up, so those at or below a step are running sums over its row.
        """
        answerer = self.rows.answerer
        margins = answerer.margins is not None and self.rows.settings.margins
        if margins or isinstance(answerer.cells, ProtectedCube):
            return None
        steps: Sums | None = None
        span = int(self.place.max()) + 1
        slots = self.row * span + self.place
        for part in answerer.cells.parts():
            row = self.rows.of(part)
            wanted = row * span + np.nan_to_num(self.number.of(part)).astype(np.int64)
            slot = np.where(row >= 0, np.searchsorted(slots, wanted), -1)
            one = part.sums(slot, slots.size, self.values)
            steps = one if steps is None else steps + one
        assert steps is not None
        last = np.append(self.starts[1:], slots.size) - 1
        below, above = [], []
        for own in steps.columns():
            running = np.cumsum(own)
            below.append(running - (running - own)[self.starts][self.row])
            above.append(below[-1][last][self.row] - below[-1])
        sides = (self.rows.of_sums(Sums(*side), self.values) for side in (below, above))
        return next(sides), next(sides)

    def at(self, steps: Ints) -> Sides:
        """The counts at some steps of every row: a line for each step."""
        below, above = (
            stacked_sums([self._sums(self.place[self.starts + step], keep) for step in steps])
            for keep in (np.less_equal, np.greater)
        )
        return self.rows.of_sums(below, self.values), self.rows.of_sums(above, self.values)

    def _sums(self, places: Ints, keep: Callable[[Floats, Ints], Flags]) -> Sums:
        """The sums of the groups on one side of a place in every row."""

        def selection(part: Cube) -> Ints:
            row = self.rows.of(part)
            kept = keep(self.number.of(part), places[row])
            return np.where((row >= 0) & kept, row, -1)

        return self.rows.sums(selection, self.values)


def rows_of(
    answerer: Answerer,
    selected: Selected,
    number: Number | None,
    by: Sequence[str],
    settings: Settings,
) -> Rows:
    """The combinations of public values that occur, as :func:`totals` has them."""
    names = [column.name for column in answerer.cells.schema.public]
    attributes = tuple(names.index(name) for name in by)
    rows = Rows(answerer, selected, number, attributes, np.zeros((0, 1), dtype=np.int64), settings)
    parts = answerer.cells.parts()
    found = [combinations(part, attributes, rows.inside(part))[0] for part in parts]
    return Rows(answerer, selected, number, attributes, joined_keys(found)[0], settings)


def steps_of(rows: Rows, values: tuple[int, ...]) -> Steps:
    """The steps of the number of some rows, for records that hold one of some values."""
    assert rows.number is not None
    found = []
    for part in rows.answerer.cells.parts():
        row = rows.of(part)
        inside = np.flatnonzero(row >= 0)
        place = rows.number.of(part)[inside].astype(np.int64)
        found.append(np.unique(np.stack([row[inside], place]), axis=1))
    row, place = np.unique(np.concatenate(found, axis=1), axis=1)
    if row.size > _MOST:
        raise InputError(
            f"There are {row.size:,} different values in these rows, too many for a quantile.",
            hint="Choose fewer records, or round the numbers.",
        )
    return Steps(rows, rows.number, values, row, place)
