"""The file beside a ledger that remembers the trials of every series: ``my.key.trials``.

It is sealed with the key. The ledger's last line that counted trials has its digest, so a file that
is missing, edited or an older copy is noticed; so is a ledger that lost its last lines, as long as
this file kept up with them. The next file waits under another name until its line is written: a
process that is killed at any point leaves one file that the ledger knows.
"""

from __future__ import annotations

import hashlib
import io
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from reconpriv.cells.randomness import Key, seal, unseal
from reconpriv.errors import LedgerError
from reconpriv.ledger.entries import entries_of, lost_series, standing_entries
from reconpriv.ledger.file import Body, see_ledger
from reconpriv.ledger.private_file import content_of, private_file, refused
from reconpriv.ledger.trials import CountedTrials, Shown

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
        if sealed is None:
            return None
        content = unseal(self._key, sealed)
        return None if content is None else (_digest(sealed), _parts(content).series)

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
