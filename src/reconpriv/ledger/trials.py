"""How many different trials of each group the releases of a series have shown together.

Trial i of a cell is the same in every release with one key, and a release with n trials of a cell
shows trials 0 to n-1. So the largest n so far, cell by cell, is all that must be remembered. It is
kept under keyed hashes in a file beside the ledger, sealed with the key: whoever has the key can
read from it about as much as from key and release together.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from reconpriv.core.cells import CellBatch
from reconpriv.core.kernel import Kernel, PublishedBatch, excess_over
from reconpriv.core.randomness import Key, Words, seal, unseal
from reconpriv.errors import LedgerError
from reconpriv.theory.arrays import Flags, Floats, Ints

SUFFIX = ".trials"
MOST_CELLS = 1 << 18
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

    def thinned(self) -> Shown:
        """As many groups as may be kept, chosen by their hashes alone."""
        found = self
        while True:
            kept = begins_with_zeros(found.group, found.level)
            found = Shown(found.group[kept], found.cell[kept], found.trials[kept], found.level)
            if found.cell.size <= MOST_CELLS:
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


class TrialFile:
    """The file beside a ledger that remembers the trials of every series."""

    def __init__(self, key: Key, ledger: Path) -> None:
        """``ledger`` is the ledger's path."""
        self.path = ledger.with_suffix(SUFFIX)
        self._key = key

    def read(self) -> dict[str, Shown]:
        """What was shown, by series; nothing if there is no file yet."""
        try:
            sealed = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise LedgerError(f"{self.path.name} cannot be read: {error.strerror}.") from None
        content = unseal(self._key, sealed)
        if content is None:
            raise LedgerError(
                f"{self.path.name}, which counts the trials of earlier releases, is not as it was"
                " written.",
                hint="Restore it from a backup; without it, counting starts again.",
            )
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            names = sorted({name.partition(":")[0] for name in arrays})
            return {
                name: Shown(
                    arrays[f"{name}:group"],
                    arrays[f"{name}:cell"],
                    arrays[f"{name}:trials"],
                    int(arrays[f"{name}:level"]),
                )
                for name in names
            }

    def write(self, shown: dict[str, Shown]) -> None:
        """Replace the file, whole or not at all."""
        stream = io.BytesIO()
        arrays: dict[str, Any] = {}
        for name, one in shown.items():
            arrays |= {
                f"{name}:group": one.group,
                f"{name}:cell": one.cell,
                f"{name}:trials": one.trials,
                f"{name}:level": np.array(one.level),
            }
        np.savez(stream, **arrays)
        # One name: whoever writes holds the ledger's lock, and reuses what a killed process left.
        work = self.path.with_name(f".{self.path.name}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        try:
            with os.fdopen(os.open(work, flags, 0o600), "wb") as file:
                file.write(seal(self._key, stream.getvalue()))
                file.flush()
                os.fsync(file.fileno())
            work.replace(self.path)
        except OSError as error:
            raise LedgerError(f"{self.path.name} cannot be written: {error.strerror}.") from None
        finally:
            with suppress(OSError):
                work.unlink(missing_ok=True)
