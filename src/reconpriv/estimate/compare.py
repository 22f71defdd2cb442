"""Two counts or two shares side by side: difference, ratio and a test of no difference.

The two may overlap, or be about the same records: their limits are combined from those of the
disjoint pieces that they are made of (estimate.pieces). The test asks whether the two are equal in
the original table, so it is about the table and not about a population that it may have been drawn
from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.answers.figure import DIFFERENCE, POINTS, RATIO, SHARE, Answer, Figure, impossible
from reconpriv.ask.question import Question
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.estimate.counts import Estimate, Settings
from reconpriv.estimate.pieces import cut_into_pieces
from reconpriv.estimate.shares import check_unbiased, share_rows
from reconpriv.messages.readable import Plottable
from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.combined_limits import (
    combination_limits,
    errors_from_zero,
    ratio_limits,
)

NO_RATIO = "the denominator may be zero, so the ratio is undefined"
SAME = "both sides are about the same records, so they are equal, whatever they are"


@dataclass(frozen=True, repr=False)
class Comparison(Plottable):
    """Two figures of the original table, a - b, a / b, and whether they differ.

    ``p_value`` is that of the test that both are equal in the original table, which rejects where
    0 is beyond the limits of the difference; None if both are exact. ``ratio_high`` is None if b
    may be 0. ``correlation`` is that of the two estimates.
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
        """Its fields as JSON has them."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        sides = {"a": self.a.as_dict(), "b": self.b.as_dict()}
        return own | sides | {"verdict": self.verdict, "remarks": list(self.remarks)}

    @property
    def difference_answer(self) -> Figure:
        """The difference as an answer."""
        kind = POINTS if self.of == SHARE else DIFFERENCE
        limits = self.difference, self.difference_low, self.difference_high
        return self._derived("a - b", kind, *limits, self.standard_error)

    @property
    def parts(self) -> list[tuple[str, Answer]]:
        """Both sides, their difference and, if there is one, their ratio."""
        found: list[tuple[str, Answer]] = [
            (f"a: {self.a.query}", self.a),
            (f"b: {self.b.query}", self.b),
        ]
        found.append(("a - b", self.difference_answer))
        if self.ratio is not None:
            limits = self.ratio, self.ratio_low, self.ratio_high
            found.append(("a / b", self._derived("a / b", RATIO, *limits, None)))
        return found

    def _derived(
        self,
        name: str,
        kind: str,
        value: float,
        low: float | None,
        high: float | None,
        error: float | None,
    ) -> Figure:
        """What is computed from both sides, as an answer."""
        records = self.a.records + self.b.records
        groups, trials = self.a.groups + self.b.groups, self.a.trials + self.b.trials
        return Figure(
            name, kind, name, value, low, high, self.confidence, error, self.exact,
            self.a.estimator, records, groups, trials,
        )  # fmt: skip

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


def compare_sides(
    answerer: Answerer, one: Question, other: Question, settings: Settings
) -> Comparison:
    """Both sides, with limits of their difference and their ratio.

    The limits are combined from those of the pieces that the sides are made of. Shares of known
    numbers of records, and counts, are sums over pieces; shares among the holders of a value are
    all among the same ones. The test rejects where 0 is beyond a limit of the difference.
    """
    from scipy.special import ndtr  # noqa: PLC0415 - slow import

    check_unbiased(settings, "A comparison")
    sides = one, other
    _refuse_cut(answerer, sides, settings)
    figures = [_figure(answerer, side, settings) for side in sides]
    for figure in figures:
        if figure.value is None:
            raise InputError(
                f"There is nothing to compare with: {figure.query!r} has too few records.",
                hint="Choose more of them.",
            )
    values = [_number(figure.value) for figure in figures]
    sizes = [_size(answerer, side, settings) for side in sides]
    asked, z = [side.selected for side in sides], settings.z
    if one.among is not None and one.among.values is not None:
        found = cut_into_pieces(answerer, [*asked, one.among], (), settings)
        top, other_top, bottom = found.members
        gap = top - other_top
        limits = ratio_limits(gap, bottom, found.parts, z, (-1.0, 1.0))
        slopes = np.stack([top, other_top]) - np.outer(values, bottom)
        slopes, ratio_of = slopes / sizes[0], (top / sizes[0], other_top / sizes[1])
    else:
        found = cut_into_pieces(answerer, asked, (), settings)
        ratio_of = found.members[0] / sizes[0], found.members[1] / sizes[1]
        slopes, gap = np.stack(ratio_of), ratio_of[0] - ratio_of[1]
        limits = combination_limits(gap, found.parts, z)
    low, high = float(limits[0][0]), float(limits[1][0])
    covariance = slopes @ found.parts.covariance[0] @ slopes.T
    difference = values[0] - values[1]
    error = math.sqrt(max(covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1], 0.0))
    exact = all(figure.exact for figure in figures)
    if exact:
        low = high = difference
    remarks = [remark for figure in figures for remark in figure.remarks]
    remarks += impossible(difference, low, high)
    if low == high and not exact:
        remarks.append(SAME)
    ratio = ratio_low = ratio_high = None
    if values[1] > 0 and _number(figures[1].high) > 0:
        ratio = ratio_low = ratio_high = values[0] / values[1]
        if not exact:
            ends = ratio_limits(*ratio_of, found.parts, z, (0.0, math.inf))
            ratio_low, endless = (float(end[0]) for end in ends)
            ratio_high = None if math.isinf(endless) else endless
        remarks += impossible(ratio, ratio_low, ratio if ratio_high is None else ratio_high)
    else:
        remarks.append(NO_RATIO)
    return Comparison(
        of=one.kind,
        a=figures[0],
        b=figures[1],
        difference=difference,
        difference_low=low,
        difference_high=high,
        standard_error=error,
        ratio=ratio,
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        p_value=None if exact else float(2.0 * ndtr(-errors_from_zero(gap, found.parts, z)[0])),
        correlation=_correlation(covariance),
        confidence=settings.confidence,
        exact=exact,
        remarks=tuple(dict.fromkeys(remarks)),
    )


def _correlation(covariance: Floats) -> float:
    """The correlation of two estimates; 0 if one of them is exact."""
    scale = float(np.sqrt(max(covariance[0, 0] * covariance[1, 1], 0.0)))
    return float(np.clip(covariance[0, 1] / scale, -1.0, 1.0)) if scale > 0 else 0.0


def _number(value: Value) -> float:
    """A value or a limit; 0 if there is none."""
    return float(value or 0.0)


def _refuse_cut(answerer: Answerer, sides: tuple[Question, Question], settings: Settings) -> None:
    """Refuse parts of protection groups: no test can tell them apart."""
    for side in sides:
        for selected in (side.selected, side.among):
            if selected and selected.values and answerer.count(selected, settings).cut_groups:
                raise InputError(
                    f"{selected.text!r} cuts protection groups, and nothing tells how sensitive"
                    " values are spread within them, so there is nothing to compare.",
                    hint="Compare whole protection groups, or ask for each count by itself.",
                )


def _figure(answerer: Answerer, side: Question, settings: Settings) -> Estimate | Figure:
    if side.among is None:
        return answerer.count(side.selected, settings)
    ((_, found),) = share_rows(answerer, side, (), settings)
    return found


def _size(answerer: Answerer, side: Question, settings: Settings) -> float:
    """The denominator of a share, at least 1; 1 for a count."""
    if side.among is None:
        return 1.0
    return max(answerer.count(side.among, replace(settings, estimator="mle")).count, 1.0)
