"""Differencing (Definition 2): a group estimated as X minus Y, which Lemma 2 says gains nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from reconpriv.attacks.attacked_table import (
    AttackedTable,
    Publication,
    count_of,
    dense,
)
from reconpriv.attacks.best_estimate import combined_counts
from reconpriv.attacks.micro import KNEW
from reconpriv.attacks.result import AttackResult, Row
from reconpriv.attacks.statistics import rate, relative_error
from reconpriv.core.cube import Cube
from reconpriv.core.margin_tables import index_rows, table_name
from reconpriv.errors import InputError
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.reconstruction import global_estimate, reconstruct_frequency

# Estimates that agree on paper differ by rounding: a difference of counts over a small group.
ROUNDING = 1e-9


def attack_differencing(target: AttackedTable, *, worst: int = 5) -> AttackResult:
    """X: the groups that agree except on one public attribute. Y: X without the group itself."""
    table: list[Row] = []
    pieces = list(_pieces(target))
    for attribute, groups, local, global_, mixed in pieces:
        truth = target.frequency[groups]
        public = target.schema.public
        name = "any: X is the whole table" if attribute < 0 else public[attribute].name
        table.append(
            {
                "X ignores": name,
                "groups": groups.size,
                "largest |global - local|": float(np.abs(global_ - local).max()),
                "median error local": float(np.median(relative_error(local, truth))),
                "median error global": float(np.median(relative_error(global_, truth))),
                "Y of another release": float(np.median(relative_error(mixed, truth))),
            }
        )
    result = _result(target, tuple(table), [piece[1:] for piece in pieces], worst)
    return result if target.policy.margins is None else _with_margins(target, result)


def pairs_of_estimates(target: AttackedTable) -> tuple[Floats, Floats, Floats]:
    """Local, global and mixed estimates for every pair that ignores one attribute."""
    kept = [piece[2:] for piece in _pieces(target) if piece[0] >= 0]
    local, global_, mixed = (np.concatenate(column) for column in zip(*kept, strict=True))
    return local, global_, mixed


def _pieces(target: AttackedTable) -> Iterator[tuple[int, Ints, Floats, Floats, Floats]]:
    """For each attribute that X ignores (-1: all): the groups, and their three estimates."""
    published, stranger = target.publish(0), target.publish(1)
    violating = target.violating()
    target.only(violating)  # raises an error if there is none
    for attribute in target.steps("grouping", range(-1, len(target.schema.public))):
        keys = families(target, attribute)
        groups = violating[np.bincount(keys)[keys[violating]] > 1]
        if groups.size:
            yield attribute, groups, *_estimates(target, published, stranger, keys, groups)


def families(target: AttackedTable, attribute: int) -> Ints:
    """A number for each group, the same for groups that agree on all public attributes but one."""
    if attribute < 0:
        return np.zeros(target.batch.groups, dtype=np.int64)
    keys = np.zeros(target.batch.groups, dtype=np.int64)
    for i, column in enumerate(target.batch.public):
        if i != attribute:
            # Renumbered at each step, so products over many attributes do not overflow.
            wide = keys * len(column.values) + column.codes
            keys = np.unique(wide, return_inverse=True)[1].reshape(-1)
    return keys


def _estimates(
    target: AttackedTable, published: Cube, stranger: Cube, keys: Ints, groups: Ints
) -> tuple[Floats, Floats, Floats]:
    """Local and global F' of each group's most frequent value, and one with another release's Y."""
    top = target.values[groups]
    local = _reconstruct(target, dense(published, groups)[np.arange(groups.size), top],
                         published.records[groups])  # fmt: skip
    x_count, x_size = _family_sums(published, keys, groups, top)
    own_count, own_size = _own(published, groups, top)
    other_count, other_size = _family_sums(stranger, keys, groups, top)
    stranger_count, stranger_size = _own(stranger, groups, top)
    x = _reconstruct(target, x_count, x_size)
    y_size = x_size - own_size
    y = _reconstruct(target, x_count - own_count, y_size)
    strange = _reconstruct(target, other_count - stranger_count, other_size - stranger_size)
    return local, global_estimate(x, x_size, y, y_size), global_estimate(x, x_size, strange, y_size)


def _own(cube: Cube, groups: Ints, top: Ints) -> tuple[Floats, Floats]:
    values = np.zeros(cube.groups, dtype=np.int64)
    values[groups] = top
    return count_of(cube, values)[groups].astype(np.float64), cube.records[groups].astype(
        np.float64
    )


def _family_sums(cube: Cube, keys: Ints, groups: Ints, top: Ints) -> tuple[Floats, Floats]:
    """O* of each group's value, and |X|, over its family."""
    m = cube.schema.domain_size
    families_ = int(keys.max()) + 1
    counts = np.bincount(
        keys[cube.group] * m + cube.value, weights=cube.count, minlength=families_ * m
    )
    sizes = np.bincount(keys, weights=cube.records, minlength=families_)
    of_value = counts.astype(np.float64)[keys[groups] * m + top]
    return of_value, sizes.astype(np.float64)[keys[groups]]


def _reconstruct(target: AttackedTable, count: Floats | Ints, size: Floats | Ints) -> Floats:
    return reconstruct_frequency(
        count,
        size,
        retention=target.policy.retention,
        domain_size=target.schema.domain_size,
    )


def _result(
    target: AttackedTable,
    table: tuple[Row, ...],
    pieces: list[tuple[Ints, Floats, Floats, Floats]],
    worst: int,
) -> AttackResult:
    if not pieces:
        raise InputError(
            "No two groups differ in just one public attribute, so there is nothing to subtract.",
            hint="Differencing needs a table of at least two groups.",
        )
    groups, local, global_, mixed = (np.concatenate(column) for column in zip(*pieces, strict=True))
    truth, epsilon = target.frequency[groups], target.policy.epsilon
    top = target.values[groups]
    gained = relative_error(global_, truth) < relative_error(local, truth) - ROUNDING
    largest = float(np.abs(global_ - local).max())
    # A group belongs to several families; it is shown once.
    once = np.unique(groups, return_index=True)[1]
    order = once[np.argsort(relative_error(global_, truth)[once], kind="stable")][:worst]
    return AttackResult(
        name="differencing",
        knew=KNEW,
        success=rate(gained, "estimates as X - Y that are nearer to f than the local one"),
        baseline=rate(
            relative_error(target.overall[top], truth) <= epsilon,
            "groups whose f the whole table predicts within ε",
        ),
        control=rate(
            relative_error(mixed, truth) <= relative_error(local, truth),
            "Y taken from another release: estimates nearer to f than the local one",
        ),
        figures={
            "pairs of X and Y": groups.size,
            "local within ε": rate(relative_error(local, truth) <= epsilon, "local within ε"),
            "global within ε": rate(relative_error(global_, truth) <= epsilon, "global within ε"),
            "largest difference": largest,
        },
        table=table,
        worst=tuple(
            {
                "group": target.describe(int(groups[i])),
                "size": int(target.batch.sizes[groups[i]]),
                "largest f": float(truth[i]),
                "estimate": float(global_[i]),
            }
            for i in order
        ),
        verdict=f"X minus Y equals the local estimate to {largest:.0e} for all {groups.size:,}"
        " pairs: differencing within one release gains nothing (Lemma 2).",
    )


def _with_margins(target: AttackedTable, result: AttackResult) -> AttackResult:
    """The same with margins: as a better X, and in X and Y alike."""
    published = target.publication(0)
    groups = target.violating()
    best, through = _through_margins(target, published, groups)
    truth, epsilon = target.frequency[groups], target.policy.epsilon
    error = relative_error(best, truth)
    median = float(np.median(error))
    rows: list[Row] = [{**row, "median error best": median} for row in result.table]
    for name, inside, found in _margin_rows(target, published, groups):
        if inside.any():
            rows.append(
                {
                    **dict.fromkeys(rows[0]),
                    "X ignores": f"all but {name}: X is a margin",
                    "groups": int(inside.sum()),
                    "median error global": float(np.median(relative_error(found, truth)[inside])),
                    "median error best": float(np.median(error[inside])),
                }
            )
    largest = float(np.abs(through - best).max())
    return replace(
        result,
        figures={
            **result.figures,
            "best unbiased estimate within ε": rate(error <= epsilon, "violating groups"),
            "X - Y with margins in both, largest difference from it": largest,
        },
        table=tuple(rows),
        verdict=f"{result.verdict} A margin as X is part of the best unbiased estimate,"
        f" which is within ε in {np.mean(error <= epsilon):.1%}; X minus Y, both estimated from"
        f" records and margins, equals it to {largest:.0e}.",
    )


def _through_margins(
    target: AttackedTable, published: Publication, groups: Ints
) -> tuple[Floats, Floats]:
    """The best estimate of each group, and X - Y of the best estimates of X and Y.

    X is the whole table: the larger it is, the more a difference would differ.
    """
    top, sizes = target.values[groups], target.batch.sizes
    best, through = np.zeros(groups.size), np.zeros(groups.size)
    for value in np.unique(top).tolist():
        _, counts = combined_counts(target, published, value)
        wanted = top == value
        some = groups[wanted]
        x, y = counts.sum(), counts.sum() - counts[some]
        x_size, y_size = sizes.sum(), sizes.sum() - sizes[some]
        best[wanted] = counts[some] / sizes[some]
        through[wanted] = global_estimate(x / x_size, x_size, y / y_size, y_size)
    return best, through


def _margin_rows(
    target: AttackedTable, published: Publication, groups: Ints
) -> Iterator[tuple[str, Flags, Floats]]:
    """For each margin table: which groups it has a row of, and F' as that row minus the others."""
    top, sizes = target.values[groups], target.batch.sizes
    alone = {
        value: combined_counts(target, published, value)[0] for value in np.unique(top).tolist()
    }
    for table in published.tables:
        (index,) = index_rows([table], target.schema)
        row = index.rows(target.batch.public, target.schema)
        inside = row[groups] >= 0
        estimate = np.full(groups.size, np.nan)
        for i in np.flatnonzero(inside).tolist():
            others = row == row[groups[i]]
            others[groups[i]] = False
            count = table.counts[row[groups[i]], top[i]] - alone[int(top[i])][others].sum()
            estimate[i] = count / sizes[groups[i]]
        yield table_name(table.attributes, target.schema), inside, estimate
