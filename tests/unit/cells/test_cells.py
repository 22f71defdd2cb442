"""Batches of cells, taken apart."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.mark.parametrize("groups", [[0], [3, 4, 9], [1, 400], list(range(500))])
def test_groups_taken_together_are_the_groups_taken_one_by_one(adult, groups) -> None:
    batch = max(adult.batches(), key=lambda batch: batch.groups)
    taken = batch.take(np.array(groups))
    assert taken.groups == len(groups)
    for place, group in enumerate(groups):
        one, alone = taken.slice(place, place + 1), batch.slice(group, group + 1)
        assert one.public_values(0, adult.schema) == alone.public_values(0, adult.schema)
        assert one.value.tolist() == alone.value.tolist()
        assert one.count.tolist() == alone.count.tolist()
