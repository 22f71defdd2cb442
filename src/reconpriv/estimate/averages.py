"""Averages and sums, of a public number or of the sensitive attribute itself.

The average of a public number among the holders of a sensitive value is a ratio of two totals that
covary; its limits are the averages that the release does not contradict (estimate.signed_totals),
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

from reconpriv.answers.answerer import Answerer
from reconpriv.answers.figure import AVERAGE, SUM, Figure, impossible
from reconpriv.ask.question import Question
from reconpriv.errors import InputError
from reconpriv.estimate.counts import Settings, coin_flips
from reconpriv.estimate.linear import share_of_margins
from reconpriv.estimate.measures import refuse_infinite
from reconpriv.estimate.shares import Labels, check_unbiased, empty_figure
from reconpriv.estimate.total_limits import Arranged, SignedTotals, arranged
from reconpriv.estimate.totals import Totals, WeightedTotal, indicator, totals
from reconpriv.theory.arrays import Flags, Floats
from reconpriv.theory.estimation.combined_limits import Range, fieller_limits

_ROUNDING = 1e-12  # of a variance, as a share of the square of its total
UNTOLD = "the denominator may be zero, so any average is possible"


def counts_holders(asked: Question, found: Totals) -> bool:
    """True if it is about a public number of those who hold some sensitive values."""
    some = bool(asked.selected.values) or found.values is not None
    return asked.measured.number is not None and some


def average_rows(
    answerer: Answerer, asked: Question, by: Sequence[str], settings: Settings
) -> list[tuple[Labels, Figure]]:
    """An average or a sum for every combination of the given attributes that occurs."""
    check_unbiased(settings, f"A{'n average' if asked.kind == AVERAGE else ' sum'}")
    refuse_infinite(answerer, asked)
    rows, *ends = (
        _Rows.of(answerer, replace(asked, measure=measure), by, settings).figures(by)
        for measure in (asked.measured, *(asked.measured.ends or ()))
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


@dataclass(frozen=True)
class _Rows:
    """The totals that averages or sums of one measure are made of, row by row.

    ``wanted`` are the sum and the number of records, ``found`` their estimates.
    """

    answerer: Answerer
    asked: Question
    public: list[str]
    settings: Settings
    wanted: list[WeightedTotal]
    found: Totals

    @classmethod
    def of(
        cls, answerer: Answerer, asked: Question, by: Sequence[str], settings: Settings
    ) -> _Rows:
        """The rows of the given attributes, the sensitive one perhaps among them."""
        sensitive = answerer.cells.schema.sensitive.name
        public, each = [one for one in by if one != sensitive], sensitive in by
        if each and asked.measured.scores is not None:
            raise InputError(
                f"The {asked.kind} of {sensitive!r} cannot be grouped by {sensitive!r} itself.",
                hint="Leave it out of GROUP BY.",
            )
        wanted = _totals_of(asked, answerer.design.domain_size, each=each)
        found = totals(answerer, wanted, public, margins=settings.how.margins)
        rows = cls(answerer, asked, public, settings, wanted, found)
        return replace(rows, settings=settings.together(len(rows.shown)))

    @property
    def shown(self) -> list[int]:
        """The rows that are asked for: with each value by itself, those of chosen values."""
        chosen, values = self.asked.selected.values, self.found.values
        if values is None or chosen is None:
            return list(range(self.found.groups.size))
        return [i for i, value in enumerate(values.tolist()) if value in chosen]

    def figures(self, by: Sequence[str]) -> list[tuple[Labels, Figure]]:
        """Every row that is asked for with its labels."""
        asked, found, settings = self.asked, self.found, self.settings
        top, bottom = found.estimates.T
        told, value = np.ones(top.size, dtype=bool), top
        slope = np.tile([1.0, 0.0], (top.size, 1))
        if asked.kind == AVERAGE:
            told = (bottom > 0) & (bottom**2 > settings.z**2 * found.covariances[:, 1, 1])
            value = np.divide(top, bottom, out=np.zeros_like(top), where=told)
            slope = np.stack([np.ones_like(value), -value], axis=1)
            slope /= np.where(told, bottom, 1.0)[:, None]
        variance, alone = (
            np.maximum(np.einsum("ri,rij,rj->r", slope, matrix, slope), 0.0)
            for matrix in (found.covariances, found.alone)
        )
        if asked.kind == AVERAGE:
            low, high = self._average_limits(value, told)
        else:
            low, high = self._sum_limits(value, variance)
        margins = share_of_margins(alone, variance)
        labels = self.answerer.labels(self.public, found.keys)
        schema, rows = self.answerer.cells.schema, []
        for i in self.shown:
            label = dict(labels[i])
            if found.values is not None:
                label[schema.sensitive.name] = schema.domain[found.values[i]]
            figure = empty_figure(asked, settings)
            if not asked.nobody and found.records[i, 1] != 0:
                exact = is_exact(asked, found, i)
                remarks = base_remarks(self.answerer, asked, found, i, exact=exact)
                error = 0.0 if exact and asked.kind == SUM else math.sqrt(variance[i])
                figure = replace(
                    figure,
                    value=float(value[i]) if told[i] else None,
                    low=float(value[i] if exact else low[i]),
                    high=float(value[i] if exact else high[i]),
                    standard_error=error if told[i] else None,
                    exact=exact,
                    estimator="exact" if exact else settings.estimator,
                    records=float(bottom[i]),
                    groups=int(found.groups[i]),
                    trials=float(found.trials[i]),
                    remarks=remarks if told[i] else (*remarks, UNTOLD),
                    from_margins=float(margins[i]),
                )
            rows.append(({name: label[name] for name in by}, figure))
        return rows

    def _average_limits(self, value: Floats, told: Flags) -> Range:
        """The averages that the release does not contradict."""
        found, z, possible = self.found, self.settings.z, self._possible
        top, bottom = found.estimates.T
        limits = Range(*fieller_limits(top, bottom, found.covariances, z, possible))
        if counts_holders(self.asked, found):
            start = np.where(told, value, possible.low)
            ends = self._signed.averages(start, found.covariances, limits, possible)
            pairs = zip(ends, possible, strict=True)
            limits = Range(*(np.where(told, one, end) for one, end in pairs))

        def arranged_averages(one: Arranged, values: Floats, own: Range, rows: slice) -> Range:
            return one.averages(values, z, own, Range(*(end[rows] for end in possible)))

        return self._arranged(limits, arranged_averages)

    def _sum_limits(self, value: Floats, variance: Floats) -> Range:
        """Limits of a sum of numbers, or normal ones of a sum of sensitive values."""
        asked, found, z = self.asked, self.found, self.settings.z
        if counts_holders(asked, found):
            limits = Range(*self._signed.limits(np.zeros_like(value), found.covariances))
        else:
            half, records = z * np.sqrt(variance), found.records[:, 1]
            bottom, top = (np.where(records > 0, end, 0.0) * records for end in self._possible)
            chosen, scores = asked.selected.values, asked.measured.scores
            if chosen is not None or scores is None or np.isnan(scores).any():  # fewer may count
                bottom, top = np.minimum(bottom, 0.0), np.maximum(top, 0.0)
            ends = (value - half, value + half)
            limits = Range(*(np.clip(end, bottom, top) for end in ends))
        return self._arranged(limits, lambda one, values, *_: one.sums(values, z))

    @property
    def _possible(self) -> Range:
        """The smallest and the largest number that a record may have."""
        scores, chosen = self.asked.measured.scores, self.asked.selected.values
        if scores is None:
            return Range(self.found.low, self.found.high)
        known = scores if chosen is None else scores[list(chosen)]
        known = known[~np.isnan(known)]
        ends = (known.min(), known.max()) if known.size else (0.0, 0.0)
        return Range(*(np.full(self.found.low.shape, end) for end in ends))

    @property
    def _signed(self) -> SignedTotals:
        """The totals of one set of values, or of each value by itself."""
        sets = [self.asked.selected.values or ()]
        if self.found.values is not None:
            sets = [(value,) for value in range(self.answerer.design.domain_size)]
        return SignedTotals.of(self.answerer, self.wanted, self.public, tuple(sets), self.settings)

    def _arranged(
        self, limits: Range, of: Callable[[Arranged, Floats, Range, slice], Range]
    ) -> Range:
        """Limits that also hold where protection groups are cut, however values are spread."""
        found, m = self.found, self.answerer.design.domain_size
        if not found.cut.any() or is_exact(self.asked, found, slice(None)):
            return limits
        spread = arranged(self.answerer, self.wanted, self.public)
        if spread is None:
            return limits
        lines = [(slice(i, None, m), np.tile(np.eye(m)[i], (2, 1))) for i in range(m)]
        if found.values is None:  # a line of b(x) for each total
            lines = [(slice(None), np.array([total.values for total in self.wanted]))]
        low, high = limits.low + 0.0, limits.high + 0.0
        for rows, values in lines:
            wide = of(spread, values, Range(low[rows], high[rows]), rows)
            cut = found.cut[rows] > 0
            low[rows] = np.where(cut, np.minimum(low[rows], wide.low), low[rows])
            high[rows] = np.where(cut, np.maximum(high[rows], wide.high), high[rows])
        return Range(low, high)


def _totals_of(asked: Question, m: int, *, each: bool) -> list[WeightedTotal]:
    """The sum and the number of records."""
    measure, selected = asked.measured, asked.selected
    if measure.number is not None:
        values, number = None if each else indicator(selected.values, m), measure.number
        records = WeightedTotal(selected, values, present=number)
        return [WeightedTotal(selected, values, number), records]
    assert measure.scores is not None
    member = np.array(indicator(selected.values, m)) * ~np.isnan(measure.scores)
    scored = np.where(member > 0, np.nan_to_num(measure.scores), 0.0)
    return [WeightedTotal(selected, tuple(line.tolist())) for line in (scored, member)]


def is_exact(asked: Question, found: Totals, row: int | slice) -> bool:
    """True if only public columns take part, and are published exactly."""
    noise, size = found.covariances[row], found.estimates[row]
    certain = bool(
        np.abs(noise).max(initial=0.0) <= _ROUNDING * (1.0 + np.abs(size).max(initial=0.0) ** 2)
    )
    unchanged = not asked.measured.remarks and not asked.selected.remarks
    return asked.public and found.values is None and unchanged and certain


def base_remarks(
    answerer: Answerer, asked: Question, found: Totals, row: int, *, exact: bool
) -> tuple[str, ...]:
    """What the figure rests on."""
    design = answerer.design
    remarks = [*asked.selected.remarks, *asked.measured.remarks]
    if asked.public and found.values is None:
        remarks += (
            [coin_flips(design.sampling_rule)]
            if design.sampling_rule.coin_flips and not exact
            else []
        )
        return tuple(remarks)
    cut = 0.0 if exact else float(found.cut[row])
    return tuple(dict.fromkeys((*remarks, *design.remarks(float(found.groups[row]), cut))))
