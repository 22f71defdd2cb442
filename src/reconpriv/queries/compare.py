"""Two counts or two shares side by side: difference, ratio and a test of no difference.

The two may overlap, or be about the same records: their covariance is taken into account. The test
asks whether the two are equal in the original table, so it is about the table and not about a
population that it may have been drawn from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reconpriv.errors import InputError
from reconpriv.messages.readable import Plottable
from reconpriv.queries import estimate as est
from reconpriv.queries.answer import Answerer, Selected, Settings
from reconpriv.queries.estimate import Estimate
from reconpriv.queries.figure import Figure
from reconpriv.queries.selections import public_part
from reconpriv.queries.shares import ShareOf, check_unbiased, correlated, share_rows
from reconpriv.queries.totals import Term, indicator, totals
from reconpriv.theory.arrays import Floats
from reconpriv.theory.combined_limits import Limits, difference_limits, ratio_limits

COUNTS, SHARES = "count", "share"
NO_RATIO = "there is no ratio: nothing tells the second one from 0"
DISAGREE = (
    "the test and the interval of the difference disagree, which happens with few trials: take the"
    " question as undecided"
)
SAME_TEXT = "both sides are the same question"


@dataclass(frozen=True, repr=False)
class Comparison(Plottable):
    """Two figures of the original table, a - b, a / b, and whether they differ.

    ``p_value`` is that of the test that both are equal in the original table; None if both are
    exact. ``ratio_high`` is None if b may be 0. ``correlation`` is that of the two estimates.
    """

    of: str
    a: Estimate | Figure
    b: Estimate | Figure
    difference: float
    difference_low: float
    difference_high: float
    standard_error: float
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    p_value: float | None
    correlation: float
    confidence: float
    exact: bool
    remarks: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        own = {
            name: getattr(self, name)
            for name in (
                "of", "difference", "difference_low", "difference_high", "standard_error",
                "ratio", "ratio_low", "ratio_high", "p_value", "correlation", "confidence", "exact",
            )
        }  # fmt: skip
        sides = {"a": self.a.as_dict(), "b": self.b.as_dict()}
        return sides | own | {"verdict": self.verdict, "remarks": list(self.remarks)}

    @property
    def verdict(self) -> str:
        """One sentence, at the level of the intervals."""
        if self.p_value is None:
            found = "are equal" if self.difference == 0 else "differ"
            return f"The two {self.of}s {found}; both are exact."
        shown = "p < 0.0001" if self.p_value < 1e-4 else f"p = {self.p_value:.4f}"
        if self.p_value >= 1.0 - self.confidence:
            return f"The two {self.of}s may be equal in the original table ({shown})."
        return f"The two {self.of}s differ in the original table ({shown})."


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a count, or a share of the records that it is among."""

    counted: Selected
    among: Selected | None

    @property
    def values(self) -> list[Selected]:
        """The estimated counts that it is made of."""
        known = self.among is None or self.among.values is None
        return [self.counted] if known else [self.counted, self.among]  # type: ignore[list-item]


def side_of(selected: Selected, among: Selected | None, of: str) -> Side:
    """A count, or a share among the records with the same public values."""
    if of == COUNTS:
        return Side(selected, None)
    if of != SHARES:
        raise InputError(f"A comparison is of {COUNTS!r} or {SHARES!r}; got {of!r}.")
    if among is None and selected.values is None:
        raise InputError(
            "A comparison of shares needs a condition on the sensitive column.",
            hint='Add one, or compare counts with of="count".',
        )
    return Side(selected, public_part(selected) if among is None else among)


def compare_sides(answerer: Answerer, one: Side, other: Side, settings: Settings) -> Comparison:
    """Both sides, with limits of their difference and their ratio."""
    check_unbiased(settings, "A comparison")
    _refuse_cut(answerer, (one, other), settings)
    figures = [_figure(answerer, side, settings) for side in (one, other)]
    for figure in figures:
        if figure.value is None:
            raise InputError(
                f"There is nothing to compare with: {figure.query!r} has too few records.",
                hint="Choose more of them.",
            )
    covariance = _covariance(answerer, (one, other), figures, settings)
    correlation = correlated(covariance)
    rho = np.array([correlation])
    a, b = (
        Limits(*(np.array([float(x or 0.0)]) for x in (f.value, f.low, f.high))) for f in figures
    )
    low, high = difference_limits(a, b, rho)
    difference = float(a.value[0] - b.value[0])
    error = math.sqrt(max(covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1], 0.0))
    exact = all(figure.exact for figure in figures)
    remarks = [remark for figure in figures for remark in figure.remarks]
    ratio = _ratio(a, b, rho)
    if ratio[0] is None:
        remarks.append(NO_RATIO)
    span = 1.0 if one.among is not None else math.inf
    p_value = None if exact else _p_value(answerer, (one, other), figures, covariance, settings)
    if p_value is not None:
        apart = not low[0] <= 0.0 <= high[0]
        if apart != (p_value < 1.0 - settings.confidence):
            remarks.append(DISAGREE)
    return Comparison(
        of=COUNTS if one.among is None else SHARES,
        a=figures[0].source,
        b=figures[1].source,
        difference=difference,
        difference_low=difference if exact else max(float(low[0]), -span),
        difference_high=difference if exact else min(float(high[0]), span),
        standard_error=error,
        ratio=ratio[0],
        ratio_low=ratio[1],
        ratio_high=ratio[2],
        p_value=p_value,
        correlation=correlation,
        confidence=settings.confidence,
        exact=exact,
        remarks=tuple(dict.fromkeys(remarks)),
    )


@dataclass(frozen=True)
class _Known:
    """What a comparison needs of one side."""

    source: Estimate | Figure
    query: str
    value: float | None
    low: float
    high: float
    exact: bool
    remarks: tuple[str, ...]


def _refuse_cut(answerer: Answerer, sides: tuple[Side, Side], settings: Settings) -> None:
    """Refuse parts of protection groups: no test can tell them apart."""
    for side in sides:
        for selected in side.values:
            if selected.values and answerer.count(selected, settings).cut_groups:
                raise InputError(
                    f"{selected.text!r} cuts protection groups, and nothing tells how sensitive"
                    " values are spread within them, so there is nothing to compare.",
                    hint="Compare whole protection groups, or ask for each count by itself.",
                )


def _figure(answerer: Answerer, side: Side, settings: Settings) -> _Known:
    if side.among is None:
        one = answerer.count(side.counted, settings)
        return _Known(one, one.query, one.count, one.low, one.high, one.exact, one.remarks)
    asked = ShareOf(side.counted, side.among)
    ((_, found),) = share_rows(answerer, asked, (), settings)
    low, high = (float(x or 0.0) for x in (found.low, found.high))
    return _Known(found, found.query, found.value, low, high, found.exact, found.remarks)


def _ratio(a: Limits, b: Limits, rho: Floats) -> tuple[float | None, float | None, float | None]:
    if not b.value[0] > 0 or (b.low[0] <= 0 and b.high[0] <= 0):
        return None, None, None
    low, high = ratio_limits(a, b, rho)
    upper = float(high[0])
    return float(a.value[0] / b.value[0]), float(low[0]), None if math.isinf(upper) else upper


def _covariance(
    answerer: Answerer, sides: tuple[Side, Side], figures: list[_Known], settings: Settings
) -> Floats:
    """The covariance of the two figures, by the delta method where a share is a ratio."""
    m = answerer.design.domain_size
    terms, slopes = [], []
    for place, (side, figure) in enumerate(zip(sides, figures, strict=True)):
        size = 1.0
        if side.among is not None:
            size = max(answerer.count(side.among, replace(settings, estimator="mle")).count, 1.0)
        for number, selected in enumerate(side.values):
            terms.append(Term(selected, indicator(selected.values, m)))
            slope = np.zeros(2)
            slope[place] = 1.0 / size if number == 0 else -float(figure.value or 0.0) / size
            slopes.append(slope)
    found = totals(answerer, terms, margins=settings.margins)
    if not found.estimates.size:
        return np.zeros((2, 2))
    turn = np.array(slopes)
    return np.asarray(turn.T @ found.covariances[0] @ turn)


def _p_value(
    answerer: Answerer,
    sides: tuple[Side, Side],
    figures: list[_Known],
    covariance: Floats,
    settings: Settings,
) -> float:
    """The normal test of a - b = 0.

    Shares of known sizes have the variance that they would have if both were the same.
    """
    from scipy.special import ndtr  # noqa: PLC0415 - slow import

    gap = float(figures[0].value or 0.0) - float(figures[1].value or 0.0)
    spread = covariance
    pooled = _pooled_variances(answerer, sides, settings)
    if pooled is not None:
        both = correlated(covariance) * math.sqrt(pooled[0] * pooled[1])
        spread = np.array([[pooled[0], both], [both, pooled[1]]])
    variance = spread[0, 0] + spread[1, 1] - 2.0 * spread[0, 1]
    if variance <= 0:
        return 1.0 if gap == 0 else 0.0
    return float(2.0 * ndtr(-abs(gap) / math.sqrt(variance)))


def _pooled_variances(
    answerer: Answerer, sides: tuple[Side, Side], settings: Settings
) -> tuple[float, float] | None:
    """The variances of two shares if both are what they are together."""
    sizes, sums, counted = [], [], []
    for side in sides:
        if side.among is None or side.among.values is not None or not side.counted.values:
            return None
        one = answerer.sums_of_set(side.counted, settings)
        records = answerer.count(side.among, settings).count
        if not one.records.size or records <= 0 or one.records[0] != records:
            return None
        sizes.append(records)
        sums.append(one)
        counted.append(side.counted.values)
    design = answerer.design
    total = sum(
        float(est.mle_counts(one, len(v), design)[0]) for one, v in zip(sums, counted, strict=True)
    )
    share = min(max(total / sum(sizes), 0.0), 1.0)
    found = []
    for one, values, size in zip(sums, counted, sizes, strict=True):
        expected = est.as_if(one, share, len(values), design)
        rounded = est.runs(values, design.domain_size)
        found.append(
            float(est.count_variances(expected, len(values), rounded, design)[0]) / size**2
        )
    return found[0], found[1]
