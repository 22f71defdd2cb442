"""The form of a question: studio.css shows the fields that the chosen kind needs (data-for)."""

from __future__ import annotations

from collections.abc import Iterable

from htmltools import Tag, TagChild, tags
from shiny import Inputs, ui

from reconpriv.answers.figure import AVERAGE, COUNT, SHARE
from reconpriv.ask.form import (
    ANY,
    COMPARE,
    MEASURED,
    QUESTION_KINDS,
    FormQuestion,
    measurable,
    scored_kinds,
)
from reconpriv.columns.schema import Schema
from reconpriv.estimate.counts import Estimator
from reconpriv.messages.numbers import label as shown_value
from reconpriv.studio.pieces.parts import button, check, choice
from reconpriv.studio.pieces.remedy_words import ANSWER_WHOLE_BINS
from reconpriv.studio.work.workspace import Published

_WITH_COUNT = [name for name, kind in QUESTION_KINDS.items() if kind.counts]
_UNBIASED = [name for name, kind in QUESTION_KINDS.items() if not kind.counts]


def question_form(at: FormQuestion) -> Tag:
    """The form; what depends on the release comes as soon as there is one."""
    return tags.form(
        _kinds(at.kind),
        *(
            _for((name,), tags.p(kind.explanation, class_="help"))
            for name, kind in QUESTION_KINDS.items()
        ),
        _for(
            (COMPARE,),
            _text("ask_a", "Group a, as after WHERE in SQL", at.a),
            _text("ask_b", "Group b", at.b),
            class_="pair",
        ),
        ui.output_ui("ask_choices"),
        _text(
            "where", "Condition, as after WHERE in SQL (may be empty)", at.where,
            ui.output_ui("where_help"),
            _for((COMPARE,), tags.p("It holds for both groups.", class_="help")),
        ),
        _for(
            (SHARE,),
            _text(
                "ask_among", "Among the records with (may be empty)", at.among,
                tags.p("Without it, among all records with the same public values.",
                       class_="help"),
            ),
        ),
        ui.output_ui("ask_more"),
        _for(_WITH_COUNT, _estimators("estimator", QUESTION_KINDS[COUNT].estimators, at)),
        _for(_UNBIASED, _estimators("unbiased_estimator", QUESTION_KINDS[AVERAGE].estimators, at)),
        button("ask", "Ask", primary=True),
        {"data-enter": "ask"},
        class_="ask",
    )  # fmt: skip


def _for(kinds: Iterable[str], *children: TagChild, class_: str = "") -> Tag:
    """Fields that only some kinds of question have."""
    return tags.div(*children, {"data-for": " ".join(kinds)}, class_=class_ or None)


def _text(id: str, label: str, value: str, *more: TagChild) -> Tag:
    return tags.div(
        tags.label(label, {"for": id}),
        tags.input(id=id, type="text", value=value, spellcheck="false", autocomplete="off"),
        *more,
        class_="field",
    )


def _kinds(chosen: str) -> Tag:
    return tags.fieldset(
        tags.legend("What to ask"),
        tags.div(
            *(
                tags.label(
                    tags.input(type="radio", name="ask_kind", value=name,
                               checked="" if name == chosen else None),
                    tags.span(kind.label),
                    class_="pill",
                )
                for name, kind in QUESTION_KINDS.items()
            ),
            id="ask_kind",
            class_="shiny-input-radiogroup pills",
            role="group",
        ),
    )  # fmt: skip


def _estimators(id: str, offered: list[Estimator], at: FormQuestion) -> Tag:
    chosen = at.estimator if at.estimator in [one.name for one in offered] else offered[0].name
    return choice(
        id,
        "Estimates",
        {one.name: one.label for one in offered},
        chosen,
        " ".join(f"{one.label}: {one.explanation}" for one in offered),
    )


def release_fields(published: Published, at: FormQuestion) -> Tag:
    """The choices among the columns and values of a release."""
    schema = published.loaded.table.schema
    sensitive = schema.sensitive.name
    place = {value: str(i) for i, value in enumerate(schema.domain)}
    domain = {place[value]: shown_value(value) for value in published.release.domain}
    names = [column.name for column in schema.columns]
    columns = measurable(schema)
    return tags.div(
        _for(
            MEASURED,
            choice("ask_column", "Column", {one: one for one in columns},
                   at.column if at.column in columns else columns[0]),
        ),
        choice("ask_value", f"Value of {sensitive}", {ANY: "any value", **domain}, at.value),
        _for(
            [name for name in QUESTION_KINDS if name != COMPARE],
            choice("ask_by", "Split by", {ANY: "nothing", **{n: n for n in names}}, at.by),
        ),
        _for(
            (COMPARE,),
            choice("ask_of", "Compare", {SHARE: "shares", COUNT: "counts"}, at.of),
        ),
        class_="pair",
    )  # fmt: skip


def more_fields(published: Published, at: FormQuestion) -> Tag:
    """What only some releases need: scores of the sensitive values, and whole bins."""
    schema = published.loaded.table.schema
    return tags.div(
        _scores(schema, at),
        check(
            "whole_bins",
            ANSWER_WHOLE_BINS,
            "Otherwise a condition that cuts a bin or a group is refused.",
            checked=at.whole_bins,
        )
        if published.loaded.roles.recoded
        else None,
    )


def _scores(schema: Schema, at: FormQuestion) -> Tag | None:
    """A number for each sensitive value; hidden unless the sensitive column is chosen."""
    kinds = scored_kinds(schema)
    if not kinds:
        return None
    given = dict(enumerate(at.scores))
    return _for(
        kinds,
        tags.fieldset(
            tags.legend(f"Scores of {schema.sensitive.name}"),
            tags.p(
                "What number does each value stand for?",
                class_="help",
            ),
            tags.div(
                *(
                    tags.div(
                        tags.label(shown_value(value), {"for": score_id(i)}),
                        tags.input(id=score_id(i), type="number", step="any",
                                   value=_plain(given.get(i))),
                        class_="score",
                    )
                    for i, value in enumerate(schema.domain)
                ),
                class_="boxes scores",
            ),
        ),
        class_="field only-sensitive",
    )  # fmt: skip


def _plain(score: float | None) -> str | None:
    return None if score is None else f"{score:g}"


def score_id(place: int) -> str:
    """The field of the score of the value at a place of the domain."""
    return f"ask_score_{place}"


def read_question(input: Inputs, schema: Schema) -> FormQuestion:
    """The question that the form describes.

    The choices appear a moment after the step does; an early keystroke must not be lost.
    """

    def given(id: str, otherwise: str = "") -> str:
        found = input[id]() if id in input else None
        return otherwise if found is None else str(found).strip()

    kind = QUESTION_KINDS[given("ask_kind", COUNT)]
    estimator = given("estimator" if kind.counts else "unbiased_estimator", "mle")
    scores = tuple(
        input[score_id(i)]() if score_id(i) in input else None for i in range(len(schema.domain))
    )
    return FormQuestion(
        kind=kind.name,
        where=given("where"),
        value=given("ask_value", ANY),
        by=ANY if kind.name == COMPARE else given("ask_by", ANY),
        among=given("ask_among"),
        a=given("ask_a"),
        b=given("ask_b"),
        of=given("ask_of", SHARE),
        column=given("ask_column", measurable(schema)[0]),
        scores=scores,
        estimator=estimator,
        whole_bins="whole_bins" in input and bool(input.whole_bins()),
    )
