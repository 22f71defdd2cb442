"""How many different trials of each group the releases of a series have shown together.

Trial i of a cell is the same in every release with one key, and a release with n trials of a cell
shows trials 0 to n-1. So the largest n so far, cell by cell, is all that must be remembered. It is
kept under keyed hashes in a file beside the ledger, sealed with the key: whoever has the key can
read from it about as much as from key and release together.
"""

from __future__ import annotations

import hashlib
import io
import os
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.randomness import Key, Words, new_salt, seal, unseal
from reconpriv.errors import LedgerError
from reconpriv.ledger.entries import entries_of, lost_series, standing_entries
from reconpriv.ledger.file import Body, content_of, private_file, refused, see_ledger
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
        most = MOST_CELLS if most is None else most
        level = self.level
        while np.count_nonzero(kept := begins_with_zeros(self.group, level)) > most:
            level += 1
        return Shown(self.group[kept], self.cell[kept], self.trials[kept], level)


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
        return reduce(
            Shown.with_, (one for n, one in self.shown.items() if n[0] == series), Shown()
        )

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
        place = np.minimum(np.searchsorted(groups[order], shown.group), groups.size - 1)
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


SUFFIX = ".trials"
COUNT = "trials"
"""What a line calls the digest of this file; null where counting started again."""


class _UnsoundError(LedgerError):
    """The file is not the one that the ledger knows."""


class TrialFile:
    """The trials that were shown so far, by series."""

    def __init__(self, key: Key, key_file: Path) -> None:
        """``key_file`` is where the key is; the file beside it may not exist yet."""
        self.path = key_file.with_name(key_file.name + SUFFIX)
        # One name: whoever writes holds the ledger's lock.
        self._next = self.path.with_name(f".{self.path.name}.new")
        self._key, self._key_file = key, key_file

    def fault(self, bodies: tuple[Body, ...]) -> str:
        """What is wrong with the file, given the lines of its ledger; empty if nothing is."""
        try:
            self._find(bodies)
        except _UnsoundError as error:
            return error.what
        return ""

    def parts(self, bodies: tuple[Body, ...]) -> CountedTrials:
        """What was shown; refuses a file that does not go with the ledger's lines.

        What was withdrawn is left out, and so is what a series kept together once none of its
        releases counts.
        """
        found = self._find(bodies)
        if found is None:
            return CountedTrials()
        gone = {
            (one.fingerprint.series, part)
            for one in entries_of(bodies)
            if one.withdrawn is not None
            for part in (one.part or "", "")
        }
        counts = {(one.fingerprint.series, "") for one in standing_entries(bodies)}
        return _parts(found[1]).without(gone - counts - {(one, "") for one in lost_series(bodies)})

    def alone(self) -> tuple[str, tuple[str, ...]] | None:
        """The digest of the file and the series that it counts, whatever the ledger says.

        None if there is no file, or none that this key has written.
        """
        sealed = self._sealed(self.path)
        content = None if sealed is None else unseal(self._key, sealed)
        if sealed is None or content is None:
            return None
        return _digest(sealed), _parts(content).series

    def finish(self, bodies: tuple[Body, ...]) -> None:
        """Finish what a process did not that was killed just after its line was written."""
        found = self._find(bodies)
        if found is not None and found[0] == self._next:
            self.commit()

    def prepare(self, parts: CountedTrials) -> str:
        """Write the next file under its passing name; returns its digest for the line."""
        stream = io.BytesIO()
        arrays: dict[str, Any] = {}
        for (series, part), one in parts.shown.items():
            name = f"{series}.{part}" if part else series
            arrays |= {f"{name}:{part}": np.asarray(value) for part, value in vars(one).items()}
        np.savez(stream, **arrays)
        sealed = seal(self._key, stream.getvalue())
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        try:
            self._next.unlink(missing_ok=True)
            with os.fdopen(os.open(self._next, flags, 0o600), "wb") as file:
                file.write(sealed)
                file.flush()
                os.fsync(file.fileno())
        except BaseException as error:
            self.abandon()
            if isinstance(error, OSError):
                raise refused(self.path.name, "written", error) from None
            raise
        return _digest(sealed)

    def commit(self) -> None:
        """The line is written: the next file takes its place."""
        with suppress(FileNotFoundError):
            self._next.replace(self.path)

    def abandon(self) -> None:
        """The line was not written: forget the next file."""
        with suppress(OSError):
            self._next.unlink(missing_ok=True)

    def remove(self) -> None:
        """Forget all trials, to start counting again."""
        for path in (self.path, self._next):
            path.unlink(missing_ok=True)

    def _find(self, bodies: tuple[Body, ...]) -> tuple[Path, bytes] | None:
        """The file that goes with these lines and what it holds; None if there need not be one."""
        # The digest that the lines end with; None if they say nothing of this file.
        recorded = next((body[COUNT] for body in reversed(bodies) if COUNT in body), None)
        sealed = self._sealed(self.path)
        if recorded is None and bodies:  # a ledger that does not say: any file of this key will do
            return None if sealed is None else (self.path, self._opened(sealed))
        for path in (self.path, self._next):
            content = sealed if path == self.path else self._sealed(path)
            if recorded is not None and content is not None and _digest(content) == recorded:
                return path, self._opened(content)
        if sealed is None:
            if recorded is None:
                return None
            raise self._refused("is missing.")
        self._opened(sealed)
        raise self._refused(
            "does not go with the ledger: one of the two is an older copy, or the ledger lost its"
            " last lines."
        )

    def _opened(self, sealed: bytes) -> bytes:
        content = unseal(self._key, sealed)
        if content is None:
            raise self._refused("is not as it was written.")
        return content

    def _refused(self, wrong: str) -> LedgerError:
        what = f"{self.path.name}, which counts the trials of earlier releases,"
        return _UnsoundError(f"{what} {wrong}", hint=see_ledger(self._key_file))

    def _sealed(self, path: Path) -> bytes | None:
        try:
            with private_file(path, path.name) as handle:
                return content_of(handle, path.name)
        except FileNotFoundError:
            return None


def _parts(content: bytes) -> CountedTrials:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        names = dict.fromkeys(name.partition(":")[0] for name in arrays)
        return CountedTrials(
            {
                (name.partition(".")[0], name.partition(".")[2]): Shown(
                    arrays[f"{name}:group"],
                    arrays[f"{name}:cell"],
                    arrays[f"{name}:trials"],
                    int(arrays[f"{name}:level"]),
                )
                for name in names
            }
        )


def _digest(sealed: bytes) -> str:
    return hashlib.sha256(sealed).hexdigest()
