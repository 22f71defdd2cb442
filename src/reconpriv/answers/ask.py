"""Answering a question: the one place where kinds of figures part."""

from __future__ import annotations

from collections.abc import Sequence

from reconpriv.answers.answerer import Answerer
from reconpriv.answers.figure import COUNT, QUANTILE, SHARE, SUM, Answer, answered
from reconpriv.ask.question import ComparisonQuestion, Question
from reconpriv.ask.selections import Selected
from reconpriv.estimate.averages import AverageOf, average_rows
from reconpriv.estimate.compare import Comparison, compare_sides
from reconpriv.estimate.counts import Estimate, Settings
from reconpriv.estimate.quantiles import check_share, quantile_rows
from reconpriv.estimate.shares import Labels, ShareOf, empty_figure, share_rows, shares_within


def answer_rows(
    answerer: Answerer,
    question: Question,
    by: Sequence[str],
    settings: Settings,
    *,
    simultaneous: bool = False,
) -> Sequence[tuple[Labels, Answer]]:
    """The answer for every combination of the given attributes that occurs."""
    one, name = question, question.name
    if one.kind == COUNT:
        rows = answerer.table(one.selected, by, settings, simultaneous=simultaneous)
        return rows if one.among is None else _summed(answerer, rows, one.among, by, settings)
    if one.kind == SHARE:
        assert one.among is not None
        asked = ShareOf(one.selected, one.among)
        rows_of = shares_within if one.within else share_rows
        return rows_of(answerer, asked, by, settings, name=name, simultaneous=simultaneous)
    assert one.measure is not None
    if one.kind == QUANTILE:
        return quantile_rows(
            answerer, one.measure, check_share(one.share), one.selected, by, settings,
            name=name, simultaneous=simultaneous,
        )  # fmt: skip
    average = AverageOf(one.kind, one.measure, one.selected, name)
    return average_rows(answerer, average, by, settings, simultaneous=simultaneous)


def answer_one(answerer: Answerer, question: Question, settings: Settings) -> Answer:
    """The answer to a question without groupings; refused where there is nothing to describe."""
    rows = answer_rows(answerer, question, (), settings)
    found = rows[0][1] if rows else no_answer(question, question.selected, settings)
    return answered(found)


def answer_many(
    answerer: Answerer, questions: Sequence[Question | ComparisonQuestion], settings: Settings
) -> list[Answer | Comparison]:
    """The answers to many questions; counts share their passes over the cells."""
    plain = [one for one in questions if isinstance(one, Question) and one.counts]
    counts = iter(answerer.count_many([one.selected for one in plain], settings))
    found: list[Answer | Comparison] = []
    for one in questions:
        if isinstance(one, ComparisonQuestion):
            found.append(compare_sides(answerer, one.a, one.b, settings))
        else:
            found.append(next(counts) if one.counts else answer_one(answerer, one, settings))
    return found


def no_answer(question: Question, rows: Selected, settings: Settings) -> Answer:
    """The answer in a row that has no record of a question."""
    if question.counts:
        return _zero(rows, settings)
    kind = SUM if question.kind == COUNT else question.kind
    return empty_figure(question.name, kind, question.name, settings.confidence)


def _summed(
    answerer: Answerer,
    rows: Sequence[tuple[Labels, Estimate]],
    among: Selected,
    by: Sequence[str],
    settings: Settings,
) -> list[tuple[Labels, Estimate]]:
    """Counts as sums: 0 where no record adds to one, and no row where there is no record at all."""
    found = {tuple(labels.values()): one for labels, one in rows}
    return [
        (labels, found.get(tuple(labels.values()), _zero(among, settings)))
        for labels, every in answerer.table(among, by, Settings())
        if not (every.exact and every.count == 0)
    ]


def _zero(selected: Selected, settings: Settings) -> Estimate:
    """The count of records that cannot occur."""
    confidence = settings.confidence
    return Estimate(selected.text, 0.0, 0.0, 0.0, confidence, 0.0, True, "exact", 0, 0, 0.0)
