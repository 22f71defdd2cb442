"""What the audit says about single groups: private or not, and how exposed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.columns.schema import Schema, Value, json_value
from reconpriv.policy.exposure import exposed_cells, frequency_of, largest_exposed, most_exposed
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import private_as_they_are, private_sizes, sample_limits
from reconpriv.protect.margins.planned import UNCOUNTED, TrialLimits
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.counts import ObservedCount
from reconpriv.theory.tails.exact import exact_tails

_SMALL_GROUP = 256
_AT_ONCE = 64


def judge(batch: CellBatch, policy: Policy, domain_size: int) -> tuple[Floats, Flags]:
    """s_g of every group and whether it is private: |g| <= s_g (Theorems 4 and 5)."""
    limits = private_sizes(batch, policy, domain_size)
    return limits, batch.sizes <= limits


def judge_worst(
    batch: CellBatch, policy: Policy, domain_size: int, worst: int
) -> tuple[Floats, Flags]:
    """The same, with s_g computed only for candidates for the ``worst`` groups.

    These are furthest above their s_g. The others get their size, which is too large.
    """
    if not (policy.tail_bound.exact and policy.sampling_rule.counts_margins and policy.can_sample):
        return judge(batch, policy, domain_size)
    private = private_as_they_are(batch, policy, domain_size)
    sizes = batch.sizes.astype(np.float64)
    limits = np.where(largest_exposed(batch, policy) > 0.0, sizes, np.inf)
    # What every group of a class may have, each of them may have.
    least = sample_limits(batch, policy, domain_size)
    with np.errstate(divide="ignore"):
        most = np.where(private, 0.0, sizes / least)
        order = np.argsort(-most, kind="stable")[: int((~private).sum())]
        above = np.zeros(0)
        while order.size and worst and not (above.size == worst and above[0] > most[order[0]]):
            some, order = np.sort(order[:_AT_ONCE]), order[_AT_ONCE:]
            limits[some] = private_sizes(batch.take(some), policy, domain_size)
            above = np.sort(np.concatenate([above, sizes[some] / limits[some]]))[-worst:]
    return limits, private


@dataclass(frozen=True)
class GroupVerdict:
    """One micro group: for the publisher's eyes only.

    ``value`` is the exposed value with the largest frequency; in a tie, the first in the domain. In
    a group without an exposed value, it is the most frequent one.
    """

    public: dict[str, Value]
    size: int
    largest_frequency: float
    value: Value
    largest_private_size: float
    private: bool
    bound_above: float
    bound_below: float
    upper_tail: float
    lower_tail: float

    def as_dict(self) -> dict[str, Any]:
        """The verdict for JSON; an infinite size is null."""
        limit = self.largest_private_size
        return {
            "public": {name: json_value(value) for name, value in self.public.items()},
            "size": self.size,
            "largest_frequency": self.largest_frequency,
            "value": json_value(self.value),
            "largest_private_size": limit if math.isfinite(limit) else None,
            "private": self.private,
            "bound": {"above": self.bound_above, "below": self.bound_below},
            "exact_tails": {"above": self.upper_tail, "below": self.lower_tail},
        }


def verdicts_of(
    batch: CellBatch, limits: Floats, private: Flags, schema: Schema, policy: Policy
) -> list[GroupVerdict]:
    """The verdict on each group of a small batch."""
    facts = _facts(batch, limits, private, policy, schema.domain_size)
    tails = smallest_exact_tails(batch, policy, schema.domain_size, few=True)
    rows = zip(*(column.tolist() for column in (*facts.values(), *tails)), strict=True)
    return [
        GroupVerdict(
            batch.public_values(group, schema), size, frequency, schema.domain[value], *rest
        )
        for group, (size, frequency, value, *rest) in enumerate(rows)
    ]


def verdict_table(
    batch: CellBatch,
    schema: Schema,
    policy: Policy,
    *,
    exact: bool = False,
    counted: TrialLimits = UNCOUNTED,
) -> pa.Table:
    """Every group with its verdict and, on request, the exact tails.

    ``counted`` adds its trials, those that margins are worth about it, and both together.
    """
    m = schema.domain_size
    columns: dict[str, Any] = {
        column.name: encoded.values.take(pa.array(encoded.codes))
        for column, encoded in zip(schema.public, batch.public, strict=True)
    }
    facts: dict[str, Any] = _facts(batch, *judge(batch, policy, m), policy, m)
    facts["largest_value"] = pa.array(schema.domain).take(pa.array(facts["largest_value"]))
    if exact:
        facts["upper_tail"], facts["lower_tail"] = smallest_exact_tails(batch, policy, m)
    for name, values in (facts | counted.beside(batch)).items():
        free = name
        while free in columns:
            free = f"reconpriv_{free}"
        columns[free] = values
    return pa.table(columns)


def _facts(
    batch: CellBatch, limits: Floats, private: Flags, policy: Policy, domain_size: int
) -> dict[str, Any]:
    """The figures of every group by name; its most exposed value as a place in the domain."""
    value = most_exposed(batch, policy)
    above, below = smallest_bounds(batch, policy, domain_size)
    return {
        "size": batch.sizes,
        "largest_frequency": frequency_of(batch, value),
        "largest_value": value,
        "largest_private_size": limits,
        "private": private,
        "bound_above": above,
        "bound_below": below,
    }


def smallest_bounds(batch: CellBatch, policy: Policy, domain_size: int) -> tuple[Floats, Floats]:
    """The smallest U and L at |g| trials over the exposed values of each group (Eq. 8).

    Both are 1 in a group without an exposed value.
    """
    count = _count(batch.sizes[batch.group_of_cell], batch.count, policy, domain_size)
    exposed = exposed_cells(batch, policy)
    tails = (np.where(exposed, tail, 1.0) for tail in policy.tail_bound.tails(count))
    upper, lower = (np.minimum.reduceat(tail, batch.starts) for tail in tails)
    return upper, lower


def smallest_exact_tails(
    batch: CellBatch, policy: Policy, domain_size: int, *, few: bool = False
) -> tuple[Floats, Floats]:
    """The exact tails of each group's most exposed value, whose smaller tail is smallest.

    Both are 1 in a group without an exposed value. ``few`` is for some groups only.
    """
    candidates = _tail_candidates(batch, policy, domain_size)
    group = batch.group_of_cell[candidates]
    # Many cells share (|g|, count); the tails of each pair are computed once.
    pairs, where = np.unique(
        np.stack([batch.sizes[group], batch.count[candidates]]), axis=1, return_inverse=True
    )
    count = _count(pairs[0], pairs[1], policy, domain_size)
    upper, lower = (tail[where.reshape(-1)] for tail in exact_tails(count, few=few))
    order = np.lexsort((np.minimum(upper, lower), group))
    present, first = np.unique(group, return_index=True)
    smallest = np.ones((2, batch.groups))
    smallest[:, present] = np.stack([upper, lower])[:, order[first]]
    return smallest[0], smallest[1]


def _tail_candidates(batch: CellBatch, policy: Policy, domain_size: int) -> Ints:
    """The exposed cells that may have their group's smallest tail: all of them in a small group.

    In a large one, a tail falls off exponentially with the distance of the tolerance in standard
    deviations, so a value that is two of them closer to its mean than another has the larger tail.
    """
    sizes = batch.sizes[batch.group_of_cell]
    count = _count(sizes, batch.count, policy, domain_size)
    exposed = exposed_cells(batch, policy)
    distance = count.trials * count.shift / np.sqrt(count.trials * count.trial_variance)
    distance = np.where(exposed, distance, 0.0)
    furthest = np.maximum.reduceat(distance, batch.starts)[batch.group_of_cell]
    return np.flatnonzero(exposed & ((sizes <= _SMALL_GROUP) | (distance >= furthest - 2.0)))


def _count(sizes: Ints, counts: Ints, policy: Policy, domain_size: int) -> ObservedCount:
    return ObservedCount(
        sizes.astype(np.float64), counts / sizes, policy.retention, domain_size, policy.tolerance
    )
