"""Several weighted totals of a release at once, with their covariances: see theory.weighted_totals.

A total is of a selection of groups, a number for each group and a number for each sensitive value.
Totals that share groups covary, whatever they are about; so shares, differences, averages and
quantiles, which are functions of such totals, need nothing else. Margins enter as they do into
counts: their weights are subtracted from those of the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Protocol

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.ask.selections import Selected
from reconpriv.cells.cube import Cube
from reconpriv.estimate.measurements import Measurements
from reconpriv.estimate.public_rows import PublicRows
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.estimation.weighted_totals import (
    TotalSums,
    perturbation_variance,
    total_covariances,
    total_estimates,
)
from reconpriv.theory.perturbation import replacement_probability

_DENSE = 1 << 22  # weights of rows x groups held at once, with margins
_EVEN = 1e-9  # relative spread of a weight within a protection group that is rounding error


class Number(Protocol):
    """A number of each group."""

    def of(self, part: Cube) -> Floats:
        """The number of every group of a part; NaN where it is missing."""
        ...


@dataclass(frozen=True)
class WeightedTotal:
    """Σ u b(x) over the records of a selection (the sensitive part of which is in ``values``).

    ``number`` is u, 1 if there is none; groups in which ``present`` or ``number`` is missing do not
    count. Totals without ``values`` are about each sensitive value by itself.
    """

    selected: Selected
    values: tuple[float, ...] | None
    number: Number | None = None
    present: Number | None = None


@dataclass(frozen=True)
class Totals:
    """Estimates (rows x totals), their covariances, and what they rest on.

    ``records`` is Σ u N of each total, known exactly; ``low`` and ``high`` are the smallest and the
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
class WeightedGroups:
    """Protection groups with the row they are counted in, and their mean weight in each total.

    ``low`` and ``high`` are the smallest and the largest weight of a record in the first total.
    ``entry`` of the micro groups, their ``records`` and their ``own`` weights say how weights
    differ within protection groups; those in which they do are ``cut``.
    """

    cube: Cube
    row: Ints
    group: Ints
    weights: Floats
    cut: Flags
    low: Floats
    high: Floats
    entry: Ints
    records: Ints
    own: Floats

    @classmethod
    def of(cls, part: Cube, selection: Ints, weights: Floats) -> WeightedGroups:
        """The groups of a part, from the row and the weights of its micro groups."""
        held, whole = part.shares(selection), part.whole
        records, own = part.records[held.micro], weights[:, held.micro]
        mean, low = own, own[0]
        high, cut = low, np.zeros(low.size, dtype=bool)
        if whole is not part:
            size = whole.records[held.group]

            def means(of: Floats) -> Floats:
                lines = [np.bincount(held.entry, one * records, size.size) for one in of]
                return np.stack(lines) / size

            mean, squares = means(own), means(own**2)
            cut = np.any(squares - mean**2 > _EVEN * squares, axis=0)
            low, high = np.full(size.size, np.inf), np.full(size.size, -np.inf)
            np.minimum.at(low, held.entry, own[0])
            np.maximum.at(high, held.entry, own[0])
        return cls(
            whole, held.selection, held.group, mean, cut, low, high, held.entry, records, own
        )


def indicator(chosen: Sequence[int] | None, domain_size: int) -> tuple[float, ...]:
    """b(x) of a set of values; of all values if None."""
    if chosen is None:
        return (1.0,) * domain_size
    member = np.zeros(domain_size)
    member[list(chosen)] = 1.0
    return tuple(member.tolist())


def weighted_rows(
    answerer: Answerer, wanted: Sequence[WeightedTotal], by: Sequence[str]
) -> tuple[PublicRows, list[WeightedGroups]]:
    """The combinations of public values that some total has, and the groups of every part."""
    kept: dict[int, Floats] = {}

    def weights(part: Cube) -> Floats:
        """u of every total and group; NaN where a group does not count."""
        if id(part) in kept:
            return kept[id(part)]
        masks: dict[int, Flags] = {}
        numbers: dict[int, Floats] = {}
        lines = []
        for one in wanted:
            if id(one.selected) not in masks:
                masks[id(one.selected)] = answerer.mask(one.selected, part)
            line = np.where(masks[id(one.selected)], 1.0, np.nan)
            for number in filter(None, (one.number, one.present)):
                if id(number) not in numbers:
                    numbers[id(number)] = number.of(part)
                own = numbers[id(number)]
                line = line * own if number is one.number else np.where(np.isnan(own), own, line)
            lines.append(line)
        found = np.stack(lines)
        if part is answerer.cells:
            kept[id(part)] = found
        return found

    rows = answerer.rows(lambda part: np.any(~np.isnan(weights(part)), axis=0), by)
    return rows, [
        WeightedGroups.of(part, rows.of(part), np.nan_to_num(weights(part)))
        for part in answerer.cells.parts()
    ]


def totals(
    answerer: Answerer,
    wanted: Sequence[WeightedTotal],
    by: Sequence[str] = (),
    *,
    margins: bool = True,
) -> Totals:
    """All totals, for every combination of public attributes that one of them has."""
    found, parts = weighted_rows(answerer, wanted, by)
    rows, m, p = found.number, answerer.design.domain_size, answerer.design.retention
    each = wanted[0].values is None
    values = np.zeros((len(wanted), m))
    values[:, 0] = 1.0  # every value has the same moments
    if not each:
        values = np.array([one.values for one in wanted])
    sums = reduce(
        TotalSums.__add__,
        (summed_rows(part, part.row, rows, None if each else values) for part in parts),
    )
    groups, trials, cut = np.zeros((3, rows))
    low, high = np.full(rows, np.inf), np.full(rows, -np.inf)
    for part in parts:
        groups += np.bincount(part.row, minlength=rows)
        trials += np.bincount(part.row, weights=part.cube.trials[part.group], minlength=rows)
        cut += np.bincount(part.row, weights=part.cut, minlength=rows)
        np.minimum.at(low, part.row, part.low)
        np.maximum.at(high, part.row, part.high)
    estimates = total_estimates(sums, values, p)
    covariances = alone = total_covariances(sums, values, p)
    told = answerer.told(margins=margins)
    if told.rows and rows:
        added, covariances = _combined(told, parts, rows, values, each=each)
        estimates = estimates + added
    repeat = m if each else 1
    return Totals(
        keys=np.repeat(found.keys, repeat, axis=1),
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


def summed_rows(some: WeightedGroups, row: Ints, rows: int, values: Floats | None) -> TotalSums:
    """Sum groups into rows; without values, cells into rows by sensitive value.

    Of the indicator of a value, E and its square are the same: the count.
    """
    cube, group, weights = some.cube, some.group, some.weights
    n, scale, sampled = cube.records[group], cube.scale[group], cube.sampled[group]
    terms, m = weights.shape[0], cube.schema.domain_size
    line = [0] * terms
    if values is None:
        cell, unit = cube.cells_of(group)
        slot, repeat = row[unit] * m + cube.value[cell], m
        first = [cube.count[cell].astype(np.float64)]
        second = {(0, 0): first[0]}
    else:
        # Totals of the same values share their sums over the cells of a group.
        distinct, place = np.unique(values, axis=0, return_inverse=True)
        line, unit, slot, repeat = place.reshape(-1).tolist(), np.arange(group.size), row, 1
        first = [_by_group(cube, one)[group] for one in distinct]
        second = {
            (a, b): _by_group(cube, distinct[a] * distinct[b])[group]
            for a in range(len(first))
            for b in range(a, len(first))
        }
    size, uneven = n[unit].astype(np.float64), cube.uneven[group][unit]
    copies = {
        (a, b): uneven
        * (moment / size if cube.coin_flips else moment / size - first[a] * first[b] / size**2)
        for (a, b), moment in second.items()
    }
    found = {name: np.zeros((rows * repeat, terms, terms)) for name in TotalSums.names()[2:]}

    def by_slot(of: Floats) -> Floats:
        return np.bincount(slot, weights=of, minlength=rows * repeat).astype(np.float64)

    def by_row(of: Floats) -> Floats:
        return np.repeat(np.bincount(row, weights=of, minlength=rows), repeat).astype(np.float64)

    for i in range(terms):
        for j in range(terms):
            both = weights[i] * weights[j]
            weight = both * scale
            one = weight[unit]
            at = min(line[i], line[j]), max(line[i], line[j])
            found["cross"][:, i, j] = by_slot(one * first[line[i]])
            if sampled.any():
                inside = np.where(sampled, weight, 0.0)
                found["sampled_cross"][:, i, j] = by_slot(inside[unit] * first[line[i]])
            if j < i:
                continue
            added = {
                "products": by_slot(one * second[at]),
                "scaled": by_row(weight * n),
                "uneven": by_slot(both[unit] * copies[at]),
            }
            if sampled.any():
                added["sampled_products"] = by_slot(inside[unit] * second[at])
                added["sampled_scaled"] = by_row(inside * n)
                added["squares"] = by_row(inside * scale)
            for name, total in added.items():
                found[name][:, i, j] = found[name][:, j, i] = total
    return TotalSums(
        np.stack([by_slot(u[unit] * first[line[i]]) for i, u in enumerate(weights)], axis=1),
        np.stack([by_row(u * n) for u in weights], axis=1),
        **found,
    )


def _by_group(cube: Cube, values: Floats) -> Floats:
    """Σ_x O_gx b(x) of every group."""
    total = np.bincount(cube.group, weights=values[cube.value] * cube.count, minlength=cube.groups)
    return np.asarray(total, dtype=np.float64)


def _combined(
    told: Measurements, parts: list[WeightedGroups], rows: int, values: Floats, *, each: bool
) -> tuple[Floats, Floats]:
    """What margins add to the estimates, and the covariances with them."""
    terms, m = values.shape
    many = max(1, _DENSE // (max(part.cube.groups for part in parts) * terms))
    lines = [values]
    if each:
        lines = [np.tile(one, (terms, 1)) for one in np.eye(m)]
    added, covariances = [], []
    for start in range(0, rows, many):
        some = np.arange(start, min(start + many, rows))
        found = [_combined_rows(told, parts, some, own) for own in lines]
        # Values vary fastest.
        added.append(np.stack([one for one, _ in found], axis=1).reshape(-1, terms))
        covariances.append(np.stack([two for _, two in found], axis=1).reshape(-1, terms, terms))
    return np.concatenate(added), np.concatenate(covariances)


def _combined_rows(
    told: Measurements, parts: list[WeightedGroups], some: Ints, values: Floats
) -> tuple[Floats, Floats]:
    """The same for some rows and one line of values per total."""
    design, terms = told.design, values.shape[0]
    p, m = design.retention, design.domain_size
    t = replacement_probability(p, m)
    centred = values - values.mean(axis=1, keepdims=True)
    spread = centred @ centred.T
    # The variance of one trial, with the frequencies of the whole table.
    second = centred**2 @ (p * told.shares + t)
    one_trial = perturbation_variance(second, np.diag(spread), p, t)
    noise = told.variance * (values @ values.T if design.sampling_rule.coin_flips else spread)
    dense = []
    unknown = np.zeros((terms, some.size, told.rows))
    for part in parts:
        inside = np.flatnonzero((part.row >= some[0]) & (part.row <= some[-1]))
        row, group = part.row[inside] - some[0], part.group[inside]
        weights = np.zeros((terms, some.size, part.cube.groups))
        weights[:, row, group] = part.weights[:, inside]
        dense.append(weights)
        known = (part.cube.scale * part.cube.records)[group]
        incidence = told.incidence(part.cube)
        for i in range(terms):
            own = part.weights[i, inside] * known
            unknown[i] += incidence.sums_by(own, row, some.size, group)
    taken = told.spectrum.weights(unknown, one_trial[:, None], np.diag(noise)[:, None])
    added = np.einsum("krj,jk->rk", taken, told.distance @ values.T)
    covariances = np.einsum("krj,lrj->rkl", taken, taken) * noise
    sums = []
    for part, weights in zip(parts, dense, strict=True):
        left = weights - told.incidence(part.cube).spread(taken)
        every = np.tile(np.arange(part.cube.groups), some.size)
        row = np.repeat(np.arange(some.size), part.cube.groups)
        whole = replace(part, row=row, group=every, weights=left.reshape(terms, -1))
        sums.append(summed_rows(whole, row, some.size, values))
    return added, covariances + total_covariances(reduce(TotalSums.__add__, sums), values, p)
