"""What one page shows of the workspace: reactive values, and moving between steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from htmltools import Tag, TagChild
from shiny import Inputs, reactive, render
from shiny.session import Session
from shiny.types import SilentException

import reconpriv as rp
from reconpriv.studio.pieces.parts import result
from reconpriv.studio.work.background import Computation, Computed, Job
from reconpriv.studio.work.workspace import LoadedTable, Opened, Published, Workspace, explain

_WORST = 6

T = TypeVar("T")
Content = str | Sequence[str]
"""The path of a file to download, or the texts that it holds."""


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
    def input(self) -> Inputs:
        """The inputs of the page."""
        return self.session.input

    def on(self, id: str, act: Callable[[], Any]) -> None:
        """Act whenever a button is clicked or an input changes."""
        reactive.effect(reactive.event(self.input[id])(act))

    def show(self, id: str, draw: Callable[[], TagChild]) -> None:
        """Draw a place of the page anew whenever what it depends on changes."""

        @self.session.output(id=id)
        @render.ui
        def _() -> TagChild:
            return draw()

    def offer(self, id: str, name: str, content: Callable[[], Content]) -> None:
        """Let a button download a file of this name."""

        @self.session.output(id=id)
        @render.download_button(filename=name)
        def _() -> Content:
            return content()

    def job(self, place: str, done: Callable[[T], object]) -> Job[T]:
        """Work on the table; if it fails, the note at a place explains why."""
        note = self.note(place)

        def succeeded(result: T) -> None:
            note.set("")
            done(result)

        return Job(self.workspace.pool, succeeded, lambda error: note.set(explain(error)))

    @property
    def candidate(self) -> Candidate | None:
        """The table and the policy in force, if there are both."""
        loaded, policy = self.loaded(), self.policy()
        return None if loaded is None or policy is None else Candidate(loaded, policy)

    def latest(self, results: Computation[Candidate, T]) -> Computed[Candidate, T] | None:
        """The latest result about the table as it is loaded, under whatever policy."""
        known = results.latest()
        return known if known is not None and known.key.loaded is self.loaded() else None

    def result(self, content: TagChild, *, current: bool) -> Tag:
        """A result of the controls as the server has seen them; greyed if it is not about them."""
        edits = self.input.edits() if "edits" in self.input else 0
        why = "Recomputing…" if self.candidate is not None else "Not for these settings"
        if self.note("policy")() or self.audits.fault(self.candidate):
            why = "Not for these settings"
        return result(content, current=current, why=why, edit=edits or 0)

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

    def go(self, step: int) -> None:
        """Show a step, if it can be visited."""
        if step in self.workspace.open_steps:
            self.workspace.step = step
            self.step.set(step)

    def go_if(self, ready: bool, step: int, place: str, words: str) -> None:
        """Show a step, or explain at a place what is to be done first."""
        if ready:
            self.go(step)
        else:
            self.note(place).set(words)
