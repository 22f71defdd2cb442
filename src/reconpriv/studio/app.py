"""The Shiny app: the page around the steps, and the way from one to the next."""

from __future__ import annotations

import os
from pathlib import Path

from htmltools import Tag, TagList, tags
from shiny import App, Inputs, Outputs, Session, reactive, render, ui
from starlette.requests import Request

from reconpriv.studio.steps import ask, choose_policy, download, open_table, publish, roles
from reconpriv.studio.work.live import STEPS, Live
from reconpriv.studio.work.workspace import Workspace

# Shiny can report to OpenTelemetry if that is set up; the studio never does.
os.environ["SHINY_OTEL_COLLECT"] = "none"

WWW = Path(__file__).parent / "www"
_POLL_SECONDS = 1.0
TITLES = (
    "Open a table",
    "What is each column?",
    "Choose a policy",
    "Publish",
    "Take it with you",
    "Ask the release",
)


def make_app(workspace: Workspace) -> App:
    """The app of one workspace."""

    def whole_page(_: Request) -> TagList:
        return page(workspace)

    def server(input: Inputs, output: Outputs, session: Session) -> None:
        del output
        live = Live(workspace, session)
        _serve_navigation(input, live)
        _serve_elsewhere(live)
        for step in (open_table, roles, choose_policy, publish, download, ask):
            step.serve(input, live)

    app = App(whole_page, server, static_assets={"/www": WWW})
    app.sanitize_errors = True
    app.sanitize_error_msg = "This part could not be shown; your settings are kept."
    return app


def page(workspace: Workspace) -> TagList:
    """The whole page; only the workspace's current step is visible."""
    panels = (
        open_table.panel(),
        roles.panel(),
        choose_policy.panel(workspace.draft),
        publish.panel(),
        download.panel(),
        ask.panel(workspace.draft),
    )
    return TagList(
        ui.head_content(
            tags.title("reconpriv studio"),
            tags.meta(name="viewport", content="width=device-width, initial-scale=1"),
            tags.link(rel="icon", href="data:,"),
            tags.link(rel="stylesheet", href="www/studio.css"),
            tags.script(src="www/studio.js"),
        ),
        tags.a("Skip to the step", href="#main", class_="skip"),
        tags.header(
            tags.div(tags.span("reconpriv", class_="brand"), " studio", class_="wordmark"),
            tags.button(
                "Dark", {"data-theme-switch": "", "aria-pressed": "false"}, type="button",
                class_="button small quiet",
            ),
            class_="top",
        ),
        tags.div(ui.output_ui("elsewhere"), role="alert", class_="elsewhere-place"),
        tags.div(
            _navigation(workspace),
            tags.main(
                *(_step(i, panel, workspace) for i, panel in enumerate(panels, 1)), id="main"
            ),
            class_="frame",
        ),
    )  # fmt: skip


def _navigation(workspace: Workspace) -> Tag:
    return tags.nav(
        tags.ol(
            *(
                tags.li(
                    tags.button(
                        tags.span(str(i), {"aria-hidden": "true"}, class_="number"),
                        tags.span(name, class_="name"),
                        {"aria-current": "step" if i == workspace.step else None},
                        id=f"goto_{i}",
                        type="button",
                        class_="action-button step",
                        disabled=None if i in workspace.open_steps else "",
                    )
                )
                for i, name in enumerate(STEPS, 1)
            )
        ),
        {"aria-label": "Steps"},
        class_="steps",
    )


def _step(number: int, panel: Tag, workspace: Workspace) -> Tag:
    return tags.section(
        tags.h2(TITLES[number - 1], id=f"title_{number}", tabindex="-1"),
        panel,
        {"data-step": str(number), "aria-labelledby": f"title_{number}"},
        hidden=None if number == workspace.step else "",
    )


def _serve_navigation(input: Inputs, live: Live) -> None:
    for number in range(1, len(STEPS) + 1):
        _serve_link(input, live, f"goto_{number}", number)
        if number > 1:
            _serve_link(input, live, f"back_{number}", number - 1)

    @reactive.effect
    async def _() -> None:
        live.opened(), live.loaded(), live.published()
        await live.send("step", {"step": live.step(), "open": live.workspace.open_steps})


def _serve_elsewhere(live: Live) -> None:
    """All pages share the workspace: each one says when another has changed it."""

    @reactive.effect
    @reactive.event(live.opened, live.loaded, live.published, ignore_init=True)
    def _() -> None:
        live.touch()

    @reactive.poll(live.changed_elsewhere, _POLL_SECONDS)
    def changed() -> str:
        return live.changed_elsewhere()

    @render.ui
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


def _serve_link(input: Inputs, live: Live, id: str, step: int) -> None:
    @reactive.effect
    @reactive.event(input[id])
    async def _() -> None:
        await live.go(step)
