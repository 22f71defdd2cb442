"""Several weighted totals of a release at once, with their covariances: see theory.weighted_totals.

A term is a selection of groups, a number for each group and a number for each sensitive value.
Terms that share groups covary, whatever they are about; so shares, differences, averages and
quantiles, which are functions of such totals, need nothing else. Margins enter as they do into
counts: their weights are subtracted from those of the groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from reconpriv.core.cube import Cube, combinations
from reconpriv.core.protected_cube import ProtectedCube
from reconpriv.queries.answer import Answerer, Selected
from reconpriv.queries.margins import PreparedMargins
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.perturbation import replacement_probability
from reconpriv.theory.weighted_totals import TotalSums, total_covariances, total_estimates

_DENSE = 1 << 22  # weights of rows x groups held at once, with margins
_EVEN = 1e-9  # relative spread of a weight within a protection group that is rounding error


class Number(Protocol):
    """A number of each group."""

    def of(self, part: Cube) -> Floats:
        """The number of every group of a part; NaN where it is missing."""
        ...


@dataclass(frozen=True)
class Term:
    """Σ u b(x) over the records of a selection (the sensitive part of which is in ``values``).

    ``number`` is u, 1 if there is none; groups in which ``present`` or ``number`` is missing do not
    count. Terms without ``values`` are about each sensitive value by itself.
    """

    selected: Selected
    values: tuple[float, ...] | None
    number: Number | None = None
    present: Number | None = None


@dataclass(frozen=True)
class Totals:
    """Estimates (rows x terms), their covariances, and what they rest on.

    ``records`` is Σ u N of each term, known exactly; ``low`` and ``high`` are the smallest and the
    largest u of the first one. With each sensitive value by itself, there is
    a row for every combination of public values and sensitive value, values varying fastest.
    """

    keys: Ints
    values: Ints | None
    estimates: Floats
    covariances: Floats
    alone: Floats
    records: Floats
    groups: Floats
    trials: Floats
    cut: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Spread:
    """The micro groups within protection groups: the item of each, its records and its weights."""

    item: Ints
    records: Ints
    weights: Floats


@dataclass(frozen=True)
class Items:
    """Groups of a cube with the row they are counted in, and their weight in each term.

    ``low`` and ``high`` are the smallest and the largest weight of a record in the first term.
    ``spread`` has the weights within protection groups, if these are the groups.
    """

    cube: Cube
    row: Ints
    group: Ints
    weights: Floats
    cut: Flags | Floats
    low: Floats
    high: Floats
    spread: Spread | None = None


def indicator(chosen: Sequence[int] | None, domain_size: int) -> tuple[float, ...]:
    """b(x) of a set of values; of all values if None."""
    if chosen is None:
        return (1.0,) * domain_size
    member = np.zeros(domain_size)
    member[list(chosen)] = 1.0
    return tuple(member.tolist())


def totals(
    answerer: Answerer, terms: Sequence[Term], by: Sequence[str] = (), *, margins: bool = True
) -> Totals:
    """All terms, for every combination of public attributes that one of them has."""
    names = [column.name for column in answerer.cells.schema.public]
    attributes = [names.index(name) for name in by]
    found = [weighed_part(answerer, part, terms, attributes) for part in answerer.cells.parts()]
    keys, places = joined_keys([keys for keys, _ in found])
    rows = keys.shape[1]
    m, p = answerer.design.domain_size, answerer.design.retention
    each = terms[0].values is None
    values = np.zeros((len(terms), m))
    values[:, 0] = 1.0  # every value has the same moments
    if not each:
        values = np.array([term.values for term in terms])
    sums = None
    groups, trials, cut = np.zeros((3, rows))
    low, high = np.full(rows, np.inf), np.full(rows, -np.inf)
    for (_, items), place in zip(found, places, strict=True):
        row = place[items.row]
        summed = summed_rows(items, row, rows, None if each else values)
        sums = summed if sums is None else added_sums(sums, summed)
        groups += np.bincount(row, minlength=rows)
        trials += np.bincount(row, weights=items.cube.trials[items.group], minlength=rows)
        cut += np.bincount(row, weights=items.cut, minlength=rows)
        np.minimum.at(low, row, items.low)
        np.maximum.at(high, row, items.high)
    assert sums is not None
    estimates = total_estimates(sums, values, p)
    covariances = total_covariances(sums, values, p)
    alone = covariances
    if answerer.margins is not None and margins and rows:
        weighed = [
            (items, place[items.row]) for (_, items), place in zip(found, places, strict=True)
        ]
        combined = _with_margins(answerer.margins, weighed, rows, values, each=each)
        estimates, covariances = estimates + combined[0], combined[1]
    repeat = m if each else 1
    return Totals(
        keys=np.repeat(keys, repeat, axis=1),
        values=np.tile(np.arange(m), rows) if each else None,
        estimates=estimates,
        covariances=covariances,
        alone=alone,
        records=sums.records,
        groups=np.repeat(groups, repeat),
        trials=np.repeat(trials, repeat),
        cut=np.repeat(cut, repeat),
        low=np.repeat(np.where(groups > 0, low, 0.0), repeat),
        high=np.repeat(np.where(groups > 0, high, 0.0), repeat),
    )


def weighed_part(
    answerer: Answerer, part: Cube, terms: Sequence[Term], attributes: Sequence[int]
) -> tuple[Ints, Items]:
    """The combinations in one part of the cells, and the weights of its groups."""
    weights = np.zeros((len(terms), part.groups))
    numbers: dict[int, Floats] = {}
    masks: dict[int, Flags] = {}
    for i, term in enumerate(terms):
        if id(term.selected) not in masks:
            masks[id(term.selected)] = answerer.mask(term.selected, part)
        inside = masks[id(term.selected)]
        for number in (term.number, term.present):
            if number is not None:
                if id(number) not in numbers:
                    numbers[id(number)] = number.of(part)
                inside = inside & ~np.isnan(numbers[id(number)])
        own = 1.0 if term.number is None else np.nan_to_num(numbers[id(term.number)])
        masks[-1 - i] = inside
        weights[i] = np.where(inside, own, 0.0)
    some = np.any([masks[-1 - i] for i in range(len(terms))], axis=0)
    keys, selection = combinations(part, attributes, some)
    return keys, _items(part, selection, weights)


def _items(part: Cube, selection: Ints, weights: Floats) -> Items:
    """Groups with their weights; of protection groups, the mean weight of their records."""
    inside = np.flatnonzero(selection >= 0)
    if not isinstance(part, ProtectedCube):
        never = np.zeros(inside.size, dtype=bool)
        own = weights[0][inside]
        return Items(part, selection[inside], inside, weights[:, inside], never, own, own)
    parts = part.parts_in(selection)
    pair = selection[inside] * part.whole.groups + part.within[inside]
    place = np.searchsorted(parts.selection * part.whole.groups + parts.group, pair)
    records, size = part.records[inside], part.whole.records[parts.group]

    def mean(of: Floats) -> Floats:
        return np.asarray(np.bincount(place, weights=of * records, minlength=size.size) / size)

    means = np.stack([mean(own[inside]) for own in weights])
    squares = np.stack([mean(own[inside] ** 2) for own in weights])
    cut = np.any(squares - means**2 > _EVEN * squares, axis=0)
    low, high = np.full(size.size, np.inf), np.full(size.size, -np.inf)
    np.minimum.at(low, place, weights[0][inside])
    np.maximum.at(high, place, weights[0][inside])
    spread = Spread(place, records, weights[:, inside])
    return Items(part.whole, parts.selection, parts.group, means, cut, low, high, spread)


def joined_keys(parts: list[Ints]) -> tuple[Ints, list[Ints]]:
    """All combinations, and where those of each part are among them."""
    if len(parts) == 1:
        return parts[0], [np.arange(parts[0].shape[1])]
    stacked = np.concatenate(parts, axis=1)
    if stacked.shape[0] == 0:
        return stacked[:, :1], [np.zeros(keys.shape[1], dtype=np.int64) for keys in parts]
    keys, place = np.unique(stacked, axis=1, return_inverse=True)
    ends = np.cumsum([part.shape[1] for part in parts])[:-1]
    return keys, np.split(place.reshape(-1), ends)


def added_sums(one: TotalSums, other: TotalSums) -> TotalSums:
    """The sums over two parts, row by row."""
    return TotalSums(*(a + b for a, b in zip(one.columns(), other.columns(), strict=True)))


def _pairs(terms: int) -> Iterator[tuple[int, int]]:
    for i in range(terms):
        for j in range(terms):
            yield i, j


def summed_rows(items: Items, row: Ints, rows: int, values: Floats | None) -> TotalSums:
    """Sum groups into rows; without values, cells into rows by sensitive value."""
    cube, terms = items.cube, items.weights.shape[0]
    n, scale = cube.records.astype(np.float64), cube.scale
    sampled = cube.sampled
    if values is None:
        return _summed_by_value(items, row, rows)
    # Totals of the same values share their sums over the cells of a group.
    same = {i: next(j for j in range(i + 1) if (values[j] == values[i]).all())
            for i in range(terms)}  # fmt: skip
    first = {i: _by_group(cube, values[i]) for i in set(same.values())}
    second: dict[tuple[int, int], tuple[Floats, Floats]] = {}
    for i, j in _pairs(terms):
        a, b = sorted((same[i], same[j]))
        if (a, b) not in second:
            moment = _by_group(cube, values[a] * values[b])
            share = moment / n if cube.coins else moment / n - first[a] * first[b] / n**2
            second[a, b] = moment, cube.uneven * share
    shape = (rows, terms, terms)
    products, cross, scaled, in_products, in_cross, in_scaled, squares, uneven = (
        np.zeros(shape) for _ in range(8)
    )
    group, inside = items.group, sampled[items.group]
    some, group_in = np.flatnonzero(inside), items.group[inside]

    def add(target: Floats, i: int, j: int, weight: Floats) -> None:
        target[:, i, j] = np.bincount(row, weights=weight, minlength=rows)

    def add_in(target: Floats, i: int, j: int, weight: Floats) -> None:
        if some.size:
            target[:, i, j] = np.bincount(row[some], weights=weight, minlength=rows)

    for i, j in _pairs(terms):
        both = items.weights[i] * items.weights[j]
        weight = both * scale[group]
        own = first[same[i]]
        add(cross, i, j, weight * own[group])
        add_in(in_cross, i, j, weight[some] * own[group_in])
        if j < i:
            for target in (products, scaled, in_products, in_scaled, squares, uneven):
                target[:, i, j] = target[:, j, i]
            continue
        a, b = sorted((same[i], same[j]))
        moment, copies = second[a, b]
        add(products, i, j, weight * moment[group])
        add(scaled, i, j, weight * n[group])
        add(uneven, i, j, both * copies[group])
        add_in(in_products, i, j, weight[some] * moment[group_in])
        add_in(in_scaled, i, j, weight[some] * n[group_in])
        add_in(squares, i, j, weight[some] * scale[group_in])
    observed = [np.bincount(row, weights=u * first[same[i]][group], minlength=rows)
                for i, u in enumerate(items.weights)]  # fmt: skip
    records = [np.bincount(row, weights=u * n[group], minlength=rows) for u in items.weights]
    return TotalSums(
        np.stack(observed, axis=1), np.stack(records, axis=1), products, cross, scaled,
        in_products, in_cross, in_scaled, squares, uneven,
    )  # fmt: skip


def _by_group(cube: Cube, values: Floats) -> Floats:
    """Σ_x O_gx b(x) of every group."""
    total = np.bincount(cube.group, weights=values[cube.value] * cube.count, minlength=cube.groups)
    return np.asarray(total, dtype=np.float64)


def _summed_by_value(items: Items, row: Ints, rows: int) -> TotalSums:
    """The same for the indicator of each value: the rows are rows x values, from the cells."""
    cube, terms, m = items.cube, items.weights.shape[0], items.cube.schema.domain_size
    n, scale, sampled = cube.records.astype(np.float64), cube.scale, cube.sampled
    starts = np.searchsorted(cube.group, np.arange(cube.groups + 1))
    length = np.diff(starts)[items.group]
    item = np.repeat(np.arange(items.group.size), length)
    step = np.arange(item.size) - np.repeat(np.cumsum(length) - length, length)
    cell = np.repeat(starts[:-1][items.group], length) + step
    slot, size = row[item] * m + cube.value[cell], rows * m
    count = cube.count[cell].astype(np.float64)
    cell_group = cube.group[cell]
    share = count / n[cell_group]
    copies = cube.uneven[cell_group] * (share if cube.coins else share * (1.0 - share))
    cell_scale, cell_in = scale[cell_group], sampled[cell_group]
    group, inside = items.group, sampled[items.group]

    def by_cell(weight: Floats) -> Floats:
        return np.bincount(slot, weights=weight, minlength=size).astype(np.float64)

    def by_row(weight: Floats) -> Floats:
        total = np.bincount(row, weights=weight, minlength=rows).astype(np.float64)
        return np.repeat(total, m)

    shape = (size, terms, terms)
    products, scaled, in_products, in_scaled, squares, uneven = (np.zeros(shape) for _ in range(6))
    for i, j in _pairs(terms):
        if j < i:
            continue
        both = items.weights[i] * items.weights[j]
        weight = both * scale[group]
        on_cells = both[item]
        scaled_count = on_cells * cell_scale * count
        found = (
            (products, by_cell(scaled_count)),
            (in_products, by_cell(scaled_count * cell_in)),
            (uneven, by_cell(on_cells * copies)),
            (scaled, by_row(weight * n[group])),
            (in_scaled, by_row(weight * n[group] * inside)),
            (squares, by_row(weight * scale[group] * inside)),
        )
        for target, one in found:
            target[:, i, j] = target[:, j, i] = one
    observed = np.stack([by_cell(u[item] * count) for u in items.weights], axis=1)
    records = np.stack([by_row(u * n[group]) for u in items.weights], axis=1)
    # Of an indicator, E and its square are the same.
    return TotalSums(
        observed, records, products, products, scaled,
        in_products, in_products, in_scaled, squares, uneven,
    )  # fmt: skip


def _with_margins(
    margins: PreparedMargins,
    parts: list[tuple[Items, Ints]],
    rows: int,
    values: Floats,
    *,
    each: bool,
) -> tuple[Floats, Floats]:
    """What margins add to the estimates, and the covariances with them."""
    m = values.shape[1]
    most = max(items.cube.groups for items, _ in parts)
    many = max(1, _DENSE // (most * values.shape[0]))
    added, covariances = [], []
    for start in range(0, rows, many):
        some = np.arange(start, min(start + many, rows))
        found = []
        for value in range(m) if each else (0,):
            own = np.zeros_like(values) if each else values
            if each:
                own[:, value] = 1.0
            found.append(_combined(margins, parts, some, own))
        # Values vary fastest.
        added.append(np.stack([one for one, _ in found], axis=1).reshape(-1, values.shape[0]))
        shape = (-1, values.shape[0], values.shape[0])
        covariances.append(np.stack([two for _, two in found], axis=1).reshape(shape))
    return np.concatenate(added), np.concatenate(covariances)


def _combined(
    margins: PreparedMargins, parts: list[tuple[Items, Ints]], some: Ints, values: Floats
) -> tuple[Floats, Floats]:
    """The same for some rows and one set of values per term."""
    design, terms = margins.design, values.shape[0]
    p, m = design.retention, design.domain_size
    centred = values - values.mean(axis=1, keepdims=True)
    spread = centred @ centred.T
    # The variance of one trial, with the frequencies of the whole table.
    one_trial = ((1.0 - p) * (centred**2 @ (p * margins.shares + replacement_probability(p, m)))
                 + p * replacement_probability(p, m) * np.diag(spread)) / p**2  # fmt: skip
    noise = margins.variance * (values @ values.T if design.sampling.coins else spread)
    dense = []
    unknown = np.zeros((terms, some.size, margins.rows))
    for items, row in parts:
        inside = np.flatnonzero((row >= some[0]) & (row <= some[-1]))
        weights = np.zeros((terms, some.size, items.cube.groups))
        weights[:, row[inside] - some[0], items.group[inside]] = items.weights[:, inside]
        dense.append(weights)
        known = items.cube.scale * items.cube.records
        for column in margins.rows_of(items.cube).T:
            at = np.flatnonzero(column >= 0)
            use = np.zeros((at.size, margins.rows))
            use[np.arange(at.size), column[at]] = known[at]
            unknown += weights[:, :, at] @ use
    taken = margins.spectrum.weights(unknown, one_trial[:, None], np.diag(noise)[:, None])
    added = np.einsum("krj,jk->rk", taken, margins.distance @ values.T)
    covariances = np.einsum("krj,lrj->rkl", taken, taken) * noise
    sums = None
    for (items, _), weights in zip(parts, dense, strict=True):
        padded = np.pad(taken, ((0, 0), (0, 0), (0, 1)))
        left = weights - sum(padded[:, :, rows] for rows in margins.rows_of(items.cube).T)
        none = np.zeros(0)
        every = np.tile(np.arange(items.cube.groups), some.size)
        row = np.repeat(np.arange(some.size), items.cube.groups)
        whole = Items(items.cube, row, every, left.reshape(terms, -1), none, none, none)
        summed = summed_rows(whole, row, some.size, values)
        sums = summed if sums is None else added_sums(sums, summed)
    assert sums is not None
    return added, covariances + total_covariances(sums, values, p)
