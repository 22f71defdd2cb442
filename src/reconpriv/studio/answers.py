"""Answers as the page shows them: a card each, the latest first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from htmltools import Tag, TagChild, tags

from reconpriv.queries.beside_truth import Answered, Line
from reconpriv.queries.estimate import ESTIMATORS, margins_words
from reconpriv.queries.questions import COUNT, SHARE
from reconpriv.studio.answer_pictures import picture
from reconpriv.studio.parts import card, grid

# From this size on, a decimal is noise.
_LARGE = 100
_NOT_ESTIMATED = {"exact": "none needed"}
BY_DESIGN = "On average, up to one interval in twenty misses the truth; that is by design."


def answer_cards(found: Sequence[Answered]) -> Tag:
    """All answers."""
    return tags.div(
        tags.h3("Answers"),
        tags.p(BY_DESIGN, class_="muted"),
        *(answer_card(one) for one in found),
        class_="answered",
    )


def answer_card(answer: Answered) -> Tag:
    """One question with its picture, its numbers and what to know about them."""
    margins = any(line.from_margins > 0 for line in answer.lines)
    model = any(line.mean_squared_error is not None for line in answer.lines)
    several = len(answer.lines) > 1
    head = (
        *((answer.head,) if several else ()), "Estimate", "95 % interval",
        *(("From margins",) if margins else ()),
        *(("Root mean squared error",) if model else ()), "Truth", "Inside?",
    )  # fmt: skip
    rows = [_row(line, several=several, margins=margins, model=model) for line in answer.lines]
    numbers = len(head) - 1 if several else len(head)
    return card(
        answer.title,
        tags.p(answer.verdict, class_="verdict-line") if answer.verdict else None,
        picture(answer.lines, answer.title),
        grid(head, rows, label=f"Answer: {answer.title}", numbers=numbers),
        *(tags.p(f"Note: {remark}.", class_="help") for remark in answer.remarks),
        intro=f"Estimator: {', '.join(map(estimator_words, answer.estimators))}.",
    )


def _row(line: Line, *, several: bool, margins: bool, model: bool) -> tuple[TagChild, ...]:
    return (
        *((line.label,) if several else ()),
        shown(line, line.value),
        interval(line),
        *((margins_words(line.from_margins),) if margins else ()),
        *((_error(line.mean_squared_error),) if model else ()),
        shown(line, line.truth),
        _inside_tag(line.inside),
    )


def _error(value: float | None) -> str:
    return "–" if value is None else number(math.sqrt(value))


def interval(line: Line) -> str:
    """The interval of a line, or that there is none."""
    if line.exact or line.mean_squared_error is not None:
        return "exact" if line.exact else "–"
    if line.kind == "points" and line.low is not None:
        return f"{100 * line.low:+,.2f} to {shown(line, line.high)}"
    if line.steps is None or line.low is None or line.high is None:
        return f"{shown(line, line.low)} to {shown(line, line.high, 'no limit')}"
    low, high = line.steps.low[int(line.low)], line.steps.high[int(line.high)]
    return f"{low} or more" if high is None else f"{low} to {high}"


def _inside_tag(inside: bool | None) -> TagChild:
    if inside is None:
        return "–"
    return tags.span("yes" if inside else "no", class_=f"tag {'good' if inside else 'warning'}")


def estimator_words(name: str) -> str:
    """An estimator in words."""
    known = ESTIMATORS.get(name)
    return known.label.lower() if known is not None else _NOT_ESTIMATED.get(name, name)


def shown(line: Line, value: float | None, nothing: str = "–") -> str:
    """A number of a line, or the class that it is the place of."""
    if value is None:
        return nothing
    if line.steps is not None:
        return str(line.steps.shown[int(value)])
    return _WRITTEN.get(line.kind, line.plain)(value)


def number(value: float) -> str:
    """A count; a small one has a decimal, since half a record is a large part of it."""
    if abs(value) >= _LARGE or value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.1f}"


_WRITTEN: dict[str, Callable[[float], str]] = {
    COUNT: number,
    SHARE: lambda value: f"{100 * value:,.2f} %",
    "points": lambda value: f"{100 * value:+,.2f} points",
    "difference": lambda value: f"+{number(value)}" if value > 0 else number(value),
    "ratio": lambda value: f"{value:,.3f}",
}
