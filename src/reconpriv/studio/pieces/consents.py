"""What stands in the way of a publication, and the boxes that accept it all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from htmltools import Tag, tags
from shiny import Inputs

import reconpriv as rp
from reconpriv.auditing.column_risk import identifier_remedies, identifiers_named
from reconpriv.auditing.obstacles import Obstacle
from reconpriv.errors import RoleChangeError, SecondSampleError
from reconpriv.messages.remedies import Control, Remedy, worded
from reconpriv.studio.pieces.parts import card, notice, options
from reconpriv.studio.pieces.remedy_words import ROLE_CHANGE, SECOND_SAMPLE, page_words

_YES = "yes"


@dataclass(frozen=True)
class Box:
    """How something is accepted: an argument of publish; ``label`` names the value with {}.

    With a ``refusal``, it is what the ledger refuses; otherwise an obstacle of the table.
    """

    title: str
    label: str
    intro: str
    value: Callable[[tuple[str, ...]], Any] = list
    refusal: type[rp.ReconprivError] | None = None

    def shown(self, value: str) -> str:
        """The label of the box for one value."""
        return self.label.format(f"{float(value):.0%}" if self.value is _share else value)


def _share(ticked: tuple[str, ...]) -> float:
    return float(ticked[0])


BOXES = {
    Control.KEEP_IDENTIFIER: Box(
        "Identifier-like columns",
        "Publish the identifier-like column {} as it is",
        "Most records have their own value here, so anyone who knows it can find the record.",
    ),
    Control.KEEP_GIVEAWAY: Box(
        "Columns that give the sensitive value away",
        "Publish {} as it is, and with it what it tells",
        "Randomising a value protects nobody if a public column beside it tells the value.",
    ),
    Control.MAX_UNIQUE: Box(
        "Unique records",
        "Publish although up to {} of the records are unique",
        "Whoever knows the public values of such a person finds the record.",
        _share,
    ),
    Control.SECOND_SAMPLE: Box(
        "A second sample",
        f"{SECOND_SAMPLE}: I will not hand out both",
        "Whoever gets both releases can average them, and learns more about every group than the"
        " policy allows.",
        bool,
        SecondSampleError,
    ),
    Control.ROLE_CHANGE: Box(
        "A column in another role",
        f"{ROLE_CHANGE}: it is another column, or I will not hand out both",
        "Whoever gets both releases reads from the one where the column is public what the other"
        " hides.",
        bool,
        RoleChangeError,
    ),
}


@dataclass(frozen=True)
class Consent:
    """An obstacle in the words of the page, and what accepts it.

    ``values`` are those of its boxes; without a control, it has to be removed.
    """

    words: str = ""
    control: Control | None = None
    values: tuple[str, ...] = ()


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


def consents_to(report: rp.AuditReport) -> list[Consent]:
    """Everything that stands in the way, with what it takes to publish all the same."""
    return [_consent(one) for one in obstacles_of(report)]


def _consent(obstacle: Obstacle) -> Consent:
    words = obstacle_words(obstacle)
    for sentence in obstacle.hint.sentences:
        for way in sentence if isinstance(sentence, tuple) else (sentence,):
            if isinstance(way, Remedy) and way.control in BOXES:
                values = way.value if isinstance(way.value, tuple) else (str(way.value),)
                return Consent(words, way.control, values)
    return Consent(words)


def refused_by(error: BaseException | None) -> list[Control]:
    """The consents that a refusal asks for."""
    return [
        control
        for control, box in BOXES.items()
        if box.refusal is not None and isinstance(error, box.refusal)
    ]


def consents_after(refused: Iterable[Control]) -> list[Consent]:
    """The consents that a ledger asked for; each refusal is explained beside the button."""
    return [Consent("", control, (_YES,)) for control in refused]


def consent_cards(asked: Sequence[Consent], ticked: Mapping[str, tuple[str, ...]]) -> Tag:
    """Each obstacle in red, with its boxes; one without has to be removed."""
    return tags.div(
        *(notice(one.words) if one.control is None else _card(one, ticked) for one in asked),
        class_="stack",
    )


def _card(consent: Consent, ticked: Mapping[str, tuple[str, ...]]) -> Tag:
    assert consent.control is not None
    name, box = consent.control.value, BOXES[consent.control]
    return card(
        box.title,
        notice(consent.words),
        options("checkbox", name, {one: box.shown(one) for one in consent.values},
                ticked.get(name, ()), aria_label=f"{box.title} to publish"),
        intro=f"{box.intro} Published only if you say so.",
    )  # fmt: skip


def ticked_boxes(input: Inputs, asked: Iterable[Consent]) -> dict[str, tuple[str, ...]]:
    """The values that are ticked, by argument; a box that is no longer there accepts nothing."""
    found = {}
    for one in asked:
        if one.control is not None and one.control.value in input:
            given = input[one.control.value]() or ()
            found[one.control.value] = tuple(value for value in one.values if value in given)
    return {name: values for name, values in found.items() if values}


def arguments_of(ticked: Mapping[str, tuple[str, ...]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is ticked, as arguments of publish: obstacles, and what a ledger refused."""
    found: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for name, values in ticked.items():
        box = BOXES[Control(name)]
        found[box.refusal is not None][name] = box.value(values)
    return found
