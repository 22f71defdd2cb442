"""Answers as the page shows them, with the truth beside them: a card each, the latest first."""

from __future__ import annotations

from collections.abc import Sequence

from htmltools import HTML, Tag, TagChild, tags

from reconpriv.answers.beside_truth import BesideTruth
from reconpriv.answers.figure import Answer
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.estimate.counts import ESTIMATORS
from reconpriv.messages.numbers import label
from reconpriv.show.charts.answer_chart import answer_chart
from reconpriv.show.charts.drawing import drawn
from reconpriv.studio.pieces.parts import card, grid

_NOT_ESTIMATED = {"exact": "none needed"}
BY_DESIGN = "On average, up to one interval in twenty misses the truth; that is by design."


def answer_cards(found: Sequence[BesideTruth]) -> Tag:
    """All answers."""
    return tags.div(
        tags.h3("Answers"),
        tags.p(BY_DESIGN, class_="muted"),
        *map(answer_card, found),
        class_="answered",
    )


def answer_card(answer: BesideTruth) -> Tag:
    """One question with its picture, its numbers and what to know about them."""
    rows, answers = answer.table.rows, answer.table.answers
    several = len(rows) > 1
    more = {
        "From margins": [one.margins_words for one in answers],
        "Root mean squared error": [
            f"{one.standard_error:,.1f}" if one.leans else "" for one in answers
        ],
    }
    more = {name: words for name, words in more.items() if any(words)}
    cells: list[list[TagChild]] = [
        [
            *([", ".join(map(label, labels.values()))] if several else []),
            one.value_words,
            one.interval,
            *(words[i] or "–" for words in more.values()),
            _truth_words(one, truth),
            _inside_tag(inside),
        ]
        for i, ((labels, (one,)), truth, inside) in enumerate(
            zip(rows, answer.truths, answer.inside, strict=True)
        )
    ]
    head = [*([", ".join(answer.table.by)] if several else []), "Estimate", "95 % interval",
            *more, "Truth", "Inside?"]  # fmt: skip
    return card(
        answer.title,
        tags.p(answer.verdict, class_="verdict-line") if answer.verdict else None,
        _picture(answer),
        grid(head, cells, label=f"Answer: {answer.title}", numbers=len(head) - several),
        *(tags.p(f"Note: {remark}.", class_="help") for remark in answer.remarks),
        intro=f"Estimator: {', '.join(map(estimator_words, answer.estimators))}.",
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


def estimator_words(name: str) -> str:
    """An estimator in words."""
    known = ESTIMATORS.get(name)
    return known.label.lower() if known is not None else _NOT_ESTIMATED.get(name, name)


def _picture(answer: BesideTruth) -> Tag | None:
    """The chart with the truth; None if there is no number to draw."""
    try:
        spec = answer_chart(answer.table, order="table", truths=answer.truths)
    except InputError:
        return None
    title = spec["title"]  # the card has it: what is below it takes its place
    title |= {"text": title.pop("subtitle"), "fontWeight": "normal", "fontSize": 12}
    return tags.div(
        tags.div(HTML(drawn(spec)), {"aria-hidden": "true"}),
        {"aria-label": f"Chart of the answer: {answer.title}"}, tabindex="0", role="img",
        class_="answer-picture",
    )  # fmt: skip
