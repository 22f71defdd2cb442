"""How the records of a table become groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from reconpriv.cells.cell_batch import CellBatch, whole_groups
from reconpriv.columns.schema import Schema
from reconpriv.policy.protection import NO_COARSENING, Coarsening
from reconpriv.protect.coarsening import coarse_columns, pooled


@dataclass(frozen=True)
class GroupBy:
    """Micro groups by the public columns, which a coarsening makes up to protection groups.

    Records without a sensitive value are left out if ``drop_missing``.
    """

    schema: Schema
    drop_missing: bool = False
    coarsening: Coarsening = NO_COARSENING

    @property
    def group_schema(self) -> Schema:
        """The schema of the groups that a policy makes a promise about: protection groups."""
        return self.coarsening.coarse(self.schema)

    def batches(self, cells: Iterable[pa.RecordBatch]) -> Iterator[CellBatch]:
        """Batches of whole protection groups, from cells sorted by them, then by micro groups."""
        coarse = coarse_columns(self.schema, self.coarsening)
        for batch in whole_groups(cells, self.schema, coarse):
            yield pooled(batch, self.schema, self.coarsening)
