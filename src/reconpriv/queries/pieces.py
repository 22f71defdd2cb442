"""Selections cut into disjoint pieces, each of them a count with limits of its own.

Two selections may overlap, and one may be a part of the other. Their difference and their ratio
are made of the pieces that they are cut into: records of the same groups and sensitive values are
in the same selections. Pieces of different groups are estimated independently, unless margins link
them, so nothing is lost by combining the limits of each (theory.combined_limits).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from reconpriv.core.cube import Cube, Sums, combinations
from reconpriv.queries import estimate as est
from reconpriv.queries.answer import Answerer, Selected, Settings, key_positions
from reconpriv.queries.estimate import Design, quantile
from reconpriv.queries.margins import Asked
from reconpriv.queries.totals import Term, indicator, joined_keys, totals
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.combined_limits import Parts
from reconpriv.theory.intervals import border_slack


@dataclass(frozen=True)
class Pieces:
    """Counts of pieces, a line per combination of public values (``keys`` has a column for each).

    ``members`` has a line per selection, and says which pieces it is made of.
    """

    keys: Ints
    members: Floats
    parts: Parts


@dataclass(frozen=True)
class _Piece:
    """The records in the groups of some selections alone that hold one of some values.

    ``members`` says which of the selections it is a part of.
    """

    answerer: Answerer
    selections: Sequence[Selected]
    inside: tuple[bool, ...]
    values: tuple[int, ...]
    members: tuple[bool, ...]

    def mask(self, part: Cube) -> Flags:
        """Its groups, in one part of the cells."""
        found = np.ones(part.groups, dtype=bool)
        for selected, inside in zip(self.selections, self.inside, strict=True):
            found &= self.answerer.mask(selected, part) == inside
        return found

    def of(self, part: Cube) -> Floats:
        """1 for its groups, missing for others."""
        return np.where(self.mask(part), 1.0, np.nan)

    @property
    def term(self) -> Term:
        """It as a total."""
        first = self.selections[self.inside.index(True)]
        m = self.answerer.design.domain_size
        return Term(first, indicator(self.values, m), present=self)


def cut_into_pieces(
    answerer: Answerer, selections: Sequence[Selected], by: Sequence[str], settings: Settings
) -> Pieces:
    """The pieces of some selections, for every combination of public attributes in one of them."""
    found = _pieces(answerer, selections)
    keys, place = _rows(answerer, selections, by)
    sums = [_sums(answerer, piece, place, keys.shape[1], settings) for piece in found]
    covariances = _covariances(answerer, found, sums, by, settings)
    sides = len(selections)
    return _joined(answerer.design, keys, found, sums, covariances, settings, sides)


def cut_each(
    answerer: Answerer, asked: Sequence[Sequence[Selected]], settings: Settings
) -> list[tuple[list[int], Pieces]]:
    """The pieces of several questions: which questions, and a line for each of them.

    Questions that are cut alike have their limits in one search, which takes most of the time.
    """
    alike: dict[object, list[tuple[int, list[_Piece], list[Sums], Floats]]] = {}
    for number, selections in enumerate(asked):
        found = _pieces(answerer, selections)
        _, place = _rows(answerer, selections, ())
        sums = [_sums(answerer, piece, place, 1, settings) for piece in found]
        covariances = _covariances(answerer, found, sums, (), settings)
        kind = tuple((piece.values, piece.members) for piece in found)
        alike.setdefault(kind, []).append((number, found, sums, covariances))
    cut = []
    for same in alike.values():
        numbers, pieces, sums_of, covariances_of = zip(*same, strict=True)
        stacked = [_stacked(some) for some in zip(*sums_of, strict=True)]
        keys = np.zeros((0, len(numbers)), dtype=np.int64)
        every = np.concatenate(covariances_of)
        sides = len(asked[numbers[0]])
        whole = _joined(answerer.design, keys, pieces[0], stacked, every, settings, sides)
        cut.append((list(numbers), whole))
    return cut


def _stacked(sums: Sequence[Sums]) -> Sums:
    """The rows of several sums, one below the other."""
    return Sums(*(np.concatenate(one) for one in zip(*(s.columns() for s in sums), strict=True)))


def _joined(
    design: Design,
    keys: Ints,
    found: Sequence[_Piece],
    sums: Sequence[Sums],
    covariances: Floats,
    settings: Settings,
    sides: int,
) -> Pieces:
    """The pieces of so many selections with their limits, from their sums."""
    columns = [
        _limits(design, piece.values, own, settings, len(found))
        for piece, own in zip(found, sums, strict=True)
    ]
    members = np.array([piece.members for piece in found], dtype=np.float64)
    stacked = np.zeros((5, keys.shape[1], 0))
    if columns:
        stacked = np.stack([np.stack(column) for column in columns], axis=-1)
    else:  # nobody can be counted
        covariances = np.zeros((keys.shape[1], 0, 0))
    count, low, high, least, most = stacked
    parts = Parts(count, low, high, least, most, covariances)
    return Pieces(keys, members.reshape(len(found), sides).T, parts)


def _covariances(
    answerer: Answerer,
    found: Sequence[_Piece],
    sums: Sequence[Sums],
    by: Sequence[str],
    settings: Settings,
) -> Floats:
    """The covariances of pieces; those of different groups have none, unless something links them.

    Margins do, protection groups that are cut do, and so do different values of the same groups.
    """
    if not found:
        return np.zeros((1, 0, 0))
    design = answerer.design
    linked = answerer.margins is not None and settings.margins
    linked |= any(own.cut.any() for own in sums)
    linked |= len({piece.inside for piece in found}) < len(found)
    if linked:
        terms = [piece.term for piece in found]
        return totals(answerer, terms, by, margins=settings.margins).covariances
    rows = sums[0].records.size if sums else 1
    covariances = np.zeros((rows, len(found), len(found)))
    for i, (piece, own) in enumerate(zip(found, sums, strict=True)):
        if len(piece.values) < design.domain_size:
            size, rounded = len(piece.values), est.runs(piece.values, design.domain_size)
            covariances[:, i, i] = est.count_variances(own, size, rounded, design)
    return covariances


def _pieces(answerer: Answerer, selections: Sequence[Selected]) -> list[_Piece]:
    """All pieces that hold a group; those in no selection are left out."""
    m = answerer.design.domain_size
    held = np.array([indicator(one.values, m) for one in selections]) > 0
    seen = set()
    for part in answerer.cells.parts():
        masks = np.stack([answerer.mask(one, part) for one in selections])
        seen |= {tuple(line) for line in np.unique(masks, axis=1).T.tolist()}
    found = []
    for inside in sorted(seen, reverse=True):
        lines, place = np.unique(held & np.array(inside)[:, None], axis=1, return_inverse=True)
        for i, members in enumerate(lines.T.tolist()):
            if any(members):
                values = tuple(np.flatnonzero(place.reshape(-1) == i).tolist())
                found.append(_Piece(answerer, selections, inside, values, tuple(members)))
    return found


# The row of each group of a part, or -1.
_Place = Callable[[Cube], Ints]


def _rows(
    answerer: Answerer, selections: Sequence[Selected], by: Sequence[str]
) -> tuple[Ints, _Place]:
    """The combinations in any of the selections, as :func:`totals` has them."""
    names = [column.name for column in answerer.cells.schema.public]
    attributes = tuple(names.index(name) for name in by)

    def any_of(part: Cube) -> Flags:
        masks = [answerer.mask(one, part) for one in selections]
        return np.asarray(np.any(masks, axis=0))

    if isinstance(answerer.cells, Cube):
        keys, selection = combinations(answerer.cells, attributes, any_of(answerer.cells))
        return keys, lambda _: selection
    parts = [combinations(part, attributes, any_of(part))[0] for part in answerer.cells.parts()]
    keys, _ = joined_keys(parts)
    listed = [tuple(key) for key in keys.T.tolist()]
    return keys, lambda part: np.where(
        any_of(part), key_positions(part, attributes, listed), -1
    )  # fmt: skip


def _sums(answerer: Answerer, piece: _Piece, place: _Place, rows: int, settings: Settings) -> Sums:
    """What is published about a piece, row by row, with margins weighed in."""

    def row(part: Cube) -> Ints:
        return np.where(piece.mask(part), place(part), -1)

    values = piece.values
    sums = reduce(
        Sums.__add__, (part.sums(row(part), rows, values) for part in answerer.cells.parts())
    )
    whole = len(values) == answerer.design.domain_size
    if whole or answerer.margins is None or not settings.margins or not rows:
        return sums
    asked = Asked(np.arange(rows), np.zeros(rows, dtype=np.int64), values)
    return answerer.margins.combine(answerer.cells, sums, asked, row)


def _limits(
    design: Design, values: tuple[int, ...], sums: Sums, settings: Settings, pieces: int
) -> list[Floats]:
    """Estimates, uncut limits, and possible ones that hold for so many pieces together."""
    if len(values) == design.domain_size:
        return _known(sums, design, settings)
    return uncut_limits(sums, values, design, settings, pieces)


def uncut_limits(
    sums: Sums,
    values: tuple[int, ...],
    design: Design,
    settings: Settings,
    pieces: int,
    *,
    weighted: bool = False,
) -> list[Floats]:
    """Counts of some values, uncut limits, and possible ones that hold for so many together."""
    size, rounded = len(values), est.runs(values, design.domain_size)
    count = est.mle_counts(sums, size, design)
    confidence, intervals = settings.confidence, settings.intervals
    (low, high), together = (
        est.limits(
            sums, size, rounded, design,
            confidence=confidence, intervals=many * intervals, weighted=weighted,
        )
        for many in (1, pieces)
    )  # fmt: skip
    some = sums.records > 0
    if design.retention < 1.0 and some.any():
        pooled, stray = est.pooled_sums(sums, size, rounded, design, some, weighted=weighted)
        miss = (1.0 - confidence) / intervals
        slack = border_slack(pooled, retention=design.retention, stray=stray, miss=miss)
        none, every = np.zeros_like(count), np.ones_like(count)
        low[some] -= slack[0] * _deviation(sums, none, size, rounded, design)[some]
        high[some] += slack[1] * _deviation(sums, every, size, rounded, design)[some]
    return [count, np.minimum(low, count), np.maximum(high, count), *together]


def _deviation(sums: Sums, shares: Floats, size: int, rounded: int, design: Design) -> Floats:
    """The standard error of a count if these shares of the records hold one of the values."""
    return np.asarray(np.sqrt(est.variances_at(sums, shares, size, rounded, design)))


def _known(sums: Sums, design: Design, settings: Settings) -> list[Floats]:
    """The numbers of records of pieces that all their values are chosen of."""
    records = sums.records
    half = np.zeros_like(records)
    if design.sampling.coins:
        half = quantile(settings.confidence, settings.intervals) * np.sqrt(sums.noise)
    low, high = records - half, records + half
    return [records, low, high, np.maximum(low, 0.0), high]
