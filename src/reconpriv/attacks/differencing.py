"""Differencing (Definition 2): a group estimated as X minus Y, which Lemma 2 says gains nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable, Publication, count_of, frequency_in
from reconpriv.attacks.best_estimate import EstimatedCounts, estimated_counts
from reconpriv.attacks.result import KNEW, AttackResult, Row
from reconpriv.attacks.statistics import rate, relative_error
from reconpriv.cells.cube import Cube
from reconpriv.errors import InputError
from reconpriv.protect.margins.tables import index_rows, table_name
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.estimation.reconstruction import global_estimate, reconstruct_frequency

# Estimates that agree on paper differ by rounding: a difference of counts over a small group.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Differences:
    """Some groups, each in a larger set X that ignores one public attribute (-1: all of them).

    ``local`` is F' of a group's own records, ``global_`` that of X - Y, and ``mixed`` the same with
    Y taken from another release.
    """

    attribute: int
    groups: Ints
    local: Floats
    global_: Floats
    mixed: Floats


def attack_differencing(target: AttackedTable, *, worst: int = 5) -> AttackResult:
    """X: the groups that agree except on one public attribute. Y: X without the group itself."""
    exposed = target.exposed  # an error if there is none
    published, other = target.publication(0), target.publish(1)
    pieces = list(_differences(target, published.cube, other))
    if not pieces:
        raise InputError(
            "No two groups differ in just one public attribute, so there is nothing to subtract.",
            hint="Differencing needs a table of at least two groups.",
        )
    groups, local, global_, mixed = _joined(pieces)
    largest, tolerance = float(np.abs(global_ - local).max()), target.policy.tolerance
    truth = target.frequency[groups]
    errors = [relative_error(one, truth) for one in (local, global_, mixed)]
    # A group belongs to several families; it is shown once.
    once = np.unique(groups, return_index=True)[1]
    order = once[np.argsort(errors[1][once], kind="stable")][:worst]
    everywhere = target.overall[target.values[groups]]
    result = AttackResult(
        name="differencing",
        knew=KNEW,
        success=rate(
            errors[1] < errors[0] - ROUNDING,
            "estimates as X - Y that are nearer to f than the local one",
        ),
        baseline=rate(
            relative_error(everywhere, truth) <= tolerance,
            "groups whose f the whole table predicts within the tolerance",
        ),
        control=rate(
            errors[2] <= errors[0],
            "Y taken from another release: estimates nearer to f than the local one",
        ),
        figures={
            "pairs of X and Y": groups.size,
            "local within tolerance": rate(errors[0] <= tolerance, "local within tolerance"),
            "global within tolerance": rate(errors[1] <= tolerance, "global within tolerance"),
            "largest difference": largest,
        },
        table=tuple(_row(target, one) for one in pieces),
        worst=target.rows(groups[order], {"estimate": global_[order]}),
        verdict=f"X minus Y equals the local estimate to {largest:.0e} for all {groups.size:,}"
        " pairs: differencing within one release gains nothing (Lemma 2).",
    )
    return _with_margins(target, exposed, published, result) if published.tables else result


def pairs_of_estimates(target: AttackedTable) -> tuple[Floats, Floats, Floats]:
    """Local, global and mixed estimates for every pair that ignores one attribute."""
    found = _differences(target, target.publish(0), target.publish(1))
    _, local, global_, mixed = _joined([one for one in found if one.attribute >= 0])
    return local, global_, mixed


def _joined(pieces: list[Differences]) -> tuple[Ints, Floats, Floats, Floats]:
    names = ("groups", "local", "global_", "mixed")
    groups, *found = (np.concatenate([getattr(one, name) for one in pieces]) for name in names)
    return groups, found[0], found[1], found[2]


def _differences(target: AttackedTable, published: Cube, other: Cube) -> Iterator[Differences]:
    """For each attribute that X ignores: the violating groups that are not all of their X."""
    p, m, violating = target.policy.retention, target.schema.domain_size, target.violating()
    local = frequency_in(published, target.values, p)

    def reconstructed(count: Floats, size: Floats) -> Floats:
        return reconstruct_frequency(count, size, retention=p, domain_size=m)

    for attribute in target.steps("grouping", range(-1, len(target.schema.public))):
        keys = families(target, attribute)
        groups = violating[np.bincount(keys)[keys[violating]] > 1]
        if not groups.size:
            continue
        x_count, x_size, count, size = _sums(target, published, keys, groups)
        x, y_size = reconstructed(x_count, x_size), x_size - size
        y = reconstructed(x_count - count, y_size)
        x_count, x_size, count, size = _sums(target, other, keys, groups)
        strange = reconstructed(x_count - count, x_size - size)
        x_size = y_size + published.records[groups]
        yield Differences(
            attribute,
            groups,
            local[groups],
            global_estimate(x, x_size, y, y_size),
            global_estimate(x, x_size, strange, y_size),
        )


def families(target: AttackedTable, attribute: int) -> Ints:
    """A number for each group, the same for groups that agree on all public attributes but one."""
    keys = np.zeros(target.batch.groups, dtype=np.int64)
    for i, column in enumerate(target.batch.public):
        if attribute not in (-1, i):
            # Renumbered at each step, so products over many attributes do not overflow.
            wide = keys * len(column.values) + column.codes
            keys = np.unique(wide, return_inverse=True)[1].reshape(-1)
    return keys


def _sums(
    target: AttackedTable, cube: Cube, keys: Ints, groups: Ints
) -> tuple[Floats, Floats, Floats, Floats]:
    """O* of each group's value and |X| over its family; and the same of the group alone."""
    m, top = cube.schema.domain_size, target.values
    counts = np.bincount(keys[cube.group] * m + cube.value, weights=cube.count)
    counts = np.pad(counts, (0, (int(keys.max()) + 1) * m - counts.size))
    sizes = np.bincount(keys, weights=cube.records).astype(np.float64)
    own = count_of(cube, top)[groups].astype(np.float64)
    family, size = keys[groups], cube.records[groups].astype(np.float64)
    return counts[family * m + top[groups]].astype(np.float64), sizes[family], own, size


def _row(target: AttackedTable, one: Differences) -> Row:
    truth, public = target.frequency[one.groups], target.schema.public
    return {
        "X ignores": "any: X is the whole table"
        if one.attribute < 0
        else public[one.attribute].name,
        "groups": one.groups.size,
        "largest |global - local|": np.abs(one.global_ - one.local).max(),
        "median error local": np.median(relative_error(one.local, truth)),
        "median error global": np.median(relative_error(one.global_, truth)),
        "Y of another release": np.median(relative_error(one.mixed, truth)),
    }


def _with_margins(
    target: AttackedTable, exposed: AttackedTable, published: Publication, result: AttackResult
) -> AttackResult:
    """The same with margins: as a better X, and in X and Y alike."""
    groups, top = target.violating(), exposed.values
    counts = estimated_counts(target, published, np.unique(top).tolist())
    pairs = list(zip(top.tolist(), groups.tolist(), strict=True))
    own = np.array([counts[value].combined[group] for value, group in pairs])
    x = np.array([counts[value].combined.sum() for value, _ in pairs])
    sizes, every = target.batch.sizes[groups], target.batch.sizes.sum()
    best = own / sizes
    # X is the whole table: the larger it is, the more a difference would differ.
    through = global_estimate(x / every, every, (x - own) / (every - sizes), every - sizes)
    error, truth = relative_error(best, exposed.frequency), exposed.frequency
    rows: list[Row] = [{**row, "median error best": np.median(error)} for row in result.table]
    for name, inside, found in _margin_rows(target, published, groups, counts):
        if inside.any():
            rows.append(
                {
                    **dict.fromkeys(rows[0]),
                    "X ignores": f"all but {name}: X is a margin",
                    "groups": np.count_nonzero(inside),
                    "median error global": np.median(relative_error(found, truth)[inside]),
                    "median error best": np.median(error[inside]),
                }
            )
    within, largest = exposed.within(best, "violating groups"), np.abs(through - best).max()
    return replace(
        result,
        figures={
            **result.figures,
            "best unbiased estimate within the tolerance": within,
            "X - Y with margins in both, largest difference from it": largest,
        },
        table=tuple(rows),
        verdict=f"{result.verdict} A margin as X is part of the best unbiased estimate,"
        f" which is within the tolerance in {within.share:.1%}; X minus Y, both estimated from"
        f" records and margins, equals it to {largest:.0e}.",
    )


def _margin_rows(
    target: AttackedTable, published: Publication, groups: Ints, counts: dict[int, EstimatedCounts]
) -> Iterator[tuple[str, Flags, Floats]]:
    """For each margin table: which groups it has a row of, and F' as that row minus the others."""
    top, sizes = target.values[groups], target.batch.sizes[groups]
    for table in published.tables:
        (index,) = index_rows([table], target.schema)
        row = index.rows(target.batch.public, target.schema)
        there, mine = row >= 0, row[groups]
        others = np.zeros(groups.size)
        for value, found in counts.items():
            of_row = np.bincount(row[there], weights=found.alone[there], minlength=table.rows)
            others = np.where(top == value, of_row[mine] - found.alone[groups], others)
        estimate = (table.counts[mine, top] - others) / sizes
        yield table_name(table.attributes, target.schema), mine >= 0, estimate
