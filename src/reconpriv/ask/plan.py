"""A pool of queries planned once and answered on many publications of the same table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reconpriv.ask.selections import Selected
from reconpriv.cells.cube import Cube
from reconpriv.cells.sums import sum_selections
from reconpriv.estimate.public_rows import key_positions
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.estimation.reconstruction import reconstruct_count


@dataclass(frozen=True)
class Subset:
    """Queries on one set of attributes: where each group is counted, and where each query looks."""

    positions: Ints
    keys: int
    queries: Ints
    rows: Ints
    values: Ints


@dataclass(frozen=True)
class QueryPlan:
    """Queries that are equalities with one sensitive value each, grouped by their attributes."""

    subsets: tuple[Subset, ...]
    queries: int

    def sums(self, cube: Cube) -> tuple[Floats, Floats]:
        """|S| and O* of every query on a cube that shares the raw table's groups."""
        records, observed = np.zeros(self.queries), np.zeros(self.queries)
        for subset in self.subsets:
            found = sum_selections(cube, subset.positions, subset.keys, None)
            records[subset.queries] = found.records[subset.rows]
            observed[subset.queries] = found.observed[subset.rows, subset.values]
        return records, observed

    def estimates(self, cube: Cube, retention: float) -> Floats:
        """The unbiased count of every query (Lemma 1)."""
        records, observed = self.sums(cube)
        return reconstruct_count(
            observed, records, retention=retention, domain_size=cube.schema.domain_size
        )


def plan_queries(cube: Cube, selected: Sequence[Selected]) -> QueryPlan:
    """QueryPlan queries that are plain equalities with one sensitive value each."""
    by_attributes: dict[tuple[int, ...], list[int]] = {}
    for i, query in enumerate(selected):
        assert query.plain and query.values is not None
        by_attributes.setdefault(tuple(sorted(query.equalities)), []).append(i)
    subsets = []
    for attributes, members in by_attributes.items():
        wanted = [tuple(selected[i].equalities[a] for a in attributes) for i in members]
        keys = sorted(set(wanted))
        row = {key: i for i, key in enumerate(keys)}
        subsets.append(
            Subset(
                positions=key_positions(cube, attributes, keys),
                keys=len(keys),
                queries=np.array(members),
                rows=np.array([row[key] for key in wanted]),
                values=np.array([(selected[i].values or (0,))[0] for i in members]),
            )
        )
    return QueryPlan(tuple(subsets), len(selected))
