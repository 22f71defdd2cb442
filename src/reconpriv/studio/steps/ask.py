"""Step 6: questions to the release, next to the truth; a card for each answer."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from htmltools import HTML, Tag, TagChild, tags
from shiny import reactive, ui

from reconpriv.answers.beside_truth import BesideTruth, ask
from reconpriv.answers.figure import Answer
from reconpriv.ask.form import FormQuestion
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.estimate.counts import ESTIMATORS
from reconpriv.messages.numbers import label
from reconpriv.show.charts.answer_chart import ROOMY, SLIM, Room, answer_chart
from reconpriv.show.charts.drawing import drawn
from reconpriv.studio.pieces.ask_form import (
    more_fields,
    question_form,
    read_question,
    release_fields,
)
from reconpriv.studio.pieces.parts import alert_place, card, download_link, footer, grid, notice
from reconpriv.studio.work.live import Live, present
from reconpriv.studio.work.settings import question_in
from reconpriv.studio.work.workspace import Published

KEPT = 12
_DRAWN = 60  # rows of a chart; more are too small to read
_CSV, _JSON = "answers.csv", "answers.json"


def panel(draft: dict[str, Any]) -> Tag:
    """The static part."""
    at = question_in(draft) or FormQuestion()
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


def serve(live: Live) -> None:
    """The reactive part."""
    draft, note = live.workspace.draft, live.note("ask")
    answered: reactive.Value[tuple[BesideTruth, ...]] = reactive.value(())

    def done(result: tuple[Published, BesideTruth]) -> None:
        published, found = result
        # They belong to their release, so a page that is loaded again finds them there.
        published.answers[:] = [found, *published.answers][:KEPT]
        if published is live.published():
            answered.set(tuple(published.answers))

    job = live.job("ask", done)

    @reactive.effect
    def _() -> None:
        published = live.published()
        answered.set(() if published is None else tuple(published.answers))

    def question() -> None:
        published = live.published()
        if published is None:
            note.set("Publish first: there is no release to query yet.")
            return
        release, table = published.release, published.loaded.table
        asked = read_question(live.input, table.schema)
        job.start(lambda: (published, ask(release.answerer, table.truth, asked)))

    def shown() -> tuple[Published, FormQuestion]:
        """The release that is asked, and the last question if it was about the same columns."""
        published = present(live.published())
        same = draft.get("question about") == _about(published)
        return published, (question_in(draft) if same else None) or FormQuestion()

    # As it is typed: a question that was not asked is kept, too.
    @reactive.effect
    def _() -> None:
        published = live.published()
        if published is not None and "ask_value" in live.input:
            asked = read_question(live.input, published.loaded.table.schema)
            draft["question"], draft["question about"] = asdict(asked), _about(published)

    def where_help() -> Tag:
        return tags.p("For example: ", tags.code(example_condition(shown()[0])), class_="help")

    def answers() -> Tag | None:
        found = answered()
        busy = tags.p("Counting…", class_="working") if job.busy() else None
        if not found:
            return busy or tags.p("Answers appear here.", class_="empty-state")
        words = "On average, up to one interval in twenty misses the truth; that is by design."
        return tags.div(
            busy,
            tags.div(
                tags.h3("Answers"),
                tags.p(words, class_="muted"),
                tags.div(
                    download_link("get_answers_csv", "Save as CSV"),
                    download_link("get_answers_json", "Save as JSON"),
                    class_="key-links",
                ),
                *map(answer_card, found),
                class_="answered",
            ),
        )

    live.offer("get_answers_csv", _CSV, lambda: [answers_csv(answered())])
    live.offer("get_answers_json", _JSON, lambda: [answers_json(answered())])
    live.on("ask", question)
    live.show("ask_choices", lambda: release_fields(*shown()))
    live.show("ask_more", lambda: more_fields(*shown()))
    live.show("where_help", where_help)
    live.show("ask_note", lambda: notice(note()))
    live.show("answers", answers)


def _about(published: Published) -> str:
    """What a question is about: in another table, or of another column, it has another meaning."""
    loaded = published.loaded
    return f"{loaded.opened.identity}: {loaded.roles.sensitive}"


def answers_csv(answers: Sequence[BesideTruth]) -> str:
    """Every answer as a line, without the truth, which stays in the page."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("question", "row", "estimate", "low", "high", "unit", "exact", "remarks"))
    for answer in answers:
        for labels, (one,) in answer.table.rows:
            row = ", ".join(map(label, labels.values()))
            writer.writerow((answer.title, row, one.value, one.low, one.high, one.unit, one.exact,
                             "; ".join(one.remarks)))  # fmt: skip
    return stream.getvalue()


def answers_json(answers: Sequence[BesideTruth]) -> str:
    """The same with all that is known of each answer."""
    found = [{"question": one.title, **one.table.as_dict()} for one in answers]
    return json.dumps(found, indent=1, default=str) + "\n"


def example_condition(published: Published) -> str:
    """A condition that works on this release."""
    loaded = published.loaded
    first = loaded.roles.public[0]
    column = next(one for one in loaded.opened.summary.columns if one.name == first)
    name = first if first.isidentifier() else '"' + first.replace('"', '""') + '"'
    recoding = loaded.table.schema.recoding(first)
    if recoding is None and column.numeric and column.low is not None:
        return f"{name} >= {column.low}"
    values = column.common if recoding is None else recoding.labels
    if not values:
        return f"{name} IS NULL"
    text = values[0].replace("'", "''")
    return f"{name} = '{text}'"


def answer_card(answer: BesideTruth) -> Tag:
    """One question with its picture, its numbers and what to know about them."""
    rows, answers = answer.table.rows, answer.table.answers
    errors = [f"{one.standard_error:,.1f}" if one.leans else "" for one in answers]
    columns: dict[str, list[TagChild]] = {
        ", ".join(answer.table.by): [", ".join(map(label, labels.values())) for labels, _ in rows],
        "Estimate": [one.value_words for one in answers],
        "95 % interval": [one.interval for one in answers],
        "From margins": [one.margins_words for one in answers],
        "Root mean squared error": [*errors],
        "Truth": list(map(_truth_words, answers, answer.truths)),
        "Inside?": list(map(_inside_tag, answer.inside)),
    }
    several = len(rows) > 1
    if not several:
        del columns[", ".join(answer.table.by)]
    columns = {name: cells for name, cells in columns.items() if any(cells)}
    lines = [[cell or "–" for cell in line] for line in zip(*columns.values(), strict=True)]
    return card(
        answer.title,
        tags.p(answer.verdict, class_="verdict-line") if answer.verdict else None,
        _picture(answer),
        grid(list(columns), lines, label=f"Answer: {answer.title}",
             numbers=len(columns) - several).add_class("" if several else "nameless"),
        *(tags.p(f"Note: {remark}.", class_="help") for remark in answer.remarks),
        intro=f"Estimator: {', '.join(map(_estimator_words, answer.estimators))}.",
    )  # fmt: skip


def _truth_words(one: Answer, truth: Value) -> str:
    """The truth, written; a count of records is whole."""
    if truth is None:
        return "–"
    return f"{truth:,}" if one.unit == "records" else one.shown(truth)


def _inside_tag(inside: bool | None) -> TagChild:
    if inside is None:
        return "–"
    return tags.span("yes" if inside else "no", class_=f"tag {'good' if inside else 'warning'}")


def _estimator_words(name: str) -> str:
    """An estimator in words."""
    if name == "exact":
        return "none needed"
    known = ESTIMATORS.get(name)
    return name if known is None else known.label.lower()


def _picture(answer: BesideTruth) -> Tag | None:
    """The chart with the truth; None if there is no number to draw."""
    if len(answer.table) > _DRAWN:
        return tags.p(f"No chart: it has {len(answer.table):,} rows.", class_="help")
    try:
        wide, slim = _drawn(answer, ROOMY), _drawn(answer, SLIM)
    except InputError:
        return None
    return tags.div(
        tags.div(HTML(wide), {"aria-hidden": "true"}, class_="roomy"),
        tags.div(HTML(slim), {"aria-hidden": "true"}, class_="slim"),
        {"aria-label": f"Chart of the answer: {answer.title}"}, tabindex="0", role="img",
        class_="answer-picture",
    )  # fmt: skip


def _drawn(answer: BesideTruth, room: Room) -> str:
    """The chart as SVG."""
    spec = answer_chart(answer.table, order="table", truths=answer.truths, room=room)
    title = spec["title"]  # the card has it: what is below it takes its place
    title |= {"text": title.pop("subtitle"), "fontWeight": "normal", "fontSize": 12}
    return drawn(spec)
