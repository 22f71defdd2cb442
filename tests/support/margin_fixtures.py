"""Small tables with margins, and slow answers that share no code with the code under test."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import reconpriv as rp
from reconpriv.answers.answerer import Answerer
from reconpriv.ask.plan import plan_queries
from reconpriv.ask.workload import Workload, mean_relative_error
from reconpriv.cells.cell_batch import CellBatch, Encoded
from reconpriv.cells.cube import Cube, collect
from reconpriv.columns.schema import Column, Kind, Schema
from reconpriv.estimate.counts import Design
from reconpriv.estimate.measurements import prepare_margins
from reconpriv.protect.margins.plan import planned_margins
from reconpriv.protect.margins.planned import MarginPlan
from reconpriv.protect.publish_cube import published_cube
from reconpriv.research.margins import combined_estimates


def margin_key(number: int) -> rp.Key:
    return rp.Key(hashlib.sha256(f"margin tests {number}".encode()).digest())


def schema_of(public: int, domain: int, kind: Kind = Kind.INTEGER) -> Schema:
    """Public columns a, b, c, … and a sensitive one with the values 0, 1, …"""
    return Schema(
        tuple(Column("abcdefgh"[i], kind) for i in range(public)),
        Column("s", Kind.INTEGER),
        tuple(range(domain)),
    )


def batch_of(rows: Sequence[tuple], schema: Schema, types: Sequence[Any] = ()) -> CellBatch:
    """The cells of some records: public values…, then the position of the sensitive value.

    Sorted as engines sort: missing values last, NaN just before them.
    """
    counted = sorted(Counter(rows).items(), key=lambda one: tuple(map(_order, one[0])))
    groups = list(dict.fromkeys(row[:-1] for row, _ in counted))
    public = []
    for i in range(len(schema.public)):
        values = list(dict.fromkeys(group[i] for group in groups))
        values.sort(key=_order)
        codes = np.array([values.index(group[i]) for group in groups], dtype=np.int32)
        public.append(Encoded(codes, pa.array(values, types[i] if types else pa.int64())))
    place = [groups.index(row[:-1]) for row, _ in counted]
    return CellBatch(
        tuple(public),
        np.searchsorted(place, np.arange(len(groups))),
        np.array([row[-1] for row, _ in counted]),
        np.array([count for _, count in counted]),
    )


def _order(value: Any) -> tuple:
    nan = isinstance(value, float) and math.isnan(value)
    return (value is None, nan, 0 if value is None or nan else value)


def skewed_rows(groups: Sequence[int], domain: int, seed: int) -> list[tuple]:
    """Records by so many values of each public column; some groups are large and skewed."""
    rng = np.random.default_rng(seed)
    rows = []
    usual = rng.dirichlet(np.full(domain, 2.0))
    for values in np.ndindex(*groups):
        size = int(rng.choice([3, 12, 40, 150]))
        own = rng.dirichlet(8 * usual + 0.05)
        rows += [(*values, int(v)) for v in rng.choice(domain, size, p=own)]
    return rows


@dataclass(frozen=True)
class InMemory:
    """A publication with margins that never touched a disk."""

    raw: Cube
    policy: rp.Policy
    plan: MarginPlan
    cube: Cube
    design: Design

    @property
    def answerer(self) -> Answerer:
        """What an analyst asks."""
        return answering(self, self.design)


def answering(made: InMemory, design: Design) -> Answerer:
    """The same release, read with a design of one's choice."""
    prepared = prepare_margins(made.cube, made.plan.published, made.plan.variance, design)
    return Answerer(made.cube, design, prepared)


def margins_of(raw: Cube, policy: rp.Policy, key: rp.Key | None = None) -> MarginPlan:
    """The margins of a table whose cells are in memory."""
    return planned_margins(raw.map_groups, policy, raw.schema, key)


def publish_in_memory(raw: Cube, policy: rp.Policy, key: rp.Key) -> InMemory:
    plan = margins_of(raw, policy, key)
    cube = published_cube(raw, policy, key, plan.counted)
    design = Design(policy.retention, raw.schema.domain_size, policy.sampling)
    return InMemory(raw, policy, plan, cube, design)


def cube_of(rows: Sequence[tuple], schema: Schema) -> Cube:
    return collect([batch_of(rows, schema)], schema)


def simulated_errors(
    raw: Cube, workload: Workload, policy: rp.Policy, keys: Sequence[rp.Key]
) -> np.ndarray:
    """The mean relative error of a workload on a release with each key.

    The estimates are those of a release, without the intervals that take longest.
    """
    truth = Answerer(raw, Design.of(policy, raw.schema))
    plan = plan_queries(raw, [truth.select(None, query) for query in workload.queries])
    found = []
    for key in keys:
        made = publish_in_memory(raw, policy, key)
        counts = combined_estimates(plan, made.cube, made.answerer.measurements)
        found.append(mean_relative_error(counts, workload.answers))
    return np.array(found)
