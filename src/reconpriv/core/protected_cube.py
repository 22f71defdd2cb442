"""Dealt records in memory, with the protection groups that every estimate rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from reconpriv.core.cube import Cube, Sums, sum_selections
from reconpriv.theory.arrays import Flags, Floats, Ints


class PartsOfGroups(NamedTuple):
    """Parts of protection groups: the selection that holds one, its group, and how much of it."""

    selection: Ints
    group: Ints
    records: Ints
    share: Floats


@dataclass(frozen=True, kw_only=True)
class PartSums(Sums):
    """Sums by share, and those of whole protection groups that they lie between.

    ``inside`` are the sums of the groups that a selection holds whole, ``touched`` those of all
    groups that it holds a part of.
    """

    inside: Sums
    touched: Sums

    def at(self, selections: Ints, values: Ints) -> PartSums:
        """The sums of single values, if these are sums by sensitive value."""
        return PartSums(
            *super().at(selections, values).columns(),
            inside=self.inside.at(selections, values),
            touched=self.touched.at(selections, values),
        )


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
        parts = self.parts_in(selection)
        shared = share_sums(self.whole, parts, selections, chosen)
        if not shared.cut.any():
            return shared
        touched = parts._replace(
            records=self.whole.records[parts.group], share=np.ones(parts.group.size)
        )
        whole = parts.share >= 1.0
        inside = PartsOfGroups(
            parts.selection[whole], parts.group[whole], parts.records[whole], parts.share[whole]
        )
        return PartSums(
            *shared.columns(),
            inside=share_sums(self.whole, inside, selections, chosen),
            touched=share_sums(self.whole, touched, selections, chosen),
        )

    def parts_in(self, selection: Ints) -> PartsOfGroups:
        """The parts of protection groups that each selection of micro groups holds."""
        inside = np.flatnonzero(selection >= 0)
        pairs, position = np.unique(
            selection[inside] * self.whole.groups + self.within[inside], return_inverse=True
        )
        records = np.bincount(
            position.reshape(-1), weights=self.records[inside], minlength=pairs.size
        )
        group = pairs % self.whole.groups
        share = np.asarray(records / self.whole.records[group])
        return PartsOfGroups(pairs // self.whole.groups, group, records.astype(np.int64), share)

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

    @cached_property
    def sampled(self) -> Flags:
        """Which of them are parts of groups that rest on fewer trials than records."""
        return self.was_sampled

    @cached_property
    def uneven(self) -> Floats:
        """The variance factor of uneven copies, as far as they fall into this part."""
        return np.asarray(self.share**2 * self.was_uneven)

    @property
    def cut(self) -> Flags:
        """Which of them are not the whole group."""
        return np.asarray(self.share < 1.0)


def stacked_sums(pieces: Sequence[Sums]) -> Sums:
    """The sums of several lots of selections, one after the other."""
    columns = [np.concatenate(c) for c in zip(*(one.columns() for one in pieces), strict=True)]
    if not any(isinstance(one, PartSums) for one in pieces):
        return Sums(*columns)
    inside = [one.inside if isinstance(one, PartSums) else one for one in pieces]
    touched = [one.touched if isinstance(one, PartSums) else one for one in pieces]
    return PartSums(*columns, inside=stacked_sums(inside), touched=stacked_sums(touched))


def cells_of_parts(whole: Cube, parts: PartsOfGroups) -> tuple[Ints, Ints]:
    """The cells of the group of every part, and the part that each is for."""
    starts = np.searchsorted(whole.group, np.arange(whole.groups + 1))
    length = np.diff(starts)[parts.group]
    part = np.repeat(np.arange(parts.group.size), length)
    within = np.arange(part.size) - np.repeat(np.cumsum(length) - length, length)
    return np.repeat(starts[:-1][parts.group], length) + within, part


def share_sums(
    whole: Cube, parts: PartsOfGroups, selections: int, chosen: Sequence[int] | None
) -> Sums:
    """Sum shares of groups into selections; a weight above 1 serves as well as a share."""
    return sum_selections(_shares(whole, parts), parts.selection, selections, chosen)


def _shares(whole: Cube, parts: PartsOfGroups) -> Shares:
    """Parts of groups as a cube; a group may be in it several times."""
    cell, part = cells_of_parts(whole, parts)
    return Shares(
        schema=whole.schema,
        codes=(),
        values=(),
        records=parts.records,
        trials=whole.trials[parts.group],
        group=part,
        value=whole.value[cell],
        # Shares of whole numbers are not whole; nothing in a sum relies on it.
        count=cast("Ints", whole.count[cell] * parts.share[part]),
        coins=whole.coins,
        share=parts.share,
        was_sampled=whole.sampled[parts.group],
        was_uneven=whole.uneven[parts.group],
    )
