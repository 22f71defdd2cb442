"""How many different trials of each group the releases of a series have shown together.

Trial i of a cell is the same in every release with one key, and a release with n trials of a cell
shows trials 0 to n-1. So the largest n so far, cell by cell, is all that must be remembered. It is
kept under keyed hashes in a file beside the ledger, sealed with the key: whoever has the key can
read from it about as much as from key and release together.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.randomness import Words, new_salt
from reconpriv.protect.kernel import Draw, excess_over
from reconpriv.theory.arrays import Flags, Floats, Ints

MOST_CELLS = 1 << 18
MOST_CELLS_OF_A_PART = 1 << 14  # there may be thousands of parts, and one machine gets them all


@dataclass(frozen=True)
class Shown:
    """The trials of each cell that were shown, with the keyed hashes of its group and of itself.

    Of very many groups only some are kept: those whose hash begins with ``level`` zero bits.
    """

    group: Words = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    cell: Words = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    trials: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
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
        level = self.level
        while True:
            kept = begins_with_zeros(self.group, level)
            if np.count_nonzero(kept) <= (MOST_CELLS if most is None else most):
                return Shown(self.group[kept], self.cell[kept], self.trials[kept], level)
            level += 1


KEPT_APART = 4


@dataclass(frozen=True)
class CountedTrials:
    """Trials by series and part, oldest first; a part can be taken out if its release is withdrawn.

    The latest releases of a series are a part each. The part ``""`` is those before them, whose
    trials can no longer be told apart, and stay counted. ``last`` is the part that was added last.
    """

    shown: dict[tuple[str, str], Shown] = field(default_factory=dict)
    last: str = ""

    @property
    def series(self) -> tuple[str, ...]:
        """The series that have trials."""
        return tuple(dict.fromkeys(series for series, _ in self.shown))

    def of(self, series: str) -> Shown:
        """All trials of a series together."""
        found = Shown()
        for (name, _), one in self.shown.items():
            found = found.with_(one) if name == series else found
        return found

    def without(self, gone: set[tuple[str, str]]) -> CountedTrials:
        """These parts, but for some."""
        return CountedTrials({name: one for name, one in self.shown.items() if name not in gone})

    def with_(self, series: str, shown: Shown) -> CountedTrials:
        """The trials of one more release of a series, as a part of their own."""
        apart = [name for name in self.shown if name[0] == series and name[1]]
        old = apart[: max(len(apart) + 1 - KEPT_APART, 0)]
        found = dict(self.without(set(old)).shown)
        for name in old:
            found[series, ""] = found.get((series, ""), Shown()).with_(self.shown[name])
        part = new_salt()
        return CountedTrials(found | {(series, part): shown}, part)


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

    def see(self, batch: CellBatch, draw: Draw) -> None:
        """Note what is drawn of a batch that is published."""
        batch = batch.whole
        self.seen += batch.groups
        group = draw.groups[batch.group_of_cell]
        self.shown = self.shown.with_(Shown(group, draw.cells, draw.trials))
        kept = begins_with_zeros(draw.groups, self.shown.level)
        self.groups.append(draw.groups[kept])
        self.limits.append(draw.limits[kept])

    def join(self, part: Tally) -> None:
        """Add what another machine tallied of other groups."""
        self.seen += part.seen
        self.shown = self.shown.with_(part.shown)
        self.groups += part.groups
        self.limits += part.limits

    def small(self) -> Tally:
        """The tally of few groups, chosen by their hashes: what one machine sends to another."""
        if not self.groups:
            return self
        shown = self.shown.thinned(MOST_CELLS_OF_A_PART)
        groups, limits = self._kept(shown.level)
        return Tally(shown, [groups], [limits], self.seen)

    def _kept(self, level: int) -> tuple[Words, Floats]:
        """The groups that are kept at a level, and their limits."""
        groups, limits = np.concatenate(self.groups), np.concatenate(self.limits)
        kept = begins_with_zeros(groups, level)
        return groups[kept], limits[kept]

    def excess(self, shown: Shown) -> Floats:
        """For the groups of this publication that are kept: all shown trials over the limit."""
        if not self.groups:
            return np.zeros(0)
        groups, limits = self._kept(shown.level)
        order = np.argsort(groups)
        place = np.searchsorted(groups[order], shown.group)
        place = np.minimum(place, groups.size - 1)
        here = groups[order][place] == shown.group
        total = np.bincount(place[here], weights=shown.trials[here], minlength=groups.size)
        return excess_over(total.astype(np.int64), limits[order])


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
