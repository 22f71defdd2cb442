"""What one page shows of the desk: reactive values, and moving between steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shiny import reactive
from shiny.session import Session

import reconpriv as rp
from reconpriv.studio.desk import Desk, Opened, Published, Settled
from reconpriv.studio.judged import Judged

STEPS = ("Table", "Roles", "Policy", "Publish", "Download", "Ask")


@dataclass
class Live:
    """The reactive side of a desk, for one page; ``notes`` are explanations, by place."""

    desk: Desk
    session: Session
    step: reactive.Value[int]
    opened: reactive.Value[Opened | None]
    settled: reactive.Value[Settled | None]
    published: reactive.Value[Published | None]
    policy: reactive.Value[rp.Policy | None]
    audit: reactive.Value[Judged[rp.AuditReport] | None]
    seen: int
    notes: dict[str, reactive.Value[str]] = field(default_factory=dict)

    def note(self, place: str) -> reactive.Value[str]:
        """The explanation shown at a place; empty if there is none."""
        if place not in self.notes:
            self.notes[place] = reactive.value("")
        return self.notes[place]

    def remember(self, values: dict[str, Any]) -> None:
        """Keep inputs for the next page; other pages notice the change."""
        draft = self.desk.draft
        changed = any(name in draft and draft[name] != value for name, value in values.items())
        draft |= values
        if changed:
            self.touch()

    def touch(self) -> None:
        """Record that this page changed something; a page that missed a change stays behind."""
        if self.seen == self.desk.revision:
            self.seen += 1
        self.desk.revision += 1

    def changed_elsewhere(self) -> str:
        """What another page has changed since this one was loaded; empty if nothing."""
        if self.seen == self.desk.revision:
            return ""
        with reactive.isolate():
            opened, settled, published = self.opened(), self.settled(), self.published()
        if opened is not self.desk.opened and self.desk.opened is not None:
            return f"Another tab opened {self.desk.opened.shown}."
        if settled is not self.desk.settled:
            return "Another tab changed the roles of the columns."
        if published is not self.desk.published:
            return "Another tab published a release."
        return "Another tab changed the settings."

    async def go(self, step: int) -> None:
        """Show a step, if it can be visited."""
        if step in self.desk.open_steps:
            self.desk.step = step
            self.step.set(step)


def make_live(desk: Desk, session: Session) -> Live:
    """A page that starts where the desk is."""
    return Live(
        desk,
        session,
        step=reactive.value(desk.step),
        opened=reactive.value(desk.opened),
        settled=reactive.value(desk.settled),
        published=reactive.value(desk.published),
        policy=reactive.value(None),
        audit=reactive.value(None),
        seen=desk.revision,
    )
