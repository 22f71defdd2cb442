"""What is proposed for each column: at first, and once one of them is sensitive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from htmltools import Tag
from shiny import reactive, render

import reconpriv as rp
from reconpriv.studio.pieces.parts import notice
from reconpriv.studio.work.background import Computation
from reconpriv.studio.work.live import Live
from reconpriv.studio.work.workspace import Opened


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


def giveaways(opened: Opened, proposals: rp.Proposals) -> dict[str, str]:
    """The columns to leave out only because they tell the sensitive one, with the reason."""
    before = set(opened.proposals.named("drop"))
    return {
        one.column: one.reason
        for one in proposals.columns
        if one.role == "drop" and one.column not in before
    }


def giveaway_notice(opened: Opened, proposals: rp.Proposals) -> Tag | None:
    """Which columns tell the sensitive one."""
    found = giveaways(opened, proposals)
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


def serve_giveaways(live: Live, roles: Callable[[], Mapping[str, str]]) -> None:
    """Once a column is sensitive, leave out those that tell its value, and say so.

    ``roles`` are those of the form. If the proposals cannot be made, the audit names the columns.
    """
    workspace = live.workspace
    proposals: Computation[tuple[Opened, str], rp.Proposals] = Computation(
        workspace.report_pool, lambda key: workspace.propose(*key)
    )

    @reactive.calc
    def key() -> tuple[Opened, str] | None:
        """The open table and the column of it that is sensitive in the form."""
        opened = live.opened()
        names = [name for name, role in roles().items() if role == "sensitive"]
        return (opened, names[0]) if opened is not None and len(names) == 1 else None

    @reactive.calc
    def current() -> rp.Proposals | None:
        return proposals.result(key())

    @reactive.effect
    def _() -> None:
        wanted = key()
        if wanted is not None:
            proposals.request(wanted)

    @reactive.effect
    @reactive.event(current)
    async def _() -> None:
        opened, now = live.opened(), current()
        # Only once: whoever makes such a column public again has read why it was left out.
        if opened is None or now is None or not workspace.acts_first(opened, now):
            return
        names = [column.name for column in opened.summary.columns]
        found = giveaways(opened, now)
        await live.send("leave-out", {
            f"role_{opened.number}_{names.index(name)}": f"Left out: it {reason}."
            for name, reason in found.items()
        })  # fmt: skip

    @render.ui
    def giveaway_note() -> Tag | None:
        opened, now = live.opened(), current()
        return None if opened is None or now is None else giveaway_notice(opened, now)
