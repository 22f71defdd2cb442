"""The Shiny app: the page around the steps, and the way from one to the next."""

from __future__ import annotations

import os
from pathlib import Path

from htmltools import HTMLDependency, Tag, TagList, tags
from shiny import App, Inputs, Outputs, Session, reactive, ui
from starlette.requests import Request

from reconpriv.studio.pieces.parts import download_link
from reconpriv.studio.steps import ask, choose_policy, download, open_table, publish, roles
from reconpriv.studio.work.live import Live
from reconpriv.studio.work.settings import SETTINGS_FILE, settings_text
from reconpriv.studio.work.workspace import Workspace

# Shiny can report to OpenTelemetry if that is set up; the studio never does.
os.environ["SHINY_OTEL_COLLECT"] = "none"

WWW = Path(__file__).parent / "www"
# In place of Shiny's own, whose inline script our content security policy would refuse.
_NO_BUSY_INDICATORS = HTMLDependency("shiny-busy-indicators", "999")
_POLL_SECONDS = 1.0
# Each with its name in the navigation and its title.
STEPS = (
    (open_table, "Table", "Open a table"),
    (roles, "Roles", "What is each column?"),
    (choose_policy, "Policy", "Choose a policy"),
    (publish, "Publish", "Publish"),
    (download, "Download", "Take it with you"),
    (ask, "Ask", "Ask the release"),
)


def make_app(workspace: Workspace) -> App:
    """The app of one workspace."""

    def whole_page(_: Request) -> TagList:
        return page(workspace)

    def server(input: Inputs, output: Outputs, session: Session) -> None:
        del input, output
        live = Live(workspace, session)
        _serve_navigation(live)
        _serve_elsewhere(live)
        for step, _, _ in STEPS:
            step.serve(live)

    app = App(whole_page, server, static_assets={"/www": WWW})
    app.sanitize_errors = True
    app.sanitize_error_msg = "This part could not be shown; your settings are kept."
    return app


def page(workspace: Workspace) -> TagList:
    """The whole page; only the workspace's current step is visible."""
    numbers = range(1, len(STEPS) + 1)
    return TagList(
        _NO_BUSY_INDICATORS,
        ui.head_content(
            tags.title("reconpriv studio"),
            tags.meta(name="viewport", content="width=device-width, initial-scale=1"),
            tags.link(rel="icon", href="data:,"),
            tags.link(rel="stylesheet", href="www/studio.css"),
            tags.script(src="www/studio.js"),
        ),
        tags.a("Skip to the step", href="#main", class_="skip"),
        tags.header(
            tags.h1(tags.span("reconpriv", class_="brand"), " studio", class_="wordmark"),
            tags.div(
                download_link("save_settings", "Save settings").add_class("quiet"),
                tags.button(
                    "Dark", {"data-theme-switch": "", "aria-pressed": "false"}, type="button",
                    class_="button small quiet",
                ),
                class_="tools",
            ),
            class_="top",
        ),
        tags.div(ui.output_ui("elsewhere"), role="alert", class_="elsewhere-place"),
        tags.div(
            tags.nav(
                tags.ol(*(_link(i, workspace) for i in numbers)),
                {"aria-label": "Steps"},
                class_="steps",
            ),
            tags.main(*(_step(i, workspace) for i in numbers), id="main"),
            class_="frame",
        ),
    )  # fmt: skip


def _link(number: int, workspace: Workspace) -> Tag:
    return tags.li(
        tags.button(
            tags.span(str(number), {"aria-hidden": "true"}, class_="number"),
            tags.span(STEPS[number - 1][1], class_="name"),
            {"aria-current": "step" if number == workspace.step else None},
            id=f"goto_{number}",
            type="button",
            class_="action-button step",
            disabled=None if number in workspace.open_steps else "",
        )
    )


def _step(number: int, workspace: Workspace) -> Tag:
    step, _, title = STEPS[number - 1]
    return tags.section(
        tags.h2(title, id=f"title_{number}", tabindex="-1"),
        step.panel(workspace.draft),
        {"data-step": str(number), "aria-labelledby": f"title_{number}"},
        hidden=None if number == workspace.step else "",
    )


def _serve_navigation(live: Live) -> None:
    def link(id: str, step: int) -> None:
        live.on(id, lambda: live.go(step))

    for number in range(1, len(STEPS) + 1):
        link(f"goto_{number}", number)
        link(f"back_{number + 1}", number)
    # The browser's own way back.
    live.on("visit", lambda: live.go(live.input.visit()))
    live.offer("save_settings", SETTINGS_FILE, lambda: [settings_text(live.workspace)])

    @reactive.effect
    async def _() -> None:
        live.opened(), live.loaded(), live.published()
        await live.send("step", {"step": live.step(), "open": live.workspace.open_steps})


def _serve_elsewhere(live: Live) -> None:
    """All pages share the workspace: each one says when another has changed it."""
    own = reactive.event(live.opened, live.loaded, live.published, ignore_init=True)
    reactive.effect(own(live.touch))
    changed = reactive.poll(live.changed_elsewhere, _POLL_SECONDS)(live.changed_elsewhere)

    def elsewhere() -> Tag | None:
        words = changed()
        if not words:
            return None
        return tags.div(
            tags.p(tags.strong(words), " This page still shows the earlier state."),
            tags.button(
                "Reload this page", {"data-reload": ""}, type="button", class_="button small"
            ),
            class_="elsewhere",
        )

    live.show("elsewhere", elsewhere)
