"""A publication in memory, on the same groups and codes as the table that it was made from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.cube import Cube, collect, with_protection
from reconpriv.cells.randomness import Key
from reconpriv.policy.policy import Policy
from reconpriv.protect.coarsening import pooled, settle
from reconpriv.protect.kernel import Kernel
from reconpriv.protect.margins.planned import UNCOUNTED, TrialLimits


def publish_cube(raw: Cube, batches: Iterable[CellBatch], kernel: Kernel) -> Cube:
    """Publish batches of all groups of a cube, which come in its order."""
    batches = list(batches)
    coins = kernel.policy.sampling.coins
    pieces, dealt, first = [], [], 0
    for batch in batches:
        for piece in kernel(batch):
            pieces.append(piece)
            cells = piece.dealt
            dealt.append((first + cells.places[cells.group], cells.value, cells.count))
        first += batch.groups
    group, value, count = (np.concatenate(column) for column in zip(*dealt, strict=True))
    records = np.concatenate([piece.records for piece in pieces])
    trials = np.concatenate([piece.trials for piece in pieces]).astype(np.float64)
    if batches[0].pools is None:
        return replace(
            raw, records=records, trials=trials, group=group, value=value, count=count, coins=coins
        )
    starts = np.cumsum([0, *(piece.records.size for piece in pieces[:-1])])
    whole = replace(
        collect((batch.whole for batch in batches), kernel.schema, trials, coins=coins),
        group=np.concatenate([p.group + s for p, s in zip(pieces, starts, strict=True)]),
        value=np.concatenate([piece.value for piece in pieces]),
        count=np.concatenate([piece.count for piece in pieces]),
    )
    order = np.lexsort((value, group))
    own = replace(raw, group=group[order], value=value[order], count=count[order], coins=coins)
    (batch,) = batches
    return with_protection(own, whole, batch.within)


def published_cube(raw: Cube, policy: Policy, key: Key, counted: TrialLimits = UNCOUNTED) -> Cube:
    """A publication of a table in memory, protection groups and all.

    ``counted`` lowers the limits of trials by what margins are worth.
    """
    coarsening = settle(policy.wanted_protection, raw.schema, raw.map_groups, policy.retention, key)
    batch = pooled(raw.as_batch(), raw.schema, coarsening)
    return publish_cube(raw, [batch], Kernel(coarsening.coarse(raw.schema), policy, key, counted))
