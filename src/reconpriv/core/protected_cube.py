"""Dealt records in memory, with the protection groups that every estimate rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.core.cube import Cube, Sums, sum_selections
from reconpriv.theory.arrays import Flags, Floats, Ints


@dataclass(frozen=True, kw_only=True)
class ProtectedCube(Cube):
    """Micro groups as they were dealt, and the protection group ``within`` which each lies.

    Sensitive values say no more about a micro group than about its protection group, so sums
    come from ``whole``, the protection groups, by share: a selection that holds w of the records of
    a protection group gets w of its counts. ``trials`` are a plug-in, a group's share of them.
    """

    whole: Cube
    within: Ints

    def sums(self, selection: Ints, selections: int, chosen: Sequence[int] | None) -> Sums:
        """Sum shares of protection groups into selections of micro groups."""
        inside = np.flatnonzero(selection >= 0)
        pairs, position = np.unique(
            selection[inside] * self.whole.groups + self.within[inside], return_inverse=True
        )
        records = np.bincount(
            position.reshape(-1), weights=self.records[inside], minlength=pairs.size
        )
        shares = _shares(self.whole, pairs % self.whole.groups, records.astype(np.int64))
        return sum_selections(shares, pairs // self.whole.groups, selections, chosen)

    def only(self, groups: Ints, like: Cube) -> ProtectedCube:
        """Some of the micro groups, with the codes of a cube that has just these."""
        place = np.full(self.groups, -1)
        place[groups] = np.arange(groups.size)
        inside = place[self.group] >= 0
        return replace(
            self,
            codes=like.codes,
            values=like.values,
            records=self.records[groups],
            trials=self.trials[groups],
            group=place[self.group[inside]],
            value=self.value[inside],
            count=self.count[inside],
            within=self.within[groups],
        )


def with_protection(dealt: Cube, whole: Cube, within: Ints) -> ProtectedCube:
    """Dealt records with their protection groups."""
    share = dealt.records / whole.records[within]
    return ProtectedCube(
        schema=dealt.schema,
        codes=dealt.codes,
        values=dealt.values,
        records=dealt.records,
        trials=whole.trials[within] * share,
        group=dealt.group,
        value=dealt.value,
        count=dealt.count,
        coins=dealt.coins,
        whole=whole,
        within=within,
    )


@dataclass(frozen=True, kw_only=True)
class Shares(Cube):
    """Parts of groups: a share w of the records, trials worth w times as many records each.

    An estimate is then w times that of the group, and its variance w² times as large.
    """

    share: Floats
    was_sampled: Flags
    was_uneven: Floats

    @property
    def sampled(self) -> Flags:
        """Which of them are parts of groups that rest on fewer trials than records."""
        return self.was_sampled

    @property
    def uneven(self) -> Floats:
        """The variance factor of uneven copies, as far as they fall into this part."""
        return np.asarray(self.share**2 * self.was_uneven)

    @property
    def cut(self) -> Flags:
        """Which of them are not the whole group."""
        return np.asarray(self.share < 1.0)


def _shares(whole: Cube, groups: Ints, records: Ints) -> Shares:
    """Parts of these groups (a group may come several times) with so many of their records."""
    starts = np.searchsorted(whole.group, np.arange(whole.groups + 1))
    length = np.diff(starts)[groups]
    part = np.repeat(np.arange(groups.size), length)
    within = np.arange(part.size) - np.repeat(np.cumsum(length) - length, length)
    cell = np.repeat(starts[:-1][groups], length) + within
    share = records / whole.records[groups]
    return Shares(
        schema=whole.schema,
        codes=(),
        values=(),
        records=records,
        trials=whole.trials[groups],
        group=part,
        value=whole.value[cell],
        count=whole.count[cell] * share[part],
        coins=whole.coins,
        share=share,
        was_sampled=whole.sampled[groups],
        was_uneven=whole.uneven[groups],
    )
