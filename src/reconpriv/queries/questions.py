"""What can be asked: the kinds of question, and one question as the form describes it."""

from __future__ import annotations

from dataclasses import dataclass

from reconpriv.errors import InputError
from reconpriv.queries.answer import Settings
from reconpriv.queries.estimate import ESTIMATORS, Estimator
from reconpriv.queries.measures import has_numbers
from reconpriv.queries.shares import check_unbiased
from reconpriv.schema import Schema

ANY = ""
COUNT, SHARE, COMPARE = "count", "share", "compare"
AVERAGE, MEDIAN, SUM = "average", "median", "sum"
MEASURED = (AVERAGE, MEDIAN, SUM)


@dataclass(frozen=True)
class Kind:
    """A kind of question.

    ``counts`` if it can rest on counts that are not unbiased, ``models`` if on those of a model.
    """

    name: str
    label: str
    explanation: str
    counts: bool = False
    models: bool = False

    @property
    def estimators(self) -> list[Estimator]:
        """The estimators that it can be answered with."""
        return [one for one in ESTIMATORS.values() if self._takes(one)]

    def _takes(self, estimator: Estimator) -> bool:
        return self.models if estimator.model else self.counts or _unbiased(estimator)


def _unbiased(estimator: Estimator) -> bool:
    try:
        check_unbiased(Settings(estimator.name), "")
    except InputError:
        return False
    return True


KINDS = {
    one.name: one
    for one in (
        Kind(COUNT, "Count", "How many records satisfy a condition.", counts=True, models=True),
        Kind(
            SHARE,
            "Share",
            "What share of some records satisfies a condition.",
            counts=True,
        ),
        Kind(
            COMPARE,
            "Comparison",
            "Two groups of records: their difference, their ratio, and whether they differ.",
        ),
        Kind(AVERAGE, "Average", "The average of a column of numbers."),
        Kind(MEDIAN, "Median", "The middle value of a column of numbers or ordered classes."),
        Kind(SUM, "Sum", "The total of a column of numbers."),
    )
}


@dataclass(frozen=True)
class Question:
    """A question as the form describes it; a field that its kind does not need is ignored.

    ``value`` is the place of a sensitive value in the domain, or :data:`ANY`. ``a`` and ``b`` are
    the conditions that are compared, ``of`` what of them: shares or counts. ``scores`` are the
    numbers of the sensitive values, in the order of the domain.
    """

    kind: str = COUNT
    where: str = ""
    value: str = ANY
    by: str = ANY
    among: str = ""
    a: str = ""
    b: str = ""
    of: str = SHARE
    column: str = ""
    scores: tuple[float | None, ...] = ()
    estimator: str = "mle"
    whole_bins: bool = False


def measurable(schema: Schema) -> list[str]:
    """The columns that have a median; the sensitive one may get it from scores."""
    public = [one.name for one in schema.public if has_numbers(schema, one.name, ranked=True)]
    return [*public, schema.sensitive.name]


def scored_kinds(schema: Schema) -> list[str]:
    """The kinds of question for which sensitive values need scores."""
    name = schema.sensitive.name
    asked = {AVERAGE: False, MEDIAN: True, SUM: False}
    return [kind for kind, ranked in asked.items() if not has_numbers(schema, name, ranked=ranked)]
