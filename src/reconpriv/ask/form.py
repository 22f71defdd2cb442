"""What the studio's form can ask: the kinds of question, and one question as it is filled in."""

from __future__ import annotations

from dataclasses import dataclass

from reconpriv.answers.figure import AVERAGE, COUNT, SHARE, SUM
from reconpriv.columns.schema import Schema
from reconpriv.estimate.counts import ESTIMATORS, Estimator
from reconpriv.estimate.measures import has_numbers

ANY = ""
COMPARE, MEDIAN = "compare", "median"
MEASURED = (AVERAGE, MEDIAN, SUM)


@dataclass(frozen=True)
class QuestionKind:
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
        return [
            one
            for one in ESTIMATORS.values()
            if (self.models if one.model else self.counts or one.unbiased)
        ]


_KINDS = (
    (COUNT, "Count", "How many records satisfy a condition."),
    (SHARE, "Share", "What share of some records satisfies a condition."),
    (COMPARE, "Comparison",
     "Two groups of records: their difference, their ratio, and whether they differ."),
    (AVERAGE, "Average", "The average of a column of numbers."),
    (MEDIAN, "Median", "The middle value of a column of numbers or ordered classes."),
    (SUM, "Sum", "The total of a column of numbers."),
)  # fmt: skip
QUESTION_KINDS = {
    name: QuestionKind(name, label, words, counts=name in (COUNT, SHARE), models=name == COUNT)
    for name, label, words in _KINDS
}


@dataclass(frozen=True)
class FormQuestion:
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
