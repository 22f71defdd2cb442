"""A pool of queries planned once and answered on many publications of the same table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from reconpriv.core.cells import CellBatch
from reconpriv.core.cube import Cube
from reconpriv.core.kernel import Kernel
from reconpriv.core.protected_cube import ProtectedCube
from reconpriv.queries.answer import Selected, key_positions
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.reconstruction import reconstruct_count


@dataclass(frozen=True)
class Subset:
    """Queries on one set of attributes: where each group is counted, and where each query looks."""

    positions: Ints
    keys: int
    queries: Ints
    rows: Ints
    values: Ints


@dataclass(frozen=True)
class Plan:
    """Queries that are equalities with one sensitive value each, grouped by their attributes."""

    subsets: tuple[Subset, ...]
    queries: int

    def sums(self, cube: Cube) -> tuple[Floats, Floats]:
        """|S| and O* of every query on a cube that shares the raw table's groups."""
        records, observed = np.zeros(self.queries), np.zeros(self.queries)
        m = cube.schema.domain_size
        for subset in self.subsets:
            if isinstance(cube, ProtectedCube):
                found = cube.sums(subset.positions, subset.keys, None)
                records[subset.queries] = found.records[subset.rows]
                observed[subset.queries] = found.observed[subset.rows, subset.values]
                continue
            inside = subset.positions >= 0
            sizes = np.bincount(
                subset.positions[inside], weights=cube.records[inside], minlength=subset.keys
            )
            place = subset.positions[cube.group]
            cells = np.flatnonzero(place >= 0)
            counts = np.bincount(
                place[cells] * m + cube.value[cells],
                weights=cube.count[cells],
                minlength=subset.keys * m,
            )
            records[subset.queries] = sizes[subset.rows]
            observed[subset.queries] = counts[subset.rows * m + subset.values]
        return records, observed

    def estimates(self, cube: Cube, retention: float) -> Floats:
        """The unbiased count of every query (Lemma 1)."""
        records, observed = self.sums(cube)
        return reconstruct_count(
            observed, records, retention=retention, domain_size=cube.schema.domain_size
        )


def plan_queries(cube: Cube, selected: Sequence[Selected]) -> Plan:
    """Plan queries that are plain equalities with one sensitive value each."""
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
    return Plan(tuple(subsets), len(selected))


def publish_cube(raw: Cube, batches: Iterable[CellBatch], kernel: Kernel) -> Cube:
    """A publication in memory, on the same groups and codes as the raw cube."""
    pieces = [piece for batch in batches for piece in kernel(batch)]
    first = np.cumsum([0, *(piece.records.size for piece in pieces[:-1])])
    return Cube(
        schema=raw.schema,
        codes=raw.codes,
        values=raw.values,
        records=np.concatenate([piece.records for piece in pieces]),
        trials=np.concatenate([piece.trials for piece in pieces]).astype(np.float64),
        group=np.concatenate([p.group + start for p, start in zip(pieces, first, strict=True)]),
        value=np.concatenate([piece.value for piece in pieces]),
        count=np.concatenate([piece.count for piece in pieces]),
        coins=kernel.policy.sampling.coins,
    )
