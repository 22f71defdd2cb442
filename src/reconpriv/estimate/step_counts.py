"""How many of some records are at or below each value, and how many are above it.

A quantile is read off these two counts, which have the limits of counts. A record is counted in the
row that its public values put it into; the steps of a row are the values that occur in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.cells.cube import Cube
from reconpriv.cells.sums import Sums, stacked_sums, sum_selections
from reconpriv.errors import InputError
from reconpriv.estimate.counts import Settings
from reconpriv.estimate.linear import selection_sums
from reconpriv.estimate.public_rows import PublicRows
from reconpriv.estimate.set_counts import SetCounts, UncutCounts
from reconpriv.estimate.totals import Number
from reconpriv.theory.arrays import Flags, Floats, Ints

_MOST = 1 << 23  # steps held at once

Sides = tuple[UncutCounts, UncutCounts]
"""The counts at or below a step, and above it."""


@dataclass(frozen=True)
class RowCounts:
    """Counts of records by combinations of public values."""

    answerer: Answerer
    rows: PublicRows
    settings: Settings

    def counted(self, values: tuple[int, ...]) -> UncutCounts:
        """The records of every row that hold one of some values."""
        return self.of_sums(self.sums(self.rows.of, values), values)

    def sums(self, selection: Callable[[Cube], Ints], values: tuple[int, ...]) -> Sums:
        """The sums of some values, over a selection of groups of each row."""
        told = self.answerer.told(margins=self.settings.margins)
        return selection_sums(told, self.answerer.cells, selection, self.rows.number, values)

    def of_sums(self, sums: Sums, values: tuple[int, ...]) -> UncutCounts:
        """The counts of some values from their sums."""
        counts = SetCounts.of(sums, values, self.answerer.design)
        found = counts.uncut(self.settings, 2)
        return found._replace(low=found.least) if counts.everybody else found


@dataclass(frozen=True)
class RowSteps:
    """The places that a number has in each row: ``row`` and ``place``, in order."""

    counts: RowCounts
    number: Number
    values: tuple[int, ...]
    row: Ints
    place: Ints

    @classmethod
    def of(cls, counts: RowCounts, number: Number, values: tuple[int, ...]) -> RowSteps:
        """The steps of records that hold one of some values."""
        found = []
        for part in counts.answerer.cells.parts():
            row = counts.rows.of(part)
            inside = np.flatnonzero(row >= 0)
            place = number.of(part)[inside].astype(np.int64)
            found.append(np.unique(np.stack([row[inside], place]), axis=1))
        row, place = np.unique(np.concatenate(found, axis=1), axis=1)
        if row.size > _MOST:
            raise InputError(
                f"There are {row.size:,} different values in these rows, too many for a quantile.",
                hint="Choose fewer records, or round the numbers.",
            )
        return cls(counts, number, values, row, place)

    @property
    def many(self) -> Ints:
        """How many steps every row has."""
        return np.bincount(self.row, minlength=self.counts.rows.number)

    @property
    def starts(self) -> Ints:
        """The first step of every row."""
        return np.searchsorted(self.row, np.arange(self.counts.rows.number))

    def at_once(self) -> Sides | None:
        """The counts of all steps; None with margins or protection groups.

        Sums over groups add up, so those at or below a step are running sums over its row.
        """
        counts = self.counts
        if counts.answerer.told(margins=counts.settings.margins).rows:
            return None
        steps: list[Sums] = []
        span = int(self.place.max()) + 1
        slots = self.row * span + self.place
        for part in counts.answerer.cells.parts():
            if part.whole is not part:
                return None
            row = counts.rows.of(part)
            wanted = row * span + np.nan_to_num(self.number.of(part)).astype(np.int64)
            slot = np.where(row >= 0, np.searchsorted(slots, wanted), -1)
            one = sum_selections(part, slot, slots.size, self.values)
            steps = [steps[0] + one] if steps else [one]
        last = np.append(self.starts[1:], slots.size) - 1

        def below(own: Floats) -> Floats:
            running = np.cumsum(own)
            return running - (running - own)[self.starts][self.row]

        def above(own: Floats) -> Floats:
            running = below(own)
            return np.asarray(running[last][self.row] - running)

        of_below, of_above = (
            counts.of_sums(steps[0].each(side), self.values) for side in (below, above)
        )
        return of_below, of_above

    def at(self, steps: Ints) -> Sides:
        """The counts at some steps of every row: a line for each step."""
        below, above = (
            self.counts.of_sums(
                stacked_sums([self._sums(self.place[self.starts + step], keep) for step in steps]),
                self.values,
            )
            for keep in (np.less_equal, np.greater)
        )
        return below, above

    def _sums(self, places: Ints, keep: Callable[[Floats, Ints], Flags]) -> Sums:
        """The sums of the groups on one side of a place in every row."""

        def selection(part: Cube) -> Ints:
            row = self.counts.rows.of(part)
            kept = keep(self.number.of(part), places[row])
            return np.where((row >= 0) & kept, row, -1)

        return self.counts.sums(selection, self.values)
