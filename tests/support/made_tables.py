"""Tables that exist as cells only, made for the attacks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from reconpriv.attacks.attacked_table import AttackedTable
from reconpriv.cells.cell_batch import CellBatch, Encoded
from reconpriv.columns.schema import Column, Kind, Schema
from reconpriv.policy.policy import Policy
from reconpriv.theory.arrays import Floats, Ints


def made(counts: Ints, policy: Policy, public: dict[str, pa.Array] | None = None) -> AttackedTable:
    """A table of groups with these counts (a column per value), which differ in their age."""
    groups, m = counts.shape
    if public is None:
        public = {"age": pa.array(np.arange(groups))}
    kinds = {pa.int64(): Kind.INTEGER, pa.string(): Kind.STRING}
    schema = Schema(
        tuple(Column(name, kinds[column.type]) for name, column in public.items()),
        Column("s", Kind.STRING),
        tuple(f"v{i}" for i in range(m)),
        int(counts.sum()),
    )
    group, value = np.nonzero(counts)
    encoded = (column.dictionary_encode(null_encoding="encode") for column in public.values())
    columns = tuple(
        Encoded(one.indices.to_numpy(zero_copy_only=False), one.dictionary) for one in encoded
    )
    batch = CellBatch(
        columns, np.searchsorted(group, np.arange(groups)), value, counts[group, value]
    )
    return AttackedTable(schema, policy.on(schema), batch)


def rounded(shares: Floats, size: int) -> Ints:
    """Whole counts of groups of one size."""
    upto = np.round(np.cumsum(shares, axis=1) / shares.sum(axis=1, keepdims=True) * size)
    return np.diff(upto, axis=1, prepend=0).astype(np.int64)
