"""What the publisher's report shows of the groups, from one pass over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconpriv.auditing.verdicts import judge
from reconpriv.cells.cell_batch import CellBatch, python_values
from reconpriv.columns.schema import Schema, Value
from reconpriv.policy.policy import Policy
from reconpriv.policy.sample_sizes import sample_limits
from reconpriv.protect.margins.planned import UNCOUNTED, TrialLimits, own_trials
from reconpriv.theory.arrays import Flags, Floats, Ints

_POINTS = 1_500


@dataclass(frozen=True)
class Share:
    """A public value with its groups and records, and those that violate."""

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


class GroupTally:
    """Judges every group that passes, and counts by shape, by public value and by size."""

    def __init__(self, schema: Schema, policy: Policy, counted: TrialLimits = UNCOUNTED) -> None:
        """Start with nothing counted; ``counted`` are the limits of trials with margins."""
        self._schema, self._policy, self._counted = schema, policy, counted
        self._shapes: dict[tuple[int, float], int] = {}
        self._endless = 0
        self._shares: list[dict[Value, Ints]] = [{} for _ in schema.public]
        self._classes = np.zeros((64, 2), dtype=np.int64)
        self._sampled_groups = self._sampled_records = self._trials = 0

    def add(self, batch: CellBatch) -> None:
        """Take the next batch of whole groups."""
        limits, private = judge(batch, self._policy, self._schema.domain_size)
        self._add_shapes(batch.sizes, limits)
        self._add_shares(batch, private)
        limits = sample_limits(batch, self._policy, self._schema.domain_size)
        self._add_trials(batch, self._counted.lowered(batch, limits))

    def _add_shapes(self, sizes: Ints, limits: Floats) -> None:
        drawn = np.isfinite(limits) & (limits > 0)
        self._endless += int((~drawn).sum())
        pairs, counts = np.unique(
            np.stack([sizes[drawn], limits[drawn]]), axis=1, return_counts=True
        )
        for size, limit, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
            key = (int(size), limit)
            self._shapes[key] = self._shapes.get(key, 0) + count

    def _add_shares(self, batch: CellBatch, private: Flags) -> None:
        sizes = batch.sizes
        weights = (np.ones_like(sizes), sizes, ~private, np.where(private, 0, sizes))
        columns = zip(self._schema.public, batch.public, self._shares, strict=True)
        for column, encoded, found in columns:
            known = python_values(encoded.values, column.name)
            counts = np.stack(
                [np.bincount(encoded.codes, weights=w, minlength=len(known)) for w in weights],
                axis=1,
            ).astype(np.int64)
            for value, row in zip(known, counts, strict=True):
                if row[0]:
                    found[value] = found[value] + row if value in found else row

    def _add_trials(self, batch: CellBatch, limits: Floats) -> None:
        sizes = batch.sizes
        sampled = sizes > limits
        trials = own_trials(sizes, limits)
        octave = np.frexp(sizes.astype(np.float64))[1] - 1
        for column, weights in enumerate((sizes, trials)):
            counts = np.bincount(octave, weights=weights, minlength=64)
            self._classes[:, column] += np.rint(counts).astype(np.int64)
        self._sampled_groups += int(sampled.sum())
        self._sampled_records += int(sizes[sampled].sum())
        self._trials += round(float(trials.sum()))

    def facts(self, *, values: int = 6) -> GroupFacts:
        """What was counted, with at most ``values`` values of each public column."""
        shapes = sorted(self._shapes.items(), key=lambda item: item[0][1] / item[0][0])
        kept = _thinned([(size, s, count, size <= s) for (size, s), count in shapes])
        return GroupFacts(
            shapes=tuple(kept),
            shapes_left_out=len(shapes) - len(kept) + self._endless,
            shares={
                column.name: _largest(found, values)
                for column, found in zip(self._schema.public, self._shares, strict=True)
            },
            classes=tuple(
                (1 << i, (2 << i) - 1, int(row[0]), int(row[1]))
                for i, row in enumerate(self._classes)
                if row[0]
            ),
            sampled_groups=self._sampled_groups,
            sampled_records=self._sampled_records,
            trials=self._trials,
        )


def _largest(found: dict[Value, Ints], how_many: int) -> tuple[Share, ...]:
    """The values with the most records in violating groups."""
    order = sorted(found.items(), key=lambda item: (-item[1][3], -item[1][1], str(item[0])))
    return tuple(Share(value, *(int(n) for n in row)) for value, row in order[:how_many])


def _thinned(shapes: list[tuple[int, float, int, bool]]) -> list[tuple[int, float, int, bool]]:
    """Evenly thinned to what a chart can show, violating ones first."""
    if len(shapes) <= _POINTS:
        return shapes
    step = len(shapes) / _POINTS
    return [shapes[int(i * step)] for i in range(_POINTS)]
