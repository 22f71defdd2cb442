"""A publication in memory, on the same groups and codes as the table that it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reconpriv.cells.cube import Cube, collect, with_protection
from reconpriv.cells.randomness import Key
from reconpriv.policy.policy import Policy
from reconpriv.protect.coarsening import find_coarsening, pooled
from reconpriv.protect.kernel import Kernel, PublishedCells
from reconpriv.protect.margins.planned import UNCOUNTED, TrialLimits


def published_cube(raw: Cube, policy: Policy, key: Key, counted: TrialLimits = UNCOUNTED) -> Cube:
    """A publication of a table in memory, protection groups and all.

    ``counted`` lowers the limits of trials by what margins are worth.
    """
    coarsening = find_coarsening(policy, raw.schema, raw.map_groups, key)
    batch = pooled(raw.as_batch(), raw.schema, coarsening)
    kernel = Kernel(coarsening.coarse(raw.schema), policy, key, counted)
    pieces = list(kernel(batch))
    whole = replace(
        raw if batch.pools is None else collect([batch.whole], kernel.schema),
        records=np.concatenate([piece.records for piece in pieces]),
        trials=np.concatenate([piece.trials for piece in pieces]).astype(np.float64),
        coin_flips=policy.sampling_rule.coin_flips,
        **_joined(pieces),
    )
    if batch.pools is None:
        return whole
    dealt = _joined([piece.dealt for piece in pieces])
    order = np.lexsort((dealt["value"], dealt["group"]))
    own = replace(
        raw, coin_flips=whole.coin_flips, **{name: one[order] for name, one in dealt.items()}
    )
    return with_protection(own, whole, batch.within)


def _joined(cells: Sequence[PublishedCells]) -> dict[str, Any]:
    """The cells of all pieces, by the place of their group in the batch."""
    return {
        "group": np.concatenate([one.places[one.group] for one in cells]),
        "value": np.concatenate([one.value for one in cells]),
        "count": np.concatenate([one.count for one in cells]),
    }
