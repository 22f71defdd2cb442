"""Averages and sums, of a public number or of the sensitive attribute itself.

The average of a public number among the holders of a sensitive value is a ratio of two totals that
covary; its limits are the averages that the release does not contradict (queries.signed_totals),
within the smallest and the largest number that occurs. An average of the sensitive attribute has
Fieller's limits. Without a condition on the sensitive column both totals are known, and the answer
is exact.

Of bins, the estimate takes the middles. The lower limit is that of the lowest numbers that the bins
may hold and the upper limit that of the highest, between which the original numbers are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.errors import InputError
from reconpriv.queries import estimate as est
from reconpriv.queries.answer import Answerer, Selected, Settings
from reconpriv.queries.arrangements import Arranged, arranged
from reconpriv.queries.figure import AVERAGE, SUM, Figure
from reconpriv.queries.impossible import impossible
from reconpriv.queries.margins import share_of_margins
from reconpriv.queries.measures import Measure, refuse_infinite
from reconpriv.queries.shares import Labels, check_unbiased, empty_figure
from reconpriv.queries.signed_totals import Signed
from reconpriv.queries.totals import Term, Totals, indicator, totals
from reconpriv.theory.arrays import Floats
from reconpriv.theory.combined_limits import Range, fieller_limits

_ROUNDING = 1e-12  # of a variance, as a share of the square of its total
UNTOLD = "nothing tells the number of records that it is among from 0, so any average is possible"


@dataclass(frozen=True)
class Asked:
    """An average or a sum of a measure among the records of a selection."""

    kind: str
    measure: Measure
    selected: Selected
    name: str

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.kind} of {self.measure.name} among {self.selected.text}"

    def counts_holders(self, found: Totals) -> bool:
        """Whether it is about a public number of those who hold some sensitive values."""
        some = bool(self.selected.values) or found.values is not None
        return self.measure.number is not None and some

    @property
    def nobody(self) -> bool:
        """Whether no sensitive value satisfies the condition, so that nobody can."""
        return self.selected.values == ()


def average_rows(
    answerer: Answerer,
    asked: Asked,
    by: Sequence[str],
    settings: Settings,
    *,
    simultaneous: bool = False,
) -> list[tuple[Labels, Figure]]:
    """An average or a sum for every combination of the given attributes that occurs."""
    check_unbiased(settings, f"A{'n average' if asked.kind == AVERAGE else ' sum'}")
    refuse_infinite(answerer, asked.measure, asked.selected, asked.kind)
    rows, *ends = (
        _rows(answerer, replace(asked, measure=measure), by, settings, simultaneous=simultaneous)
        for measure in (asked.measure, *(asked.measure.ends or ()))
    )
    if ends:
        lowest, highest = ([figure for _, figure in end] for end in ends)
        rows = [
            (labels, replace(figure, low=low.low, high=high.high))
            for (labels, figure), low, high in zip(rows, lowest, highest, strict=True)
        ]
    return [(labels, _remarked(figure)) for labels, figure in rows]


def _remarked(figure: Figure) -> Figure:
    """With a remark if the estimate does not fit its interval.

    A sum is unbiased as it is. A ratio is not, so the nearest average inside is given instead.
    """
    found = impossible(figure.value, figure.low, figure.high)
    if not found or figure.kind != AVERAGE:
        return replace(figure, remarks=(*figure.remarks, *found)) if found else figure
    assert isinstance(figure.value, float)
    value = min(max(figure.value, figure.low), figure.high)
    return replace(
        figure, value=value, remarks=(*figure.remarks, moved(figure.shown(figure.value)))
    )


def moved(estimate: str) -> str:
    """The remark on an average that was moved into its interval."""
    return (
        f"the ratio of the estimates is {estimate}, which is outside the interval: this is its end"
    )


def _rows(
    answerer: Answerer, asked: Asked, by: Sequence[str], settings: Settings, *, simultaneous: bool
) -> list[tuple[Labels, Figure]]:
    """The figures of one measure."""
    sensitive = answerer.cells.schema.sensitive.name
    public, each = [one for one in by if one != sensitive], sensitive in by
    measure = asked.measure
    if each and measure.scores is not None:
        raise InputError(
            f"The {asked.kind} of {sensitive!r} cannot be grouped by {sensitive!r} itself.",
            hint="Leave it out of GROUP BY.",
        )
    found = totals(answerer, _terms(answerer, asked, each=each), public, margins=settings.margins)
    if simultaneous:
        shown = _chosen(found, asked) if each else range(len(found.groups))
        settings = replace(settings, intervals=max(len(shown), 1))
    figures = (
        _averages(answerer, asked, found, public, settings)
        if asked.kind == AVERAGE
        else _sums(answerer, asked, found, public, settings)
    )
    labels = answerer.labels(public, found.keys)
    if each:
        assert found.values is not None
        domain = answerer.cells.schema.domain
        keep = _chosen(found, asked)
        return [
            ({n: ({**labels[i], sensitive: domain[found.values[i]]})[n] for n in by}, figures[i])
            for i in keep
        ]
    return list(zip(labels, figures, strict=True))


def _chosen(found: Totals, asked: Asked) -> list[int]:
    """The rows of the sensitive values that are asked for."""
    assert found.values is not None
    values = asked.selected.values
    rows = range(found.values.size)
    return [i for i in rows if values is None or int(found.values[i]) in values]


def _terms(answerer: Answerer, asked: Asked, *, each: bool) -> list[Term]:
    """The sum and the number of records."""
    m, measure, selected = answerer.design.domain_size, asked.measure, asked.selected
    if measure.number is not None:
        values = None if each else indicator(selected.values, m)
        number = measure.number
        return [Term(selected, values, number), Term(selected, values, present=number)]
    assert measure.scores is not None
    member = np.array(indicator(selected.values, m)) * ~np.isnan(measure.scores)
    scored = np.where(member > 0, np.nan_to_num(measure.scores), 0.0)
    return [Term(selected, tuple(scored.tolist())), Term(selected, tuple(member.tolist()))]


def _possible(asked: Asked, found: Totals) -> Range:
    """The smallest and the largest number that a record may have."""
    scores = asked.measure.scores
    if scores is None:
        return Range(found.low, found.high)
    chosen = scores if asked.selected.values is None else scores[list(asked.selected.values)]
    known = chosen[~np.isnan(chosen)]
    if not known.size:
        known = np.zeros(1)
    shape = found.low.shape
    return Range(np.full(shape, known.min()), np.full(shape, known.max()))


def _signed(
    answerer: Answerer, asked: Asked, found: Totals, public: list[str], settings: Settings
) -> Signed:
    """The totals of one set of values, or of each value by itself."""
    terms = _terms(answerer, asked, each=found.values is not None)
    sets = [asked.selected.values or ()]
    if found.values is not None:
        sets = [(value,) for value in range(answerer.design.domain_size)]
    return Signed.of(answerer, terms, public, tuple(sets), settings)


def _arranged(
    answerer: Answerer,
    asked: Asked,
    found: Totals,
    public: list[str],
    limits: Range,
    of: Callable[[Arranged, Floats, Range, slice], Range],
) -> Range:
    """Limits that also hold where protection groups are cut, however their values are spread."""
    if not found.cut.any() or is_exact(asked, found, slice(None)):
        return limits
    m = answerer.design.domain_size
    terms = _terms(answerer, asked, each=found.values is not None)
    spread = arranged(answerer, terms, public)
    if spread is None:
        return limits
    if found.values is None:  # a line of b(x) for each term
        lines = [(slice(None), np.array([term.values for term in terms]))]
    else:
        lines = [(slice(i, None, m), np.tile(np.eye(m)[i], (2, 1))) for i in range(m)]
    low, high = limits.low + 0.0, limits.high + 0.0
    for rows, values in lines:
        wide = of(spread, values, Range(low[rows], high[rows]), rows)
        cut = found.cut[rows] > 0
        low[rows] = np.where(cut, np.minimum(low[rows], wide.low), low[rows])
        high[rows] = np.where(cut, np.maximum(high[rows], wide.high), high[rows])
    return Range(low, high)


def _averages(
    answerer: Answerer, asked: Asked, found: Totals, public: list[str], settings: Settings
) -> list[Figure]:
    z = est.quantile(settings.confidence, settings.intervals)
    top, bottom = found.estimates[:, 0], found.estimates[:, 1]
    possible = _possible(asked, found)
    told = (bottom > 0) & (bottom**2 > z**2 * found.covariances[:, 1, 1])
    value = np.divide(top, bottom, out=np.zeros_like(top), where=told)
    low, high = fieller_limits(top, bottom, found.covariances, z, possible)
    if asked.counts_holders(found):
        signed = _signed(answerer, asked, found, public, settings)
        start = np.where(told, value, possible.low)
        ends = signed.averages(start, found.covariances, Range(low, high), possible)
        low, high = (np.where(told, one, end) for one, end in zip(ends, possible, strict=True))

    def arranged_averages(one: Arranged, values: Floats, own: Range, rows: slice) -> Range:
        return one.averages(values, z, own, Range(*(end[rows] for end in possible)))

    limits = Range(low, high)
    low, high = _arranged(answerer, asked, found, public, limits, arranged_averages)
    slope = np.stack([np.ones_like(value), -value], axis=1)
    variance, alone = (
        np.maximum(np.einsum("ri,rij,rj->r", slope, matrix, slope), 0.0)
        / np.where(told, bottom, 1.0) ** 2
        for matrix in (found.covariances, found.alone)
    )
    margins = share_of_margins(alone, variance)
    figures = []
    for i in range(top.size):
        # Every record counts, so nothing is estimated.
        exact = is_exact(asked, found, i)
        remarks = base_remarks(answerer, asked, found, i, exact=exact)
        if asked.nobody or found.records[i, 1] == 0:
            figures.append(empty_figure(asked.text, AVERAGE, asked.name, settings.confidence))
            continue
        if not told[i]:
            remarks = (*remarks, UNTOLD)
        figures.append(
            Figure(
                query=asked.text,
                kind=AVERAGE,
                name=asked.name,
                value=float(value[i]) if told[i] else None,
                low=float(value[i] if exact else low[i]),
                high=float(value[i] if exact else high[i]),
                confidence=settings.confidence,
                standard_error=math.sqrt(variance[i]) if told[i] else None,
                exact=exact,
                estimator="exact" if exact else settings.estimator,
                records=float(bottom[i]),
                groups=int(found.groups[i]),
                trials=float(found.trials[i]),
                remarks=remarks,
                from_margins=float(margins[i]),
            )
        )
    return figures


def is_exact(asked: Asked, found: Totals, row: int | slice) -> bool:
    """Whether only public columns take part, and are published exactly."""
    public = asked.measure.scores is None and asked.selected.values is None
    whole = public and found.values is None and not asked.measure.remarks
    noise, size = found.covariances[row], found.estimates[row]
    certain = bool(
        np.abs(noise).max(initial=0.0) <= _ROUNDING * (1.0 + np.abs(size).max(initial=0.0) ** 2)
    )
    return whole and not asked.selected.remarks and certain


def base_remarks(
    answerer: Answerer, asked: Asked, found: Totals, row: int, *, exact: bool
) -> tuple[str, ...]:
    """What the figure rests on."""
    design = answerer.design
    remarks = [*asked.selected.remarks, *asked.measure.remarks]
    public = asked.measure.scores is None and asked.selected.values is None
    if public and found.values is None:
        if design.sampling.coins and not exact:
            remarks.append(est.coin_flips(design.sampling))
        return tuple(remarks)
    if found.groups[row] == 1:
        remarks.append(est.MICRO if design.sampling.samples else est.SINGLE)
    if not design.sampling.trials_known:
        remarks.append(est.approximate(design.sampling))
    if found.cut[row] and not exact:
        remarks.append(est.cut_groups(float(found.cut[row])))
    return tuple(dict.fromkeys(remarks))


def _sums(
    answerer: Answerer, asked: Asked, found: Totals, public: list[str], settings: Settings
) -> list[Figure]:
    value = found.estimates[:, 0]
    variance = np.maximum(found.covariances[:, 0, 0], 0.0)
    limits = Range(*_sum_limits(answerer, asked, found, public, settings, value, variance))
    z = est.quantile(settings.confidence, settings.intervals)
    low, high = _arranged(
        answerer, asked, found, public, limits, lambda one, values, *_: one.sums(values, z)
    )
    margins = share_of_margins(found.alone[:, 0, 0], variance)
    figures = []
    for i in range(value.size):
        if asked.nobody or found.records[i, 1] == 0:
            figures.append(empty_figure(asked.text, SUM, asked.name, settings.confidence))
            continue
        exact = is_exact(asked, found, i)
        figures.append(
            Figure(
                query=asked.text,
                kind=SUM,
                name=asked.name,
                value=float(value[i]),
                low=float(value[i] if exact else low[i]),
                high=float(value[i] if exact else high[i]),
                confidence=settings.confidence,
                standard_error=0.0 if exact else math.sqrt(variance[i]),
                exact=exact,
                estimator="exact" if exact else settings.estimator,
                records=float(found.estimates[i, 1]),
                groups=int(found.groups[i]),
                trials=float(found.trials[i]),
                remarks=base_remarks(answerer, asked, found, i, exact=exact),
                from_margins=float(margins[i]),
            )
        )
    return figures


def _sum_limits(
    answerer: Answerer,
    asked: Asked,
    found: Totals,
    public: list[str],
    settings: Settings,
    value: Floats,
    variance: Floats,
) -> tuple[Floats, Floats]:
    """Limits of a sum of numbers, or normal ones of a sum of sensitive values."""
    chosen = asked.selected.values
    if asked.counts_holders(found):
        signed = _signed(answerer, asked, found, public, settings)
        return signed.limits(np.zeros_like(value), found.covariances)
    half = est.quantile(settings.confidence, settings.intervals) * np.sqrt(variance)
    possible, records = _possible(asked, found), found.records[:, 1]
    possible = Range(*(np.where(records > 0, end, 0.0) for end in possible))
    bottom, top = possible.low * records, possible.high * records
    scores = asked.measure.scores
    if chosen is not None or scores is None or np.isnan(scores).any():  # fewer may count
        bottom, top = np.minimum(bottom, 0.0), np.maximum(top, 0.0)
    return np.clip(value - half, bottom, top), np.clip(value + half, bottom, top)
