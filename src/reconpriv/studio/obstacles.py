"""What stands in the way of a publication: in words, and for each a box that accepts it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from htmltools import Tag, TagChild, tags
from shiny import Inputs, reactive, render

import reconpriv as rp
from reconpriv.core.column_risk import identifier_remedies, identifiers_named
from reconpriv.core.obstacles import UNIQUE, Obstacle
from reconpriv.messages.remedies import Control, Remedy, worded
from reconpriv.studio.judged import Judged, shown
from reconpriv.studio.live import Live
from reconpriv.studio.parts import card, notice
from reconpriv.studio.remedy_words import page_words


@dataclass(frozen=True)
class Box:
    """How an obstacle is accepted; a box stands ``before`` and ``after`` what it accepts."""

    title: str
    before: str
    after: str
    intro: str


# The names are arguments of publish, and the ids of the boxes.
BOXES = {
    Control.KEEP_IDENTIFIER: Box(
        "Identifier-like columns",
        "Publish the identifier-like column ",
        " as it is",
        "Most records have their own value here, so anyone who knows it can find the record.",
    ),
    Control.KEEP_GIVEAWAY: Box(
        "Columns that give the sensitive value away",
        "Publish ",
        " as it is, and with it what it tells",
        "Randomising a value protects nobody if a public column beside it tells the value.",
    ),
    Control.MAX_UNIQUE: Box(
        "Unique records",
        "Publish although up to ",
        " of the records are unique",
        "Whoever knows the public values of such a person finds the record.",
    ),
}


@dataclass(frozen=True)
class Asked:
    """An obstacle as the publish step asks about it.

    ``accepts`` are the values of its boxes, each an argument of publish; without any, it has to be
    removed.
    """

    words: str
    control: Control | None = None
    accepts: tuple[str, ...] = ()


def obstacle_words(obstacle: Obstacle) -> str:
    """An obstacle and what to do about it, in the words of the page."""
    return worded(obstacle.sentence, page_words)


def obstacles_of(report: rp.AuditReport) -> list[Obstacle]:
    """Everything that stands in the way: nearly unique columns, too."""
    found = [column for column in report.columns if column.refused]
    if not found:
        return list(report.obstacles)
    advice = identifier_remedies([column.name for column in found])
    named = identifiers_named(found, report.records)
    return [Obstacle("columns", named, advice), *report.obstacles]


def unique_obstacle(report: rp.AuditReport) -> Obstacle | None:
    """Too many unique records, if there are."""
    return next((one for one in report.obstacles if one.about == UNIQUE), None)


def asked_about(report: rp.AuditReport) -> list[Asked]:
    """Everything that stands in the way, with what it takes to publish all the same."""
    return [_asked(one) for one in obstacles_of(report)]


def _asked(obstacle: Obstacle) -> Asked:
    words = obstacle_words(obstacle)
    for remedy in _remedies(obstacle):
        if remedy.control in BOXES:
            value = remedy.value
            accepts = value if isinstance(value, tuple) else (str(value),)
            return Asked(words, remedy.control, accepts)
    return Asked(words)


def _remedies(obstacle: Obstacle) -> Iterator[Remedy]:
    for sentence in obstacle.hint.sentences:
        for way in sentence if isinstance(sentence, tuple) else (sentence,):
            if isinstance(way, Remedy):
                yield way


def obstacle_cards(asked: list[Asked]) -> Tag:
    """Each obstacle in red, with its boxes; one without has to be removed."""
    return tags.div(
        *(notice(one.words) if one.control is None else _boxes(one, one.control) for one in asked),
        class_="stack",
    )


def _boxes(asked: Asked, control: Control) -> Tag:
    box = BOXES[control]
    return card(
        box.title,
        notice(asked.words),
        tags.div(
            *(
                tags.label(
                    tags.input(type="checkbox", name=control.value, value=value),
                    tags.span(box.before, tags.strong(_shown(control, value)), box.after),
                    class_="check",
                )
                for value in asked.accepts
            ),
            {"aria-label": f"{box.title} to publish"},
            id=control.value,
            class_="shiny-input-checkboxgroup",
            role="group",
        ),
        intro=f"{box.intro} Published only if you say so.",
    )


def _shown(control: Control, value: str) -> TagChild:
    return f"{float(value):.0%}" if control is Control.MAX_UNIQUE else value


def accepted(input: Inputs, asked: list[Asked]) -> dict[str, Any]:
    """What is ticked, as parts of a plan; a box that is no longer there accepts nothing."""
    found: dict[str, Any] = {}
    for one in asked:
        if one.control is None or one.control.value not in input:
            continue
        ticked = input[one.control.value]() or ()
        values = tuple(value for value in one.accepts if value in ticked)
        if values:
            number = one.control is Control.MAX_UNIQUE
            found[one.control.value] = float(values[0]) if number else values
    return found


def serve_hints(
    live: Live,
    audit: reactive.Value[Judged[rp.AuditReport] | None],
    follows: Callable[[Judged[rp.AuditReport]], bool],
) -> None:
    """What the audit of all columns advises; after a change of policy, if another ``follows``."""

    @render.ui
    def hints() -> Tag | None:
        known = audit()
        if known is None or known.settled is not live.settled() or not known.found.hints:
            return None
        current = known.policy == live.policy()
        return shown(hint_card(known.found), current=current) if current or follows(known) else None


def hint_card(report: rp.AuditReport) -> Tag:
    """What would make a better release."""
    notes = (notice(worded(hint, page_words), "info") for hint in report.hints)
    return card("What would help", *notes)
