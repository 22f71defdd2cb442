"""Asking the release and the publisher's table the same question; no page.

The truth is the answer of the original table. It is shown in the studio and goes nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reconpriv.errors import InputError
from reconpriv.messages.numbers import label as shown_value
from reconpriv.messages.phrases import listed
from reconpriv.queries.answer import Answerer, Selected, Settings, describe
from reconpriv.queries.averages import Asked, average_rows
from reconpriv.queries.compare import Comparison, Side, compare_sides, side_of
from reconpriv.queries.estimate import Estimate
from reconpriv.queries.figure import Figure, answered, shown_number
from reconpriv.queries.measures import Measure, Scores, Steps, has_numbers, measure_of
from reconpriv.queries.quantiles import quantile_rows
from reconpriv.queries.questions import (
    ANY,
    COMPARE,
    COUNT,
    KINDS,
    MEASURED,
    MEDIAN,
    SHARE,
    Question,
)
from reconpriv.queries.selections import both, public_part, select
from reconpriv.queries.shares import Labels, ShareOf, asked_share, share_rows
from reconpriv.schema import Schema, Value

MOST_ROWS = 40
_EDGE = 1e-9

Found = Estimate | Figure
Rows = Sequence[tuple[Labels, Found]]


@dataclass(frozen=True)
class Line:
    """One figure of an answer beside the truth; ``inside`` is None where there is no truth.

    ``kind`` says how its numbers are written: count, share, points, difference, ratio or number.
    Of bins and classes, the numbers are places in ``steps``. A limit that is None is open.
    """

    label: str
    kind: str
    value: float | None
    low: float | None
    high: float | None
    exact: bool
    truth: float | None
    steps: Steps | None = None
    from_margins: float = 0.0
    mean_squared_error: float | None = None

    def plain(self, value: float) -> str:
        """A number that has no unit."""
        return shown_number(value)

    @property
    def inside(self) -> bool | None:
        """Whether the interval holds the truth."""
        if self.truth is None or self.mean_squared_error is not None:
            return None
        edge = _EDGE * max(abs(self.truth), 1.0)
        below = self.low is not None and self.truth < self.low - edge
        return not below and not (self.high is not None and self.truth > self.high + edge)


@dataclass(frozen=True)
class Answered:
    """What a question was answered: a line for every figure; ``head`` is what they are split by."""

    title: str
    lines: tuple[Line, ...]
    estimators: tuple[str, ...]
    remarks: tuple[str, ...]
    head: str = ""
    verdict: str = ""


def ask(release: Answerer, table: Answerer, question: Question) -> Answered:
    """Ask the release, then the original table (:attr:`reconpriv.Table.truth`)."""
    if question.kind == COMPARE:
        return _compared(release, table, question)
    rows = _rows(release, question, Settings(question.estimator))
    rows = _described(rows, question)
    true = {tuple(labels.values()): one for labels, one in _rows(table, question, Settings())}
    measure = _measure(release, question) if question.kind in MEASURED else None
    steps = None if measure is None else measure.steps
    shown = rows[:MOST_ROWS]
    lines = tuple(
        _line(shown_label(labels), one, true.get(tuple(labels.values())), steps)
        for labels, one in shown
    )
    remarks = _remarks(one for _, one in shown)
    if measure is not None and measure.ends is not None:
        remarks = (*remarks, "the truth takes the same middles")
    if len(rows) > len(shown):
        remarks = (f"only the first {len(shown)} of {len(rows):,} rows are shown", *remarks)
    split = f", by {question.by}" if question.by != ANY else ""
    return Answered(
        title=_title(rows[0][1], question, release) + split,
        lines=lines,
        estimators=tuple(dict.fromkeys(one.estimator for _, one in shown)),
        remarks=remarks,
        head=question.by,
    )


def shown_label(labels: Labels) -> str:
    """The row of a split; empty if there is only one."""
    return ", ".join(shown_value(value) for value in labels.values())


def _title(one: Found, question: Question, answerer: Answerer) -> str:
    """The question in words; of a share, its parts as they were asked."""
    if question.kind != SHARE:
        text = f"count of {one.query}" if isinstance(one, Estimate) else one.query
        return text[:1].upper() + text[1:]
    where, value = question.where or None, _equal(answerer.cells.schema, question)
    if question.among:
        return f"Share of {describe(where, value)} among {question.among}"
    if answerer.select(where, {}, whole_bins=question.whole_bins).values is not None:
        return f"Share of {describe(where, value)}"
    counted = describe(None, value) if value else "each value"
    return f"Share of {counted}" + (f" among {where}" if where else "")


def _rows(answerer: Answerer, question: Question, settings: Settings) -> Rows:
    """The figures of a question, one for each row."""
    schema, whole = answerer.cells.schema, question.whole_bins
    by = [] if question.by == ANY else [question.by]
    selected = answerer.select(question.where or None, _equal(schema, question), whole_bins=whole)
    if question.kind == COUNT:
        return answerer.table(selected, by, settings)
    if question.kind == SHARE:
        among = select(answerer, question.among, whole_bins=whole) if question.among else None
        asked = _share(schema, selected, among, by)
        if not asked.known:
            _check_estimated(schema, question)
        return share_rows(answerer, asked, by, settings)
    _check_split(schema, question)
    measure = _measure(answerer, question)
    if question.kind == MEDIAN:
        name = f"median({measure.name})"
        rows = quantile_rows(answerer, measure, 0.5, selected, by, settings, name=name)
    else:
        asked_of = Asked(question.kind, measure, selected, f"{question.kind}({measure.name})")
        rows = average_rows(answerer, asked_of, by, settings)
    return answerer.for_display(rows, by)


def _equal(schema: Schema, question: Question) -> dict[str, Value]:
    if question.value == ANY:
        return {}
    return {schema.sensitive.name: schema.domain[int(question.value)]}


def _share(schema: Schema, counted: Selected, among: Selected | None, by: Sequence[str]) -> ShareOf:
    """A share; split by the sensitive column, that of each value."""
    sensitive = schema.sensitive.name
    if among is not None:
        return asked_share(counted, among)
    if counted.values is None and sensitive not in by:
        raise InputError(
            f"A share needs a value of {sensitive!r}, or the records that it is among.",
            hint="Choose one, or say which records.",
        )
    return ShareOf(counted, public_part(counted))


def _check_estimated(schema: Schema, question: Question) -> None:
    """A share among the holders of a sensitive value is a ratio of two estimates."""
    sensitive = schema.sensitive.name
    if question.by == sensitive:
        raise InputError(
            f"A share among the holders of a value of {sensitive!r} cannot be split by"
            f" {sensitive!r} itself."
        )
    offered = KINDS[COMPARE].estimators
    if question.estimator not in [one.name for one in offered]:
        labels = listed([f"“{one.label}”" for one in offered], "or")
        raise InputError(
            f"A share among the holders of a value of {sensitive!r} is made of unbiased counts.",
            hint=f"Choose {labels} estimates.",
        )


def _check_split(schema: Schema, question: Question) -> None:
    sensitive = schema.sensitive.name
    if question.column == question.by == sensitive:
        raise InputError(
            f"The {question.kind} of {sensitive!r} cannot be split by {sensitive!r} itself."
        )


def _measure(answerer: Answerer, question: Question) -> Measure:
    """The column that is averaged, added up or ranked."""
    schema, ranked = answerer.cells.schema, question.kind == MEDIAN
    scores: Scores | None = None
    if question.column == schema.sensitive.name and not has_numbers(
        schema, question.column, ranked=ranked
    ):
        given = zip(schema.domain, question.scores, strict=False)
        scores = {value: score for value, score in given if score is not None}
    return measure_of(answerer, question.column, scores, ranked=ranked)


def _described(rows: Rows, question: Question) -> Rows:
    """The rows, unless there is nothing to describe."""
    if not rows or (question.by != ANY and all(_empty(one) for _, one in rows)):
        raise InputError(
            "No record satisfies this condition, so there is nothing to show.",
            hint="Look at the condition.",
        )
    ((_, first), *others) = rows
    if not others and isinstance(first, Figure):
        answered(first)
    return rows


def _empty(one: Found) -> bool:
    return isinstance(one, Figure) and one.value is None and one.low is None


def _line(label: str, one: Found, true: Found | None, steps: Steps | None = None) -> Line:
    if isinstance(one, Estimate):
        truth = round(true.count) if isinstance(true, Estimate) else 0
        low, high = (None, None) if one.leans else (one.low, one.high)
        return Line(label, COUNT, one.count, low, high, one.exact, truth,
                    from_margins=one.from_margins,
                    mean_squared_error=one.mean_squared_error)  # fmt: skip
    found = true.value if isinstance(true, Figure) else None
    if steps is None:
        numbers = [_number(end) for end in (one.value, one.low, one.high, found)]
    else:
        numbers = [
            _place(steps.shown, one.value), _place(steps.low, one.low),
            _place(steps.high, one.high, one.value is not None), _place(steps.shown, found),
        ]  # fmt: skip
    value, low, high, at = numbers
    kind = SHARE if one.kind == SHARE else "number"
    return Line(label, kind, value, low, high, one.exact, at, steps, one.from_margins)


def _number(value: Value) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _place(among: Sequence[Value], value: Value, known: bool = False) -> float | None:
    """Where a value stands; None is one only among the ends of bins, of which the last is open."""
    return float(among.index(value)) if known or value is not None else None


def _compared(release: Answerer, table: Answerer, question: Question) -> Answered:
    found = _comparison(release, question, Settings(question.estimator))
    true: Comparison | None
    try:
        true = _comparison(table, question, Settings())
    except InputError:  # nobody in the table holds the value that one side is among
        true = None
    sides = [
        _line(f"a: {question.a}", found.a, None if true is None else true.a),
        _line(f"b: {question.b}", found.b, None if true is None else true.b),
    ]
    gap = None if true is None else true.difference
    kind = "points" if question.of == SHARE else "difference"
    lines = [*sides, Line("a − b", kind, found.difference, found.difference_low,
                          found.difference_high, found.exact, gap)]  # fmt: skip
    if found.ratio is not None:
        ratio = None if true is None else true.ratio
        lines.append(Line("a / b", "ratio", found.ratio, found.ratio_low, found.ratio_high,
                          found.exact, ratio))  # fmt: skip
    common = _common(release, question)
    about = "" if common.text == "all records" else f" of {common.text}"
    return Answered(
        title=f"{question.of.capitalize()}s{about}: {question.a} compared with {question.b}",
        lines=tuple(lines),
        estimators=tuple(dict.fromkeys(one.estimator for one in (found.a, found.b))),
        remarks=found.remarks,
        verdict=found.verdict,
    )


def _comparison(answerer: Answerer, question: Question, settings: Settings) -> Comparison:
    schema = answerer.cells.schema
    if not question.a or not question.b:
        raise InputError("A comparison needs two conditions, one for each group.")
    common = _common(answerer, question)

    def side(condition: str) -> Side:
        chosen = select(answerer, condition, whole_bins=question.whole_bins)
        whole = both(chosen, common)
        if question.of == SHARE and whole.values is None:
            raise InputError(
                f"A comparison of shares needs a value of {schema.sensitive.name!r}.",
                hint="Choose one, or compare counts.",
            )
        return side_of(whole, None, question.of)

    return compare_sides(answerer, side(question.a), side(question.b), settings)


def _common(answerer: Answerer, question: Question) -> Selected:
    """What holds for both sides of a comparison."""
    equal = _equal(answerer.cells.schema, question)
    return answerer.select(question.where or None, equal, whole_bins=question.whole_bins)


def _remarks(found: Iterable[Found]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(remark for one in found for remark in one.remarks))
