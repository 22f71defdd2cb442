"""One publication before its ledger: judged before the work, recorded before it is final."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from reconpriv.cells.randomness import Key
from reconpriv.columns.schema import Schema
from reconpriv.errors import LedgerError, RoleChangeError, SecondSampleError
from reconpriv.ledger.entries import (
    PUBLICATION,
    UNFINISHED,
    Entry,
    Fingerprint,
    keyed_marks,
    lost_series,
    standing_entries,
)
from reconpriv.ledger.file import Body, Lines, typed
from reconpriv.ledger.ledger import Ledger, now
from reconpriv.ledger.roles import (
    Clash,
    clash_words,
    clashes,
    known_elsewhere,
    open_marks,
    role_marks,
    roles_of,
)
from reconpriv.ledger.trials import COUNT, Tally, excess_words
from reconpriv.messages.phrases import listed
from reconpriv.messages.remedies import Advice, Control, Remedy, make_key
from reconpriv.policy.old_names import stored
from reconpriv.policy.policy import Policy

_NOT_TOLD = ("margins", "protect", "harmless")  # of a policy, as they name values and columns


@dataclass(frozen=True)
class Standing:
    """What a ledger says about a publication: earlier ones of its series, and other samples.

    ``clashes`` are the columns that had another role in another series. ``lost`` is true if the
    ledger has lost the lines of its series, ``may_be_second`` if it has lost those of another one,
    which may have been a sample of the same table.
    """

    series: list[Entry]
    others: list[Entry]
    clashes: list[Clash]
    lost: bool
    may_be_second: bool

    @property
    def begun(self) -> bool:
        """True if its series was published before: what is out cannot be refused any more."""
        return bool(self.series) or self.lost

    @property
    def second(self) -> bool:
        """True if this is a second sample, or may be one."""
        return not self.begun and (bool(self.others) or self.may_be_second)


class Account:
    """The ledger's view of a publication; a context in which it is made.

    ``notes`` say that it continues a series, ``warnings`` what an adversary gains by it.
    """

    def __init__(
        self,
        ledger: Ledger,
        key: Key,
        schema: Schema,
        policy: Policy,
        *,
        second_sample: bool,
        role_change: bool,
    ) -> None:
        self.schema, self.policy, self.tally = schema, policy, Tally()
        self.notes: list[str] = []
        self.warnings: list[str] = []
        self._ledger, self._second_sample, self._role_change = ledger, second_sample, role_change
        self._fingerprint = Fingerprint.of(key, schema, policy)
        self._mark, self._roles = keyed_marks(key), roles_of(schema)
        self._line: int | None = None

    @classmethod
    def open(
        cls,
        key: Key,
        schema: Schema,
        policy: Policy,
        *,
        second_sample: bool,
        role_change: bool = False,
    ) -> Self | None:
        """Judge a publication before any work is done; None if its key has no ledger."""
        ledger = Ledger.of(key)
        if ledger is None:
            return None
        account = cls(
            ledger, key, schema, policy, second_sample=second_sample, role_change=role_change
        )
        with ledger.file.reading() as lines:
            account._judge(ledger.file.sound(lines))
            ledger.trial_file.parts(lines.bodies)  # refuses one that is not sound
        ledger.file.check_writable()
        return account

    def record(self, records: int, groups: int) -> None:
        """Write the line; the release must not become final unless this succeeds.

        It is judged again: another publisher may have been quicker.
        """

        def line(lines: Lines) -> Body:
            standing = self._judge(lines)
            self._tell(standing)
            body = self._body(standing) | {"records": records, "groups": groups}
            return body | self._count(standing, lines) | {"line": len(lines.bodies) + 1}

        self._line = self._ledger.file.append(line, self._ledger.trial_file)["line"]

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
                self._ledger.file.append(lambda _: body)

    def _judge(self, lines: Lines) -> Standing:
        """Refuse a change of roles, or a second sample, that nobody asked for."""
        standing = self._standing(lines)
        if standing.begun:
            return standing
        if standing.clashes and not self._role_change:
            raise RoleChangeError(
                clash_words(standing.clashes),
                hint=Advice(
                    "For another table, use another key.",
                    make_key("other.key"),
                    self._if_never_handed_out(standing.clashes[-1].line),
                    Remedy("if you must publish both, say so: {}", Control.ROLE_CHANGE, True),
                ),
            )
        if self._second_sample or not standing.second:
            return standing
        asked = Control.SECOND_SAMPLE
        if not standing.others:
            raise SecondSampleError(
                "The ledger of this key has lost the lines of an earlier publication: this may be a"
                " second, independent sample of the same table.",
                hint=Remedy("if it is not, or if that is what you want, say so: {}", asked, True),
            )
        last = standing.others[-1]
        what = listed(self._fingerprint.differences(last.fingerprint))
        raise SecondSampleError(
            f"This key published this table with another {what} on {last.date[:10]}: a"
            " second, independent sample could be averaged with that one.",
            hint=Advice(
                Remedy("to try settings out, use the test key: {}", Control.TEST_KEY, True),
                self._if_never_handed_out(last.line),
                Remedy("if that is what you want, say so: {}", asked, True),
            ),
        )

    def _standing(self, lines: Lines) -> Standing:
        mine, known = self._fingerprint, standing_entries(lines.bodies)
        apart = [one for one in known if one.fingerprint != mine]
        # Of several publications with a clash, the last is told.
        changed = {
            (clash.name, clash.once): replace(clash, date=one.date, line=one.line)
            for one in apart
            for clash in clashes(self._roles, self._mark, one.roles)
        }
        lost = lost_series(lines.bodies)
        return Standing(
            [one for one in known if one.fingerprint == mine],
            [one for one in apart if one.fingerprint.same_table(mine)],
            [*changed.values()],
            lost=mine.series in lost,
            may_be_second=bool(lost) and mine.series not in lost,
        )

    def _if_never_handed_out(self, line: int) -> Remedy:
        file = typed(self._ledger.file.key_file)
        words = "if that release was never handed out, withdraw it: {}"
        return Remedy(words, Control.WITHDRAW, (file, str(line)))

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
        promise = (self.policy.tolerance, self.policy.doubt, self.policy.tail_bound.name)
        names = ("tolerance", "doubt", "bound")
        if any(tuple(one.policy[name] for name in names) != promise for one in finished):
            self.warnings.append(
                "Earlier releases of the series had another policy: together they protect only as"
                " well as the weakest of them."
            )
        spent = [one.rho for one in finished if one.rho is not None]
        margins = self.policy.wanted_margins
        if spent and margins.rho:
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
        if standing.clashes:
            self.warnings.append(clash_words(standing.clashes, done=True))
        if not standing.begun:
            self.warnings += known_elsewhere(self._ledger.file.path, self.schema)

    def _count(self, standing: Standing, lines: Lines) -> Body:
        """Add the trials of this publication to those of its series, and say if they are many."""
        file, series = self._ledger.trial_file, self._fingerprint.series
        file.finish(lines.bodies)
        kept = file.parts(lines.bodies).with_(series, self.tally.shown)
        shown = kept.of(series)
        missed = sum(not one.counted for one in standing.series)
        if missed:
            self.notes.append(
                f"The trials of {missed} of the {len(standing.series) + 1} releases of the series"
                " were not counted, or not all of them; more may be out than reconpriv knows of."
            )
        excess = self.tally.excess(shown)
        if standing.series and (words := excess_words(excess, self.tally.seen, shown.level)):
            self.warnings.append(words)
        return {COUNT: file.prepare(kept), "part": kept.last}

    def _body(self, standing: Standing) -> Body:
        margins, said = self.policy.wanted_margins, stored(self.policy.as_dict())
        return {
            "what": PUBLICATION,
            "date": now(),
            "fingerprint": self._fingerprint.as_dict(),
            "roles": sorted(role_marks(self._roles, self._mark)),
            "known": open_marks(self.schema),
            "policy": {name: said[name] for name in said if name not in _NOT_TOLD},
            "rho": margins.rho or None,
            "second_sample": standing.second,
            "role_change": bool(standing.clashes) and not standing.begun,
            "counted": True,
        }
