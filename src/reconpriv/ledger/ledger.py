"""A ledger as its owner reads it: what was published with a key."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from reconpriv.cells.randomness import Key
from reconpriv.errors import LedgerError
from reconpriv.ledger.entries import RECOUNT, REPAIR, WITHDRAWAL, Entry, entries_of
from reconpriv.ledger.file import Body, LedgerFile, LineFault, Lines
from reconpriv.ledger.trials import COUNT, TrialFile
from reconpriv.messages.arguments import checked_methods
from reconpriv.messages.phrases import listed

_LONGEST_REASON = 200


@dataclass(frozen=True)
class LedgerCheck:
    """What is wrong with a ledger, or with the file that counts trials, and what to do about it."""

    lines: int
    fault: LineFault | None
    name: str
    count_fault: str = ""

    @property
    def sound(self) -> bool:
        """True if every line is as it was written, and the count of trials goes with them."""
        return self.fault is None and not self.count_fault

    @property
    def repairable(self) -> bool:
        """True if a repair makes it sound."""
        return not self.sound and (self.fault is None or self.fault.torn)

    @property
    def verdict(self) -> str:
        """The finding in a sentence or two."""
        if self.fault is not None and self.fault.torn:
            return (
                f"Line {self.fault.line} of {self.name}, the last, lacks its end: the process that"
                " wrote it was stopped, or the file was cut. Repair removes that line; look whether"
                " its release is there."
            )
        if self.fault is not None:
            return (
                f"Line {self.fault.line} of {self.name} is not as it was written: it, or the line"
                " before, was changed, removed or moved, or the ledger belongs to another key."
                " Restore the ledger from a backup."
            )
        if self.count_fault:
            return (
                f"{self.count_fault} Restore both from a backup. If there is none, a repair goes on"
                " with what is there, and the ledger says so."
            )
        if self.lines == 0:
            return f"{self.name}: nothing was published with this key yet."
        if self.lines == 1:
            return f"The only line of {self.name} is as it was written."
        return f"All {self.lines:,} lines of {self.name} are as they were written."

    def __str__(self) -> str:
        return self.verdict

    def as_dict(self) -> dict[str, Any]:
        """The finding for JSON."""
        return {
            "ledger": self.name,
            "sound": self.sound,
            "lines": self.lines,
            "fault": self.fault and vars(self.fault),
            "count_fault": self.count_fault,
            "verdict": self.verdict,
        }


@checked_methods
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
            done += [_lost_words(lost)] if lost else []
        return tuple(done)

    def withdraw(self, line: int, *, why: str) -> tuple[str, ...]:
        """Record that the release of a line was never handed out: it no longer counts.

        Says what was done. The reason is written into the ledger as it is.
        """
        why = _reason(why)
        done: list[str] = []

        def withdrawal(lines: Lines) -> Body:
            entry = _withdrawable(entries_of(lines.bodies), line)
            parts, name = self.trial_file.parts(lines.bodies), entry.fingerprint.series
            body: Body = {"what": WITHDRAWAL, "date": now(), "of": line, "why": why}
            left = self.trial_file.parts((*lines.bodies, body))
            done.append(f"The publication of {entry.date[:10]} in line {line} no longer counts.")
            if entry.counted and (name, "") in left.shown and (name, entry.part) not in parts.shown:
                done.append(
                    "Its trials stay in the count, where they cannot be told from those of other"
                    " releases of the series."
                )
            return body

        self.file.append(withdrawal)
        return tuple(done)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The publications, oldest first, withdrawn ones too; an edited ledger is refused."""
        return entries_of(self.file.whole().bodies)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What a repair could not restore, in sentences."""
        return tuple(
            f"Repaired on {body['date'][:10]}: the ledger or the count of trials was not complete,"
            " so releases from before that day may be missing here."
            + (f" {_lost_words(body['lost'])}" if body.get("lost") else "")
            for body in self.file.whole().bodies
            if body["what"] == RECOUNT
        )

    def as_dict(self) -> dict[str, Any]:
        """The publications for JSON."""
        return {
            "ledger": self.file.path.name,
            "publications": [one.as_dict() for one in self.entries],
            "doubts": list(self.doubts),
        }

    def __repr__(self) -> str:
        """Its name; nothing of what it says."""
        return f"<reconpriv ledger {self.file.path.name}>"


def _reason(why: Any) -> str:
    """A reason that a line can hold, and a terminal show."""
    if isinstance(why, str) and why.strip() and why.isprintable() and len(why) <= _LONGEST_REASON:
        return why.strip()
    raise LedgerError(
        f"A withdrawal needs its reason: one line of text, at most {_LONGEST_REASON} characters.",
        hint="Say why nobody got the release.",
    )


def _withdrawable(entries: tuple[Entry, ...], line: Any) -> Entry:
    """The publication of a line, if it counts."""
    found = next((one for one in entries if one.line == line), None)
    if found is None or isinstance(line, bool):
        known = [str(one.line) for one in entries if one.withdrawn is None]
        raise LedgerError(
            f"The ledger has no publication in line {line!r}.",
            hint=f"There is one in {listed(known)}." if known else "There is none to withdraw.",
        )
    if found.withdrawn is not None:
        raise LedgerError(
            f"The publication in line {line} was withdrawn on {found.withdrawn.date[:10]}."
        )
    return found


def _lost_words(series: list[str]) -> str:
    many = "A series was" if len(series) == 1 else f"{len(series)} series were"
    return f"{many} published of which the ledger has no line."


def now() -> str:
    """The time, to the second, as the lines have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
