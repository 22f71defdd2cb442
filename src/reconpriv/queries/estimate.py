"""Estimates with intervals for a count in the original table D."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from reconpriv.core.cube import Sums
from reconpriv.core.protected_cube import PartSums
from reconpriv.core.sample_sizes import SAMPLE_SIZES, SampleSize
from reconpriv.messages.readable import Plottable
from reconpriv.messages.shares import check_share
from reconpriv.policy import Policy
from reconpriv.queries.impossible import misfit
from reconpriv.registry import Registry
from reconpriv.schema import Schema
from reconpriv.theory.arrays import Flags, Floats
from reconpriv.theory.intervals import ROUNDING, Pooled, count_limits
from reconpriv.theory.perturbation import replacement_probability
from reconpriv.theory.reconstruction import (
    constrained_frequencies,
    reconstruct_count,
    set_count_variance,
)

# The method of a count over public attributes that takes whole a bin that the question cuts.
WHOLE_BINS = "whole bins"

SINGLE = "rests on a single group"
MICRO = (
    "rests on a single group, and therefore on few trials: the interval shows how uncertain it is"
)
STRETCHED = "the interval was stretched to contain the estimate"


def cut_groups(groups: float) -> str:
    """The remark on a question about parts of protection groups."""
    what = "a protection group" if groups == 1 else f"{groups:,.0f} protection groups"
    whose = "its" if groups == 1 else "their"
    return (
        f"cuts {what}: the estimate takes {whose} sensitive values as spread evenly, and the"
        " interval allows for any spread"
    )


def approximate(sampling: SampleSize, what: str = "interval") -> str:
    """The remark on a result that rests on unknown numbers of trials."""
    return (
        f"approximate: in a release made with sample size {sampling.name!r} the trial counts are"
        f" secret, so the {what} rests on estimated ones"
    )


def coin_flips(sampling: SampleSize) -> str:
    """The remark on a count of copies that coin flips decided."""
    return f"exact up to the coin flips of Algorithm 1 (sample size {sampling.name!r})"


def margins_words(share: float) -> str:
    """The share of an answer that rests on margins, never rounded to none or all of it."""
    if 0 < share < 0.01:
        return "under 1 %"
    return "over 99 %" if share > 0.99 else f"{100 * share:.0f} %"


COUNT = "count"


@dataclass(frozen=True, repr=False)
class Estimate(Plottable):
    """A count in the original table: the estimate and an interval for it.

    ``low`` and ``high`` bound the count among the people in the table, not in a population they
    may have been drawn from. ``groups`` and ``trials`` say how much data it rests on, and
    ``from_margins`` how much of its precision comes from margins: what they take off its variance.
    A count that leans on a model has a ``mean_squared_error``, of which ``standard_error`` is the
    root, in place of an interval (``low`` and ``high`` are NaN), and ``from_model`` says what the
    model takes off the variance. ``name`` is how it is headed, and ``cut_groups`` the number of
    protection groups of which it is about a part only.
    """

    query: str
    count: float
    low: float
    high: float
    confidence: float
    standard_error: float
    exact: bool
    estimator: str
    records: int
    groups: int
    trials: float
    remarks: tuple[str, ...] = ()
    from_margins: float = 0.0
    mean_squared_error: float | None = None
    from_model: float = 0.0
    name: str = COUNT
    cut_groups: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "query": self.query,
            "name": self.name,
            "count": self.count,
            "low": None if self.leans else self.low,
            "high": None if self.leans else self.high,
            "confidence": self.confidence,
            "standard_error": self.standard_error,
            "exact": self.exact,
            "estimator": self.estimator,
            "records": self.records,
            "groups": self.groups,
            "trials": self.trials,
            "from_margins": self.from_margins,
            "mean_squared_error": self.mean_squared_error,
            "from_model": self.from_model,
            "cut_groups": self.cut_groups,
            "remarks": list(self.remarks),
        }

    @property
    def _margins_words(self) -> str:
        return f"; {margins_words(self.from_margins)} from margins" if self.from_margins > 0 else ""

    @property
    def leans(self) -> bool:
        """Whether it leans on a model, and so has no interval."""
        return self.mean_squared_error is not None

    def __str__(self) -> str:
        """The number, its interval and what to know about it."""
        if self.exact:
            return f"{self.count:,.0f} (exact)"
        spread = f"root mean squared error {self.standard_error:,.1f}"
        if not self.leans:
            spread = (
                f"{100 * self.confidence:g} % interval for the count in the original table:"
                f" {self.low:z,.1f} to {self.high:z,.1f}"
            )
        text = (
            f"{self.count:z,.1f} ({spread}; {self.groups:,} groups, {self.trials:,.0f} trials"
            f"{self._margins_words})"
        )
        if self.estimator == WHOLE_BINS:
            text = f"{self.count:,.0f} (whole bins)"
        return "".join([text, *(f"\n  note: {remark}" for remark in self.remarks)])


@dataclass(frozen=True)
class Design:
    """What an estimate needs to know from the manifest."""

    retention: float
    domain_size: int
    sample_size: str

    @classmethod
    def of(cls, policy: Policy, schema: Schema) -> Self:
        """The design of a release with this policy."""
        return cls(policy.retention, schema.domain_size, policy.sample_size)

    @property
    def sampling(self) -> SampleSize:
        """The sample size as an object."""
        return SAMPLE_SIZES.find(self.sample_size)


_LEAST_CONFIDENCE = 1e-9  # below it, the quantile is that of 0


def check_confidence(confidence: float) -> float:
    """Return a confidence level strictly between 0 and 1."""
    what, least = "A confidence level", _LEAST_CONFIDENCE
    return check_share(confidence, what, least=least, hint="0.95 is usual.")


def quantile(confidence: float, intervals: int = 1) -> float:
    """The normal quantile of a two-sided interval; Bonferroni's if several must hold together."""
    from scipy.special import ndtri  # noqa: PLC0415 - slow import

    return float(-ndtri((1.0 - check_confidence(confidence)) / (2.0 * intervals)))


def runs(chosen: list[int] | tuple[int, ...], domain_size: int) -> int:
    """How many runs of neighbours a set of values forms on the circle of the sorted domain.

    Systematic sampling rounds each run once; the whole domain is not rounded at all.
    """
    member = np.zeros(domain_size, dtype=bool)
    member[list(chosen)] = True
    return int(np.sum(member & ~np.roll(member, 1)))


def mle_counts(sums: Sums, size: int, design: Design) -> Floats:
    """(O* - k t |S|) / p: the unbiased count of a set of k values (Lemma 1)."""
    records = _columns(sums.records, sums.observed)
    return reconstruct_count(
        sums.observed, records, size, retention=design.retention, domain_size=design.domain_size
    )


def count_variances(sums: Sums, size: int, rounded: int, design: Design) -> Floats:
    """Perturbation with its design weights, uneven duplication, and rounding of the sample."""
    perturbation = set_count_variance(
        sums.scaled_observed,
        _columns(sums.scaled_records, sums.observed),
        size,
        retention=design.retention,
        domain_size=design.domain_size,
    )
    squares = _columns(sums.sampled_squares, sums.observed)
    return np.asarray(
        perturbation + sums.noise / design.retention**2 + rounded * ROUNDING * squares + sums.other
    )


def as_if(sums: Sums, share: float | Floats, size: int, design: Design) -> Sums:
    """The sums that are expected if this share of the records holds one of ``size`` values."""
    p = design.retention
    seen = p * share + size * replacement_probability(p, design.domain_size)
    spread = seen if design.sampling.coins else seen * (1.0 - seen)
    return replace(
        sums,
        observed=seen * sums.records,
        scaled_observed=seen * sums.scaled_records,
        noise=sums.uneven * spread,
    )


def variances_at(sums: Sums, shares: Floats, size: int, rounded: int, design: Design) -> Floats:
    """The variances of counts if these shares of the records hold one of ``size`` values."""
    expected = as_if(sums, shares, size, design)
    # Holders may be in groups whose trials stand for more records than the average.
    holders = design.retention * shares * sums.records * _holder_scale(sums, size, rounded, design)
    stray = size * replacement_probability(design.retention, design.domain_size)
    observed = holders + stray * sums.scaled_records
    return count_variances(replace(expected, scaled_observed=observed), size, rounded, design)


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
    ``model`` the unbiased count leans on a model of the public columns (queries.model).
    """

    name: str
    label: str
    explanation: str
    counts: Counts | None = None
    possible: bool = False
    margins: bool = True
    model: bool = False


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


def no_count(query: str, sums: Sums, row: int, confidence: float) -> Estimate:
    """The count of a condition that no sensitive value satisfies: exactly 0."""
    return Estimate(
        query=query,
        count=0.0,
        low=0.0,
        high=0.0,
        confidence=confidence,
        standard_error=0.0,
        exact=True,
        estimator="exact",
        records=int(sums.records[row]),
        groups=int(sums.groups[row]),
        trials=float(sums.trials[row]),
    )


def exact_estimate(
    query: str, sums: Sums, row: int, confidence: float, intervals: int, design: Design
) -> Estimate:
    """A count over public attributes alone."""
    records = int(sums.records[row])
    spread = float(np.sqrt(sums.noise[row].sum())) if design.sampling.coins else 0.0
    exact = spread == 0.0
    half = quantile(confidence, intervals) * spread
    return Estimate(
        query=query,
        count=float(records),
        low=max(records - half, 0.0),
        high=records + half,
        confidence=confidence,
        standard_error=spread,
        exact=exact,
        estimator="exact" if exact else "published count",
        records=records,
        groups=int(sums.groups[row]),
        trials=float(sums.trials[row]),
        remarks=() if exact else (coin_flips(design.sampling),),
    )


def limits(
    sums: Sums,
    size: int,
    rounded: int,
    design: Design,
    *,
    confidence: float,
    intervals: int = 1,
    weighted: bool = False,
) -> tuple[Floats, Floats]:
    """The ends of the interval of every count of a set of ``size`` values.

    ``rounded`` is the number of runs that the set forms in the sorted domain. Bonferroni's
    correction applies if several ``intervals`` must hold together. ``weighted`` says that records
    count as often as some number of them says, so that one may outweigh all others.
    """
    low, high = _limits(sums, size, rounded, design, confidence, intervals, weighted=weighted)
    if not isinstance(sums, PartSums):
        return low, high
    # Nothing tells where in a protection group its holders are: at most all of them are in the part
    # that is asked about, and at most all records of the part are holders. Both must hold, hence
    # twice the intervals.
    inside, touched = (
        _limits(one, size, rounded, design, confidence, 2 * intervals)
        for one in (sums.inside, sums.touched)
    )
    asked, whole, every = (
        _columns(one.records, sums.observed) for one in (sums, sums.inside, sums.touched)
    )
    least = np.maximum(inside[0], touched[0] - (every - asked))
    most = np.minimum(touched[1], inside[1] + (asked - whole))
    cut = np.broadcast_to(_columns(sums.cut, sums.observed) > 0, low.shape)
    return (
        np.where(cut, np.minimum(low, least), low),
        np.where(cut, np.maximum(high, most), high),
    )


def _limits(
    sums: Sums,
    size: int,
    rounded: int,
    design: Design,
    confidence: float,
    intervals: int,
    *,
    weighted: bool = False,
) -> tuple[Floats, Floats]:
    """The same for groups whose values are spread as published."""
    p = design.retention
    records = np.broadcast_to(_columns(sums.records, sums.observed), sums.observed.shape)
    low, high = np.zeros(records.shape), np.zeros(records.shape)
    some = records > 0
    if p == 1.0 or not some.any():  # nothing is perturbed: the count itself
        return sums.observed, sums.observed
    pooled, stray = pooled_sums(sums, size, rounded, design, some, weighted=weighted)
    miss = (1.0 - check_confidence(confidence)) / intervals
    low[some], high[some] = count_limits(pooled, retention=p, stray=stray, miss=miss)
    if design.sampling.coins:
        reach = quantile(confidence, intervals) * np.sqrt(_columns(sums.uneven, sums.observed))
        return _of_unknown_size(low, high, records, reach)
    return low, high


def pooled_sums(
    sums: Sums, size: int, rounded: int, design: Design, some: Flags, *, weighted: bool = False
) -> tuple[Pooled, float]:
    """What the limits of some counts of ``size`` values rest on, and t_X of the set."""
    p, m = design.retention, design.domain_size
    records = np.broadcast_to(_columns(sums.records, sums.observed), sums.observed.shape)
    stray = size * replacement_probability(p, m)

    def column(values: Floats) -> Floats:
        return np.broadcast_to(_columns(values, sums.observed), records.shape)[some]

    # Noise from outside the selection is like that of many more records, none of them copied.
    beside = (p**2 * sums.other / (stray * (1.0 - stray)))[some]
    pooled = Pooled(
        observed=sums.observed[some],
        records=records[some],
        scaled_records=column(sums.scaled_records) + beside,
        scaled_squares=column(sums.scaled_squares),
        holder_scale=_holder_scale(sums, size, rounded, design, weighted=weighted)[some],
        unsampled=column(sums.unsampled) + beside,
        uneven=column(sums.uneven),
        rounded=rounded * column(sums.sampled_squares),
    )
    return pooled, stray


def _of_unknown_size(
    low: Floats, high: Floats, records: Floats, reach: Floats
) -> tuple[Floats, Floats]:
    """The limits of counts among records whose own number may be off by ``reach``.

    Coins decide how often a trial is copied, so a published group may be smaller than the original
    one, and a count of all its records larger than what is published.
    """
    lower, upper = (
        reach * np.divide(end, records, out=np.zeros_like(end), where=records > 0)
        for end in (low, high)
    )
    return np.maximum(low - lower, 0.0), high + upper


def _holder_scale(
    sums: Sums, size: int, rounded: int, design: Design, *, weighted: bool = False
) -> Floats:
    """How many records stand for one trial, averaged over the records that hold a value.

    Estimated if there are many holders, and shrunk towards the mean over all records if there are
    too few to tell. If records are weighted, it is shrunk towards what a record counts that adds
    to the variance: nothing tells whether the heaviest one is among the holders.
    """
    records = _columns(sums.records, sums.observed)
    scaled = _columns(sums.scaled_records, sums.observed)
    holders = np.maximum(mle_counts(sums, size, design), 0.0)
    scaled_holders = reconstruct_count(
        sums.scaled_observed, scaled, size,
        retention=design.retention, domain_size=design.domain_size,
    )  # fmt: skip
    scaled_holders = np.maximum(scaled_holders, 0.0)
    typical = scaled / np.maximum(records, 1.0)
    one = np.ones_like(typical)  # what a record counts
    if weighted:
        squares = _columns(sums.scaled_squares, sums.observed)
        one = typical = np.divide(squares, scaled, out=one, where=scaled > 0)
    doubt = 2.0 * np.sqrt(count_variances(sums, size, rounded, design)) + one
    return np.asarray((scaled_holders + doubt * typical) / (holders + doubt))


def estimated(
    query: str,
    sums: Sums,
    row: int,
    *,
    count: float,
    variance: float,
    low: float,
    high: float,
    estimator: str,
    confidence: float,
    design: Design,
    from_margins: float = 0.0,
) -> Estimate:
    """An estimate with its interval and remarks."""
    records, groups = int(sums.records[row]), int(sums.groups[row])
    remarks = []
    if ESTIMATORS[estimator].possible:
        if not low <= count <= high:
            remarks.append(STRETCHED)
        low, high = min(low, count), max(high, count)
    else:
        remarks += misfit(count, low, high, (0.0, float(records)))
    if groups == 1:
        remarks.append(MICRO if design.sampling.samples else SINGLE)
    if not design.sampling.trials_known:
        remarks.append(approximate(design.sampling))
    if sums.cut[row]:
        remarks.append(cut_groups(float(sums.cut[row])))
    empty = records == 0
    return Estimate(
        query=query,
        count=0.0 if empty else count,
        low=0.0 if empty else low,
        high=0.0 if empty else high,
        confidence=confidence,
        standard_error=0.0 if empty else float(np.sqrt(variance)),
        exact=empty,
        estimator=estimator,
        records=records,
        groups=groups,
        trials=float(sums.trials[row]),
        remarks=() if empty else tuple(remarks),
        from_margins=0.0 if empty else from_margins,
        cut_groups=0 if empty else int(sums.cut[row]),
    )


def _columns(per_selection: Floats, like: Floats) -> Floats:
    """Align one sum per selection with sums per selection and value."""
    return per_selection[:, None] if per_selection.ndim < like.ndim else per_selection
