"""Step 5: the release, both reports, the key, and the same as a script and a command."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from htmltools import Tag, TagList, tags
from shiny import reactive, req, ui

from reconpriv.studio.pieces.changes import since_release
from reconpriv.studio.pieces.parts import button, card, footer, notice
from reconpriv.studio.work.background import Computation
from reconpriv.studio.work.ledgers import ARCHIVE
from reconpriv.studio.work.live import Content, Live, present
from reconpriv.studio.work.plan import KEY_FILE, python_script, shell_command
from reconpriv.studio.work.workspace import Published, Workspace

STEP = 5


class Offer(NamedTuple):
    """A file to download; ``content`` is None for a report, which is written in the background."""

    id: str
    name: str
    title: str
    words: str
    content: Callable[[Workspace, Published], Content] | None = None


def _zip_of(work: Workspace, made: Published) -> str:
    """The release as one file."""
    target = work.folder("zip") / "release.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(made.release.path.iterdir()):
            archive.write(file, f"release/{file.name}")
    return str(target)


def _ledger_of(work: Workspace, made: Published) -> str:
    req(work.ledgers.keeps(made.key))
    return str(work.ledgers.archive(made.key, work.folder("zip")))


GIVE = (
    Offer(
        "release",
        "release.zip",
        "Release",
        "release.zip: the data, its groups and its description.",
        _zip_of,
    ),
    Offer(
        "analyst_report",
        "release-report.html",
        "Report for analysts",
        "HTML, made from the release alone: what is exact, what is estimated, how to ask.",
    ),
)
KEEP = (
    Offer(
        "key",
        KEY_FILE,
        "Secret key",
        "Whoever has it can undo the randomisation. Store it with mode 0600, apart from the"
        " release; you need it to publish again.",
        lambda _, made: [made.key.secret.hex() + "\n"],
    ),
    Offer(
        "ledger",
        ARCHIVE,
        "Ledger of the key",
        f"{ARCHIVE}: what was published with the key, without data. Unpack it beside the key.",
        _ledger_of,
    ),
    Offer(
        "internal_report",
        "internal-report.html",
        "Internal report",
        "HTML for your records: groups at risk and all parameters of the raw table.",
    ),
    Offer(
        "script",
        "publish.py",
        "Python script",
        "publish.py makes the same release with the same key. It names your table.",
        lambda _, made: [python_script(made.shown_plan)],
    ),
    Offer(
        "command",
        "publish.sh",
        "Shell command",
        "publish.sh does the same from a terminal.",
        lambda _, made: ["#!/bin/sh\n" + shell_command(made.shown_plan)],
    ),
)


def panel(_: dict[str, Any]) -> Tag:
    """The static part."""
    return tags.div(
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
        footer(STEP, "Continue to questions", note="download_note"),
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
    """A file with its button; an output may say why it is not there."""
    waits = offer.content is None or offer.id == "ledger"
    return tags.li(
        tags.div(
            tags.strong(offer.title),
            ui.output_ui("release_mark", inline=True) if offer.id == "release" else None,
            tags.span(offer.words, class_="muted"),
        ),
        ui.output_ui(offer.id) if waits else _download(offer),
    )


def _download(offer: Offer) -> Tag:
    link = ui.download_button(f"get_{offer.id}", "Download")
    link.attrs["aria-label"] = f"Download: {offer.title}"
    return link.add_class("button")


def serve(live: Live) -> None:
    """The reactive part."""
    work = live.workspace
    # Written when first looked at; until then their rows say so.
    reports: Computation[Published, dict[str, Path | str]] = Computation(
        work.report_pool, work.write_reports
    )

    @reactive.effect
    def _() -> None:
        if live.step() == STEP:
            reports.request(live.published())

    def serve_offer(offer: Offer) -> None:
        def content() -> Content:
            if offer.content is not None:
                return offer.content(work, present(work.published))
            return str(present(reports.result(live.published()))[offer.name])

        def report() -> Tag:
            found = reports.result(live.published())
            if found is None:
                return tags.span("Preparing…", class_="working")
            made = found[offer.name]
            return _download(offer) if isinstance(made, Path) else tags.p(made, class_="help")

        live.offer(f"get_{offer.id}", offer.name, content)
        if offer.content is None:
            live.show(offer.id, report)

    for offer in (*GIVE, *KEEP):
        serve_offer(offer)

    def ledger() -> Tag:
        published = live.published()
        if published is None or work.ledgers.keeps(published.key):
            return _download(KEEP[1])
        file = published.key.file
        where = "The test key has none." if file is None else f"In {file.name}.ledger, by the key."
        return tags.p(where, class_="help")

    def changes(published: Published) -> list[str]:
        return since_release(published, live.opened(), live.loaded(), live.policy())

    def stale() -> Tag | None:
        published = live.published()
        if published is None:
            return notice("There is no release yet: publish one first.", "info")
        changed = changes(published)
        return stale_notice(published, changed) if changed else None

    def release_mark() -> TagList:
        published = present(live.published())
        return release_marks(test_key=published.key.is_test, older=bool(changes(published)))

    def recipes() -> TagList:
        plan = present(live.published()).shown_plan
        return TagList(
            _recipe("Shell", "command_text", shell_command(plan)),
            _recipe("Python", "script_text", python_script(plan)),
        )

    live.show("ledger", ledger)
    live.show("stale", stale)
    live.show("release_mark", release_mark)
    live.show("recipes", recipes)
    live.show("download_note", lambda: notice(reports.fault(live.published())))
    live.on("next_5", lambda: live.go(STEP + 1))
    # Another table may have no roles yet: go as far as possible.
    live.on("republish", lambda: live.go(max(one for one in work.open_steps if one < STEP)))


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
