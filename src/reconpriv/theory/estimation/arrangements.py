"""Bounds on totals within a group whose sensitive values may be spread over its records anyhow.

A total over a group weighs each record r by v_r and its sensitive value x by b_x. The weights and
how many records hold each value are known (or estimated); which record holds which value is not.
With b between b0 and b1, and any number λ,

    v b <= λ (b - b0) + v b0 + (b1 - b0) max(v - λ, 0)
    v b >= λ (b - b0) + v b0 - (b1 - b0) max(λ - v, 0)

because (v - λ)(b - b0) is at most, and at least, the last term. Summed over the records of a
group, the right-hand sides have the sensitive values in Σ b alone, which no arrangement changes: a
weighted total with one weight λ for the whole group, plus a constant. Every λ gives a bound. The
best one is a quantile of the v_r: if a share F of the records holds a value with b = b1 and the
others b0, the largest total has these at the largest weights, and λ is the (1 - F)-quantile; for
the smallest total it is the F-quantile. Where all v_r are equal, λ is their value, and both bounds
are the total.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reconpriv.theory.arrays import Floats, Ints


class Weights(NamedTuple):
    """The weights of records, ``records`` of which share one; sorted by group, then by weight.

    ``starts`` has the first entry of every group, and ``group`` the group of every entry.
    """

    weight: Floats
    records: Floats
    group: Ints
    starts: Ints

    @classmethod
    def of(cls, weight: Floats, records: Floats, group: Ints, groups: int) -> Weights:
        """Entries in any order; every group has at least one."""
        order = np.lexsort((weight, group))
        found = group[order]
        return cls(weight[order], records[order], found, np.searchsorted(found, np.arange(groups)))

    def summed(self, what: Floats) -> Floats:
        """A number of each record, summed over every group."""
        return np.asarray(np.add.reduceat(self.records * what, self.starts))

    def quantiles(self, share: Floats) -> Floats:
        """The smallest weight of each group at or below which this share of its records lies."""
        upto = np.cumsum(self.records)
        before = (upto - self.records)[self.starts]
        size = np.append(before[1:], upto[-1]) - before
        wanted = before + np.clip(share, 0.0, 1.0) * size
        last = np.append(self.starts[1:], self.weight.size) - 1
        place = np.searchsorted(upto, wanted * (1.0 - 1e-12))
        return self.weight[np.clip(place, self.starts, last)]


class TotalBound(NamedTuple):
    """A bound on the totals of groups: ``weight`` times Σ b, plus ``constant``."""

    weight: Floats
    constant: Floats


def upper_bound(weights: Weights, share: Floats, least: Floats, most: Floats) -> TotalBound:
    """The most that totals can be, with b from ``least`` to ``most`` in each group.

    ``share`` is the F that the bound is best for; it holds for any other.
    """
    level = weights.quantiles(1.0 - share)
    beyond = np.maximum(weights.weight - level[weights.group], 0.0)
    return _bound(weights, level, least, (most - least) * weights.summed(beyond))


def lower_bound(weights: Weights, share: Floats, least: Floats, most: Floats) -> TotalBound:
    """The least that totals can be."""
    level = weights.quantiles(share)
    beyond = np.maximum(level[weights.group] - weights.weight, 0.0)
    return _bound(weights, level, least, (least - most) * weights.summed(beyond))


def _bound(weights: Weights, level: Floats, least: Floats, beyond: Floats) -> TotalBound:
    away = weights.summed(weights.weight - level[weights.group])
    return TotalBound(level, least * away + beyond)
