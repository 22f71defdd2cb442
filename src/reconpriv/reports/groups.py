"""What the publisher's report shows of the groups, from one pass over them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reconpriv.core.audit import judge
from reconpriv.core.cells import CellBatch, python_values
from reconpriv.core.sample_sizes import sample_limits
from reconpriv.policy import Policy
from reconpriv.schema import Schema, Value

Floats = NDArray[np.float64]

_POINTS = 1_500


@dataclass(frozen=True)
class Share:
    """A public value: its groups and records, and those that violate."""

    value: Value
    groups: int
    records: int
    violating_groups: int
    violating_records: int


@dataclass(frozen=True)
class GroupFacts:
    """Shapes are (|g|, s_g, groups, private); classes are (from, to, records, trials)."""

    shapes: tuple[tuple[int, float, int, bool], ...]
    shapes_left_out: int
    shares: dict[str, tuple[Share, ...]]
    classes: tuple[tuple[int, int, int, int], ...]
    sampled_groups: int
    sampled_records: int
    trials: int


@dataclass
class _Tally:
    shapes: dict[tuple[int, float], int] = field(default_factory=dict)
    endless: int = 0
    shares: list[dict[Value, NDArray[np.int64]]] = field(default_factory=list)
    classes: NDArray[np.int64] = field(default_factory=lambda: np.zeros((64, 2), dtype=np.int64))
    sampled_groups: int = 0
    sampled_records: int = 0
    trials: int = 0


def group_facts(
    batches: Iterable[CellBatch], schema: Schema, policy: Policy, *, values: int = 6
) -> GroupFacts:
    """Judge every group and count by shape, by public value and by size."""
    tally = _Tally(shares=[{} for _ in schema.public])
    for batch in batches:
        limits, private = judge(batch, policy, schema.domain_size)
        _add_shapes(tally, batch.sizes, limits)
        _add_shares(tally, batch, private, schema)
        _add_trials(tally, batch, sample_limits(batch, policy, schema.domain_size))
    shapes = sorted(tally.shapes.items(), key=lambda item: item[0][1] / item[0][0])
    kept = _thinned([(size, s, count, size <= s) for (size, s), count in shapes])
    shares = {
        column.name: _largest(found, values)
        for column, found in zip(schema.public, tally.shares, strict=True)
    }
    return GroupFacts(
        shapes=tuple(kept),
        shapes_left_out=len(shapes) - len(kept) + tally.endless,
        shares=shares,
        classes=tuple(
            (1 << i, (2 << i) - 1, int(row[0]), int(row[1]))
            for i, row in enumerate(tally.classes)
            if row[0]
        ),
        sampled_groups=tally.sampled_groups,
        sampled_records=tally.sampled_records,
        trials=tally.trials,
    )


def _add_shapes(tally: _Tally, sizes: NDArray[np.int64], limits: Floats) -> None:
    drawn = np.isfinite(limits) & (limits > 0)
    tally.endless += int((~drawn).sum())
    pairs, counts = np.unique(np.stack([sizes[drawn], limits[drawn]]), axis=1, return_counts=True)
    for size, limit, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
        key = (int(size), limit)
        tally.shapes[key] = tally.shapes.get(key, 0) + count


def _add_shares(
    tally: _Tally, batch: CellBatch, private: NDArray[np.bool_], schema: Schema
) -> None:
    sizes = batch.sizes
    weights = (np.ones_like(sizes), sizes, ~private, np.where(private, 0, sizes))
    for column, encoded, found in zip(schema.public, batch.public, tally.shares, strict=True):
        known = python_values(encoded.values, column.name)
        counts = np.stack(
            [np.bincount(encoded.codes, weights=w, minlength=len(known)) for w in weights], axis=1
        ).astype(np.int64)
        for value, row in zip(known, counts, strict=True):
            if row[0]:
                found[value] = found[value] + row if value in found else row


def _add_trials(tally: _Tally, batch: CellBatch, limits: Floats) -> None:
    sizes = batch.sizes
    sampled = sizes > limits
    trials = np.where(sampled, np.maximum(limits, 1.0), sizes)
    octave = np.frexp(sizes.astype(np.float64))[1] - 1
    for column, weights in enumerate((sizes, trials)):
        counts = np.bincount(octave, weights=weights, minlength=64)
        tally.classes[:, column] += np.rint(counts).astype(np.int64)
    tally.sampled_groups += int(sampled.sum())
    tally.sampled_records += int(sizes[sampled].sum())
    tally.trials += round(float(trials.sum()))


def _largest(found: dict[Value, NDArray[np.int64]], how_many: int) -> tuple[Share, ...]:
    """The values with the most records in violating groups."""
    order = sorted(found.items(), key=lambda item: (-item[1][3], -item[1][1], str(item[0])))
    return tuple(Share(value, *(int(n) for n in row)) for value, row in order[:how_many])


def _thinned(
    shapes: list[tuple[int, float, int, bool]],
) -> list[tuple[int, float, int, bool]]:
    """No more points than a chart can show: the violating ones first, evenly."""
    if len(shapes) <= _POINTS:
        return shapes
    step = len(shapes) / _POINTS
    return [shapes[int(i * step)] for i in range(_POINTS)]
