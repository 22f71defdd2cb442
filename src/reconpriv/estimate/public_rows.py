"""The rows of a table: combinations of public values, and which of them every group has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from reconpriv.cells.cube import Cells, Cube, combinations
from reconpriv.cells.sums import joined_keys
from reconpriv.theory.arrays import Flags, Ints


@dataclass(frozen=True)
class PublicRows:
    """Combinations of public codes (``keys`` has a column for each), and the row of each group.

    ``of`` gives the row of every group of a part of the cells, -1 for groups that are left out.
    """

    keys: Ints
    of: Callable[[Cube], Ints]

    @property
    def number(self) -> int:
        """How many rows there are."""
        return int(self.keys.shape[1])


def public_rows(
    cells: Cells, attributes: Sequence[int], inside: Callable[[Cube], Flags]
) -> PublicRows:
    """The combinations that occur among the groups that are ``inside``, in order."""
    if isinstance(cells, Cube):
        keys, selection = combinations(cells, attributes, inside(cells))
        return PublicRows(keys, lambda _: selection)
    keys = np.zeros((0, 1), dtype=np.int64)
    if attributes:
        parts = cells.parts()
        keys, _ = joined_keys([combinations(part, attributes, inside(part))[0] for part in parts])
    listed = [tuple(key) for key in keys.T.tolist()]
    return PublicRows(
        keys, lambda part: np.where(inside(part), key_positions(part, attributes, listed), -1)
    )


def key_positions(cube: Cube, attributes: Sequence[int], keys: list[tuple[int, ...]]) -> Ints:
    """The position of each group's combination of codes among the sorted keys, or -1."""
    packed = np.zeros(cube.groups, dtype=np.int64)
    if not attributes or not keys:
        return packed - (not keys)
    asked = np.zeros(len(keys), dtype=np.int64)
    for i, attribute in enumerate(attributes):
        base = len(cube.values[attribute]) + 1
        packed = packed * base + cube.codes[attribute] + 1
        asked = asked * base + np.array([key[i] for key in keys]) + 1
    place = np.clip(np.searchsorted(asked, packed), 0, len(keys) - 1)
    return np.where(asked[place] == packed, place, -1)
