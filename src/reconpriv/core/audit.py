"""Audit: every micro group against a policy, before anything is published."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reconpriv.core.cells import CellBatch
from reconpriv.core.column_risk import ColumnRisk, Figures, effect_sentence, identifier_sentence
from reconpriv.core.exposure import (
    exposed_cells,
    frequency_of,
    largest_exposed,
    most_exposed,
)
from reconpriv.core.margin_cost import (
    CostPart,
    MarginCost,
    cost_of,
    margin_cost,
    trials_beside_margins,
)
from reconpriv.core.protection import Settled
from reconpriv.core.sample_sizes import private_sizes, sample_limits
from reconpriv.core.single_records import SingleRecords, check_k
from reconpriv.errors import PolicyError
from reconpriv.messages.readable import Readable
from reconpriv.messages.remedies import Advice
from reconpriv.policy import Policy
from reconpriv.promise import REFUSED, promise
from reconpriv.schema import Schema, Value, json_value
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.counts import ObservedCount
from reconpriv.theory.exact import exact_tails

if TYPE_CHECKING:
    from reconpriv.core.margin_limits import CountedLimits
    from reconpriv.core.margin_plan import MarginPlan

_SMALL_GROUP = 256
K = 5


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
        """Plain values, for JSON."""
        return {
            "public": {name: json_value(value) for name, value in self.public.items()},
            "size": self.size,
            "largest_frequency": self.largest_frequency,
            "value": json_value(self.value),
            "largest_private_size": _finite(self.largest_private_size),
            "private": self.private,
            "bound": {"above": self.bound_above, "below": self.bound_below},
            "exact_tails": {"above": self.upper_tail, "below": self.lower_tail},
        }


@dataclass(frozen=True, repr=False)
class AuditReport(Readable):
    """What a publication of this table risks, in three parts: groups, single records, columns.

    The figures for groups say what plain randomisation would let an adversary reconstruct.
    ``size_distribution`` counts groups and records by size: 1, 2-3, 4-7, … (powers of two).
    ``error`` is the analysts' expected mean relative error on the standard workload, from the
    records alone. If the effect of each column was not computed, ``columns_note`` says why.
    ``exposed_groups`` have an exposed value; in ``unattainable_groups`` no number of trials is
    private. ``margins`` is there if the policy asks for margins: what they cost the groups. With
    ``protection`` the groups are protection groups.
    """

    policy: Policy
    sensitive: str
    public: tuple[str, ...]
    records: int
    groups: int
    domain_size: int
    violating_groups: int
    violating_records: int
    exposed_groups: int
    unattainable_groups: int
    size_distribution: tuple[tuple[int, int, int, int], ...]
    worst: tuple[GroupVerdict, ...]
    single_records: SingleRecords
    cells: int
    columns: tuple[ColumnRisk, ...] = ()
    columns_note: str = ""
    error: float | None = None
    margins: MarginCost | None = None
    warnings: tuple[str, ...] = field(default=())
    protection: Settled | None = None

    @property
    def private(self) -> bool:
        """Whether every group is (ε, δ)-reconstruction-private under perturbation alone."""
        return self.violating_groups == 0

    @property
    def passes(self) -> bool:
        """Whether every group is private and no nearly unique column is kept unknowingly."""
        return self.private and not any(column.refused for column in self.columns)

    @property
    def standing(self) -> str:
        """``bad`` if it does not pass, ``fair`` if somebody stands out, otherwise ``good``."""
        if not self.passes:
            return "bad"
        exposed = self.single_records.below_k or any(c.identifier for c in self.columns)
        return "fair" if exposed else "good"

    @property
    def figures(self) -> Figures:
        """The figures to compare with those of the table without a column."""
        single = self.single_records
        return Figures(
            self.groups,
            self.violating_groups,
            self.violating_records,
            single.unique,
            single.below_k,
        )

    @property
    def group_word(self) -> str:
        """What its groups are called."""
        return "group" if self.protection is None else "protection group"

    @property
    def groups_sentence(self) -> str:
        """Whether groups could be reconstructed."""
        if not self.exposed_groups:
            return f"No {self.group_word} has an exposed value, so this policy protects nobody."
        if self.private:
            return (
                f"Every {self.group_word} meets this policy with perturbation alone, without"
                " sampling."
            )
        return (
            f"Not private: {self.violating_groups:,} of {self.groups:,} {self.group_word}s, with"
            f" {self.violating_records:,} of {self.records:,} records, could be reconstructed if"
            " the table were only perturbed." + self._treatment
        )

    @property
    def _treatment(self) -> str:
        """What publishing does about groups that could be reconstructed."""
        if not self.policy.sampling.samples:
            return ""
        if not self.unattainable_groups:
            return " Publishing samples those groups."
        if self.policy.unattainable == "refuse":
            return (
                " Publishing with this policy is refused: no number of trials is private in"
                f" {self.unattainable_groups:,} {self.group_word}s."
            )
        return (
            " Publishing samples those groups; nothing is promised for"
            f" {self.unattainable_groups:,} of them, in which no number of trials is private."
        )

    @property
    def promise(self) -> str:
        """What a publication with this policy would promise."""
        refused = self.unattainable_groups and self.policy.unattainable == "refuse"
        if refused or not self.policy.can_sample:
            return REFUSED
        return promise(self.policy.as_dict())

    @property
    def columns_sentence(self) -> str:
        """Which columns are nearly unique, and what leaving one out would do."""
        return Advice(
            identifier_sentence(self.columns, self.records) or "No public column is nearly unique.",
            effect_sentence(self.columns, self.figures),
            self.columns_note,
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict by part: the worst first, then the others if they add anything."""
        single = self.single_records
        parts = [self.groups_sentence, single.sentence]
        if single.below_k and (self.private or single.unique > self.violating_records):
            parts.reverse()
        if any(column.refused for column in self.columns):
            before = "Not ready to publish: "
            parts.insert(0, identifier_sentence(self.columns, self.records, before=before))
        elif found := identifier_sentence(self.columns, self.records):
            parts.append(found)
        if self.margins is not None:
            parts.append(self.margins.sentence)
        return tuple(parts)

    @property
    def sentence(self) -> str:
        """The verdict, never more comforting than the worst of its parts, which comes first."""
        return Advice(*self.sentences)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "records": self.records,
            "groups": self.groups,
            "domain_size": self.domain_size,
            "violating_groups": self.violating_groups,
            "violating_records": self.violating_records,
            "exposed_groups": self.exposed_groups,
            "unattainable_groups": self.unattainable_groups,
            "private": self.private,
            "verdict": self._verdict(),
            "policy": self.policy.as_dict(),
            "promise": self.promise,
            "sensitive": self.sensitive,
            "public": list(self.public),
            "size_distribution": [
                {"from": low, "to": high, "groups": groups, "records": records}
                for low, high, groups, records in self.size_distribution
            ],
            "worst": [verdict.as_dict() for verdict in self.worst],
            **({} if self.margins is None else {"margins": self.margins.as_dict()}),
            **({} if self.protection is None else {"protection": self.protection.as_dict()}),
            "warnings": list(self.warnings),
        }

    def _verdict(self) -> dict[str, Any]:
        return {
            "sentence": self.sentence,
            "passes": self.passes,
            "groups": {
                "sentence": self.groups_sentence,
                "private": self.private,
                "groups": self.groups,
                "violating_groups": self.violating_groups,
                "violating_records": self.violating_records,
            },
            "single_records": self.single_records.as_dict(),
            "columns": {
                "sentence": self.columns_sentence,
                "identifiers": [column.name for column in self.columns if column.identifier],
                "error": self.error,
                "each": [column.as_dict() for column in self.columns],
            },
        }


def judge(batch: CellBatch, policy: Policy, domain_size: int) -> tuple[Floats, Flags]:
    """s_g of every group and whether it is private: |g| <= s_g (Theorems 4 and 5)."""
    limits = private_sizes(batch, policy, domain_size)
    return limits, batch.sizes <= limits


@dataclass(frozen=True)
class AuditPart:
    """What the audit of some of the groups found; parts are joined into a report."""

    records: int
    groups: int
    violating_groups: int
    violating_records: int
    exposed_groups: int
    unattainable_groups: int
    below_k: int
    cells: int
    distribution: Ints
    worst: tuple[tuple[float, GroupVerdict], ...]
    margins: CostPart = field(default_factory=CostPart)


def audit_groups(
    batches: Iterable[CellBatch], schema: Schema, policy: Policy, *, worst: int = 10, k: int = K
) -> AuditReport:
    """Test every group and keep the worst ones, those furthest above their s_g."""
    part = audit_part(batches, schema, policy, worst, k)
    return join_parts([part], schema, policy, worst=worst, k=k)


def audit_part(
    batches: Iterable[CellBatch],
    schema: Schema,
    policy: Policy,
    worst: int,
    k: int = K,
    counted: CountedLimits | None = None,
) -> AuditPart:
    """Test some of the groups, which come whole and in canonical order.

    ``counted`` are the limits of trials with margins, if the policy asks for any.
    """
    if worst < 0:
        raise PolicyError(f"The number of worst groups cannot be negative; got {worst}.")
    check_k(k)
    records = groups = violating_groups = violating_records = below_k = cells = 0
    exposed_groups = unattainable_groups = 0
    sampled = policy.sampling.samples and policy.can_sample
    distribution = np.zeros((64, 2), dtype=np.int64)
    found: list[tuple[float, GroupVerdict]] = []
    margins = CostPart()
    for batch in batches:
        limits, private = judge(batch, policy, schema.domain_size)
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
            verdicts = _verdicts(batch.take(some), limits[some], private[some], schema, policy)
            found = _worst_of([*found, *zip(excess[some].tolist(), verdicts, strict=True)], worst)
        records += int(sizes.sum())
        groups += batch.groups
        violating_groups += int((~private).sum())
        violating_records += int(sizes[~private].sum())
        exposed_groups += int((largest_exposed(batch, policy) > 0.0).sum())
        if sampled:
            most = sample_limits(batch, policy, schema.domain_size)
            unattainable_groups += int(((sizes > most) & (most < 1.0)).sum())
        below_k += int(sizes[sizes < k].sum())
        cells += batch.count.size
        if counted is not None:
            margins += cost_of(batch, counted)
    return AuditPart(
        records,
        groups,
        violating_groups,
        violating_records,
        exposed_groups,
        unattainable_groups,
        below_k,
        cells,
        distribution,
        tuple(found),
        margins,
    )


def _worst_of(
    found: Iterable[tuple[float, GroupVerdict]], how_many: int
) -> list[tuple[float, GroupVerdict]]:
    """The groups furthest above their s_g; in a tie, the first in canonical order."""

    def place(entry: tuple[float, GroupVerdict]) -> tuple[Any, ...]:
        values = entry[1].public.values()
        return -entry[0], *(
            (value is None, value) if value is not None else (True,) for value in values
        )

    return sorted(found, key=place)[:how_many]


def join_parts(
    parts: Sequence[AuditPart],
    schema: Schema,
    policy: Policy,
    *,
    worst: int,
    k: int = K,
    plan: MarginPlan | None = None,
) -> AuditReport:
    """One report of all parts; the order of the parts does not matter."""
    records = sum(part.records for part in parts)
    distribution = np.sum([part.distribution for part in parts], axis=0)
    found = _worst_of((entry for part in parts for entry in part.worst), worst)
    margins = None
    if plan is not None:
        costs = (part.margins for part in parts)
        margins = margin_cost(plan, costs, policy.publishable(), schema)
    return AuditReport(
        policy=policy,
        sensitive=schema.sensitive.name,
        public=tuple(column.name for column in schema.public),
        records=records,
        groups=sum(part.groups for part in parts),
        domain_size=schema.domain_size,
        violating_groups=sum(part.violating_groups for part in parts),
        violating_records=sum(part.violating_records for part in parts),
        exposed_groups=sum(part.exposed_groups for part in parts),
        unattainable_groups=sum(part.unattainable_groups for part in parts),
        size_distribution=tuple(
            (1 << i, (2 << i) - 1, int(row[0]), int(row[1]))
            for i, row in enumerate(distribution)
            if row[0]
        ),
        worst=tuple(verdict for _, verdict in found),
        single_records=SingleRecords.of(
            k=k,
            records=records,
            unique=int(distribution[0, 1]),
            below_k=sum(part.below_k for part in parts),
            policy=policy,
            domain_size=schema.domain_size,
        ),
        cells=sum(part.cells for part in parts),
        margins=margins,
    )


def verdict_table(
    batch: CellBatch,
    schema: Schema,
    policy: Policy,
    *,
    exact: bool = False,
    counted: CountedLimits | None = None,
) -> pa.Table:
    """Every group with its verdict and, if asked for, the exact tails.

    ``counted`` adds its trials, those that margins are worth about it, and both together.
    """
    m = schema.domain_size
    limits, private = judge(batch, policy, m)
    values = most_exposed(batch, policy)
    columns: dict[str, Any] = {
        column.name: encoded.values.take(pa.array(encoded.codes))
        for column, encoded in zip(schema.public, batch.public, strict=True)
    }
    facts: dict[str, Any] = {
        "size": batch.sizes,
        "largest_frequency": frequency_of(batch, values),
        "largest_value": pa.array(schema.domain).take(pa.array(values)),
        "largest_private_size": limits,
        "private": private,
    }
    facts["bound_above"], facts["bound_below"] = smallest_bounds(batch, policy, m)
    if exact:
        facts["upper_tail"], facts["lower_tail"] = smallest_exact_tails(batch, policy, m)
    if counted is not None:
        facts |= trials_beside_margins(batch, counted)
    for name, values in facts.items():
        free = name
        while free in columns:
            free = f"reconpriv_{free}"
        columns[free] = values
    return pa.table(columns)


def smallest_bounds(batch: CellBatch, policy: Policy, domain_size: int) -> tuple[Floats, Floats]:
    """The smallest U and the smallest L over the exposed values of each group (Eq. 8).

    They are at |g| trials. Both are 1 in a group without an exposed value.
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
    candidates = _worth_looking_at(batch, policy, domain_size)
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


def _worth_looking_at(batch: CellBatch, policy: Policy, domain_size: int) -> Ints:
    """The exposed cells that may have their group's smallest tail: all of them in a small group.

    In a large one, a tail falls off exponentially with the distance of ε in standard deviations, so
    a value that is two of them closer to its mean than another has the larger tail.
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
        sizes.astype(np.float64), counts / sizes, policy.retention, domain_size, policy.epsilon
    )


def _furthest(excess: Floats, how_many: int) -> Ints:
    if how_many == 0:
        return np.empty(0, dtype=np.int64)
    if excess.size <= how_many:
        return np.arange(excess.size)
    threshold = np.partition(excess, -how_many)[-how_many]
    above = np.flatnonzero(excess > threshold)
    level = np.flatnonzero(excess == threshold)[: how_many - above.size]
    return np.sort(np.concatenate([above, level]))


def _verdicts(
    batch: CellBatch, limits: Floats, private: Flags, schema: Schema, policy: Policy
) -> list[GroupVerdict]:
    """What to say about each group of a batch, which has few."""
    upper, lower = smallest_exact_tails(batch, policy, schema.domain_size, few=True)
    above, below = smallest_bounds(batch, policy, schema.domain_size)
    value, sizes = most_exposed(batch, policy), batch.sizes
    frequency = frequency_of(batch, value)
    return [
        GroupVerdict(
            public=batch.public_values(group, schema),
            size=int(sizes[group]),
            largest_frequency=float(frequency[group]),
            value=schema.domain[int(value[group])],
            largest_private_size=float(limits[group]),
            private=bool(private[group]),
            bound_above=float(above[group]),
            bound_below=float(below[group]),
            upper_tail=float(upper[group]),
            lower_tail=float(lower[group]),
        )
        for group in range(batch.groups)
    ]


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None
