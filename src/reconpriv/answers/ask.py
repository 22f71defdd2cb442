"""Answering a question: the one place where kinds of figures part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reconpriv.answers.answerer import Answerer
from reconpriv.answers.figure import COUNT, QUANTILE, SHARE, SUM, Answer, answered
from reconpriv.ask.question import ComparisonQuestion, Question
from reconpriv.ask.selections import Selected
from reconpriv.estimate.averages import average_rows
from reconpriv.estimate.compare import Comparison, compare_sides
from reconpriv.estimate.counts import Estimate, Settings, exact_zero
from reconpriv.estimate.quantiles import quantile_rows
from reconpriv.estimate.shares import Labels, empty_figure, share_rows


def answer_rows(
    answerer: Answerer, question: Question, by: Sequence[str], settings: Settings
) -> Sequence[tuple[Labels, Answer]]:
    """The answer for every combination of the given attributes that occurs."""
    if question.kind == COUNT:
        rows = answerer.table(question.selected, by, settings)
        among = question.among
        return rows if among is None else _summed(answerer, rows, among, by, settings)
    if question.kind == SHARE:
        return share_rows(answerer, question, by, settings)
    rows_of = quantile_rows if question.kind == QUANTILE else average_rows
    return rows_of(answerer, question, by, settings)


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
        return exact_zero(rows.text, settings.confidence)
    found = empty_figure(question, settings)
    return replace(found, kind=SUM) if question.kind == COUNT else found


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
        (labels, found.get(tuple(labels.values()), exact_zero(among.text, settings.confidence)))
        for labels, every in answerer.table(among, by, Settings())
        if not (every.exact and every.count == 0)
    ]
