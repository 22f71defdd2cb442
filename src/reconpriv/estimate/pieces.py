"""Selections cut into disjoint pieces, each of them a count with limits of its own.

Two selections may overlap, and one may be a part of the other. Their difference and their ratio
are made of the pieces that they are cut into: records of the same groups and sensitive values are
in the same selections. Pieces of different groups are estimated independently, unless margins link
them, so nothing is lost by combining the limits of each (theory.combined_limits).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.ask.selections import Selected
from reconpriv.cells.cube import Cube
from reconpriv.cells.sums import Sums, stacked_sums
from reconpriv.estimate.counts import Settings
from reconpriv.estimate.public_rows import PublicRows
from reconpriv.estimate.set_counts import SetCounts, parts_of
from reconpriv.estimate.totals import WeightedTotal, indicator, totals
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.estimation.combined_limits import Parts


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

    def sums(self, rows: PublicRows, settings: Settings) -> Sums:
        """What is published about it, row by row, with margins weighed in."""
        own = replace(rows, of=lambda part: np.where(self.mask(part), rows.of(part), -1))
        return self.answerer.sums(own, self.values, margins=settings.how.margins)

    @property
    def total(self) -> WeightedTotal:
        """It as a total."""
        first = self.selections[self.inside.index(True)]
        m = self.answerer.design.domain_size
        return WeightedTotal(first, indicator(self.values, m), present=self)


@dataclass(frozen=True)
class _Cut:
    """The pieces of some selections, with their sums and covariances row by row."""

    keys: Ints
    selections: int
    pieces: list[_Piece]
    sums: list[Sums]
    covariances: Floats

    @classmethod
    def of(
        cls,
        answerer: Answerer,
        selections: Sequence[Selected],
        by: Sequence[str],
        settings: Settings,
    ) -> _Cut:
        """Cut the selections, for every combination of public attributes in one of them."""
        rows = answerer.rows(
            lambda part: np.any([answerer.mask(one, part) for one in selections], axis=0), by
        )
        pieces = _pieces(answerer, selections)
        sums = [piece.sums(rows, settings) for piece in pieces]
        covariances = _covariances(answerer, pieces, sums, by, settings)
        return cls(rows.keys, len(selections), pieces, sums, covariances)

    @property
    def kind(self) -> object:
        """What selections that are cut alike have in common."""
        return self.selections, tuple((piece.values, piece.members) for piece in self.pieces)


def cut_into_pieces(
    answerer: Answerer, selections: Sequence[Selected], by: Sequence[str], settings: Settings
) -> Pieces:
    """The pieces of some selections, for every combination of public attributes in one of them."""
    return _joined(answerer, [_Cut.of(answerer, selections, by, settings)], settings)


def cut_each(
    answerer: Answerer, asked: Sequence[Sequence[Selected]], settings: Settings
) -> list[tuple[list[int], Pieces]]:
    """The pieces of several questions: which questions, and a line for each of them.

    Questions that are cut alike have their limits in one search, which takes most of the time.
    """
    alike: dict[object, list[tuple[int, _Cut]]] = {}
    for number, selections in enumerate(asked):
        cut = _Cut.of(answerer, selections, (), settings)
        alike.setdefault(cut.kind, []).append((number, cut))
    return [
        ([number for number, _ in same], _joined(answerer, [cut for _, cut in same], settings))
        for same in alike.values()
    ]


def _joined(answerer: Answerer, alike: Sequence[_Cut], settings: Settings) -> Pieces:
    """The pieces of selections that are cut alike, with their limits, one below the other."""
    keys, pieces = np.concatenate([cut.keys for cut in alike], axis=1), alike[0].pieces
    covariances = np.concatenate([cut.covariances for cut in alike])
    counts = [
        SetCounts.of(stacked_sums(sums), piece.values, answerer.design).uncut(settings, len(pieces))
        for piece, sums in zip(pieces, zip(*(cut.sums for cut in alike), strict=True), strict=True)
    ]
    members = np.array([piece.members for piece in pieces], dtype=np.float64)
    if not pieces:  # nobody can be counted
        none = np.zeros((keys.shape[1], 0))
        parts = Parts(none, none, none, none, none, np.zeros((keys.shape[1], 0, 0)))
        return Pieces(keys, np.zeros((alike[0].selections, 0)), parts)
    return Pieces(keys, members.T, parts_of(counts, covariances))


def _covariances(
    answerer: Answerer,
    pieces: Sequence[_Piece],
    sums: Sequence[Sums],
    by: Sequence[str],
    settings: Settings,
) -> Floats:
    """The covariances of pieces; those of different groups have none, unless something links them.

    Margins do, protection groups that are cut do, and so do different values of the same groups.
    """
    linked = answerer.told(margins=settings.how.margins).rows > 0
    linked |= any(own.cut.any() for own in sums)
    linked |= len({piece.inside for piece in pieces}) < len(pieces)
    if linked and pieces:
        wanted = [piece.total for piece in pieces]
        return totals(answerer, wanted, by, margins=settings.how.margins).covariances
    rows = sums[0].records.size if sums else 1
    covariances = np.zeros((rows, len(pieces), len(pieces)))
    for i, (piece, own) in enumerate(zip(pieces, sums, strict=True)):
        counts = SetCounts.of(own, piece.values, answerer.design)
        if not counts.everybody:
            covariances[:, i, i] = counts.variances
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
