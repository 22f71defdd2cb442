"""The main-effects model of a publication: fitted to its margins alone, without single groups.

Where no margins are published, the records give them: Lemma 1 by each public column.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reconpriv.attacks.attacked_table import Publication, dense
from reconpriv.cells.cube import Cube
from reconpriv.errors import InputError
from reconpriv.policy.protection import NO_COARSENING
from reconpriv.protect.coarsening import pooled
from reconpriv.protect.margins.tables import index_rows, rows_of
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.estimation.reconstruction import reconstruct_count
from reconpriv.theory.margins.incidence import Incidence
from reconpriv.theory.margins.main_effects import main_effects, positive_counts

# A frequency that is off by less makes no difference to an adversary.
_TOLERANCE = 1e-4
_ROUNDS = 30
# A group's own records correct the rest: on the census, pooling gains nothing by more rounds.
_FEW_ROUNDS = 4


def fitted_model(
    published: Publication, people: Cube, kept: Ints | None = None, *, rounds: int = _ROUNDS
) -> Floats:
    """What the model says about every group of ``people``: a line of frequencies each.

    ``kept`` are the groups of ``people`` that were published, in the order of the publication; all
    if it is None. The model predicts the others as well.
    """
    if not people.codes:
        raise InputError(
            "The table has no public column: there is nothing that a model could learn from.",
            hint="Attack it by its own records instead: micro.",
        )
    cube = published.cube
    sizes = np.zeros(people.groups, dtype=np.int64)
    kept = np.arange(people.groups) if kept is None else kept
    sizes[kept] = cube.records
    if published.tables:
        schema = published.coarsening.coarse(people.schema)
        groups = pooled(people.as_batch(), people.schema, published.coarsening)
        rows = rows_of(index_rows(published.tables, schema), groups.whole.public, schema)
        rows = rows[groups.within]
        counts = np.concatenate([table.counts for table in published.tables]).astype(np.float64)
    else:
        rows, counts = _from_records(cube, people, kept, published.policy.retention)
    counts = positive_counts(counts, Incidence(rows, counts.shape[0]).sums(sizes))
    return main_effects(rows, sizes, counts, tolerance=_TOLERANCE, most_rounds=rounds)


def model_of_margins(published: Publication) -> Floats | None:
    """What the model says about every protection group, roughly; None without margins."""
    if not published.tables:
        return None
    groups = replace(published, cube=published.cube.whole, coarsening=NO_COARSENING)
    return fitted_model(groups, groups.cube, rounds=_FEW_ROUNDS)


def _from_records(cube: Cube, people: Cube, kept: Ints, retention: float) -> tuple[Ints, Floats]:
    """The margins by each public column, estimated from the records."""
    first = np.cumsum([0, *(len(values) for values in people.values)])
    rows = np.stack([codes + start for codes, start in zip(people.codes, first, strict=False)], 1)
    m = cube.schema.domain_size
    estimate = reconstruct_count(
        dense(cube), cube.records[:, None], retention=retention, domain_size=m
    )
    counts = np.zeros((int(first[-1]), m))
    for table in rows[kept].T:
        np.add.at(counts, table, estimate)
    records = Incidence(rows[kept], counts.shape[0]).sums(cube.records)
    rows = np.where(records[rows] > 0, rows, -1)
    return rows.astype(np.int64), counts
