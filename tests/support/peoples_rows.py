"""Tables in which people have several rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa


def peoples_rows(rows: Sequence[int], people: int, values: int = 4, *, same: float = 1.0,
                 seed: int = 3) -> pa.Table:  # fmt: skip
    """So many people with each number of rows; public values are their visits and a ward.

    Everybody has a value of their own, all equally frequent, which a row shows with the
    probability ``same``; otherwise it shows any value. The rows of one person are apart.
    """
    rng = np.random.default_rng(seed)
    each = np.repeat(rows, people)
    pid = np.repeat(np.arange(each.size), each)
    visit = np.concatenate([np.arange(n) for n in each])
    own = pid % values
    value = np.where(rng.random(pid.size) < same, own, rng.integers(0, values, pid.size))
    table = pa.table(
        {
            "pid": pa.array([f"p{i:06}" for i in pid]),
            "visit": visit,
            "ward": pa.array(rng.integers(0, 3, pid.size)),
            "result": pa.array([f"v{v}" for v in value]),
        }
    )
    return table.take(pa.array(rng.permutation(pid.size)))
