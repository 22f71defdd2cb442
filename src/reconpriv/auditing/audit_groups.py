"""Audit: every micro group against a policy, before anything is published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reconpriv.auditing.audit_report import AuditReport
from reconpriv.auditing.classes import ClassPart, EquivalenceClasses
from reconpriv.auditing.single_records import K, SingleRecords, check_k
from reconpriv.auditing.verdicts import GroupVerdict, judge_worst, verdicts_of
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.columns.schema import Schema
from reconpriv.errors import PolicyError
from reconpriv.policy.exposure import largest_exposed
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import sample_limits
from reconpriv.protect.margins.planned import (
    NO_MARGIN_PLAN,
    UNCOUNTED,
    CostPart,
    MarginPlan,
    TrialLimits,
    margin_cost,
)
from reconpriv.theory.arrays import Floats, Ints

Ranked = tuple[float, GroupVerdict]
"""How far a group is above its s_g, and its verdict."""

# The counts that a report has by the same names.
_REPORTED = ("records", "groups", "violating_groups", "violating_records", "exposed_groups",
             "unattainable_groups", "cells")  # fmt: skip


@dataclass(frozen=True)
class AuditPart:
    """The audit of some of the groups; ``counts`` are figures that add up, by name.

    ``classes`` are the same records by their micro groups, if these are judged as well.
    """

    counts: Counter[str]
    distribution: Ints
    worst: Sequence[Ranked]
    margins: CostPart
    classes: tuple[ClassPart, ...] = ()


def audit_part(
    batches: Iterable[CellBatch],
    schema: Schema,
    policy: Policy,
    worst: int,
    k: int = K,
    counted: TrialLimits = UNCOUNTED,
    overall: Floats | None = None,
) -> AuditPart:
    """Test some of the groups and keep the ``worst``, those furthest above their s_g.

    Groups come whole and in canonical order; ``schema`` is that of protection groups. ``counted``
    are the limits of trials with margins, if there are any. ``overall`` are the shares of the
    sensitive values in the whole table; without them, equivalence classes are not judged.
    """
    if worst < 0:
        raise PolicyError(f"The number of worst groups cannot be negative; got {worst}.")
    check_k(k)
    sampled = policy.sampling_rule.samples and policy.can_sample
    counts: Counter[str] = Counter()
    distribution = np.zeros((64, 2), dtype=np.int64)
    found: list[Ranked] = []
    margins, classes = CostPart(), []
    for micro in batches:
        if overall is not None:
            classes.append(ClassPart.of(micro, overall))
        batch = micro.whole
        limits, private = judge_worst(batch, policy, schema.domain_size, worst)
        sizes = batch.sizes
        octave = np.frexp(sizes.astype(np.float64))[1] - 1
        distribution[:, 0] += np.bincount(octave, minlength=64)
        distribution[:, 1] += np.bincount(octave, weights=sizes, minlength=64).astype(np.int64)
        with np.errstate(divide="ignore"):
            excess = sizes / limits
        least = found[-1][0] if len(found) == worst and found else -1.0
        some = _furthest(excess, worst)
        some = some[excess[some] >= least]
        if some.size:
            verdicts = verdicts_of(batch.take(some), limits[some], private[some], schema, policy)
            found = _worst_of([*found, *zip(excess[some].tolist(), verdicts, strict=True)], worst)
        most = sample_limits(batch, policy, schema.domain_size) if sampled else sizes
        counts.update(
            records=int(sizes.sum()),
            groups=batch.groups,
            violating_groups=int((~private).sum()),
            violating_records=int(sizes[~private].sum()),
            exposed_groups=int((largest_exposed(batch, policy) > 0.0).sum()),
            unattainable_groups=int(((sizes > most) & (most < 1.0)).sum()),
            below_k=int(sizes[sizes < k].sum()),
            cells=batch.count.size,
        )
        margins += counted.cost(batch)
    return AuditPart(counts, distribution, found, margins, tuple(classes))


def _worst_of(found: Iterable[Ranked], how_many: int) -> list[Ranked]:
    """The groups furthest above their s_g; in a tie, the first in canonical order."""

    def place(entry: Ranked) -> tuple[Any, ...]:
        values = entry[1].public.values()
        return -entry[0], *((True,) if value is None else (False, value) for value in values)

    return sorted(found, key=place)[:how_many]


def _furthest(excess: Floats, how_many: int) -> Ints:
    if how_many == 0:
        return np.empty(0, dtype=np.int64)
    if excess.size <= how_many:
        return np.arange(excess.size)
    threshold = np.partition(excess, -how_many)[-how_many]
    above = np.flatnonzero(excess > threshold)
    level = np.flatnonzero(excess == threshold)[: how_many - above.size]
    return np.sort(np.concatenate([above, level]))


def join_parts(
    parts: Sequence[AuditPart],
    schema: Schema,
    policy: Policy,
    *,
    worst: int,
    k: int = K,
    plan: MarginPlan = NO_MARGIN_PLAN,
) -> AuditReport:
    """One report of all parts; the order of the parts does not matter."""
    counts = sum((part.counts for part in parts), Counter[str]())
    distribution = np.sum([part.distribution for part in parts], axis=0).tolist()
    found = _worst_of((entry for part in parts for entry in part.worst), worst)
    costs = (part.margins for part in parts)
    reported: dict[str, Any] = {name: counts[name] for name in _REPORTED}
    classes = [one for part in parts for one in part.classes]
    return AuditReport(
        policy=policy,
        sensitive=schema.sensitive.name,
        public=tuple(column.name for column in schema.public),
        domain_size=schema.domain_size,
        size_distribution=tuple(
            (1 << i, (2 << i) - 1, *row) for i, row in enumerate(distribution) if row[0]
        ),
        worst=tuple(verdict for _, verdict in found),
        single_records=SingleRecords(
            k=k,
            records=counts["records"],
            unique=distribution[0][1],
            below_k=counts["below_k"],
            policy=policy,
            domain_size=schema.domain_size,
        ),
        margins=margin_cost(plan, costs, policy.unprotected().publishable(), schema),
        classes=EquivalenceClasses.of(classes) if classes else None,
        **reported,
    )
