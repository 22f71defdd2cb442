"""Sums over the groups of selections: what counts, their variances and their limits need.

Estimates rest on protection groups. A selection holds a share of each, and a record of a group may
count as often as some number says; both are a weight w of the group. Every sum weighs a group by
the power of w with which the figure, its variance or its third moment grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from reconpriv.cells.cube import Cube, GroupShares
from reconpriv.theory.arrays import Floats, Ints

# The power of its weight with which a group enters each sum.
POWERS = {
    "groups": 0, "records": 1, "trials": 0, "scaled_records": 2, "scaled_squares": 3,
    "sampled_squares": 2, "unsampled": 2, "uneven": 2, "observed": 1, "scaled_observed": 2,
    "noise": 2, "other": 0, "cut": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Sums:
    """What an estimate needs from a selection of groups; arrays have one row per selection.

    ``observed``, ``scaled_observed``, ``noise`` and ``other`` are for the chosen set of sensitive
    values; ``other`` is a variance that comes from outside the selection, with margins. ``cut`` is
    the number of protection groups of which the selection holds only a part. If there are any,
    ``ends`` are the sums of the protection groups that a selection holds whole, and of all that
    it holds a part of.
    """

    groups: Floats
    records: Floats
    trials: Floats
    scaled_records: Floats
    scaled_squares: Floats
    sampled_squares: Floats
    unsampled: Floats
    uneven: Floats
    observed: Floats
    scaled_observed: Floats
    noise: Floats
    other: Floats
    cut: Floats
    ends: tuple[Sums, Sums] | None = None

    def columns(self) -> dict[str, Floats]:
        """All sums by name, in order."""
        return {name: getattr(self, name) for name in POWERS}

    @classmethod
    def from_columns(cls, columns: Iterable[Floats]) -> Self:
        """Sums from what :meth:`columns` has, in order."""
        found: dict[str, Any] = dict(zip(POWERS, columns, strict=True))
        return cls(**found)

    def __add__(self, more: Sums) -> Sums:
        """The sums over two parts, selection by selection."""
        return _together((self, more), lambda columns: columns[0] + columns[1])

    def each(self, turned: Callable[[Floats], Floats]) -> Sums:
        """The same with every column turned into another one."""
        return _together((self,), lambda columns: turned(columns[0]))

    def at(self, selections: Ints, values: Ints) -> Sums:
        """The sums of single values, if these are sums by sensitive value."""
        return self.each(lambda c: c[selections, values] if c.ndim == 2 else c[selections])

    def weighted(self, weight: Floats, row: Ints, rows: int) -> Sums:
        """Sums of sums of single groups (or of such that weigh the same), added up by row."""
        powers = [np.ones_like(weight), weight, weight**2, weight**3]

        def total(name: str, column: Floats) -> Floats:
            own = column * powers[POWERS[name]]
            return np.bincount(row, weights=own, minlength=rows).astype(np.float64)

        return Sums.from_columns(total(name, one) for name, one in self.columns().items())


def _together(pieces: Sequence[Sums], joined: Callable[[Sequence[Floats]], Floats]) -> Sums:
    columns = [list(one.columns().values()) for one in pieces]
    found = Sums.from_columns(joined(some) for some in zip(*columns, strict=True))
    if all(one.ends is None for one in pieces):
        return found
    inside, touched = zip(*(one.ends or (one, one) for one in pieces), strict=True)
    return replace(found, ends=(_together(inside, joined), _together(touched, joined)))


def stacked_sums(pieces: Sequence[Sums]) -> Sums:
    """The sums of several lots of selections, one after the other."""
    return pieces[0] if len(pieces) == 1 else _together(pieces, np.concatenate)


def joined_keys(parts: Sequence[Ints]) -> tuple[Ints, list[Ints]]:
    """All combinations that occur in some part, and where those of each part are among them."""
    if len(parts) == 1:
        return parts[0], [np.arange(parts[0].shape[1])]
    stacked = np.concatenate(parts, axis=1)
    if stacked.shape[0] == 0:
        return stacked[:, :1], [np.zeros(keys.shape[1], dtype=np.int64) for keys in parts]
    keys, place = np.unique(stacked, axis=1, return_inverse=True)
    ends = np.cumsum([part.shape[1] for part in parts])[:-1]
    return keys, np.split(place.reshape(-1), ends)


def sum_selections(
    cube: Cube, selection: Ints, selections: int, chosen: Sequence[int] | None
) -> Sums:
    """Sum micro groups into selections (``selection`` is -1 for one that is in none).

    ``chosen`` are indices into the sensitive domain; with None each selection is split by sensitive
    value, and ``observed``, ``scaled_observed``, ``noise`` and ``other`` have a column per value.
    """
    shares = cube.shares(selection)
    found = sum_shares(cube.whole, shares, selections, chosen)
    if shares.once or not shares.cut.any():
        return found
    inside, touched = (sum_shares(cube.whole, one, selections, chosen) for one in ends_of(shares))
    return replace(found, records=np.rint(found.records), ends=(inside, touched))


def ends_of(shares: GroupShares) -> tuple[GroupShares, GroupShares]:
    """The protection groups that selections hold whole, and all that they hold a part of."""
    whole = np.flatnonzero(~shares.cut)
    inside = shares._replace(
        selection=shares.selection[whole], group=shares.group[whole], share=shares.share[whole]
    )
    return inside, shares._replace(share=np.ones_like(shares.share))


def sum_shares(
    cube: Cube, shares: GroupShares, selections: int, chosen: Sequence[int] | None
) -> Sums:
    """Sum shares of protection groups into selections; a weight serves as well as a share."""
    row, group, weight = shares.selection, shares.group, shares.share
    m = cube.schema.domain_size
    n, scale, sampled = cube.records[group], cube.scale[group], cube.sampled[group]
    scaled, uneven, squares = scale * n, cube.uneven[group], np.where(sampled, scale * scale, 0.0)
    records, cubes, trial_scale = n.astype(np.float64), scaled * scale, scale
    if not shares.once:
        square = weight * weight
        records, cubes, trial_scale = weight * n, cubes * weight * square, scale * square
        scaled, uneven, squares = scaled * square, uneven * square, squares * square

    def by_row(of: Floats | Ints | None) -> Floats:
        return np.bincount(row, weights=of, minlength=selections).astype(np.float64)

    cell, entry = cube.cells_of(group)
    count, value = cube.count[cell].astype(np.float64), cube.value[cell]
    shape: tuple[int, ...] = (selections,)
    if chosen is None:
        shape = (selections, m)
        slot = noise_slot = row[entry] * m + value
        noise_entry, noise_count = entry, count
    else:
        member = np.zeros(m, dtype=bool)
        member[list(chosen)] = True
        wanted = np.flatnonzero(member[value])
        count, entry = count[wanted], entry[wanted]
        slot = row[entry]
        # Noise is not linear in the counts of several values: sum them within each group first.
        noise_count = np.bincount(entry, weights=count, minlength=group.size).astype(np.float64)
        noise_entry, noise_slot = np.arange(group.size), row
    size = int(np.prod(shape))

    def by_slot(of: Floats, where: Ints) -> Floats:
        total = np.bincount(where, weights=of, minlength=size).astype(np.float64)
        return total.reshape(shape)

    share = noise_count / n[noise_entry]
    noise = uneven[noise_entry] * (share if cube.coin_flips else share * (1.0 - share))
    return Sums(
        groups=by_row(None),
        records=by_row(records),
        trials=by_row(cube.trials[group]),
        scaled_records=by_row(scaled),
        scaled_squares=by_row(cubes),
        sampled_squares=by_row(squares),
        unsampled=by_row(np.where(sampled, 0.0, scaled)),
        uneven=by_row(uneven),
        observed=by_slot(count if shares.once else count * weight[entry], slot),
        scaled_observed=by_slot(count * trial_scale[entry], slot),
        noise=by_slot(noise, noise_slot),
        other=np.zeros(shape),
        cut=np.zeros(selections) if shares.once else by_row(shares.cut.astype(np.int64)),
    )
