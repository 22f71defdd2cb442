"""Step 1: open or upload a table."""

from __future__ import annotations

from pathlib import Path

from htmltools import Tag, tags
from shiny import Inputs, reactive, render, req, ui

from reconpriv.messages.phrases import listed
from reconpriv.sources.formats import local_formats, upload_endings
from reconpriv.studio.pieces.parts import alert_place, button, card, facts, footer, notice
from reconpriv.studio.work.background import Job
from reconpriv.studio.work.live import Live
from reconpriv.studio.work.workspace import Opened, explain

EXAMPLES = {
    "adult": ("Adult", "48,842 people of the 1994 US census; try occupation as sensitive."),
    "census_workers": ("Census workers", "148,318 people; used to re-run the paper's study."),
}


def panel() -> Tag:
    """The static part."""
    return tags.div(
        tags.div(
            card(
                "Upload a file",
                ui.input_file(
                    "upload", "Table file", accept=upload_endings(), button_label="Choose a file…",
                    placeholder="Nothing chosen", width="100%",
                ),
                intro=f"{listed([one.label for one in local_formats()], 'or')}. It stays on this"
                " computer, in a folder that only you can read and that is removed when the studio"
                " ends.",
            ),
            card(
                "Open by its path",
                tags.form(
                    tags.label("Path on this computer", {"for": "path"}),
                    tags.input(id="path", type="text", spellcheck="false", autocomplete="off",
                               placeholder="/data/survey.parquet"),
                    button("open_path", "Open"),
                    {"data-enter": "open_path"},
                    class_="field joined",
                ),
                intro="Better for large tables: nothing is copied. A folder or glob of Parquet"
                " files works too.",
            ),
            card(
                "Try an example",
                *(
                    tags.div(
                        button(f"example_{name}", title), tags.span(words, class_="muted"),
                        class_="example",
                    )
                    for name, (title, words) in EXAMPLES.items()
                ),
                intro="Real tables that come with the package.",
            ),
            class_="cards three",
        ),
        alert_place("open_note"),
        tags.div(ui.output_ui("opened"), {"aria-live": "polite"}),
        footer(1, "Continue to roles"),
    )  # fmt: skip


def serve(input: Inputs, live: Live) -> None:
    """The reactive part."""
    note = live.note("open")

    def done(opened: Opened) -> None:
        note.set("")
        live.opened.set(opened)

    job: Job[Opened] = Job(live.workspace.pool, done, lambda error: note.set(explain(error)))

    @reactive.effect
    @reactive.event(input.upload)
    def _() -> None:
        files = req(input.upload())
        job.start(lambda: live.workspace.take_upload(files[0]["datapath"], files[0]["name"]))

    @reactive.effect
    @reactive.event(input.open_path)
    def _() -> None:
        path = input.path().strip()
        if not path or path == "-":
            note.set("Enter the path of a file first.")
            return
        job.start(lambda: live.workspace.look(str(Path(path).expanduser())))

    def serve_example(name: str) -> None:
        @reactive.effect
        @reactive.event(input[f"example_{name}"])
        def _() -> None:
            job.start(lambda: live.workspace.look(f"example:{name}"))

    for name in EXAMPLES:
        serve_example(name)

    @reactive.effect
    @reactive.event(input.next_1)
    async def _() -> None:
        if live.opened() is None:
            note.set("Choose a table first: upload one, enter its path, or pick an example.")
        else:
            await live.go(2)

    @render.ui
    def open_note() -> Tag | None:
        return notice(note())

    @render.ui
    def opened() -> Tag | None:
        if job.busy():
            return tags.p("Looking at the table…", class_="working")
        return summary_card(live.opened())


def summary_card(opened: Opened | None) -> Tag | None:
    """What was opened, in a few figures."""
    if opened is None:
        return None
    summary = opened.summary
    identifiers = [column.name for column in summary.columns if column.identifier]
    return card(
        "The open table",
        facts(
            [
                ("Table", tags.strong(opened.shown)),
                ("Records", f"{summary.records:,}"),
                ("Columns", f"{len(summary.columns)}"),
                ("Nearly unique", ", ".join(identifiers) or "none"),
            ]
        ),
        class_="good",
    )
