"""Neighbours of a group: the groups that differ from it in one or two public attributes.

A kind of neighbourhood loosens one or two attributes. A loosened attribute may take any value; an
ordered one also any value up to some places away in the order of the values that occur, so that
ages ±5 are eleven years where every age occurs. All other attributes are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from reconpriv.cells.cube import Cube
from reconpriv.columns.kinds import ORDERED
from reconpriv.columns.schema import Schema
from reconpriv.theory.arrays import Floats, Ints

REACHES = (1, 2, 5, 10, 20)
# Entries of the matrices that are added up at a time.
_AT_ONCE = 1 << 23


@dataclass(frozen=True, order=True)
class Loose:
    """A public attribute by position, and how many places away a value may be; 0 is any value."""

    attribute: int
    reach: int = 0


@dataclass(frozen=True)
class NeighbourKind:
    """A kind of neighbourhood: the loosened attributes."""

    loose: tuple[Loose, ...]

    def together(self, other: NeighbourKind) -> NeighbourKind | None:
        """Both at once, or None if they loosen the same attribute."""
        both = sorted((*self.loose, *other.loose))
        different = len({one.attribute for one in both}) == len(both)
        return NeighbourKind(tuple(both)) if different else None

    def words(self, schema: Schema) -> str:
        """Such as "Age ±5, any Race"."""
        if len(self.loose) == len(schema.public) and not any(one.reach for one in self.loose):
            return "the whole table"
        names = ((schema.public[one.attribute].name, one.reach) for one in self.loose)
        return ", ".join(f"{name} ±{reach}" if reach else f"any {name}" for name, reach in names)


def single_kinds(cube: Cube) -> list[NeighbourKind]:
    """Every kind that loosens one attribute, and the whole table; at least one kind."""
    kinds = []
    for i in range(len(cube.schema.public)):
        places = places_of(cube, i)
        reaches = [] if places is None else [r for r in REACHES if r < int(places.max(initial=0))]
        kinds += [NeighbourKind((Loose(i, reach),)) for reach in (*reaches, 0)]
    if len(cube.schema.public) != 1:
        kinds.append(NeighbourKind(tuple(Loose(i) for i in range(len(cube.schema.public)))))
    return kinds


def pairs_of(kinds: Iterable[NeighbourKind]) -> list[NeighbourKind]:
    """Two kinds at once, where they loosen one attribute each."""
    single = [kind for kind in kinds if len(kind.loose) == 1]
    both = (one.together(other) for one, other in combinations(single, 2))
    return [kind for kind in both if kind is not None]


def places_of(cube: Cube, attribute: int) -> Ints | None:
    """The place of each value in order; None if there is no order. A missing value has none."""
    column, values = cube.schema.public[attribute], cube.values[attribute]
    recoding = cube.schema.recoding(column.name)
    if recoding is not None and recoding.binned:
        place = {label: i for i, label in enumerate(recoding.labels)}
        return np.array([place.get(value, FAR) for value in values.to_pylist()], dtype=np.int64)
    if column.kind not in ORDERED or recoding is not None or len(values) > _MANY:
        return None
    # The distinct values of a cube are sorted, a missing one last.
    places = np.arange(len(values), dtype=np.int64)
    return np.where(values.is_null().to_numpy(zero_copy_only=False), FAR, places)


# Out of reach of every other place.
FAR = 1 << 20
# With more values than this, an attribute is treated as one without an order. Combinations are
# renumbered beyond the other limit: with two widths, they must fit into 63 bits.
_MANY = 10_000
_MOST = 1 << 30


@dataclass(frozen=True)
class Neighbours:
    """The neighbours of one kind of every group of a cube.

    ``order`` sorts the groups so that the neighbours of a group are in few stretches of it.
    ``first`` and ``last`` are the ends of each stretch, a line per stretch, a column per group.
    """

    order: Ints
    first: Ints
    last: Ints

    @classmethod
    def of(cls, cube: Cube, kind: NeighbourKind, groups: Ints) -> Neighbours:
        """Find the neighbours of some groups among all groups."""
        loose = {one.attribute: one.reach for one in kind.loose}
        # What must be the same is one number; places of ordered attributes are its last digits.
        number, numbers = np.zeros(cube.groups, dtype=np.int64), 1
        for i, codes in enumerate(cube.codes):
            if i in loose:
                continue
            number = number * len(cube.values[i]) + codes
            numbers *= len(cube.values[i])
            if numbers > _MOST:
                number = np.unique(number, return_inverse=True)[1].reshape(-1)
                numbers = cube.groups
        steps, reach = np.zeros(1, dtype=np.int64), 0
        for i, each in loose.items():
            if not each:
                continue
            places = places_of(cube, i)
            assert places is not None
            # A missing value is far from all others, but need not be a million places away.
            rank = np.where(places == FAR, places[places < FAR].max(initial=0) + each + 1, places)
            width = int(rank.max(initial=0)) + 1 + 2 * each
            number = number * width + rank[cube.codes[i]] + each
            # Of two ordered attributes, each place of the first is a stretch of the second.
            before = np.arange(-reach, reach + 1)
            steps = (steps[:, None] + before[None, :]).ravel() * width
            reach = each
        order = np.argsort(number, kind="stable")
        there = number[order]
        wanted = number[groups][None, :] + steps[:, None]
        return cls(
            order,
            np.searchsorted(there, wanted - reach, side="left"),
            np.searchsorted(there, wanted + reach, side="right"),
        )

    def sums(self, columns: Floats, groups: Ints) -> Floats:
        """The sums of columns (a row per group of the cube) over the neighbours of some groups.

        A group is not its own neighbour.
        """
        result = -columns[groups]
        order, place = self._inside()
        for some in _blocks((order.size, columns.shape[1])):
            running = np.zeros((order.size + 1, result[:, some].shape[1]))
            np.cumsum(columns[order, some], axis=0, out=running[1:])
            for first, last in zip(place[self.first], place[self.last], strict=True):
                result[:, some] += running[last] - running[first]
        return np.asarray(result)

    def _inside(self) -> tuple[Ints, Ints]:
        """The groups that are anybody's neighbours, in order, and where each place is among them.

        In a table of many small groups, most are not.
        """
        ends = self.order.size + 1
        opened = np.bincount(self.first.ravel(), minlength=ends)
        closed = np.bincount(self.last.ravel(), minlength=ends)
        inside = np.cumsum(opened - closed)[:-1] > 0
        return self.order[inside], np.concatenate([[0], np.cumsum(inside)])


def _blocks(shape: Sequence[int]) -> Iterator[slice]:
    """Columns of a matrix, as many at a time as fit."""
    many = max(1, _AT_ONCE // max(shape[0], 1))
    return (slice(i, i + many) for i in range(0, shape[1], many))
