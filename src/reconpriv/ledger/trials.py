"""How many different trials of each group the releases of a series have shown together.

Trial i of a cell is the same in every release with one key, and a release with n trials of a cell
shows trials 0 to n-1. So the largest n so far, cell by cell, is all that must be remembered. It is
kept under keyed hashes in a file beside the ledger, sealed with the key: whoever has the key can
read from it about as much as from key and release together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from reconpriv.core.cells import CellBatch
from reconpriv.core.kernel import Kernel, PublishedBatch, excess_over
from reconpriv.core.randomness import Words
from reconpriv.theory.arrays import Flags, Floats, Ints

MOST_CELLS = 1 << 18
MOST_CELLS_OF_A_PART = 1 << 14  # there may be thousands of parts, and one machine gets them all
_NO_WORDS: Words = np.zeros(0, dtype=np.uint64)
_NO_COUNTS: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Shown:
    """The trials of each cell that were shown, with the keyed hashes of its group and of itself.

    Of very many groups only some are kept: those whose hash begins with ``level`` zero bits.
    """

    group: Words = field(default_factory=lambda: _NO_WORDS)
    cell: Words = field(default_factory=lambda: _NO_WORDS)
    trials: Ints = field(default_factory=lambda: _NO_COUNTS)
    level: int = 0

    def with_(self, other: Shown) -> Shown:
        """Both together: of each cell, the larger number."""
        level = max(self.level, other.level)
        cells = np.concatenate([self.cell, other.cell])
        cell, first, place = np.unique(cells, return_index=True, return_inverse=True)
        trials = np.zeros(cell.size, dtype=np.int64)
        np.maximum.at(trials, place, np.concatenate([self.trials, other.trials]))
        group = np.concatenate([self.group, other.group])[first]
        return Shown(group, cell, trials, level).thinned()

    def thinned(self, most: int | None = None) -> Shown:
        """As many groups as may be kept, chosen by their hashes alone."""
        most = MOST_CELLS if most is None else most
        found = self
        while True:
            kept = begins_with_zeros(found.group, found.level)
            found = Shown(found.group[kept], found.cell[kept], found.trials[kept], found.level)
            if found.cell.size <= most:
                return found
            found = replace(found, level=found.level + 1)


def begins_with_zeros(hashes: Words, bits: int) -> Flags:
    """Which of these hashes begin with so many zero bits; with none, all."""
    return hashes < np.uint64(1 << (64 - bits)) if bits else np.ones(hashes.size, dtype=bool)


@dataclass
class Tally:
    """The trials of one publication, as they pass, and the limits of its groups."""

    shown: Shown = field(default_factory=Shown)
    groups: list[Words] = field(default_factory=list)
    limits: list[Floats] = field(default_factory=list)
    seen: int = 0

    def add(self, kernel: Kernel, batch: CellBatch) -> None:
        """Note a batch of whole groups that is published."""
        ids, cells, drawn = kernel.trials(batch)
        self.seen += batch.groups
        self.shown = self.shown.with_(Shown(ids[batch.group_of_cell], cells, drawn))
        kept = begins_with_zeros(ids, self.shown.level)
        self.groups.append(ids[kept])
        self.limits.append(kernel.limits(batch)[kept])

    def join(self, part: Tally) -> None:
        """Add what another machine tallied of other groups."""
        self.seen += part.seen
        self.shown = self.shown.with_(part.shown)
        self.groups += part.groups
        self.limits += part.limits

    def thinned(self, most: int) -> Tally:
        """The tally of fewer groups, chosen by their hashes."""
        shown = self.shown.thinned(most)
        groups, limits = np.concatenate(self.groups), np.concatenate(self.limits)
        kept = begins_with_zeros(groups, shown.level)
        return Tally(shown, [groups[kept]], [limits[kept]], self.seen)

    def excess(self, shown: Shown) -> Floats:
        """For the groups of this publication that are kept: all shown trials over the limit."""
        if not self.groups:
            return np.zeros(0)
        groups, limits = np.concatenate(self.groups), np.concatenate(self.limits)
        kept = begins_with_zeros(groups, shown.level)
        groups, limits = groups[kept], limits[kept]
        order = np.argsort(groups)
        place = np.searchsorted(groups[order], shown.group)
        place = np.minimum(place, groups.size - 1)
        here = groups[order][place] == shown.group
        total = np.bincount(place[here], weights=shown.trials[here], minlength=groups.size)
        return excess_over(total.astype(np.int64), limits[order])


@dataclass(frozen=True)
class Tallied:
    """Publishes as a kernel does, and tallies the trials."""

    kernel: Kernel
    tally: Tally

    def __call__(self, batch: CellBatch) -> Iterator[PublishedBatch]:
        """Publish the batch."""
        self.tally.add(self.kernel, batch)
        return self.kernel(batch)


@dataclass(frozen=True)
class TallyPart:
    """Tallies the groups of one part of the table, on whatever machine has them."""

    kernel: Kernel

    def __call__(self, batches: Iterator[CellBatch]) -> Tally:
        """The tally, small enough to be sent."""
        tally = Tally()
        for batch in batches:
            tally.add(self.kernel, batch)
        return tally.thinned(MOST_CELLS_OF_A_PART)


def excess_words(excess: Floats, groups: int, level: int) -> str:
    """The groups of which more trials are out than one release may show; empty if there are none.

    ``excess`` has one entry for each group that is kept, ``groups`` is how many there are in all.
    """
    over = excess[excess > 1.0]
    if not over.size:
        return ""
    many, about = over.size << level, "About " if level else ""
    return (
        f"{about}{min(many, groups):,} of {groups:,} groups have shown more different trials in"
        f" this series than one release may: {over.mean():.2f} times as many on average,"
        f" {over.max():.2f} times at most."
    )
