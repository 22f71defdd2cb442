"""What records and margins together tell a regression: theory.margins, for any sum over groups.

Margins tell about sums over groups that cut across the rows of a model. So the counts that a fit
rests on are then those of single groups, in the model's selection or not, and of the margins.
"""

from __future__ import annotations

import numpy as np

from reconpriv.core.cube import Cube
from reconpriv.queries.margins import PreparedMargins
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.class_counts import (
    ClassCounts,
    Evidence,
    PublishedCounts,
    class_counts,
    joined,
    noisy_counts,
)

# Groups x values, several times over.
MOST_CELLS = 1 << 23


def margin_evidence(
    cube: Cube, margins: PreparedMargins, row: Ints, records: Floats, members: Floats
) -> Evidence:
    """The evidence about rows of so many ``records``; ``row`` is that of each group, or -1.

    ``members`` has a line of 0 and 1 over the sensitive values for each class.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow import

    groups = _group_counts(cube, margins.design.retention)
    rows = margins.rows_of(cube)
    group, table = np.nonzero(rows >= 0)
    ones = np.ones(group.size)
    holds = csr_array((ones, (rows[group, table], group)), shape=(margins.rows, cube.groups))
    unknown = cube.scale * cube.records
    one_trial, noise = margins.alike(members)
    inside = np.flatnonzero(row >= 0)

    def weights(q: Floats) -> Floats:
        """What every group and every margin row weigh in Σ q y."""
        own = np.zeros((cube.groups, q.shape[1]))
        own[inside] = q[row[inside]]
        told = np.asarray(holds @ (unknown[:, None] * own)).T
        taken = margins.spectrum.weights(told, np.full(q.shape[1], one_trial), noise).T
        return np.concatenate([own - holds.T @ taken, taken])

    published = noisy_counts(
        margins.distance + holds @ groups.counts,
        margins.variance,
        exact_sizes=not margins.design.sampling.coins,
    )
    return Evidence(records, joined(groups, published).merged(members), weights)


def _group_counts(cube: Cube, retention: float) -> ClassCounts:
    """The reconstructed counts of every group."""
    observed = np.zeros((cube.groups, cube.schema.domain_size))
    observed[cube.group, cube.value] = cube.count
    published = PublishedCounts(
        records=cube.records.astype(np.float64),
        observed=observed,
        scaled_observed=cube.scale[:, None] * observed,
        scaled_records=cube.scale * cube.records,
        sampled_squares=np.where(cube.sampled, cube.scale**2, 0.0),
        uneven=cube.uneven,
        coins=cube.coins,
    )
    return class_counts(published, retention)
