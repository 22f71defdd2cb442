"""Step 6: questions to the release, next to the truth."""

from __future__ import annotations

from typing import Any

from htmltools import Tag, tags
from shiny import Inputs, reactive, render, ui

from reconpriv.answers.beside_truth import BesideTruth, ask
from reconpriv.ask.form import FormQuestion
from reconpriv.studio.pieces.answers import answer_cards
from reconpriv.studio.pieces.ask_form import (
    more_fields,
    question_form,
    read_question,
    release_fields,
)
from reconpriv.studio.pieces.parts import alert_place, card, footer, notice
from reconpriv.studio.work.background import Job
from reconpriv.studio.work.live import Live, present
from reconpriv.studio.work.workspace import Published, explain

KEPT = 12
_DRAFT = "question"


def panel(draft: dict[str, Any]) -> Tag:
    """The static part."""
    _, at = draft.get(_DRAFT, (None, FormQuestion()))
    return tags.div(
        tags.p(
            "Ask what an analyst would ask. The estimate comes from the release alone; the truth"
            " is computed from your table and shown only here.",
            class_="lead",
        ),
        card("Question", question_form(at), alert_place("ask_note")),
        tags.div(ui.output_ui("answers"), {"aria-live": "polite"}),
        footer(6),
    )


def serve(input: Inputs, live: Live) -> None:
    """The reactive part."""
    note = live.note("ask")
    answered: reactive.Value[tuple[BesideTruth, ...]] = reactive.value(())

    def done(result: tuple[Published, BesideTruth]) -> None:
        published, found = result
        note.set("")
        # They belong to their release, so a page that is loaded again finds them there.
        published.answers[:] = [found, *published.answers][:KEPT]
        if published is live.published():
            answered.set(tuple(published.answers))

    job: Job[tuple[Published, BesideTruth]] = Job(
        live.workspace.pool, done, lambda error: note.set(explain(error))
    )
    _serve_form(live)

    @reactive.effect
    @reactive.event(live.published)
    def _() -> None:
        published = live.published()
        answered.set(() if published is None else tuple(published.answers))

    @reactive.effect
    @reactive.event(input.ask)
    def _() -> None:
        published = live.published()
        if published is None:
            note.set("Publish first: there is no release to query yet.")
            return
        schema = published.loaded.table.schema
        question = read_question(input, schema)
        live.workspace.draft[_DRAFT] = (schema, question)
        release, table = published.release, published.loaded.table
        job.start(lambda: (published, ask(release.answerer, table.truth, question)))

    @render.ui
    def ask_note() -> Tag | None:
        return notice(note())

    @render.ui
    def answers() -> Tag | None:
        found = answered()
        busy = tags.p("Counting…", class_="working") if job.busy() else None
        if not found:
            return busy or tags.p("Answers appear here.", class_="empty-state")
        return tags.div(busy, answer_cards(found))


def _serve_form(live: Live) -> None:
    def shown() -> tuple[Published, FormQuestion]:
        """The release that is asked, and the last question if it was about the same columns."""
        published = present(live.published())
        schema, at = live.workspace.draft.get(_DRAFT, (None, FormQuestion()))
        return published, at if schema == published.loaded.table.schema else FormQuestion()

    @render.ui
    def ask_choices() -> Tag:
        return release_fields(*shown())

    @render.ui
    def ask_more() -> Tag:
        return more_fields(*shown())

    @render.ui
    def where_help() -> Tag:
        published, _ = shown()
        return tags.p("For example: ", tags.code(example_condition(published)), class_="help")


def example_condition(published: Published) -> str:
    """A condition that works on this release."""
    loaded = published.loaded
    first = loaded.roles.public[0]
    column = next(c for c in loaded.opened.summary.columns if c.name == first)
    name = first if first.isidentifier() else '"' + first.replace('"', '""') + '"'
    recoding = loaded.table.schema.recoding(first)
    if recoding is not None:
        text = recoding.labels[0].replace("'", "''")
        return f"{name} = '{text}'"
    if column.numeric and column.low is not None:
        return f"{name} >= {column.low}"
    if not column.common:
        return f"{name} IS NULL"
    text = column.common[0].replace("'", "''")
    return f"{name} = '{text}'"
