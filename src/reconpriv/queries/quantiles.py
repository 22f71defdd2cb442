"""Quantiles, the median among them, with Woodruff's intervals (1952).

The q-quantile of some records is the smallest value at or below which at least a share q of them
lies. A value is inside the limits if the share of the records at or below it, and that below it, do
not contradict this: so the limits are those of shares, read off at q. Estimated shares need not
grow with the value; as many values lie below a quantile as have a share below q (a rearrangement).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.core.cube import Cube
from reconpriv.errors import InputError
from reconpriv.messages import shares
from reconpriv.queries import estimate as est
from reconpriv.queries.answer import Answerer, Selected, Settings
from reconpriv.queries.averages import Asked, base_remarks, is_exact
from reconpriv.queries.figure import QUANTILE, Figure
from reconpriv.queries.measures import Measure, Steps, refuse_infinite
from reconpriv.queries.selections import public_part
from reconpriv.queries.shares import UNSURE, Labels, check_unbiased, empty_figure
from reconpriv.queries.step_totals import step_totals
from reconpriv.queries.totals import Number, Term, Totals, indicator, totals
from reconpriv.schema import Value
from reconpriv.theory.arrays import Flags, Floats, Ints

MOST_STEPS = 300
_TIE = 1e-9
COARSE = f"to the nearest of {MOST_STEPS} values: the column has more"


@dataclass(frozen=True)
class _Step:
    """1 - q for the groups at or below a threshold, -q for the others."""

    number: Number
    threshold: float
    share: float

    def of(self, part: Cube) -> Floats:
        found = self.number.of(part)
        below = np.where(found <= self.threshold, 1.0, 0.0) - self.share
        return np.where(np.isnan(found), np.nan, below)


def check_share(share: float) -> float:
    """The share of a quantile, strictly between 0 and 1."""
    what = "The share of a quantile"
    return shares.check_share(share, what, hint="0.5 is the median.", error=InputError)


def quantile_rows(
    answerer: Answerer,
    measure: Measure,
    share: float,
    selected: Selected,
    by: Sequence[str],
    settings: Settings,
    *,
    name: str,
    simultaneous: bool = False,
) -> list[tuple[Labels, Figure]]:
    """A quantile for every combination of the given attributes that occurs."""
    check_unbiased(settings, "A quantile")
    refuse_infinite(answerer, measure, selected, QUANTILE)
    sensitive = answerer.cells.schema.sensitive.name
    public = [one for one in by if one != sensitive]
    asked = Asked("median" if share == 0.5 else f"{share:g}-quantile", measure, selected, name)
    if sensitive not in by:
        return _rows(answerer, asked, share, public, settings, simultaneous=simultaneous)
    if measure.scores is not None:
        raise InputError(
            f"A quantile of {sensitive!r} cannot be grouped by {sensitive!r} itself.",
            hint="Leave it out of GROUP BY.",
        )
    domain = answerer.cells.schema.domain
    chosen = range(len(domain)) if selected.values is None else selected.values
    rows = []
    if simultaneous:
        settings = replace(settings, intervals=len(chosen))
    for value in chosen:
        one = replace(asked, selected=replace(selected, values=(value,)))
        for labels, figure in _rows(
            answerer, one, share, public, settings, simultaneous=simultaneous
        ):
            full = {**labels, sensitive: domain[value]}
            rows.append(({n: full[n] for n in by}, figure))
    return rows


def _rows(
    answerer: Answerer, asked: Asked, share: float, public: list[str], settings: Settings,
    *, simultaneous: bool,
) -> list[tuple[Labels, Figure]]:  # fmt: skip
    thresholds, steps, coarse = _thresholds(answerer, asked.measure, asked.selected)
    whole = _whole(answerer, asked, public, settings)
    if simultaneous:
        rows = max(whole.groups.size, 1)
        settings = replace(settings, intervals=settings.intervals * rows)
    labels = answerer.labels(public, whole.keys)
    if not thresholds.size or not labels:
        return [(one, empty_figure(asked.text, QUANTILE, asked.name, settings.confidence))
                for one in labels]  # fmt: skip
    scores = asked.measure.scores
    if scores is None or asked.selected.values is not None or np.isnan(scores).any():
        below = _by_totals(answerer, asked, share, thresholds, public, settings)
    else:
        below = _by_counts(answerer, asked, share, thresholds, public, settings, labels)
    figures = []
    for i, one in enumerate(labels):
        places = [int(row[i]) for row in below]
        at = [thresholds[min(place, thresholds.size - 1)] for place in places]
        figures.append((one, _figure(answerer, asked, whole, i, at, steps, coarse, settings)))
    return figures


def _thresholds(
    answerer: Answerer, measure: Measure, selected: Selected
) -> tuple[Floats, Steps | None, bool]:
    """The distinct values that a quantile can have, in order."""
    if measure.scores is not None:
        chosen = selected.values
        found = measure.scores if chosen is None else measure.scores[list(chosen)]
        distinct = np.unique(found[~np.isnan(found)])
        return distinct, measure.steps, False
    assert measure.number is not None
    seen = []
    for part in answerer.cells.parts():
        inside = answerer.mask(selected, part)
        found = measure.number.of(part)[inside]
        seen.append(np.unique(found[~np.isnan(found)]))
    distinct = np.unique(np.concatenate(seen))
    if distinct.size <= MOST_STEPS or measure.steps is not None:
        return distinct, measure.steps, False
    return np.quantile(distinct, np.linspace(0, 1, MOST_STEPS), method="lower"), None, True


def _whole(answerer: Answerer, asked: Asked, public: list[str], settings: Settings) -> Totals:
    """The number of records that each quantile is among."""
    m, measure = answerer.design.domain_size, asked.measure
    if measure.number is not None:
        term = Term(asked.selected, indicator(asked.selected.values, m), present=measure.number)
    else:
        term = Term(asked.selected, tuple(_scored(asked, m).tolist()))
    return totals(answerer, [term], public, margins=settings.margins)


def _scored(asked: Asked, m: int) -> Floats:
    """1 for the sensitive values that are asked about and have a score."""
    assert asked.measure.scores is not None
    return np.array(indicator(asked.selected.values, m)) * ~np.isnan(asked.measure.scores)


def _by_totals(
    answerer: Answerer,
    asked: Asked,
    share: float,
    thresholds: Floats,
    public: list[str],
    settings: Settings,
) -> tuple[Ints, Ints, Ints]:
    """How many values have a share below q: as estimated, surely, and possibly.

    The total Σ (1[x <= v] - q) over the records is negative for these.
    """
    m, measure = answerer.design.domain_size, asked.measure
    z = est.quantile(settings.confidence, settings.intervals)
    if measure.number is not None and (answerer.margins is None or not settings.margins):
        term = Term(asked.selected, indicator(asked.selected.values, m), present=measure.number)
        every = step_totals(answerer, term, thresholds, share, public)
        if every is not None:
            marks = _below(every.estimates, z * every.errors, every.records)
            at, surely, possibly = (np.count_nonzero(one, axis=1) for one in marks)
            return at, surely, possibly
    counts: list[Ints] | None = None
    for threshold in thresholds.tolist():
        if measure.number is not None:
            values = indicator(asked.selected.values, m)
            term = Term(asked.selected, values, _Step(measure.number, threshold, share))
        else:
            assert measure.scores is not None
            below = np.where(measure.scores <= threshold, 1.0, 0.0) - share
            term = Term(asked.selected, tuple((_scored(asked, m) * below).tolist()))
        found = totals(answerer, [term], public, margins=settings.margins)
        half = z * np.sqrt(np.maximum(found.covariances[:, 0, 0], 0.0))
        marks = _below(found.estimates[:, 0], half, found.records[:, 0])
        new = [one.astype(np.int64) for one in marks]
        counts = new if counts is None else [a + b for a, b in zip(counts, new, strict=True)]
    assert counts is not None
    return counts[0], counts[1], counts[2]


def _below(total: Floats, half: Floats, records: Floats) -> tuple[Flags, Flags, Flags]:
    """Which totals are negative: as estimated, surely, and possibly."""
    tie = -_TIE * np.maximum(np.abs(records), 1.0)
    return total < tie, total + half < tie, total - half < tie


def _by_counts(
    answerer: Answerer,
    asked: Asked,
    share: float,
    thresholds: Floats,
    public: list[str],
    settings: Settings,
    labels: list[Labels],
) -> tuple[Ints, Ints, Ints]:
    """The same from the limits of counts, for the sensitive attribute among known records."""
    assert asked.measure.scores is not None
    counts = np.zeros((3, len(labels)), dtype=np.int64)
    place = {tuple(one.values()): i for i, one in enumerate(labels)}
    base = public_part(asked.selected)
    for threshold in thresholds[:-1].tolist():  # everybody is at or below the last one
        values = tuple(np.flatnonzero(asked.measure.scores <= threshold).tolist())
        for key, one in answerer.table(replace(base, values=values), public, settings):
            below = (one.count, one.high, one.low)
            border = share * one.records - _TIE * one.records
            counts[:, place[tuple(key.values())]] += [number < border for number in below]
    return counts[0], counts[1], counts[2]


def _figure(
    answerer: Answerer,
    asked: Asked,
    whole: Totals,
    row: int,
    places: list[float],
    steps: Steps | None,
    coarse: bool,
    settings: Settings,
) -> Figure:
    if asked.nobody or whole.records[row, 0] == 0:
        return empty_figure(asked.text, QUANTILE, asked.name, settings.confidence)
    exact = is_exact(answerer, asked, whole) and not coarse
    remarks = base_remarks(answerer, asked, whole, row, exact=exact)
    half = est.quantile(settings.confidence, settings.intervals) * np.sqrt(
        max(whole.covariances[row, 0, 0], 0.0)
    )
    if not exact and whole.estimates[row, 0] <= half:
        remarks = (*remarks, UNSURE)
    value, ends = _value((places[0], places[1], places[2]), steps)
    return Figure(
        query=asked.text,
        kind=asked.kind if asked.kind == "median" else QUANTILE,
        name=asked.name,
        value=value,
        low=ends[0],
        high=ends[1],
        confidence=settings.confidence,
        standard_error=None,
        exact=exact,
        estimator="exact" if exact else settings.estimator,
        records=float(whole.estimates[row, 0]),
        groups=int(whole.groups[row]),
        trials=float(whole.trials[row]),
        remarks=(*remarks, COARSE) if coarse else remarks,
    )


def _value(places: tuple[float, float, float], steps: Steps | None) -> tuple[Value, list[Value]]:
    """Numbers as they are; of bins and classes, what stands at these places."""
    at, low, high = places
    if steps is None:
        return _number(at), [_number(low), _number(high)]
    return steps.shown[int(at)], [steps.low[int(low)], steps.high[int(high)]]


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else float(value)
