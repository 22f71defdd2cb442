"""What one page shows of the workspace: reactive values, and moving between steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from shiny import reactive
from shiny.session import Session
from shiny.types import SilentException

import reconpriv as rp
from reconpriv.studio.work.background import Computation, Computed
from reconpriv.studio.work.workspace import LoadedTable, Opened, Published, Workspace

STEPS = ("Table", "Roles", "Policy", "Publish", "Download", "Ask")
_WORST = 6

T = TypeVar("T")


def present(value: T | None) -> T:
    """A value; an output that needs it stays empty until there is one."""
    if value is None:
        raise SilentException
    return value


class Candidate(NamedTuple):
    """A table and a policy that may be published."""

    loaded: LoadedTable
    policy: rp.Policy


class Live:
    """The reactive side of a workspace, for one page; it starts where the workspace is."""

    def __init__(self, workspace: Workspace, session: Session) -> None:
        """Show the workspace in a session of the browser."""
        self.workspace = workspace
        self.session = session
        self.step: reactive.Value[int] = reactive.value(workspace.step)
        self.opened: reactive.Value[Opened | None] = reactive.value(workspace.opened)
        self.loaded: reactive.Value[LoadedTable | None] = reactive.value(workspace.loaded)
        self.published: reactive.Value[Published | None] = reactive.value(workspace.published)
        self.policy: reactive.Value[rp.Policy | None] = reactive.value(None)
        self.audits: Computation[Candidate, rp.AuditReport] = Computation(
            workspace.pool, lambda one: workspace.audit(one.loaded, one.policy, worst=_WORST)
        )
        self._seen = workspace.revision
        self._notes: dict[str, reactive.Value[str]] = {}

    @property
    def candidate(self) -> Candidate | None:
        """The table and the policy in force, if there are both."""
        loaded, policy = self.loaded(), self.policy()
        return None if loaded is None or policy is None else Candidate(loaded, policy)

    def latest(self, results: Computation[Candidate, T]) -> Computed[Candidate, T] | None:
        """The latest result about the table as it is loaded, under whatever policy."""
        known = results.latest()
        return known if known is not None and known.key.loaded is self.loaded() else None

    def note(self, place: str) -> reactive.Value[str]:
        """The explanation shown at a place; empty if there is none."""
        return self._notes.setdefault(place, reactive.value(""))

    async def send(self, name: str, values: Mapping[str, object]) -> None:
        """Hand values to a function of ``studio.js``."""
        await self.session.send_custom_message(f"studio-{name}", {**values})

    def remember(self, values: dict[str, Any]) -> None:
        """Keep inputs for the next page; other pages notice the change."""
        draft = self.workspace.draft
        changed = any(name in draft and draft[name] != value for name, value in values.items())
        draft |= values
        if changed:
            self.touch()

    def touch(self) -> None:
        """Record that this page changed something; a page that missed a change stays behind."""
        if self._seen == self.workspace.revision:
            self._seen += 1
        self.workspace.revision += 1

    def changed_elsewhere(self) -> str:
        """What another page has changed since this one was loaded; empty if nothing."""
        there = self.workspace
        if self._seen == there.revision:
            return ""
        with reactive.isolate():
            if self.opened() is not there.opened and there.opened is not None:
                return f"Another tab opened {there.opened.shown}."
            if self.loaded() is not there.loaded:
                return "Another tab changed the roles of the columns."
            if self.published() is not there.published:
                return "Another tab published a release."
        return "Another tab changed the settings."

    async def go(self, step: int) -> None:
        """Show a step, if it can be visited."""
        if step in self.workspace.open_steps:
            self.workspace.step = step
            self.step.set(step)
