"""One publication before its ledger: judged before the work, recorded before it is final."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from reconpriv.core.randomness import Key
from reconpriv.errors import LedgerError, SecondSampleError
from reconpriv.ledger.file import SUFFIX
from reconpriv.ledger.fingerprint import Fingerprint, open_hash
from reconpriv.ledger.ledger import (
    PUBLICATION,
    UNFINISHED,
    Entry,
    Ledger,
    entries_of,
    lost_series,
    now,
)
from reconpriv.ledger.lines import Body, Lines, unchecked_bodies
from reconpriv.ledger.trial_file import COUNT
from reconpriv.ledger.trials import Shown, Tally, excess_words
from reconpriv.messages.phrases import listed
from reconpriv.messages.remedies import Control, Remedy
from reconpriv.policy import Policy
from reconpriv.schema import Schema

_OTHER_BYTES = 1 << 24


@dataclass(frozen=True)
class Standing:
    """What a ledger says about a publication: earlier ones of its series, and other samples.

    ``lost`` says whether the ledger has lost the lines of its series, ``may_be_second`` whether it
    has lost those of another one, which may have been a sample of the same table.
    """

    series: tuple[Entry, ...]
    others: tuple[Entry, ...]
    lost: bool
    may_be_second: bool

    @property
    def second(self) -> bool:
        """Whether this is a second sample, or may be one."""
        begun = bool(self.series) or self.lost
        return not begun and (bool(self.others) or self.may_be_second)


@dataclass
class Account:
    """The ledger's view of a publication; a context in which it is made.

    ``notes`` say that it continues a series, ``warnings`` what an adversary gains by it.
    """

    ledger: Ledger
    schema: Schema
    policy: Policy
    fingerprint: Fingerprint
    second_sample: bool
    tally: Tally = field(default_factory=Tally)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _line: int | None = None

    @classmethod
    def open(
        cls, key: Key, schema: Schema, policy: Policy, *, second_sample: bool
    ) -> Account | None:
        """Judge a publication before any work is done; None if its key has no ledger."""
        ledger = Ledger.of(key)
        if ledger is None:
            return None
        mark = Fingerprint.of(key, schema, policy)
        account = cls(ledger, schema, policy, mark, second_sample)
        with ledger.file.reading() as lines:
            account._judge(ledger.file.sound(lines))
            ledger.trial_file.read(lines.bodies)  # refuses one that is not sound
        ledger.file.check_writable()
        return account

    def record(self, records: int, groups: int) -> None:
        """Write the line; the release must not become final unless this succeeds.

        It is judged again: another publisher may have been quicker.
        """

        def line(lines: Lines) -> Body:
            standing = self._judge(lines)
            self._tell(standing)
            body = self._body(records, groups, second=standing.second)
            return body | self._count(standing, lines) | {"line": len(lines.bodies) + 1}

        self._line = self.ledger.file.append(line, self.ledger.trial_file)["line"]

    def __enter__(self) -> Self:
        """The publication begins."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """If it failed after it was recorded, say so in the ledger."""
        if kind is not None and self._line is not None:
            body: Body = {"what": UNFINISHED, "date": now(), "of": self._line}
            # The reason of the failure matters more than that it could not be recorded.
            with suppress(LedgerError):
                self.ledger.file.append(lambda _: body)

    def _judge(self, lines: Lines) -> Standing:
        """Refuse a second sample that nobody asked for."""
        known = entries_of(lines.bodies)
        same = [one for one in known if one.fingerprint == self.fingerprint]
        others = [
            one
            for one in known
            if one.fingerprint != self.fingerprint and one.fingerprint.same_table(self.fingerprint)
        ]
        lost = lost_series(lines.bodies)
        mine = self.fingerprint.series in lost
        begun = bool(same) or mine
        if others and not begun and not self.second_sample:
            what = listed(self.fingerprint.differences(others[-1].fingerprint))
            raise SecondSampleError(
                f"This key published this table with another {what} on {others[-1].date[:10]}: a"
                " second, independent sample could be averaged with that one.",
                hint=Remedy("if that is what you want, say so: {}", Control.SECOND_SAMPLE, True),
            )
        if lost and not begun and not self.second_sample:
            raise SecondSampleError(
                "The ledger of this key has lost the lines of an earlier publication: this may be a"
                " second, independent sample of the same table.",
                hint=Remedy(
                    "if it is not, or if that is what you want, say so: {}",
                    Control.SECOND_SAMPLE,
                    True,
                ),
            )
        return Standing(tuple(same), tuple(others), mine, bool(lost) and not mine)

    def _tell(self, standing: Standing) -> None:
        finished = [one for one in standing.series if one.finished]
        if finished:
            self.notes.append(
                f"This is release {len(finished) + 1} of a series that began on"
                f" {finished[0].date[:10]}."
            )
        if standing.lost:
            self.notes.append(
                "The ledger has lost lines of this series: it had releases that are not listed."
            )
        weaker = {
            (one.policy["epsilon"], one.policy["delta"], one.policy["bound"]) for one in finished
        } - {(self.policy.epsilon, self.policy.delta, self.policy.tail_bound.name)}
        if weaker:
            self.warnings.append(
                "Earlier releases of the series had another policy: together they protect only as"
                " well as the weakest of them."
            )
        spent = [one.rho for one in finished if one.rho is not None]
        margins = self.policy.wanted_margins
        if spent and margins is not None:
            self.warnings.append(
                "The margins of the series add up: unless the table is unchanged, ρ is now as much"
                f" as {sum(spent) + margins.rho:.4g}."
            )
        if standing.second:
            certain = "is" if standing.others else "may be"
            self.warnings.append(
                f"This {certain} a second, independent sample of a table that the same key"
                " published: an adversary can average the two."
            )
        if not standing.series and not standing.second and not standing.lost:
            self.warnings += _known_elsewhere(self.ledger.file.path, self.schema.sensitive.name)

    def _count(self, standing: Standing, lines: Lines) -> Body:
        """Add the trials of this publication to those of its series, and say if they are many."""
        file, series = self.ledger.trial_file, self.fingerprint.series
        file.settle(lines.bodies)
        kept = file.read(lines.bodies)
        shown = kept.get(series, Shown()).with_(self.tally.shown)
        missed = sum(not one.counted for one in standing.series)
        if missed:
            self.notes.append(
                f"The trials of {missed} of the {len(standing.series) + 1} releases of the series"
                " were not counted, or not all of them; more may be out than reconpriv knows of."
            )
        excess = self.tally.excess(shown)
        if standing.series and (words := excess_words(excess, self.tally.seen, shown.level)):
            self.warnings.append(words)
        return {COUNT: file.prepare(kept | {series: shown})}

    def _body(self, records: int, groups: int, *, second: bool) -> Body:
        margins = self.policy.wanted_margins
        return {
            "what": PUBLICATION,
            "date": now(),
            "fingerprint": self.fingerprint.as_dict(),
            "known": open_hash(self.schema.sensitive.name),
            "policy": _plain_policy(self.policy),
            "rho": None if margins is None else margins.rho,
            "records": records,
            "groups": groups,
            "second_sample": second,
            "counted": True,
        }


def _plain_policy(policy: Policy) -> dict[str, Any]:
    """A policy without the values that it names."""
    said = policy.as_dict()
    return {name: said[name] for name in said if name not in ("margins", "protect", "harmless")}


def _known_elsewhere(own: Path, sensitive: str) -> list[str]:
    """A warning for each other ledger in the folder that has this sensitive column."""
    found = []
    for path in sorted(own.parent.glob(f"*{SUFFIX}")):
        if path != own and _knows(path, sensitive):
            found.append(
                f"The ledger {path.name} in the same folder has a table with this sensitive column:"
                " if it is this table, a new key makes a second, independent sample, which can be"
                " averaged with the first."
            )
    return found


def _knows(path: Path, sensitive: str) -> bool:
    try:
        with path.open("rb") as stream:
            content = stream.read(_OTHER_BYTES)
    except OSError:
        return False
    for body in unchecked_bodies(content):
        known = body.get("known")
        try:
            if isinstance(known, dict) and open_hash(sensitive, known["salt"]) == known:
                return True
        except (KeyError, TypeError, ValueError):
            continue
    return False
