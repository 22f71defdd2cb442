"""The form of a question: studio.css shows the fields that the chosen kind needs (data-for)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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
from reconpriv.studio.pieces.parts import button, check, choice, field, options
from reconpriv.studio.pieces.remedy_words import ANSWER_WHOLE_BINS
from reconpriv.studio.work.workspace import Published

_WITH_COUNT = [name for name, kind in QUESTION_KINDS.items() if kind.counts]
_UNBIASED = [name for name, kind in QUESTION_KINDS.items() if not kind.counts]


def question_form(at: FormQuestion) -> Tag:
    """The form; what depends on the release comes as soon as there is one."""
    pills = {name: kind.label for name, kind in QUESTION_KINDS.items()}
    return tags.form(
        tags.fieldset(
            tags.legend("What to ask"),
            options("radio", "ask_kind", pills, [at.kind], look="pill", class_="pills"),
        ),
        *(
            _for((name,), tags.p(kind.explanation, class_="help"))
            for name, kind in QUESTION_KINDS.items()
        ),
        _for(
            (COMPARE,),
            field("ask_a", "Group a, as after WHERE in SQL", value=at.a),
            field("ask_b", "Group b", value=at.b),
            class_="pair",
        ),
        ui.output_ui("ask_choices"),
        field(
            "where", "Condition, as after WHERE in SQL (may be empty)", ui.output_ui("where_help"),
            _for((COMPARE,), tags.p("It holds for both groups.", class_="help")), value=at.where,
        ),
        _for(
            (SHARE,),
            field(
                "ask_among", "Among the records with (may be empty)",
                tags.p("Without it, among all records with the same public values.",
                       class_="help"),
                value=at.among,
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
    scores = at.scores or (None,) * len(schema.domain)
    return _for(
        kinds,
        tags.fieldset(
            tags.legend(f"Scores of {schema.sensitive.name}"),
            tags.p("What number does each value stand for?", class_="help"),
            tags.div(
                *(
                    tags.div(
                        tags.label(shown_value(value), {"for": f"ask_score_{i}"}),
                        tags.input(id=f"ask_score_{i}", type="number", step="any",
                                   value=None if score is None else f"{score:g}"),
                        class_="score",
                    )
                    for i, (value, score) in enumerate(zip(schema.domain, scores, strict=True))
                ),
                class_="boxes scores",
            ),
        ),
        class_="field only-sensitive",
    )  # fmt: skip


def read_question(input: Inputs, schema: Schema) -> FormQuestion:
    """The question that the form describes.

    The choices appear a moment after the step does; an early keystroke must not be lost.
    """

    def given(id: str, otherwise: Any = "") -> Any:
        found = input[id]() if id in input else None
        return otherwise if found is None else found.strip() if isinstance(found, str) else found

    kind = QUESTION_KINDS[given("ask_kind", COUNT)]
    return FormQuestion(
        kind=kind.name,
        where=given("where"),
        column=given("ask_column", measurable(schema)[0]),
        scores=tuple(given(f"ask_score_{i}", None) for i in range(len(schema.domain))),
        estimator=given("estimator" if kind.counts else "unbiased_estimator", "mle"),
        whole_bins=given("whole_bins", False),
        of=given("ask_of", SHARE),
        **{name: given(f"ask_{name}") for name in ("value", "by", "among", "a", "b")},
    )
