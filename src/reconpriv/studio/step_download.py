"""Step 5: the release, both reports, the key, and the same as a script and a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from htmltools import Tag, TagList, tags
from shiny import Inputs, reactive, render, req, ui

from reconpriv.studio.changes import since_release
from reconpriv.studio.desk import Published, Reports, explain, shown_plan, zip_release
from reconpriv.studio.jobs import Job
from reconpriv.studio.ledgers import ARCHIVE
from reconpriv.studio.live import Live
from reconpriv.studio.parts import alert_place, button, card, footer, notice
from reconpriv.studio.plan import KEY_FILE, python_script, shell_command

STEP = 5
Offer = tuple[str, str, str]
GIVE: tuple[Offer, ...] = (
    (
        "get_release",
        "Release",
        "release.zip: the data, its groups and its description.",
    ),
    (
        "analyst_report",
        "Report for analysts",
        "HTML, made from the release alone: what is exact, what is estimated, how to ask.",
    ),
)
KEEP: tuple[Offer, ...] = (
    (
        "get_key",
        "Secret key",
        "Whoever has it can undo the randomisation. Store it with mode 0600, apart from the"
        " release; you need it to publish again.",
    ),
    (
        "ledger",
        "Ledger of the key",
        f"{ARCHIVE}: what was published with the key, without data. Unpack it beside the key.",
    ),
    (
        "internal_report",
        "Internal report",
        "HTML for your records: groups at risk and all parameters of the raw table.",
    ),
    (
        "get_script",
        "Python script",
        "publish.py makes the same release with the same key. It names your table.",
    ),
    ("get_command", "Shell command", "publish.sh does the same from a terminal."),
)


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
        footer(5, "Continue to questions"),
    )


def _offers(id: str, title: str, words: str, offers: tuple[Offer, ...]) -> Tag:
    """The downloads for one kind of reader."""
    mark = tags.span({"give": "✓", "keep": "✕"}[id], {"aria-hidden": "true"}, class_="mark")
    return tags.section(
        tags.h3(mark, title, id=f"{id}_title"),
        tags.p(words, class_="muted"),
        tags.ul(*(_offer(*offer) for offer in offers)),
        {"aria-labelledby": f"{id}_title"},
        class_=f"offers {id}",
    )


def _offer(id: str, title: str, words: str) -> Tag:
    return tags.li(
        tags.div(
            tags.strong(title),
            ui.output_ui("release_mark", inline=True) if id == "get_release" else None,
            tags.span(words, class_="muted"),
        ),
        _download(id, title) if id.startswith("get_") else ui.output_ui(id),
    )


def _download(id: str, title: str) -> Tag:
    link = ui.download_button(id, "Download", **{"aria-label": f"Download: {title}"})
    return link.add_class("button")


def serve(input: Inputs, live: Live) -> None:
    """The reactive part."""
    _serve_files(live)
    _serve_reports(live)

    @reactive.effect
    @reactive.event(input.next_5)
    async def _() -> None:
        await live.go(6)

    @render.ui
    def download_note() -> Tag | None:
        return notice(live.note("download")())

    @render.ui
    def stale() -> Tag | None:
        published = live.published()
        if published is None:
            return notice("There is no release yet: publish one first.", "info")
        changed = changes(published)
        return stale_notice(published, changed) if changed else None

    @render.ui
    def release_mark() -> TagList | None:
        published = live.published()
        if published is None:
            return None
        older = bool(changes(published))
        return release_marks(test_key=published.key.is_test, older=older)

    def changes(published: Published) -> list[str]:
        return since_release(published, live.opened(), live.settled(), live.policy())

    @reactive.effect
    @reactive.event(input.republish)
    async def _() -> None:
        # Another table may have no roles yet: go as far as possible.
        await live.go(max(step for step in live.desk.open_steps if step <= STEP - 1))

    @render.ui
    def recipes() -> TagList | None:
        published = live.published()
        if published is None:
            return None
        plan = shown_plan(published)
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
            tags.ul(*(tags.li(change) for change in changed), class_="effects"),
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
    reports: reactive.Value[Reports | None] = reactive.value(None)
    note = live.note("download")
    job: Job[Reports] = Job(
        live.desk.report_pool, reports.set, lambda error: note.set(explain(error))
    )

    @reactive.effect
    def _() -> None:
        published = live.published()
        with reactive.isolate():
            known = reports()
        written_already = known is not None and known.published is published
        if published is not None and live.step() == STEP and not written_already:
            note.set("")
            job.start(lambda: live.desk.write_reports(published))

    def written() -> Reports:
        found = reports()
        req(found is not None)
        assert found is not None
        return found

    def action(id: str, title: str, pick: Callable[[Reports], Path | str]) -> Tag:
        ready = reports()
        if ready is None or ready.published is not live.published():
            return tags.span("Preparing…", class_="working")
        made = pick(ready)
        return _download(id, title) if isinstance(made, Path) else tags.p(made, class_="help")

    @render.ui
    def analyst_report() -> Tag:
        return action("get_analyst_report", "Report for analysts", lambda r: r.analyst)

    @render.ui
    def internal_report() -> Tag:
        return action("get_internal_report", "Internal report", lambda r: r.internal)

    @render.download_button(filename="release-report.html", media_type="text/html")
    def get_analyst_report() -> str:
        return str(written().analyst)

    @render.download_button(filename="internal-report.html", media_type="text/html")
    def get_internal_report() -> str:
        return str(written().internal)


def _serve_files(live: Live) -> None:
    def made() -> Published:
        published = live.desk.published
        req(published is not None)
        assert published is not None
        return published

    @render.download_button(filename="release.zip", media_type="application/zip")
    def get_release() -> str:
        return str(zip_release(made().release, live.desk.folder("zip")))

    @render.download_button(filename=KEY_FILE, media_type="text/plain")
    def get_key() -> Iterator[str]:
        yield made().key.secret.hex() + "\n"

    @render.ui
    def ledger() -> Tag | None:
        published = live.published()
        if published is None or live.desk.ledgers.keeps(published.key):
            return _download("get_ledger", "Ledger of the key")
        file = published.key.file
        where = "The test key has none." if file is None else f"In {file.name}.ledger, by the key."
        return tags.p(where, class_="help")

    @render.download_button(filename=ARCHIVE, media_type="application/zip")
    def get_ledger() -> str:
        req(live.desk.ledgers.keeps(made().key))
        return str(live.desk.ledgers.archive(made().key, live.desk.folder("zip")))

    @render.download_button(filename="publish.py", media_type="text/x-python")
    def get_script() -> Iterator[str]:
        yield python_script(shown_plan(made()))

    @render.download_button(filename="publish.sh", media_type="text/x-shellscript")
    def get_command() -> Iterator[str]:
        yield "#!/bin/sh\n" + shell_command(shown_plan(made()))
