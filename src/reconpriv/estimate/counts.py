"""Estimates with intervals for a count in the original table D."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from reconpriv.answers.figure import COUNT, MEASURED, Answer, misfit
from reconpriv.cells.sums import Sums
from reconpriv.columns.schema import Schema, Value
from reconpriv.messages.shares import check_share
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import SAMPLING_RULES, SamplingRule
from reconpriv.registry import Registry
from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.reconstruction import (
    constrained_frequencies,
    count_variance,
    reconstruct_count,
)
from reconpriv.theory.perturbation import replacement_probability

# The method of a count over public attributes that takes whole a bin that the question cuts.
WHOLE_BINS = "whole bins"

SINGLE = "rests on a single group"
MICRO = f"{SINGLE}: the interval shows how uncertain it is"
STRETCHED = "the interval was stretched to contain the estimate"


def cut_groups(groups: float) -> str:
    """The remark on a question about parts of protection groups."""
    what = "a protection group" if groups == 1 else f"{groups:,.0f} protection groups"
    whose = "its" if groups == 1 else "their"
    return (
        f"cuts {what}: the estimate takes {whose} sensitive values as spread evenly, and the"
        " interval allows for any spread"
    )


def approximate(rule: SamplingRule, what: str = "interval") -> str:
    """The remark on a result that rests on unknown numbers of trials."""
    return (
        f"approximate: in a release made with sampling rule {rule.name!r} the trial counts are"
        f" secret, so the {what} rests on estimated ones"
    )


def coin_flips(rule: SamplingRule) -> str:
    """The remark on a count of copies that coin flips decided."""
    return f"exact up to the coin flips of Algorithm 1 (sampling rule {rule.name!r})"


@dataclass(frozen=True, repr=False)
class Estimate(Answer):
    """A count in the original table: the estimate and an interval for it.

    A count that leans on a model has a ``mean_squared_error``, of which ``standard_error`` is the
    root, in place of an interval (``low`` and ``high`` are NaN), and ``from_model`` says what the
    model takes off the variance. ``cut_groups`` is the number of protection groups of which it is
    about a part only.
    """

    value: float
    low: float
    high: float
    standard_error: float
    records: int
    mean_squared_error: float | None = None
    from_model: float = 0.0
    cut_groups: int = 0

    _IN_JSON = (
        "query", "name", "count", *MEASURED, "mean_squared_error", "from_model", "cut_groups"
    )  # fmt: skip

    @property
    def count(self) -> float:
        """The estimate."""
        return self.value

    @property
    def leans(self) -> bool:
        """True if it leans on a model, and so has no interval."""
        return self.mean_squared_error is not None

    def shown(self, value: Value) -> str:
        """A count or limit for reading; a count of whole bins is a whole number."""
        whole = self.estimator == WHOLE_BINS and isinstance(value, int | float)
        return f"{value:z,.0f}" if whole else super().shown(value)

    @property
    def interval(self) -> str:
        """The interval in words."""
        return WHOLE_BINS if self.estimator == WHOLE_BINS else super().interval

    @property
    def _spread(self) -> str:
        if self.leans:
            return f"root mean squared error {self.standard_error:,.1f}"
        return super()._spread

    @property
    def _accuracy(self) -> str:
        return WHOLE_BINS if self.estimator == WHOLE_BINS else super()._accuracy


@dataclass(frozen=True)
class Design:
    """What an estimate needs to know from the manifest."""

    retention: float
    domain_size: int
    sampling: str

    @classmethod
    def of(cls, policy: Policy, schema: Schema) -> Self:
        """The design of a release with this policy."""
        return cls(policy.retention, schema.domain_size, policy.sampling)

    @property
    def sampling_rule(self) -> SamplingRule:
        """The sampling rule as an object."""
        return SAMPLING_RULES.find(self.sampling)

    def stray(self, values: int) -> float:
        """t_X: the probability that a record with none of k values is published with one."""
        return values * replacement_probability(self.retention, self.domain_size)

    def reconstructed(self, observed: Floats, records: ArrayLike, values: int = 1) -> Floats:
        """(O* - k t |S|) / p: the unbiased counts of k values (Lemma 1)."""
        p, m = self.retention, self.domain_size
        return reconstruct_count(observed, records, values, retention=p, domain_size=m)

    def count_variance(self, count: Floats, trials: ArrayLike, values: int = 1) -> Floats:
        """The variance of the reconstructed counts of k values that so many trials hold."""
        p, m = self.retention, self.domain_size
        return count_variance(count, trials, values, retention=p, domain_size=m)

    def remarks(self, groups: float, cut: float) -> list[str]:
        """What an estimate that rests on so many groups, some of them ``cut``, is to be read by."""
        found = []
        if groups == 1:
            found.append(MICRO if self.sampling_rule.samples else SINGLE)
        if not self.sampling_rule.trials_known:
            found.append(approximate(self.sampling_rule))
        if cut:
            found.append(cut_groups(cut))
        return found


_LEAST_CONFIDENCE = 1e-9  # below it, the quantile is that of 0


def check_confidence(confidence: float) -> float:
    """Return a confidence level strictly between 0 and 1."""
    what, least = "A confidence level", _LEAST_CONFIDENCE
    return check_share(confidence, what, least=least, hint="0.95 is usual.")


def quantile(confidence: float, intervals: int = 1) -> float:
    """The normal quantile of a two-sided interval; Bonferroni's if several must hold together."""
    from scipy.special import ndtri  # noqa: PLC0415 - slow import

    return float(-ndtri((1.0 - check_confidence(confidence)) / (2.0 * intervals)))


def constrained_counts(all_observed: Floats, records: Floats, design: Design) -> Floats:
    """|S| times the maximum likelihood distribution on the simplex, one column per value."""
    result = np.zeros_like(all_observed)
    for i, observed in enumerate(all_observed):
        if observed.sum() > 0:
            frequency = constrained_frequencies(observed, retention=design.retention)
            result[i] = records[i] * frequency
    return result


# From O* (a column per value), |S| and the design to counts, a column per value.
Counts = Callable[[Floats, Floats, Design], Floats]


@dataclass(frozen=True)
class Estimator:
    """A way to estimate a count.

    ``counts`` is None for the unbiased one, which needs only the values asked about. ``possible``
    means that no count is negative or above |S|; the intervals are then those of the unbiased one,
    stretched to contain the estimate. ``margins`` is False if margins are left aside. With
    ``model`` the unbiased count leans on a model of the public columns (estimate.model).
    """

    name: str
    label: str
    explanation: str
    counts: Counts | None = None
    possible: bool = False
    margins: bool = True
    model: bool = False

    @property
    def unbiased(self) -> bool:
        """True if its counts are unbiased, so that their covariances are known."""
        return self.counts is None and not self.model


ESTIMATORS = Registry(
    "estimator",
    (
        Estimator(
            "mle",
            "Unbiased",
            "Right on average (Lemma 1); a count can come out below 0 or above the number of"
            " records.",
        ),
        Estimator(
            "constrained",
            "Possible",
            "The most likely possible counts: none below 0, and the values of a group add up.",
            constrained_counts,
            possible=True,
        ),
        Estimator(
            "records",
            "Records alone",
            "Unbiased, but without margins, if the release has any.",
            margins=False,
        ),
        Estimator(
            "model",
            "Leaning on a model",
            "Counts over two or more public columns lean on a model, as far as it is closer: that"
            " each column shifts the sensitive value in the same way whatever the others are."
            " Given with the root of their mean squared error in place of an interval.",
            model=True,
        ),
    ),
    former={"smooth": "Use 'model', which has replaced it."},
)


@dataclass(frozen=True)
class Settings:
    """How to estimate; ``intervals`` are to hold together, those of a table if ``simultaneous``."""

    estimator: str = "mle"
    confidence: float = 0.95
    simultaneous: bool = False
    intervals: int = 1

    def __post_init__(self) -> None:
        ESTIMATORS.find(self.estimator)
        check_confidence(self.confidence)

    @property
    def how(self) -> Estimator:
        """The estimator."""
        return ESTIMATORS[self.estimator]

    def times(self, rows: int) -> Settings:
        """The same for so many times as many intervals, if they are to hold together."""
        return replace(self, intervals=self.intervals * max(rows, 1)) if self.simultaneous else self

    def together(self, rows: int) -> Settings:
        """The same for the rows of one table, which have no table below them."""
        return replace(self.times(rows), simultaneous=False)

    @property
    def z(self) -> float:
        """The normal quantile of the intervals."""
        return quantile(self.confidence, self.intervals)


def exact_zero(
    query: str, confidence: float, records: int = 0, groups: int = 0, trials: float = 0.0
) -> Estimate:
    """A count of exactly none of some records."""
    return Estimate(
        query, COUNT, COUNT, 0.0, 0.0, 0.0, confidence, 0.0, True, "exact", records, groups, trials
    )  # fmt: skip


def known_count(query: str, sums: Sums, row: int, settings: Settings, design: Design) -> Estimate:
    """A count over public attributes alone: exact, unless coins decided about copies."""
    records = float(sums.records[row])
    spread = float(np.sqrt(sums.noise[row].sum())) if design.sampling_rule.coin_flips else 0.0
    exact = spread == 0.0
    half = settings.z * spread
    found = no_count(query, sums, row, settings)
    return replace(
        found,
        value=records,
        low=max(records - half, 0.0),
        high=records + half,
        standard_error=spread,
        exact=exact,
        estimator="exact" if exact else "published count",
        remarks=() if exact else (coin_flips(design.sampling_rule),),
    )


def no_count(query: str, sums: Sums, row: int, settings: Settings) -> Estimate:
    """The count of a condition that no sensitive value satisfies: exactly 0."""
    return exact_zero(query, settings.confidence, *_basis(sums, row))


def _basis(sums: Sums, row: int) -> tuple[int, int, float]:
    """How many records, groups and trials a count rests on."""
    return int(sums.records[row]), int(sums.groups[row]), float(sums.trials[row])


def estimated(
    query: str,
    sums: Sums,
    row: int,
    settings: Settings,
    design: Design,
    *,
    count: float,
    variance: float,
    from_margins: float,
    low: float,
    high: float,
) -> Estimate:
    """An estimate with its interval and remarks."""
    records, groups, trials = _basis(sums, row)
    if not records:
        return replace(no_count(query, sums, row, settings), estimator=settings.estimator)
    cut, remarks = int(sums.cut[row]), []
    if settings.how.possible:
        if not low <= count <= high:
            remarks.append(STRETCHED)
        low, high = min(low, count), max(high, count)
    else:
        remarks += misfit(count, low, high, (0.0, float(records)))
    remarks += design.remarks(groups, cut)
    return Estimate(
        query, COUNT, COUNT, count, low, high, settings.confidence, math.sqrt(variance), False,
        settings.estimator, records, groups, trials, tuple(remarks), from_margins, cut_groups=cut,
    )  # fmt: skip
