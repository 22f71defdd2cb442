"""Quantiles, the median among them, with Woodruff's intervals (1952).

The q-quantile of some records is the smallest value at or below which at least a share q of them
lies. With A records at or below a value v and B above it, v is below the quantile if

    T(v) = (1 - q) A - q B < 0

A value is inside the limits if T at it may be 0 or more, and T at the value before it less than 0.
The limits of T are those of a difference of two counts (theory.combined_limits). Estimates of T
need not grow with v: as many values lie below the quantile as have an estimate below 0 (a
rearrangement), and the limits are the first and the last value that is inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.answers.figure import QUANTILE, Figure
from reconpriv.ask.question import Question
from reconpriv.cells.cube import Cube
from reconpriv.cells.sums import Sums, stacked_sums, sum_selections
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.estimate.averages import base_remarks, is_exact
from reconpriv.estimate.counts import Settings
from reconpriv.estimate.measures import Ladder, ladder_of, refuse_infinite
from reconpriv.estimate.public_rows import PublicRows
from reconpriv.estimate.set_counts import SetCounts, UncutCounts, parts_of
from reconpriv.estimate.shares import Labels, by_sensitive_value, check_unbiased, empty_figure
from reconpriv.estimate.totals import Number, Totals, WeightedTotal, indicator, totals
from reconpriv.messages import shares
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.estimation.combined_limits import combination_limits

NOBODY = "there may be no such record, so any of the values is possible"
_TIE = 1e-9
_PROBES = 32  # places that are tried at once, where each takes a pass over the cells


_MOST = 1 << 23  # steps held at once

Sides = tuple[UncutCounts, UncutCounts]
"""The counts at or below a step, and above it."""


@dataclass(frozen=True)
class RowCounts:
    """Counts of records by combinations of public values."""

    answerer: Answerer
    rows: PublicRows
    settings: Settings

    def counted(self, values: tuple[int, ...]) -> UncutCounts:
        """The records of every row that hold one of some values."""
        return self.of_sums(self.sums(self.rows, values), values)

    def sums(self, rows: PublicRows, values: tuple[int, ...]) -> Sums:
        """The sums of some values, with margins weighed in."""
        return self.answerer.sums(rows, values, margins=self.settings.how.margins)

    def of_sums(self, sums: Sums, values: tuple[int, ...]) -> UncutCounts:
        """The counts of some values from their sums."""
        counts = SetCounts.of(sums, values, self.answerer.design)
        found = counts.uncut(self.settings, 2)
        return found._replace(low=found.least) if counts.everybody else found


@dataclass(frozen=True)
class RowSteps:
    """The places that a number has in each row: ``row`` and ``place``, in order."""

    counts: RowCounts
    number: Number
    values: tuple[int, ...]
    row: Ints
    place: Ints

    @classmethod
    def of(cls, counts: RowCounts, number: Number, values: tuple[int, ...]) -> RowSteps:
        """The steps of records that hold one of some values."""
        found = []
        for part in counts.answerer.cells.parts():
            row = counts.rows.of(part)
            inside = np.flatnonzero(row >= 0)
            place = number.of(part)[inside].astype(np.int64)
            found.append(np.unique(np.stack([row[inside], place]), axis=1))
        row, place = np.unique(np.concatenate(found, axis=1), axis=1)
        if row.size > _MOST:
            raise InputError(
                f"There are {row.size:,} different values in these rows, too many for a quantile.",
                hint="Choose fewer records, or round the numbers.",
            )
        return cls(counts, number, values, row, place)

    @property
    def many(self) -> Ints:
        """How many steps every row has."""
        return np.bincount(self.row, minlength=self.counts.rows.number)

    @property
    def starts(self) -> Ints:
        """The first step of every row."""
        return np.searchsorted(self.row, np.arange(self.counts.rows.number))

    def at_once(self) -> Sides | None:
        """The counts of all steps; None with margins or protection groups.

        Sums over groups add up, so those at or below a step are running sums over its row.
        """
        counts = self.counts
        if counts.answerer.told(margins=counts.settings.how.margins).rows:
            return None
        steps: list[Sums] = []
        span = int(self.place.max()) + 1
        slots = self.row * span + self.place
        for part in counts.answerer.cells.parts():
            if part.whole is not part:
                return None
            row = counts.rows.of(part)
            wanted = row * span + np.nan_to_num(self.number.of(part)).astype(np.int64)
            slot = np.where(row >= 0, np.searchsorted(slots, wanted), -1)
            one = sum_selections(part, slot, slots.size, self.values)
            steps = [steps[0] + one] if steps else [one]
        last = np.append(self.starts[1:], slots.size) - 1

        def below(own: Floats) -> Floats:
            running = np.cumsum(own)
            return running - (running - own)[self.starts][self.row]

        def above(own: Floats) -> Floats:
            running = below(own)
            return np.asarray(running[last][self.row] - running)

        of_below, of_above = (
            counts.of_sums(steps[0].each(side), self.values) for side in (below, above)
        )
        return of_below, of_above

    def at(self, steps: Ints) -> Sides:
        """The counts at some steps of every row: a line for each step."""
        below, above = (
            self.counts.of_sums(
                stacked_sums([self._sums(self.place[self.starts + step], keep) for step in steps]),
                self.values,
            )
            for keep in (np.less_equal, np.greater)
        )
        return below, above

    def _sums(self, places: Ints, keep: Callable[[Floats, Ints], Flags]) -> Sums:
        """The sums of the groups on one side of a place in every row."""

        def selection(part: Cube) -> Ints:
            row = self.counts.rows.of(part)
            kept = keep(self.number.of(part), places[row])
            return np.where((row >= 0) & kept, row, -1)

        return self.counts.sums(replace(self.counts.rows, of=selection), self.values)


def check_share(share: float) -> float:
    """The share of a quantile, strictly between 0 and 1."""
    what = "The share of a quantile"
    return shares.check_share(share, what, hint="0.5 is the median.", error=InputError)


def quantile_rows(
    answerer: Answerer, asked: Question, by: Sequence[str], settings: Settings
) -> list[tuple[Labels, Figure]]:
    """A quantile for every combination of the given attributes that occurs."""
    check_unbiased(settings, "A quantile")
    check_share(asked.share)
    refuse_infinite(answerer, asked)
    sensitive = answerer.cells.schema.sensitive.name
    public = [one for one in by if one != sensitive]
    if sensitive not in by:
        return _rows(answerer, asked, public, settings)
    if asked.measured.scores is not None:
        raise InputError(
            f"A quantile of {sensitive!r} cannot be grouped by {sensitive!r} itself.",
            hint="Leave it out of GROUP BY.",
        )

    def of_value(value: int, public: list[str], settings: Settings) -> list[tuple[Labels, Figure]]:
        held = replace(asked.selected, values=(value,))
        return _rows(answerer, replace(asked, selected=held), public, settings)

    return by_sensitive_value(answerer, asked.selected.values, by, settings, of_value)


def _rows(
    answerer: Answerer, asked: Question, public: list[str], settings: Settings
) -> list[tuple[Labels, Figure]]:
    ladder, share = ladder_of(answerer, asked.measured), asked.share
    whole = _whole(answerer, asked, ladder, public, settings)
    settings = settings.together(whole.groups.size)
    labels = answerer.labels(public, whole.keys)
    if asked.nobody or not labels or not whole.records[:, 0].any():
        return [(one, empty_figure(asked, settings)) for one in labels]
    values = tuple(np.flatnonzero(_member(asked, ladder, answerer.design.domain_size)).tolist())
    number = ladder.number

    def inside(part: Cube) -> Flags:
        found = answerer.mask(asked.selected, part)
        return found if number is None else found & ~np.isnan(number.of(part))

    rows = RowCounts(answerer, answerer.rows(inside, public), settings)
    if number is not None:
        found = _of_number(RowSteps.of(rows, number, values), share)
    else:
        assert ladder.scores is not None
        found = _of_scores(rows, share, values, ladder.scores)
    figures = []
    for i, one in enumerate(labels):
        at = [ladder.at(int(place[i])) for place in (found.at, found.low, found.high)]
        shown = at[0][0], at[1][1], at[2][2]
        unsure = bool(found.unsure[i])
        figures.append((one, _figure(answerer, asked, whole, i, shown, settings, unsure=unsure)))
    return figures


def _whole(
    answerer: Answerer, asked: Question, ladder: Ladder, public: list[str], settings: Settings
) -> Totals:
    """How many records each quantile is taken over."""
    member = _member(asked, ladder, answerer.design.domain_size)
    terms = [WeightedTotal(asked.selected, tuple(member.tolist()), present=ladder.number)]
    if ladder.number is not None:
        # Only for its weights: a protection group in which places differ is cut.
        terms.append(WeightedTotal(asked.selected, terms[0].values, ladder.number))
    return totals(answerer, terms, public, margins=settings.how.margins)


def _member(asked: Question, ladder: Ladder, m: int) -> Floats:
    """1 for the sensitive values that are asked about and, if they are ranked, have a place."""
    member = np.array(indicator(asked.selected.values, m))
    return member if ladder.scores is None else member * ~np.isnan(ladder.scores)


_Located = tuple[Ints, Ints, Ints]
"""The step of the quantile in every row, the first that it may be, and the last."""


class _Quantiles(NamedTuple):
    """The places of quantiles and of their limits; ``unsure`` where there may be no record."""

    at: Ints
    low: Ints
    high: Ints
    unsure: Flags


class _Marks(NamedTuple):
    """Which steps are below a quantile: as estimated, surely, and possibly."""

    below: Flags
    surely: Flags
    possibly: Flags


_BELOW, _SURELY, _POSSIBLY = range(3)


def _marks(share: float, sides: Sides, every: UncutCounts, z: float) -> _Marks:
    """The sign of T from the counts at or below each step and above it.

    Their covariance follows from the variance of ``every`` record. Where protection groups
    are cut it is unknown, so the worst is assumed: what one count gains, the other loses.
    """
    below, above = sides
    both = np.sqrt(below.variance * above.variance)
    shared = (every.variance - below.variance - above.variance) / 2.0
    shared = np.where(below.cut | above.cut, -both, np.clip(shared, -both, both))
    covariance = np.stack([below.variance, shared, shared, above.variance], axis=-1)
    parts = parts_of(sides, covariance.reshape(*both.shape, 2, 2))
    low, high = combination_limits(np.array([1.0 - share, -share]), parts, z)
    tie = -_TIE * np.maximum(every.number, 1.0)
    total = (1.0 - share) * below.number - share * above.number
    return _Marks(total < tie, high < tie, low < tie)


def _located(marks: _Marks, row: Ints, many: Ints) -> _Located:
    """The steps of quantiles, from marks on all steps of every row.

    Everybody is at or below the last one.
    """
    rows, starts = many.size, np.cumsum(many) - many
    step = np.arange(row.size) - starts[row]
    at = np.bincount(row, weights=marks.below, minlength=rows).astype(np.int64)
    low, high = many.copy(), np.zeros_like(many)
    np.minimum.at(low, row, np.where(marks.surely, many[row], step))
    np.maximum.at(high, row, np.where(marks.possibly, step + 1, 0))
    at, low, high = (np.minimum(place, many - 1) for place in (at, low, high))
    return at, np.minimum(low, at), np.maximum(high, at)


def _of_number(steps: RowSteps, share: float) -> _Quantiles:
    """Quantiles of a number of public columns among the holders of some values."""
    rows, many, starts = steps.counts, steps.many, steps.starts
    every, z = rows.counted(steps.values), rows.settings.z
    sides = steps.at_once()
    if sides is None:
        row = np.arange(many.size)

        def at(probes: Ints) -> _Marks:
            of_rows = every.of_rows(np.tile(row, len(probes)))
            marks = _marks(share, steps.at(probes), of_rows, z)
            return _Marks(*(flags.reshape(probes.shape) for flags in marks))

        located = _searched(at, many)
    else:
        located = _located(_marks(share, sides, every.of_rows(steps.row), z), steps.row, many)
    return _found(located, every, many, lambda step: steps.place[starts + step])


def _of_scores(
    rows: RowCounts, share: float, values: tuple[int, ...], scores: Floats
) -> _Quantiles:
    """Quantiles of the sensitive attribute: each step splits the values that are asked about."""
    chosen = np.array(values)
    own = scores[chosen]
    places = np.unique(own).astype(np.int64)
    every = rows.counted(values)
    known = len(values) == scores.size

    @cache
    def at(place: int) -> _Marks:
        below = rows.counted(tuple(chosen[own <= place].tolist()))
        # Of a known number of records, what is not below is above.
        rest = tuple(chosen[own > place].tolist())
        above = every.less(below) if known else rows.counted(rest)
        return _marks(share, (below, above), every, rows.settings.z)

    def marks(probes: Ints) -> _Marks:
        flags = np.zeros((3, *probes.shape), dtype=bool)
        for step in np.unique(probes[probes < places.size - 1]).tolist():
            flags = np.where(probes == step, np.stack(at(int(places[step])))[:, None], flags)
        return _Marks(*flags)

    many = np.full(rows.rows.number, places.size)
    return _found(_searched(marks, many), every, many, lambda step: places[step])


def _searched(at: Callable[[Ints], _Marks], many: Ints) -> _Located:
    """The same as from all steps at once, but trying some of them and then those in between.

    ``at`` gives the marks of some steps of every row, a line for each.
    """
    tried: dict[bytes, Flags] = {}

    def marks(probes: Ints) -> Flags:
        new = np.unique([probe for probe in probes if probe.tobytes() not in tried], axis=0)
        if new.size:
            found = np.stack(at(new), axis=1)
            tried.update(zip((probe.tobytes() for probe in new), found, strict=True))
        return np.stack([tried[probe.tobytes()] for probe in probes], axis=1)

    def narrowed(which: int) -> Ints:
        first, last = np.zeros_like(many), many - 1
        while (first < last).any():
            # A row with few steps left tries some of them twice.
            probes = np.stack([first + (last - first) * i // _PROBES for i in range(_PROBES)])
            flags = marks(probes)[which]
            number = np.arange(_PROBES)[:, None]
            if which == _BELOW:
                flags = np.sort(flags, axis=0)[::-1]  # as many as there are
            if which == _POSSIBLY:
                before = np.where(flags, number + 1, 0).max(axis=0)
            else:
                before = np.where(flags, _PROBES, number).min(axis=0)
            edges = np.concatenate([first[None] - 1, probes, last[None]])
            row = np.arange(before.size)
            last = edges[before + 1, row]
            # Everybody is at or below the last step of a row, whatever its marks.
            first = np.minimum(edges[before, row] + 1, last)
        return first

    found, low, high = (narrowed(which) for which in (_BELOW, _SURELY, _POSSIBLY))
    return found, np.minimum(low, found), np.maximum(high, found)


def _found(
    located: _Located, every: UncutCounts, many: Ints, place: Callable[[Ints], Ints]
) -> _Quantiles:
    """The places of steps; any is possible where there may be no record."""
    at, low, high = located
    unsure = (every.low <= 0.0) & (every.variance > 0.0)
    low, high = np.where(unsure, 0, low), np.where(unsure, many - 1, high)
    return _Quantiles(place(at), place(low), place(high), unsure)


def _figure(
    answerer: Answerer,
    asked: Question,
    whole: Totals,
    row: int,
    shown: tuple[Value, Value, Value],
    settings: Settings,
    *,
    unsure: bool,
) -> Figure:
    if whole.records[row, 0] == 0:
        return empty_figure(asked, settings)
    exact = is_exact(asked, whole, row)
    remarks = base_remarks(answerer, asked, whole, row, exact=exact)
    if not exact and unsure:
        remarks = (*remarks, NOBODY)
    value, low, high = shown
    return replace(
        empty_figure(asked, settings),
        kind="median" if asked.share == 0.5 else QUANTILE,
        value=value,
        low=low,
        high=high,
        exact=exact,
        estimator="exact" if exact else settings.estimator,
        records=float(whole.estimates[row, 0]),
        groups=int(whole.groups[row]),
        trials=float(whole.trials[row]),
        remarks=remarks,
        margins=answerer.told(margins=settings.how.margins).rows > 0 and not exact,
    )
