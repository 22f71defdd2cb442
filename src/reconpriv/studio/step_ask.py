"""Step 6: count queries on the release, next to the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from htmltools import Tag, TagChild, tags
from shiny import Inputs, reactive, render, req, ui

import reconpriv as rp
from reconpriv.queries.estimate import ESTIMATORS, margins_words
from reconpriv.studio.desk import Published, explain
from reconpriv.studio.jobs import Job
from reconpriv.studio.live import Live
from reconpriv.studio.parts import alert_place, button, card, check, choice, footer, grid, notice
from reconpriv.studio.remedy_words import ANSWER_WHOLE_BINS

ANY = ""
_MISSING = "(missing)"
_MOST_ROWS = 40
_KEPT = 12
# From this size on, a decimal is noise.
_LARGE = 100
_NOT_ESTIMATED = {"exact": "none needed"}


@dataclass(frozen=True)
class Answer:
    """An estimate with the truth, which stays with the publisher."""

    label: str
    estimate: rp.Estimate
    truth: int


def panel() -> Tag:
    """The static part."""
    return tags.div(
        tags.p(
            "Ask what an analyst would ask. The estimate comes from the release alone; the truth"
            " is counted in your table and shown only here.",
            class_="lead",
        ),
        card(
            "Question",
            tags.form(
                tags.div(
                    tags.label("Condition, as after WHERE in SQL (may be empty)", {"for": "where"}),
                    tags.input(id="where", type="text", spellcheck="false", autocomplete="off"),
                    ui.output_ui("where_help"),
                    class_="field",
                ),
                ui.output_ui("ask_choices"),
                choice(
                    "estimator",
                    "Estimates",
                    {one.name: one.label for one in ESTIMATORS.values()},
                    "mle",
                    " ".join(f"{one.label}: {one.explanation}" for one in ESTIMATORS.values()),
                ),
                button("ask", "Ask", primary=True),
                {"data-enter": "ask"},
            ),
            alert_place("ask_note"),
        ),
        tags.div(ui.output_ui("answers"), {"aria-live": "polite"}),
        footer(6),
    )


def serve(input: Inputs, live: Live) -> None:
    """The reactive part."""
    note = live.note("ask")
    answered: reactive.Value[tuple[Answer, ...]] = reactive.value(())

    def done(found: list[Answer]) -> None:
        note.set("")
        answered.set((*found, *answered())[: max(_KEPT, len(found))])

    job: Job[list[Answer]] = Job(live.desk.pool, done, lambda error: note.set(explain(error)))
    _serve_form(live)

    @reactive.effect
    @reactive.event(live.published)
    def _() -> None:
        answered.set(())

    @reactive.effect
    @reactive.event(input.ask)
    def _() -> None:
        published = live.published()
        if published is None:
            note.set("Publish first: there is no release to query yet.")
            return
        where = input.where().strip()
        # The choices appear a moment after the step does; an early keystroke must not be lost.
        value = input.ask_value() if "ask_value" in input else ANY
        by = input.ask_by() if "ask_by" in input else ANY
        estimator = input.estimator()
        whole = "whole_bins" in input and bool(input.whole_bins())
        job.start(lambda: ask(published, where or None, value, by, estimator, whole))

    @render.ui
    def ask_note() -> Tag | None:
        return notice(note())

    @render.ui
    def answers() -> Tag | None:
        if job.busy():
            return tags.p("Counting…", class_="working")
        found = answered()
        if not found:
            return tags.p("Answers appear here.", class_="empty-state")
        return answers_card(found)


def _serve_form(live: Live) -> None:
    @render.ui
    def ask_choices() -> Tag:
        published = live.published()
        req(published is not None)
        assert published is not None
        schema = published.settled.table.schema
        place = {value: str(i) for i, value in enumerate(schema.domain)}
        domain = {place[value]: _shown(value) for value in published.release.domain}
        names = [column.name for column in schema.public]
        return tags.div(
            choice("ask_value", schema.sensitive.name, {ANY: "any value", **domain}, ANY),
            choice("ask_by", "Split by", {ANY: "nothing", **{n: n for n in names}}, ANY),
            check(
                "whole_bins",
                ANSWER_WHOLE_BINS,
                "Otherwise a condition that cuts a bin or a group is refused.",
            )
            if published.settled.roles.recoded
            else None,
            class_="pair",
        )

    @render.ui
    def where_help() -> Tag:
        published = live.published()
        req(published is not None)
        assert published is not None
        return tags.p("For example: ", tags.code(example_condition(published)), class_="help")


def ask(
    published: Published,
    where: str | None,
    value: str,
    by: str,
    estimator: str = "mle",
    whole_bins: bool = False,
) -> list[Answer]:
    """Ask the release and the table the same question."""
    table, release = published.settled.table, published.release
    equal: dict[str, Any] = {}
    if value != ANY:
        equal[table.schema.sensitive.name] = table.schema.domain[int(value)]
    if by == ANY:
        estimate = release.count(where, estimator=estimator, whole_bins=whole_bins, **equal)
        truth = table.count(where, whole_bins=whole_bins, **equal)
        return [Answer(estimate.query, estimate, truth)]
    found = release.crosstab([by], where, estimator=estimator, whole_bins=whole_bins, **equal)
    rows = list(found)[:_MOST_ROWS]
    return [
        Answer(
            f"{estimate.query} · {by} = {_shown(label[by])}",
            estimate,
            table.count(where, whole_bins=whole_bins, **{**equal, **label}),
        )
        for label, estimate in rows
    ]


def _estimator_words(name: str) -> str:
    known = ESTIMATORS.get(name)
    return known.label.lower() if known is not None else _NOT_ESTIMATED.get(name, name)


def _error_words(estimate: rp.Estimate) -> str:
    error = estimate.mean_squared_error
    return "-" if error is None else number(error)


def answers_card(found: tuple[Answer, ...]) -> Tag:
    """The latest answers first."""
    margins = any(answer.estimate.from_margins > 0 for answer in found)
    smoothed = any(answer.estimate.mean_squared_error is not None for answer in found)
    head = (
        "Question", "Estimate", "95 % interval", "Estimator",
        *(("From margins",) if margins else ()),
        *(("Mean squared error",) if smoothed else ()), "Truth", "Inside?",
    )  # fmt: skip
    rows: list[tuple[TagChild, ...]] = []
    for answer in found:
        estimate = answer.estimate
        inside = estimate.low <= answer.truth <= estimate.high
        interval = f"{number(estimate.low)} to {number(estimate.high)}"
        rows.append(
            (
                answer.label,
                number(estimate.count),
                "exact" if estimate.exact else interval,
                _estimator_words(estimate.estimator),
                *((margins_words(estimate.from_margins),) if margins else ()),
                *((_error_words(estimate),) if smoothed else ()),
                f"{answer.truth:,}",
                tags.span(
                    "yes" if inside else "no", class_=f"tag {'good' if inside else 'warning'}"
                ),
            )
        )
    remarks = sorted({remark for answer in found for remark in answer.estimate.remarks})
    return card(
        "Answers",
        grid(head, rows, label="Answers", numbers=len(head) - 1),
        *(tags.p(f"Note: {remark}.", class_="help") for remark in remarks),
        intro="On average, up to one interval in twenty misses the truth; that is by design.",
    )


def number(value: float) -> str:
    """A count; a small one has a decimal, since half a record is a large part of it."""
    if abs(value) >= _LARGE or value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.1f}"


def example_condition(published: Published) -> str:
    """A condition that works on this release."""
    settled = published.settled
    first = settled.roles.public[0]
    column = next(c for c in settled.opened.summary.columns if c.name == first)
    name = first if first.isidentifier() else '"' + first.replace('"', '""') + '"'
    recoding = settled.table.schema.recoding(first)
    if recoding is not None:
        text = recoding.labels[0].replace("'", "''")
        return f"{name} = '{text}'"
    if column.numeric and column.low is not None:
        return f"{name} >= {column.low}"
    if not column.common:
        return f"{name} IS NULL"
    text = column.common[0].replace("'", "''")
    return f"{name} = '{text}'"


def _shown(value: Any) -> str:
    return _MISSING if value is None else str(value)
