"""Asking the release and the publisher's table the same question; no page.

The truth is the answer of the original table. It is shown in the studio and goes nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconpriv.answers.answerer import Answerer
from reconpriv.answers.ask import answer_rows
from reconpriv.answers.figure import COUNT, QUANTILE, SHARE, Answer, answered
from reconpriv.answers.tables import FigureTable, table_of
from reconpriv.ask.form import ANY, COMPARE, MEDIAN, QUESTION_KINDS, FormQuestion
from reconpriv.ask.question import ComparisonQuestion, Question, asked_share
from reconpriv.ask.selections import Selected, describe
from reconpriv.columns.schema import Schema, Value
from reconpriv.errors import InputError
from reconpriv.estimate.compare import Comparison, compare_sides
from reconpriv.estimate.counts import Estimate, Settings
from reconpriv.estimate.measures import Scores, Steps, has_numbers, question_of_measure
from reconpriv.estimate.shares import Labels
from reconpriv.messages.phrases import listed

MOST_ROWS = 1_000
_EDGE = 1e-9

Rows = Sequence[tuple[Labels, Answer]]


@dataclass(frozen=True)
class BesideTruth:
    """The answers of a release, each with the true one (None where there is none).

    ``steps`` are the bins or classes that the answers are, if they are no numbers.
    """

    title: str
    table: FigureTable
    truths: tuple[Value, ...]
    remarks: tuple[str, ...]
    verdict: str = ""
    steps: Steps | None = None

    @property
    def estimators(self) -> tuple[str, ...]:
        """How the answers were estimated."""
        return tuple(dict.fromkeys(one.estimator for one in self.table.answers))

    def places(self, row: int) -> tuple[float | None, ...]:
        """An estimate, its limits and the truth as numbers; classes as their places in the order.

        A limit is None if it is open.
        """
        one, truth = self.table.answers[row], self.truths[row]
        if one.leans:
            return one.number, None, None, _number(truth)
        if self.steps is None:
            return one.number, _number(one.low), _number(one.high), _number(truth)
        known = one.value is not None  # the last of the bins may have no end
        return (
            _place(self.steps.shown, one.value),
            _place(self.steps.low, one.low),
            _place(self.steps.high, one.high, known),
            _place(self.steps.shown, truth),
        )

    @property
    def inside(self) -> tuple[bool | None, ...]:
        """True for each interval that holds the truth; None without a truth or an interval."""
        return tuple(map(self._inside, range(len(self.truths))))

    def _inside(self, row: int) -> bool | None:
        _, low, high, truth = self.places(row)
        if truth is None or self.table.answers[row].leans:
            return None
        edge = _EDGE * max(abs(truth), 1.0)
        below = low is not None and truth < low - edge
        return not below and not (high is not None and truth > high + edge)


def ask(release: Answerer, table: Answerer, asked: FormQuestion) -> BesideTruth:
    """Ask the release, then the original table (:attr:`reconpriv.Table.truth`)."""
    if asked.kind == COMPARE:
        return _compared(release, table, asked)
    question = _question(release, asked)
    rows = _described(_rows(release, question, asked, Settings(asked.estimator)), asked)
    of_table = _rows(table, _question(table, asked), asked, Settings())
    true = {tuple(labels.values()): one for labels, one in of_table}
    shown = tuple((labels, (one,)) for labels, one in rows[:MOST_ROWS])
    found = FigureTable(() if asked.by == ANY else (asked.by,), (asked.kind,), shown)
    remarks = tuple(dict.fromkeys(remark for one in found.answers for remark in one.remarks))
    if question.measure is not None and question.measure.ends is not None:
        remarks = (*remarks, "the truth takes the same middles")
    if len(rows) > len(shown):
        remarks = (f"only the first {len(shown)} of {len(rows):,} rows are shown", *remarks)
    split = f", by {asked.by}" if asked.by != ANY else ""
    return BesideTruth(
        title=_title(found.answers[0], asked, release) + split,
        table=found,
        truths=tuple(_truth(one, true.get(tuple(labels.values()))) for labels, (one,) in shown),
        remarks=remarks,
        steps=None if question.measure is None else question.measure.steps,
    )


def _truth(one: Answer, true: Answer | None) -> Value:
    """The true value; a count is whole, and 0 where the table has no such row."""
    if isinstance(one, Estimate):
        return 0 if true is None else round(true.number or 0.0)
    return None if true is None else true.value


def _title(one: Answer, asked: FormQuestion, answerer: Answerer) -> str:
    """The question in words; of a share, its parts as they were asked."""
    if asked.kind != SHARE:
        text = f"count of {one.query}" if asked.kind == COUNT else one.query
        return text[:1].upper() + text[1:]
    where, value = asked.where or None, _equal(answerer.cells.schema, asked)
    if asked.among:
        return f"Share of {describe(where, value)} among {asked.among}"
    if answerer.select(where, {}, whole_bins=asked.whole_bins).values is not None:
        return f"Share of {describe(where, value)}"
    counted = describe(None, value) if value else "each value"
    return f"Share of {counted}" + (f" among {where}" if where else "")


def _rows(answerer: Answerer, question: Question, asked: FormQuestion, settings: Settings) -> Rows:
    """The answers to a question, one for each row."""
    by = [] if asked.by == ANY else [asked.by]
    return answerer.for_display(list(answer_rows(answerer, question, by, settings)), by)


def _question(answerer: Answerer, asked: FormQuestion) -> Question:
    """The question that the form describes."""
    schema, whole = answerer.cells.schema, asked.whole_bins
    selected = _common(answerer, asked)
    if asked.kind == COUNT:
        return Question(COUNT, selected)
    if asked.kind == SHARE:
        among = answerer.selected(asked.among, whole_bins=whole) if asked.among else None
        return _share(schema, selected, among, asked)
    sensitive = schema.sensitive.name
    if asked.column == asked.by == sensitive:
        raise InputError(
            f"The {asked.kind} of {sensitive!r} cannot be split by {sensitive!r} itself."
        )
    kind = QUANTILE if asked.kind == MEDIAN else asked.kind
    return question_of_measure(answerer, kind, asked.column, selected, _scores(schema, asked))


def _common(answerer: Answerer, asked: FormQuestion) -> Selected:
    """The records of a question; of a comparison, what holds for both sides."""
    equal = _equal(answerer.cells.schema, asked)
    return answerer.select(asked.where or None, equal, whole_bins=asked.whole_bins)


def _equal(schema: Schema, asked: FormQuestion) -> dict[str, Value]:
    if asked.value == ANY:
        return {}
    return {schema.sensitive.name: schema.domain[int(asked.value)]}


def _share(
    schema: Schema, counted: Selected, among: Selected | None, asked: FormQuestion
) -> Question:
    """A share; split by the sensitive column, that of each value."""
    sensitive = schema.sensitive.name
    if among is None and counted.values is None:
        if asked.by == sensitive:
            return Question(SHARE, counted, counted, name=SHARE)
        raise InputError(
            f"A share needs a value of {sensitive!r}, or the records that it is among.",
            hint="Choose one, or say which records.",
        )
    found = asked_share(counted, among)
    if not found.known:
        _check_estimated(sensitive, asked)
    return found


def _check_estimated(sensitive: str, asked: FormQuestion) -> None:
    """A share among the holders of a sensitive value is a ratio of two estimates."""
    if asked.by == sensitive:
        raise InputError(
            f"A share among the holders of a value of {sensitive!r} cannot be split by"
            f" {sensitive!r} itself."
        )
    offered = QUESTION_KINDS[COMPARE].estimators
    if asked.estimator not in [one.name for one in offered]:
        labels = listed([f"“{one.label}”" for one in offered], "or")
        raise InputError(
            f"A share among the holders of a value of {sensitive!r} is made of unbiased counts.",
            hint=f"Choose {labels} estimates.",
        )


def _scores(schema: Schema, asked: FormQuestion) -> Scores | None:
    """The scores of the sensitive column, if it is asked about and its values are no numbers."""
    name, ranked = schema.sensitive.name, asked.kind == MEDIAN
    if asked.column != name or has_numbers(schema, name, ranked=ranked):
        return None
    given = zip(schema.domain, asked.scores, strict=False)
    return {value: score for value, score in given if score is not None}


def _described(rows: Rows, asked: FormQuestion) -> Rows:
    """The rows, unless there is nothing to describe."""
    if not rows or (asked.by != ANY and all(one.value is one.low is None for _, one in rows)):
        raise InputError(
            "No record satisfies this condition, so there is nothing to show.",
            hint="Look at the condition.",
        )
    if len(rows) == 1:
        answered(rows[0][1])
    return rows


def _number(value: Value) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _place(among: Sequence[Value], value: Value, known: bool = False) -> float | None:
    """Where a value stands; None is one only among the ends of bins, of which the last is open."""
    return float(among.index(value)) if known or value is not None else None


def _compared(release: Answerer, table: Answerer, asked: FormQuestion) -> BesideTruth:
    found = _comparison(release, asked, Settings(asked.estimator))
    true: Comparison | None
    try:
        true = _comparison(table, asked, Settings())
    except InputError:  # nobody in the table holds the value that one side is among
        true = None
    rows = table_of(found).rows
    names = (f"a: {asked.a}", f"b: {asked.b}", "a − b", "a / b")
    truths = {} if true is None else dict(zip(names, (one for _, one in true.parts), strict=False))
    shown = tuple(({"": name}, row) for name, (_, row) in zip(names, rows, strict=False))
    common = _common(release, asked)
    about = "" if common.text == "all records" else f" of {common.text}"
    return BesideTruth(
        title=f"{asked.of.capitalize()}s{about}: {asked.a} compared with {asked.b}",
        table=FigureTable(("",), (asked.of,), shown),
        truths=tuple(
            None if true is None else _truth(one, truths.get(labels[""]))
            for labels, (one,) in shown
        ),
        remarks=found.remarks,
        verdict=found.verdict,
    )


def _comparison(answerer: Answerer, asked: FormQuestion, settings: Settings) -> Comparison:
    schema = answerer.cells.schema
    if not asked.a or not asked.b:
        raise InputError("A comparison needs two conditions, one for each group.")
    common = _common(answerer, asked)
    chosen = [answerer.selected(one, whole_bins=asked.whole_bins) for one in (asked.a, asked.b)]
    some = common.values is not None or all(one.values is not None for one in chosen)
    if asked.of == SHARE and not some:
        raise InputError(
            f"A comparison of shares needs a value of {schema.sensitive.name!r}.",
            hint="Choose one, or compare counts.",
        )
    question = ComparisonQuestion.of_sides(chosen, common, None, asked.of)
    return compare_sides(answerer, question.a, question.b, settings)
