"""Distinct columns are those of numpy, in its order."""

from __future__ import annotations

import numpy as np
import pytest

from reconpriv.theory.arrays import distinct_columns


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("columns", [1, 2, 300])
@pytest.mark.parametrize("kind", [bool, np.int32, float])
def test_as_numpy(rows, columns, kind):
    matrix = np.random.default_rng(rows).integers(0, 3, (rows, columns)).astype(kind)
    expected = np.unique(matrix, axis=1, return_index=True, return_inverse=True)
    for found, wanted in zip(distinct_columns(matrix), expected, strict=True):
        assert found.tolist() == wanted.tolist()
