"""Equivalence classes: the groups of records with the same public values, as others judge them.

k-anonymity, l-diversity and t-closeness are what a disclosure review asks for. They are about micro
groups, whatever groups a policy makes a promise about.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.randomness import Key, Randomness
from reconpriv.columns.schema import Schema
from reconpriv.protect.kernel import group_ids
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.diversity import distance_to_all, distinct_values, effective_values

SMALL = (3, 5, 10)
"""Records in classes smaller than these are counted."""

DEFINITIONS = {
    "group": "the records that agree on all public columns as published (an equivalence class)",
    "k-anonymity": "smallest_group is the largest k for which the table is k-anonymous",
    "distinct l-diversity": "every group has at least l different sensitive values"
    " (Machanavajjhala et al. 2007)",
    "entropy l-diversity": "in every group exp(H) is at least l, where H is the entropy of the"
    " sensitive values with the natural logarithm (Machanavajjhala et al. 2007)",
    "t-closeness": "in every group the distribution of the sensitive values is at a distance of at"
    " most t from that of all records: the earth mover's distance with equal ground distances,"
    " which is the total variation distance (Li et al. 2007)",
    "mean": "the mean over records: each group counts as often as it has records",
    "rounding": "l is rounded down and t up to two decimals, so that neither promises too much",
}


@dataclass(frozen=True)
class ClassPart:
    """What is counted of some of the classes: sums, and extremes, by name."""

    sums: Mapping[str, float]
    least: Mapping[str, float]
    most: float

    @classmethod
    def of(cls, batch: CellBatch, overall: Floats) -> ClassPart:
        """The classes of a batch; ``overall`` are the shares of the values in the whole table."""
        sizes, starts, count = batch.sizes, batch.starts, batch.count
        distinct = distinct_values(starts, count)
        effective = effective_values(starts, count)
        distance = distance_to_all(starts, batch.value, count, overall)
        same = (distinct == 1) & (sizes > 1)
        sums: dict[str, float] = {
            "records": int(sizes.sum()),
            "groups": sizes.size,
            "unique": int((sizes == 1).sum()),
            "one value": int(same.sum()),
            "their records": int(sizes[same].sum()),
            "distinct": float(distinct @ sizes),
            "effective": float(effective @ sizes),
            "distance": float(distance @ sizes),
            **{f"below {k}": int(sizes[sizes < k].sum()) for k in SMALL},
        }
        extremes = {"size": sizes, "distinct": distinct, "effective": effective}
        least = {name: float(values.min()) for name, values in extremes.items()}
        return cls(sums, least, float(distance.max()))


@dataclass(frozen=True)
class EquivalenceClasses:
    """The figures that a disclosure review asks for, of a raw table or of published records.

    ``unique`` records are alone in their group, ``below`` says how many are in groups of fewer than
    k for each k. In ``one_value_groups`` several records all have one value. Of each measure there
    is the extreme one of any group, and the mean over records.
    """

    records: int
    groups: int
    unique: int
    smallest: int
    below: tuple[tuple[int, int], ...]
    one_value_groups: int
    one_value_records: int
    distinct: int
    mean_distinct: float
    effective: float
    mean_effective: float
    distance: float
    mean_distance: float

    @classmethod
    def of(cls, parts: Iterable[ClassPart]) -> EquivalenceClasses:
        """The classes of all parts, which share none."""
        found = list(parts)
        sums = {name: sum(part.sums[name] for part in found) for name in found[0].sums}
        least = {name: min(part.least[name] for part in found) for name in found[0].least}
        records = int(sums["records"])
        return cls(
            records=records,
            groups=int(sums["groups"]),
            unique=int(sums["unique"]),
            smallest=int(least["size"]),
            below=tuple((k, int(sums[f"below {k}"])) for k in SMALL),
            one_value_groups=int(sums["one value"]),
            one_value_records=int(sums["their records"]),
            distinct=int(least["distinct"]),
            mean_distinct=sums["distinct"] / records,
            effective=least["effective"],
            mean_effective=sums["effective"] / records,
            distance=max(part.most for part in found),
            mean_distance=sums["distance"] / records,
        )

    @property
    def entropy_l(self) -> float:
        """The l of entropy l-diversity, rounded down."""
        return _rounded(self.effective, math.floor)

    @property
    def t(self) -> float:
        """The t of t-closeness, rounded up."""
        return _rounded(self.distance, math.ceil)

    def as_dict(self) -> dict[str, Any]:
        """The figures for JSON, rounded as ``DEFINITIONS`` say."""
        return {
            "records": self.records,
            "groups": self.groups,
            "unique_records": self.unique,
            "smallest_group": self.smallest,
            "records_in_groups_below": {str(k): records for k, records in self.below},
            "one_value": {"groups": self.one_value_groups, "records": self.one_value_records},
            "distinct_l_diversity": {"l": self.distinct, "mean": round(self.mean_distinct, 2)},
            "entropy_l_diversity": {"l": self.entropy_l, "mean": round(self.mean_effective, 2)},
            "t_closeness": {"t": self.t, "mean": round(self.mean_distance, 2)},
        }


def _rounded(value: float, away: Any) -> float:
    """To two decimals; what is a hair beside them, as sums of shares are, is taken as it is."""
    near = round(value, 2)
    return near if math.isclose(near, value, abs_tol=1e-9) else float(away(100 * value) / 100)


def shares_of(counts: Ints) -> Floats:
    """The shares of the values of a table, from their counts."""
    return np.asarray(counts / counts.sum())


@dataclass
class GroupsSeen:
    """A digest of the groups that pass, public values and sizes, in whatever order they come.

    Equal digests mean equal groups. No sensitive value enters it.
    """

    schema: Schema
    digest: int = 0

    def add(self, batch: CellBatch) -> None:
        """See the next batch of whole groups."""
        # With a key that everybody knows: this compares, and hides nothing.
        public = Randomness(Key.test(), b"same groups")
        ids = group_ids(public, self.schema, batch)
        words = public.words(ids, batch.sizes.astype(np.uint64))
        self.digest = (self.digest + int(words.sum(dtype=np.uint64))) % 2**64
