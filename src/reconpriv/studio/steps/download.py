"""Step 5: the release, both reports, the key, and the same as a script and a command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from htmltools import Tag, TagList, tags
from shiny import Inputs, reactive, render, req, ui

from reconpriv.studio.pieces.changes import since_release
from reconpriv.studio.pieces.parts import alert_place, button, card, footer, notice
from reconpriv.studio.work.background import Computation
from reconpriv.studio.work.ledgers import ARCHIVE
from reconpriv.studio.work.live import Live, present
from reconpriv.studio.work.plan import KEY_FILE, python_script, shell_command
from reconpriv.studio.work.workspace import Published, Reports, zip_release

STEP = 5


class Offer(NamedTuple):
    """A file to download."""

    id: str
    title: str
    words: str


# The reports and the ledger may not be there: an output takes the place of their buttons.
GIVE = (
    Offer("release", "Release", "release.zip: the data, its groups and its description."),
    Offer(
        "analyst_report",
        "Report for analysts",
        "HTML, made from the release alone: what is exact, what is estimated, how to ask.",
    ),
)
KEEP = (
    Offer(
        "key",
        "Secret key",
        "Whoever has it can undo the randomisation. Store it with mode 0600, apart from the"
        " release; you need it to publish again.",
    ),
    Offer(
        "ledger",
        "Ledger of the key",
        f"{ARCHIVE}: what was published with the key, without data. Unpack it beside the key.",
    ),
    Offer(
        "internal_report",
        "Internal report",
        "HTML for your records: groups at risk and all parameters of the raw table.",
    ),
    Offer(
        "script",
        "Python script",
        "publish.py makes the same release with the same key. It names your table.",
    ),
    Offer("command", "Shell command", "publish.sh does the same from a terminal."),
)
_OUTPUTS = ("analyst_report", "internal_report", "ledger")


def panel() -> Tag:
    """The static part."""
    return tags.div(
        alert_place("download_note"),
        ui.output_ui("stale"),
        _offers(
            "give",
            "Give to analysts",
            "All that they need, and nothing that only you may know.",
            GIVE,
        ),
        _offers("keep", "Keep secret", "None of this belongs beside the release.", KEEP),
        card(
            "The same without the studio",
            ui.output_ui("recipes"),
            intro="A record of what was done, to run again or to keep with the key. It names your"
            " table, so it is not for analysts.",
        ),
        footer(STEP, "Continue to questions"),
    )


def _offers(id: str, title: str, words: str, offers: tuple[Offer, ...]) -> Tag:
    """The downloads for one kind of reader."""
    mark = tags.span({"give": "✓", "keep": "✕"}[id], {"aria-hidden": "true"}, class_="mark")
    return tags.section(
        tags.h3(mark, title, id=f"{id}_title"),
        tags.p(words, class_="muted"),
        tags.ul(*map(_offer, offers)),
        {"aria-labelledby": f"{id}_title"},
        class_=f"offers {id}",
    )


def _offer(offer: Offer) -> Tag:
    return tags.li(
        tags.div(
            tags.strong(offer.title),
            ui.output_ui("release_mark", inline=True) if offer.id == "release" else None,
            tags.span(offer.words, class_="muted"),
        ),
        ui.output_ui(offer.id) if offer.id in _OUTPUTS else _download(offer),
    )


def _download(offer: Offer) -> Tag:
    link = ui.download_button(f"get_{offer.id}", "Download")
    link.attrs["aria-label"] = f"Download: {offer.title}"
    return link.add_class("button")


def serve(input: Inputs, live: Live) -> None:
    """The reactive part."""
    _serve_files(live)
    _serve_reports(live)

    @reactive.effect
    @reactive.event(input.next_5)
    async def _() -> None:
        await live.go(STEP + 1)

    @render.ui
    def stale() -> Tag | None:
        published = live.published()
        if published is None:
            return notice("There is no release yet: publish one first.", "info")
        changed = changes(published)
        return stale_notice(published, changed) if changed else None

    @render.ui
    def release_mark() -> TagList:
        published = present(live.published())
        return release_marks(test_key=published.key.is_test, older=bool(changes(published)))

    def changes(published: Published) -> list[str]:
        return since_release(published, live.opened(), live.loaded(), live.policy())

    @reactive.effect
    @reactive.event(input.republish)
    async def _() -> None:
        # Another table may have no roles yet: go as far as possible.
        await live.go(max(step for step in live.workspace.open_steps if step < STEP))

    @render.ui
    def recipes() -> TagList:
        plan = present(live.published()).shown_plan
        return TagList(
            _recipe("Shell", "command_text", shell_command(plan)),
            _recipe("Python", "script_text", python_script(plan)),
        )


def release_marks(*, test_key: bool, older: bool) -> TagList:
    """Why the release may not be the one to hand out."""
    marks = {"test key: not for release": test_key, "older than your settings": older}
    return TagList(
        *(tags.span(words, class_="tag warning") for words, holds in marks.items() if holds)
    )


def stale_notice(published: Published, changed: list[str]) -> Tag:
    """That the files are older than the settings, in what respect, and how to get new ones."""
    return tags.div(
        tags.span("!", {"aria-hidden": "true"}, class_="mark"),
        tags.div(
            tags.p(
                f"The release below was made at {published.made:%H:%M}, with settings that"
                " differ from your current ones. Changed since then:"
            ),
            tags.ul(*map(tags.li, changed), class_="effects"),
            button("republish", "Publish again"),
        ),
        class_="notice warning",
    )


def _recipe(title: str, id: str, text: str) -> Tag:
    return tags.div(
        tags.div(
            tags.h4(title),
            tags.button(
                "Copy",
                {"data-copy": id, "aria-label": f"Copy the {title} text"},
                type="button",
                class_="button small",
            ),
            class_="recipe-head",
        ),
        tags.pre(tags.code(text), id=id, tabindex="0"),
        class_="recipe",
    )


def _serve_reports(live: Live) -> None:
    """Both reports are written when first looked at; until then their rows say so."""
    reports: Computation[Published, Reports] = Computation(
        live.workspace.report_pool, live.workspace.write_reports
    )

    @reactive.effect
    def _() -> None:
        published = live.published()
        if published is not None and live.step() == STEP:
            reports.request(published)

    @render.ui
    def download_note() -> Tag | None:
        return notice(reports.fault(live.published()))

    def serve_report(offer: Offer, part: str) -> None:
        @live.session.output(id=offer.id)
        @render.ui
        def _() -> Tag:
            found = reports.result(live.published())
            if found is None:
                return tags.span("Preparing…", class_="working")
            made = getattr(found, part)
            return _download(offer) if isinstance(made, Path) else tags.p(made, class_="help")

        name = "release-report.html" if part == "analyst" else "internal-report.html"

        @live.session.output(id=f"get_{offer.id}")
        @render.download_button(filename=name, media_type="text/html")
        def _() -> str:
            return str(getattr(present(reports.result(live.published())), part))

    serve_report(GIVE[1], "analyst")
    serve_report(KEEP[2], "internal")


def _serve_files(live: Live) -> None:
    workspace = live.workspace

    def made() -> Published:
        return present(workspace.published)

    @render.download_button(filename="release.zip", media_type="application/zip")
    def get_release() -> str:
        return str(zip_release(made().release, workspace.folder("zip")))

    @render.download_button(filename=KEY_FILE, media_type="text/plain")
    def get_key() -> Iterator[str]:
        yield made().key.secret.hex() + "\n"

    @render.ui
    def ledger() -> Tag:
        published = live.published()
        if published is None or workspace.ledgers.keeps(published.key):
            return _download(KEEP[1])
        file = published.key.file
        where = "The test key has none." if file is None else f"In {file.name}.ledger, by the key."
        return tags.p(where, class_="help")

    @render.download_button(filename=ARCHIVE, media_type="application/zip")
    def get_ledger() -> str:
        req(workspace.ledgers.keeps(made().key))
        return str(workspace.ledgers.archive(made().key, workspace.folder("zip")))

    @render.download_button(filename="publish.py", media_type="text/x-python")
    def get_script() -> Iterator[str]:
        yield python_script(made().shown_plan)

    @render.download_button(filename="publish.sh", media_type="text/x-shellscript")
    def get_command() -> Iterator[str]:
        yield "#!/bin/sh\n" + shell_command(made().shown_plan)
