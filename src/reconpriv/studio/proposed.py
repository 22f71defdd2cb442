"""What is proposed for each column: at first, and once one of them is sensitive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from htmltools import Tag
from shiny import reactive, render

import reconpriv as rp
from reconpriv.studio.desk import Opened
from reconpriv.studio.jobs import Job
from reconpriv.studio.live import Live
from reconpriv.studio.parts import notice


@dataclass(frozen=True)
class Proposed:
    """A role for a column, with a sentence that says why, and bins if it should have some."""

    role: str
    reason: str = ""
    bins: str = ""


def proposal_of(opened: Opened, draft: Mapping[str, Any]) -> dict[str, Proposed]:
    """What is proposed, and the sensitive column that was named when the studio was started."""
    found = {one.column: _proposed(one) for one in opened.proposals.columns}
    named = draft.get("sensitive")
    return {**found, named: Proposed("sensitive")} if named in found else found


def _proposed(proposal: Any) -> Proposed:
    """A proposal with its reason as a sentence; a number of values is none."""
    reason = proposal.reason
    if reason == f"{proposal.distinct:,} values":
        return Proposed(proposal.role, bins=proposal.bins)
    return Proposed(proposal.role, f"{reason[:1].upper()}{reason[1:]}.", proposal.bins)


def told_by(opened: Opened, proposals: rp.Proposals) -> dict[str, str]:
    """The columns to leave out only because they tell the sensitive one, with the reason."""
    before = set(opened.proposals.named("drop"))
    return {
        one.column: one.reason
        for one in proposals.columns
        if one.role == "drop" and one.column not in before
    }


def told_notice(opened: Opened, proposals: rp.Proposals) -> Tag | None:
    """Which columns tell the sensitive one."""
    found = told_by(opened, proposals)
    if not found:
        return None
    words = "; ".join(f"{name!r} {reason}" for name, reason in found.items())
    it = "it is" if len(found) == 1 else "they are"
    return notice(
        f"{words}. Randomising a value protects nobody if a public column tells it, so {it} left"
        " out unless you say otherwise.",
        "warning",
        lead=f"Columns that tell {proposals.sensitive!r}: ",
    )


def serve_told(live: Live, roles: Callable[[], Mapping[str, str]]) -> None:
    """Once a column is sensitive, leave out those that tell its value, and say so.

    ``roles`` are those of the form. If the proposals cannot be made, the audit names the columns.
    """
    told: reactive.Value[tuple[Opened, rp.Proposals] | None] = reactive.value(None)
    job: Job[tuple[Opened, rp.Proposals]] = Job(
        live.desk.report_pool, told.set, lambda _: told.set(None)
    )

    @reactive.calc
    def sensitive() -> str | None:
        names = [name for name, role in roles().items() if role == "sensitive"]
        return names[0] if len(names) == 1 else None

    @reactive.calc
    def current() -> tuple[Opened, rp.Proposals] | None:
        """The proposals for the sensitive column of the form."""
        known = told()
        same = known is not None and known[0] is live.opened()
        return known if known and same and known[1].sensitive == sensitive() else None

    @reactive.effect
    @reactive.event(sensitive)
    def _() -> None:
        opened, name = live.opened(), sensitive()
        if opened is not None and name is not None and current() is None:
            job.start(lambda: (opened, live.desk.propose(opened, name)))

    @reactive.effect
    @reactive.event(current)
    async def _() -> None:
        now = current()
        # Only once: whoever makes such a column public again has read why it was left out.
        if now is None or not live.desk.first_told(*now):
            return
        opened, proposals = now
        names = [column.name for column in opened.summary.columns]
        message: dict[str, object] = {
            f"role_{opened.number}_{names.index(name)}": f"Left out: it {reason}."
            for name, reason in told_by(opened, proposals).items()
        }
        await live.session.send_custom_message("studio-told", message)

    @render.ui
    def told_note() -> Tag | None:
        now = current()
        return None if now is None else told_notice(*now)
