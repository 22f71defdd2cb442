"""What a ledger refuses, and a user may want all the same: for each a box to tick."""

from __future__ import annotations

from dataclasses import dataclass

from htmltools import Tag, tags
from shiny import Inputs, reactive

from reconpriv.errors import LedgerError, RoleChangeError, SecondSampleError
from reconpriv.studio.live import Live
from reconpriv.studio.parts import card
from reconpriv.studio.remedy_words import ROLE_CHANGE, SECOND_SAMPLE


@dataclass(frozen=True)
class Refusal:
    """A refusal and its box; ``argument`` is that of publish, and the box's id."""

    argument: str
    error: type[LedgerError]
    title: str
    box: str
    pledge: str
    cost: str


REFUSALS = (
    Refusal(
        "second_sample",
        SecondSampleError,
        "A second sample",
        SECOND_SAMPLE,
        "I will not hand out both",
        "Whoever gets both releases can average them, and learns more about every group than the"
        " policy allows.",
    ),
    Refusal(
        "role_change",
        RoleChangeError,
        "A column in another role",
        ROLE_CHANGE,
        "it is another column, or I will not hand out both",
        "Whoever gets both releases reads from the one where the column is public what the other"
        " hides.",
    ),
)


class Refusals:
    """Why what would be published now was refused; a change of settings makes that void."""

    def __init__(self, input: Inputs, live: Live) -> None:
        """Nothing was refused yet."""
        self._input, self._live = input, live
        self._found: reactive.Value[tuple[object, tuple[Refusal, ...]] | None]
        self._found = reactive.value(None)
        self._said: dict[str, bool] = {}

    @property
    def _now(self) -> tuple[Refusal, ...]:
        found = self._found()
        return found[1] if found is not None and found[0] == self._settings else ()

    @property
    def _settings(self) -> tuple[object, object]:
        return self._live.settled(), self._live.policy()

    def note(self, error: BaseException | None) -> None:
        """A publication failed, or did not.

        It may be refused for two reasons, one after the other: each keeps its box.
        """
        why = [one for one in REFUSALS if error is not None and isinstance(error, one.error)]
        both = tuple(one for one in REFUSALS if one in (*self._now, *why))
        self._found.set((self._settings, both) if why else None)

    def words(self) -> dict[str, bool]:
        """The arguments of publish whose boxes are there, and whether they are ticked."""
        names = [one.argument for one in self._now]
        self._said = {one: one in self._input and bool(self._input[one]()) for one in names}
        return dict(self._said)

    def cards(self) -> Tag:
        """The boxes; those that were ticked when the release was refused still are."""
        return tags.div(
            *(refusal_card(one, ticked=self._said.get(one.argument, False)) for one in self._now),
            class_="cards",
        )


def refusal_card(refusal: Refusal, *, ticked: bool = False) -> Tag:
    """What must be confirmed before such a release is published."""
    return card(
        refusal.title,
        tags.label(
            tags.input(type="checkbox", id=refusal.argument, checked="" if ticked else None),
            tags.span(tags.strong(refusal.box), f": {refusal.pledge}"),
            class_="check",
        ),
        intro=refusal.cost,
    )
