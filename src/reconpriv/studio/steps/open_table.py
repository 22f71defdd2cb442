"""Step 1: open or upload a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from htmltools import Tag, TagChild, tags
from shiny import reactive, req, ui

from reconpriv.messages.phrases import listed
from reconpriv.sources.formats import local_formats, upload_endings
from reconpriv.studio.pieces.parts import button, card, facts, footer, grid, notice
from reconpriv.studio.work.background import Job
from reconpriv.studio.work.live import Live
from reconpriv.studio.work.settings import open_settings
from reconpriv.studio.work.workspace import Opened

EXAMPLES = {
    "adult": ("Adult", "48,842 people of the 1994 US census; try occupation as sensitive."),
    "census_workers": ("Census workers", "148,318 people; used to re-run the paper's study."),
}


def panel(draft: dict[str, Any]) -> Tag:
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
                               placeholder="/data/survey.parquet", value=draft.get("path", "")),
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
        tags.div(ui.output_ui("opened"), {"aria-live": "polite"}),
        tags.details(
            tags.summary("Go on with saved settings"),
            ui.input_file(
                "settings", "A file that “Save settings” has made", accept=[".json"],
                button_label="Choose a file…", placeholder="Nothing chosen", width="100%",
            ),
            class_="card saved",
        ),
        footer(1, "Continue to roles", note="open_note"),
    )  # fmt: skip


def serve(live: Live) -> None:
    """The reactive part."""
    input, note, look = live.input, live.note("open"), live.workspace.look
    job = live.job("open", live.opened.set)
    reloaded: reactive.Value[int] = reactive.value(0)
    loading: Job[None] = live.job("open", lambda _: reloaded.set(reloaded() + 1))

    def upload() -> None:
        (file, *_) = req(input.upload())
        job.start(lambda: live.workspace.take_upload(file["datapath"], file["name"]))

    def settings() -> None:
        (file, *_) = req(input.settings())
        # As every text is read: what is no UTF-8 holds no settings.
        text = Path(file["datapath"]).read_bytes().decode("utf-8", errors="replace")
        loading.start(lambda: open_settings(live.workspace, text))

    @reactive.effect
    @reactive.event(reloaded, ignore_init=True)
    async def _() -> None:
        await live.send("reload", {})

    @reactive.effect
    def _() -> None:
        live.remember({"path": input.path()})

    # A rejected file was not taken, whatever its progress bar says.
    @reactive.effect
    @reactive.event(note)
    async def _() -> None:
        await live.send("upload", {"refused": note() != ""})

    def open_path() -> None:
        path = input.path().strip()
        if not path or path == "-":
            note.set("Enter the path of a file first.")
        else:
            job.start(lambda: look(str(Path(path).expanduser())))

    def serve_example(name: str) -> None:
        live.on(f"example_{name}", lambda: job.start(lambda: look(f"example:{name}")))

    def opened() -> Tag | None:
        working = tags.p("Looking at the table…", class_="working")
        return working if job.busy() or loading.busy() else summary_card(live.opened())

    live.on("upload", upload)
    live.on("settings", settings)
    live.on("open_path", open_path)
    for name in EXAMPLES:
        serve_example(name)
    first = "Choose a table first: upload one, enter its path, or pick an example."
    live.on("next_1", lambda: live.go_if(live.opened() is not None, 2, "open", first))
    live.show("open_note", lambda: notice(note()))
    live.show("opened", opened)


def summary_card(opened: Opened | None) -> Tag | None:
    """What was opened, in a few figures."""
    if opened is None:
        return None
    summary = opened.summary
    identifiers = [column.name for column in summary.columns if column.identifier]
    rows: list[tuple[str, TagChild]] = [
        ("Table", tags.strong(opened.shown)),
        ("Records", f"{summary.records:,}"),
        ("Columns", f"{len(summary.columns)}"),
        ("Nearly unique", ", ".join(identifiers) or "none"),
    ]
    names = [column.name for column in summary.columns]
    preview = grid(names, summary.sample, label="The first records").add_class("wide preview")
    return card(
        "The open table",
        facts(rows),
        tags.details(tags.summary("Preview"), preview, {"open": ""}),
        class_="good",
    )
