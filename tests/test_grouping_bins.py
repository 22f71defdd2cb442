"""Expressions over recoded columns have no meaning; bins themselves are grouped by in order."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.errors import InputError


def test_an_expression_over_bins_is_refused(tmp_path: Path) -> None:
    table = pa.table({"age": list(range(20, 120)) * 4, "ill": ["flu", "none"] * 200})
    with rp.read(table, sensitive="ill", bin={"age": 10}) as opened:
        policy = rp.Policy(0.5, 0.5, 0.3, unattainable="one-trial")
        release = opened.publish(policy, tmp_path / "r", key=rp.Key.test())
    with pytest.raises(InputError, match="Column 'age' holds bins"):
        release.sql("SELECT age // 2 AS k, count(*) FROM release GROUP BY k")
    rows = release.sql("SELECT age, count(*) FROM release GROUP BY age ORDER BY count(*) LIMIT 3")
    assert len(rows) == 3
    ordered = [labels["age"] for labels, _ in release.crosstab(["age"])]
    assert ordered[0].startswith("20") and ordered[-1].startswith("110")
