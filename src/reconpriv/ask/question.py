"""One question: a figure of the records that satisfy a condition, however it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from reconpriv.answers.figure import COUNT, QUANTILE, SHARE
from reconpriv.ask.selections import Selected, both, public_part
from reconpriv.errors import InputError

if TYPE_CHECKING:
    from reconpriv.estimate.measures import Measure


@dataclass(frozen=True)
class Question:
    """A figure of the records of a selection.

    The records ``selected`` are counted, averaged, added up or ranked. A share is that of the
    selected among the records ``among``, all of which it is a part of; ``within`` says that, by the
    sensitive column, it is among the holders of each value. A count that has ``among`` is a sum
    over those records, undefined where there are none. ``share`` is that of a quantile. The answer
    is headed ``name``, or ``alias`` if the user named it.
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
        """True if it asks for a number of records."""
        return self.kind == COUNT and self.among is None

    @property
    def ranked(self) -> str | None:
        """The column of a quantile; None for any other figure."""
        return self.measure.name if self.measure and self.kind == QUANTILE else None

    @property
    def base(self) -> Selected:
        """The records that a share is among: its denominator."""
        assert self.among is not None
        return self.among

    @property
    def known(self) -> bool:
        """True if the denominator of a share is known exactly."""
        return self.base.values is None

    @property
    def measured(self) -> Measure:
        """What is averaged, added up or ranked."""
        assert self.measure is not None
        return self.measure

    @property
    def public(self) -> bool:
        """True if a figure of a measure is about public columns alone."""
        return self.measured.scores is None and self.selected.values is None

    @property
    def nobody(self) -> bool:
        """True if no sensitive value satisfies the condition, so that nobody can."""
        return self.selected.values == ()

    @property
    def text(self) -> str:
        """The question in words."""
        if self.kind == SHARE:
            # Among those with the same public values, the condition says it all.
            among = "" if self.base.text == self.selected.text else f" among {self.base.text}"
            return f"share of {self.selected.text}{among}"
        if self.measure is None:
            return self.selected.text
        quantile = "median" if self.share == 0.5 else f"{self.share:g}-quantile"
        kind = quantile if self.kind == QUANTILE else self.kind
        return f"{kind} of {self.measure.name} among {self.selected.text}"


def asked_share(counted: Selected, among: Selected | None) -> Question:
    """A share among the records of a condition, or among those with the same public values."""
    if among is not None:
        return Question(SHARE, both(counted, among), among, name=SHARE)
    if counted.values is None:
        raise InputError(
            "A share needs a condition on the sensitive column, or the records that it is among.",
            hint='For example release.share("sex = \'Female\'", among="age < 30").',
        )
    return Question(SHARE, counted, public_part(counted), name=SHARE)


def side_of(selected: Selected, among: Selected | None, of: str) -> Question:
    """One side of a comparison: a count, or a share among the records with the same public values.

    All records of a side are ``among`` those of its share.
    """
    if of == COUNT:
        return Question(COUNT, selected)
    if of != SHARE:
        raise InputError(f"A comparison is of {COUNT!r} or {SHARE!r}; got {of!r}.")
    if among is None and selected.values is None:
        raise InputError(
            "A comparison of shares needs a condition on the sensitive column.",
            hint='Add one, or compare counts with of="count".',
        )
    return Question(SHARE, selected, public_part(selected) if among is None else among, name=SHARE)


@dataclass(frozen=True)
class ComparisonQuestion:
    """Two counts, or two shares, to be compared."""

    a: Question
    b: Question

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
