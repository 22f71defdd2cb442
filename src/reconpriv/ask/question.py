"""One question: a figure of the records that satisfy a condition, however it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from reconpriv.answers.figure import AVERAGE, COUNT, QUANTILE, SUM
from reconpriv.ask.conditions import Selectable
from reconpriv.ask.selections import Selected, both
from reconpriv.estimate.compare import Side, side_of
from reconpriv.estimate.measures import Measure, Scores, measure_of

_FUNCTIONS = {AVERAGE: "avg", SUM: "sum"}


@dataclass(frozen=True)
class Question:
    """A figure of the records of a selection.

    The records ``selected`` are counted, averaged, added up or ranked. A share is that of the
    selected among the records ``among``; ``within`` says that, by the sensitive column, it is among
    the holders of each value. A count that has ``among`` is a sum over those records, undefined
    where there are none. ``share`` is that of a quantile. The answer is headed ``name``, or
    ``alias`` if the user named it.
    """

    kind: str
    selected: Selected
    among: Selected | None = None
    measure: Measure | None = None
    share: float = 0.5
    name: str = COUNT
    alias: str = ""
    within: bool = False

    @property
    def counts(self) -> bool:
        """Whether it is a number of records."""
        return self.kind == COUNT and self.among is None

    @property
    def ranked(self) -> str | None:
        """What it is a quantile of."""
        return self.measure.name if self.measure and self.kind == QUANTILE else None


@dataclass(frozen=True)
class ComparisonQuestion:
    """Two counts, or two shares, to be compared."""

    a: Side
    b: Side

    @classmethod
    def of_sides(
        cls, chosen: Sequence[Selected], common: Selected, among: Selected | None, of: str
    ) -> Self:
        """A comparison of the records that two conditions choose among common ones.

        Shares are among the records ``among``, or those with the same public values.
        """
        sides = [both(one, common) for one in chosen]
        if among is not None:
            sides = [both(one, among) for one in sides]
        one, other = (side_of(side, among, of) for side in sides)
        return cls(one, other)


def question_of_measure(
    records: Selectable,
    kind: str,
    column: str,
    selected: Selected,
    scores: Scores | None,
    share: float = 0.5,
) -> Question:
    """An average, a sum or a quantile of a column."""
    measure = measure_of(records, column, scores, ranked=kind == QUANTILE)
    if kind == QUANTILE:
        arguments = measure.name if share == 0.5 else f"{measure.name}, {share:g}"
        name = f"{'median' if share == 0.5 else 'quantile'}({arguments})"
    else:
        name = f"{_FUNCTIONS[kind]}({measure.name})"
    return Question(kind, selected, measure=measure, share=share, name=name)
