"""Counts of a set of sensitive values in selections of groups: estimates, variances and limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from reconpriv.cells.sums import Sums
from reconpriv.estimate.counts import Design, Settings, check_confidence, quantile
from reconpriv.theory.arrays import Flags, Floats, Ints, quotient
from reconpriv.theory.estimation.combined_limits import Parts, Range
from reconpriv.theory.estimation.design import mixing
from reconpriv.theory.estimation.intervals import ROUNDING, Pooled, border_slack, count_limits


def runs(chosen: Sequence[int], domain_size: int) -> int:
    """How many runs of neighbours a set of values forms on the circle of the sorted domain.

    Systematic sampling rounds each run once; the whole domain is not rounded at all.
    """
    member = np.zeros(domain_size, dtype=bool)
    member[list(chosen)] = True
    return int(np.sum(member & ~np.roll(member, 1)))


@dataclass(frozen=True)
class SetCounts:
    """The counts of ``size`` values that form ``rounded`` runs in the sorted domain.

    Those of each single value, if the sums are by value. ``weighted`` says that records count as
    often as some number of them says, so that one may outweigh all others.
    """

    sums: Sums
    design: Design
    size: int = 1
    rounded: int = 1
    weighted: bool = False

    @classmethod
    def of(
        cls, sums: Sums, values: Sequence[int], design: Design, *, weighted: bool = False
    ) -> Self:
        """The counts of a set of values."""
        return cls(sums, design, len(values), runs(values, design.domain_size), weighted)

    @property
    def everybody(self) -> bool:
        """True if every value is in the set, so that the counts are known numbers of records."""
        return self.size == self.design.domain_size

    @property
    def stray(self) -> float:
        """t_X: the probability that a record without any of the values is published with one."""
        return self.design.stray(self.size)

    def column(self, name: str) -> Floats:
        """A sum per selection, aligned with those per selection and value."""
        found: Floats = getattr(self.sums, name)
        return found[:, None] if found.ndim < self.sums.observed.ndim else found

    @cached_property
    def number(self) -> Floats:
        """(O* - k t |S|) / p: the unbiased counts (Lemma 1)."""
        return self.design.reconstructed(self.sums.observed, self.column("records"), self.size)

    @cached_property
    def variances(self) -> Floats:
        """Perturbation with its design weights, uneven duplication, and rounding of the sample."""
        scaled = self.column("scaled_records")
        perturbation = self.design.count_variance(self._scaled_number, scaled, self.size)
        rounding = self.rounded * ROUNDING * self.column("sampled_squares")
        copies = self.sums.noise / self.design.retention**2
        # Rounding errors may leave a tiny negative number if every value is in the set.
        return np.asarray(np.maximum(perturbation, 0.0) + copies + rounding + self.sums.other)

    @cached_property
    def _scaled_number(self) -> Floats:
        """The unbiased counts in which each group counts by its records per trial."""
        scaled = self.column("scaled_records")
        return self.design.reconstructed(self.sums.scaled_observed, scaled, self.size)

    def variances_at(self, share: float) -> Floats:
        """The variances if this share of the records holds one of the values."""
        p, sums = self.design.retention, self.sums
        seen = p * share + self.stray
        # Holders may be in groups whose trials stand for more records than the average.
        holders = p * share * sums.records * replace(self, weighted=False).holder_scale
        expected = replace(
            sums,
            observed=seen * sums.records,
            scaled_observed=holders + self.stray * sums.scaled_records,
            noise=sums.uneven
            * (seen if self.design.sampling_rule.coin_flips else seen * (1.0 - seen)),
        )
        return replace(self, sums=expected).variances

    @cached_property
    def holder_scale(self) -> Floats:
        """How many records stand for one trial, averaged over the records that hold a value.

        Estimated if there are many holders, and shrunk towards the mean over all records if there
        are too few to tell. If records are weighted, it is shrunk towards what a record counts that
        adds to the variance, since the heaviest one may or may not be among the holders.
        """
        scaled = self.column("scaled_records")
        holders = np.maximum(self.number, 0.0)
        scaled_holders = np.maximum(self._scaled_number, 0.0)
        typical = scaled / np.maximum(self.column("records"), 1.0)
        one = np.ones_like(typical)  # what a record counts
        if self.weighted:
            squares = self.column("scaled_squares")
            one = typical = quotient(squares, scaled, 1.0)
        doubt = 2.0 * np.sqrt(self.variances) + one
        return np.asarray((scaled_holders + doubt * typical) / (holders + doubt))

    @cached_property
    def _pooled(self) -> Pooled:
        """What the score limits of the counts of any records rest on."""
        sums, some = self.sums, self._some

        def column(name: str) -> Floats:
            return np.broadcast_to(self.column(name), sums.observed.shape)[some]

        # Noise from outside the selection is like that of many more records, none of them copied.
        _, anybody = mixing(self.design.retention, self.design.domain_size, self.size)
        beside = (sums.other / anybody)[some]
        return Pooled(
            observed=sums.observed[some],
            records=column("records"),
            scaled_records=column("scaled_records") + beside,
            scaled_squares=column("scaled_squares"),
            holder_scale=self.holder_scale[some],
            unsampled=column("unsampled") + beside,
            uneven=column("uneven"),
            rounded=self.rounded * column("sampled_squares"),
        )

    @cached_property
    def _some(self) -> Flags:
        """Which counts are of any records at all."""
        return np.broadcast_to(self.column("records"), self.sums.observed.shape) > 0

    def limits(self, confidence: float, intervals: int = 1) -> Range:
        """The score limits of every count.

        Bonferroni's correction applies if several ``intervals`` must hold together.
        """
        low, high = self._limits(confidence, intervals)
        if self.sums.ends is None:
            return Range(low, high)
        # Nothing tells where in a protection group its holders are: at most all of them are in the
        # part that is asked about, and at most all records of the part are holders. Both must hold,
        # hence twice the intervals.
        inside, touched = (replace(self, sums=one, weighted=False) for one in self.sums.ends)
        of_inside, of_touched = (
            one._limits(confidence, 2 * intervals) for one in (inside, touched)
        )
        asked = self.column("records")
        least = np.maximum(of_inside.low, of_touched.low - (touched.column("records") - asked))
        most = np.minimum(of_touched.high, of_inside.high + (asked - inside.column("records")))
        cut = np.broadcast_to(self.column("cut") > 0, low.shape)
        return Range(
            np.where(cut, np.minimum(low, least), low), np.where(cut, np.maximum(high, most), high)
        )

    def _limits(self, confidence: float, intervals: int) -> Range:
        """The same for groups whose values are spread as published."""
        design, some = self.design, self._some
        if design.retention == 1.0 or not some.any():  # nothing is perturbed: the count itself
            return Range(self.sums.observed, self.sums.observed)
        low, high = np.zeros((2, *some.shape))
        miss = (1.0 - check_confidence(confidence)) / intervals
        low[some], high[some] = count_limits(
            self._pooled, retention=design.retention, stray=self.stray, miss=miss
        )
        if not design.sampling_rule.coin_flips:
            return Range(low, high)
        # Coins decide how often a trial is copied, so a published group may be smaller than the
        # original one, and a count of all its records larger than what is published.
        records = np.broadcast_to(self.column("records"), some.shape)
        reach = quantile(confidence, intervals) * np.sqrt(self.column("uneven"))
        lower, upper = (reach * quotient(end, records) for end in (low, high))
        return Range(np.maximum(low - lower, 0.0), high + upper)

    def uncut(self, settings: Settings, together: int) -> UncutCounts:
        """Counts with uncut limits, and possible ones that hold for so many ``together``."""
        confidence, intervals = settings.confidence, settings.intervals
        cut = self.sums.cut > 0
        if self.everybody:
            number, noise = self.sums.records, np.zeros(self.sums.records.shape)
            if self.design.sampling_rule.coin_flips:
                noise = self.sums.noise
            half = quantile(confidence, intervals) * np.sqrt(noise)
            low, high = number - half, number + half
            cut = np.zeros_like(cut)
            return UncutCounts(number, low, high, np.maximum(low, 0.0), high, noise, cut)
        low, high = self.limits(confidence, intervals)
        some, p = self._some, self.design.retention
        if p < 1.0 and some.any():
            miss = (1.0 - confidence) / intervals
            slack = border_slack(self._pooled, retention=p, stray=self.stray, miss=miss)
            low[some] -= slack[0] * np.sqrt(self.variances_at(0.0))[some]
            high[some] += slack[1] * np.sqrt(self.variances_at(1.0))[some]
        count, possible = self.number, self.limits(confidence, together * intervals)
        return UncutCounts(
            count, np.minimum(low, count), np.maximum(high, count), *possible, self.variances, cut
        )


class UncutCounts(NamedTuple):
    """Counts with limits that may be impossible, as combined limits need them.

    ``least`` and ``most`` are possible, and hold for several counts together
    (theory.combined_limits). ``cut`` says where a protection group is cut.
    """

    number: Floats
    low: Floats
    high: Floats
    least: Floats
    most: Floats
    variance: Floats
    cut: Flags

    def of_rows(self, row: Ints) -> UncutCounts:
        """Those of some rows, each as often as it is named."""
        *columns, cut = self
        return UncutCounts._make([*(column[row] for column in columns), cut[row]])

    def less(self, other: UncutCounts) -> UncutCounts:
        """How many are left of a known number of records."""
        ends = (other.number, other.high, other.low, other.most, other.least)
        left = [self.number - one for one in ends]
        return UncutCounts._make([*left, other.variance, other.cut])


def parts_of(counts: Sequence[UncutCounts], covariance: Floats) -> Parts:
    """Disjoint counts of the same cases as the parts of combined limits."""
    columns = [np.stack(column, axis=-1) for column in list(zip(*counts, strict=True))[:5]]
    return Parts._make([*columns, covariance])
