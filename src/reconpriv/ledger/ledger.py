"""A ledger as its owner reads it: what was published with a key."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from reconpriv.core.randomness import Key
from reconpriv.errors import LedgerError
from reconpriv.ledger.file import LedgerFile
from reconpriv.ledger.fingerprint import Fingerprint
from reconpriv.ledger.lines import Body, Fault

PUBLICATION, UNFINISHED, REPAIR = "publication", "unfinished", "repair"


@dataclass(frozen=True)
class Entry:
    """One publication: its settings, its policy and its totals; no data.

    ``series`` numbers the different samples that the key gave, ``release`` the publications within
    a series. ``counted`` says whether its trials were, ``finished`` is false if it is known to have
    failed.
    """

    line: int
    date: str
    series: int
    release: int
    fingerprint: Fingerprint
    policy: dict[str, Any]
    rho: float | None
    records: int
    groups: int
    second_sample: bool
    counted: bool
    finished: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; the hashes are left out, which nobody can read."""
        return {
            "line": self.line,
            "date": self.date,
            "series": self.series,
            "release": self.release,
            "policy": self.policy,
            "margins_rho": self.rho,
            "records": self.records,
            "groups": self.groups,
            "second_sample": self.second_sample,
            "trials_counted": self.counted,
            "finished": self.finished,
        }


@dataclass(frozen=True)
class LedgerCheck:
    """Whether a ledger is as it was written, and what to do if not."""

    lines: int
    fault: Fault | None
    name: str

    @property
    def sound(self) -> bool:
        """Whether every line is as it was written."""
        return self.fault is None

    @property
    def verdict(self) -> str:
        """The finding in a sentence or two."""
        if self.fault is None:
            return f"All {self.lines:,} lines of {self.name} are as they were written."
        if self.fault.torn:
            return (
                f"Line {self.fault.line} of {self.name}, the last, lacks its end: the process that"
                " wrote it was stopped before its release was finished. Repair removes that line."
            )
        return (
            f"Line {self.fault.line} of {self.name} is not as it was written: it, or the line"
            " before, was changed, removed or moved, or the ledger belongs to another key."
            " Restore the ledger from a backup."
        )

    def __str__(self) -> str:
        """The verdict."""
        return self.verdict

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        fault = None if self.fault is None else {"line": self.fault.line, "torn": self.fault.torn}
        return {
            "ledger": self.name,
            "sound": self.sound,
            "lines": self.lines,
            "fault": fault,
            "verdict": self.verdict,
        }


class Ledger:
    """What was published with a key that is kept in a file."""

    def __init__(self, key: Key | str | os.PathLike[str]) -> None:
        """``key`` is a key file, or a key that was read from one."""
        found = key if isinstance(key, Key) else Key.from_file(key)
        if found.file is None or found.is_test:
            raise LedgerError(
                "Only a key that is kept in a file has a ledger, and the test key has none."
            )
        self.file = LedgerFile(found, found.file)

    @classmethod
    def of(cls, key: Key) -> Self | None:
        """The ledger of a key, or None if such a key has none."""
        return None if key.file is None or key.is_test else cls(key)

    def check(self) -> LedgerCheck:
        """Compare every line with its MAC."""
        lines = self.file.read()
        return LedgerCheck(len(lines.bodies), lines.fault, self.file.path.name)

    def repair(self) -> bool:
        """Remove a last line that lacks its end; False if there is none. Nothing else is changed.

        Such a line is left by a process that was killed before its release was finished.
        """
        return self.file.repair(lambda kept: {"what": REPAIR, "date": now(), "kept": kept})

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The publications, oldest first; a ledger that is torn or edited is refused."""
        return entries_of(self.file.whole().bodies)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        entries = [one.as_dict() for one in self.entries]
        return {"ledger": self.file.path.name, "publications": entries}

    def __repr__(self) -> str:
        """Its name; nothing of what it says."""
        return f"<reconpriv ledger {self.file.path.name}>"


def entries_of(bodies: tuple[Body, ...]) -> tuple[Entry, ...]:
    """The publications among the lines of a ledger, in order."""
    failed = {body["of"] for body in bodies if body["what"] == UNFINISHED}
    series: dict[Fingerprint, int] = {}
    releases: dict[Fingerprint, int] = {}
    found = []
    for line, body in enumerate(bodies, start=1):
        if body["what"] != PUBLICATION:
            continue
        mark = Fingerprint.from_dict(body["fingerprint"])
        finished = line not in failed
        releases[mark] = releases.get(mark, 0) + finished
        found.append(
            Entry(
                line,
                body["date"],
                series.setdefault(mark, len(series) + 1),
                releases[mark],
                mark,
                body["policy"],
                body["rho"],
                body["records"],
                body["groups"],
                body["second_sample"],
                body["counted"],
                finished,
            )
        )
    return tuple(found)


def now() -> str:
    """The time, to the second, as the lines have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
