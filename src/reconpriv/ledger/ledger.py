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
from reconpriv.ledger.trial_file import COUNT, TrialFile

PUBLICATION, UNFINISHED, REPAIR, RECOUNT = "publication", "unfinished", "repair", "recount"


@dataclass(frozen=True)
class Entry:
    """One publication: its settings, its policy and its totals; no data.

    ``series`` numbers the different samples that the key gave, ``release`` the publications within
    a series. ``counted`` says whether its trials are among those counted for the series,
    ``finished`` is false if it is known to have failed.
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
    """Whether a ledger is as it was written, and what to do if not.

    ``count_fault`` says what is wrong with the file that counts trials; empty if nothing is.
    """

    lines: int
    fault: Fault | None
    name: str
    count_fault: str = ""

    @property
    def sound(self) -> bool:
        """Whether every line is as it was written, and the count of trials goes with them."""
        return self.fault is None and not self.count_fault

    @property
    def repairable(self) -> bool:
        """Whether a repair makes it sound."""
        return not self.sound and (self.fault is None or self.fault.torn)

    @property
    def verdict(self) -> str:
        """The finding in a sentence or two."""
        if self.fault is None and self.count_fault:
            return (
                f"{self.count_fault} Restore both from a backup. If there is none, a repair goes on"
                " with what is there, and the ledger says so."
            )
        if self.fault is None:
            match self.lines:
                case 0:
                    return f"{self.name}: nothing was published with this key yet."
                case 1:
                    return f"The only line of {self.name} is as it was written."
            return f"All {self.lines:,} lines of {self.name} are as they were written."
        if self.fault.torn:
            return (
                f"Line {self.fault.line} of {self.name}, the last, lacks its end: the process that"
                " wrote it was stopped, or the file was cut. Repair removes that line; look whether"
                " its release is there."
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
            "count_fault": self.count_fault,
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
        self.trial_file = TrialFile(found, found.file)

    @classmethod
    def of(cls, key: Key) -> Self | None:
        """The ledger of a key, or None if such a key has none."""
        return None if key.file is None or key.is_test else cls(key)

    def check(self) -> LedgerCheck:
        """Compare every line with its MAC, and the count of trials with the last line."""
        with self.file.reading() as lines:
            wrong = "" if lines.fault is not None else self.trial_file.fault(lines.bodies)
            return LedgerCheck(len(lines.bodies), lines.fault, self.file.path.name, wrong)

    def repair(self) -> tuple[str, ...]:
        """Remove a last line that lacks its end, and settle a count of trials that is not sound.

        Says what was done. Such a line is left by a process that was killed before its release was
        finished. A count that this key has written is taken as it is, and the ledger remembers the
        series that only the count knows; without one, counting starts again.
        """
        done = []
        if self.file.repair(lambda kept: {"what": REPAIR, "date": now(), "kept": kept}):
            done.append("The incomplete last line was replaced by one that records the repair.")
        if self.check().count_fault:
            digest, series = self.trial_file.alone() or (None, ())
            known = {one.fingerprint.series for one in self.entries}
            lost = [one for one in series if one not in known]
            self.file.append(
                lambda _: {"what": RECOUNT, "date": now(), COUNT: digest, "lost": lost}
            )
            if digest is None:
                self.trial_file.remove()
                done.append("Counting of trials starts again.")
            else:
                done.append("Counting of trials goes on from the count that is there.")
            done += [] if not lost else [f"{_lost_words(len(lost))}."]
        return tuple(done)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The publications, oldest first; a ledger that is torn or edited is refused."""
        return entries_of(self.file.whole().bodies)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What a repair could not restore, in sentences."""
        return tuple(
            f"Repaired on {body['date'][:10]}: the ledger or the count of trials was not complete,"
            " so releases from before that day may be missing here."
            + (f" {_lost_words(len(body['lost']))}." if body.get("lost") else "")
            for body in self.file.whole().bodies
            if body["what"] == RECOUNT
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        entries = [one.as_dict() for one in self.entries]
        name = self.file.path.name
        return {"ledger": name, "publications": entries, "doubts": list(self.doubts)}

    def __repr__(self) -> str:
        """Its name; nothing of what it says."""
        return f"<reconpriv ledger {self.file.path.name}>"


def entries_of(bodies: tuple[Body, ...]) -> tuple[Entry, ...]:
    """The publications among the lines of a ledger, in order."""
    failed = {body["of"] for body in bodies if body["what"] == UNFINISHED}
    recounts = [line for line, body in enumerate(bodies, start=1) if body["what"] == RECOUNT]
    counted_since = recounts[-1] if recounts else 0
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
                body["counted"] and line > counted_since,
                finished,
            )
        )
    return tuple(found)


def lost_series(bodies: tuple[Body, ...]) -> frozenset[str]:
    """The series that were published, but whose lines the ledger has lost."""
    lost = (body.get("lost", []) for body in bodies if body["what"] == RECOUNT)
    return frozenset(series for part in lost for series in part)


def _lost_words(series: int) -> str:
    if series == 1:
        return "A series was published of which the ledger has no line"
    return f"{series} series were published of which the ledger has no line"


def now() -> str:
    """The time, to the second, as the lines have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
