"""What the studio's tests upload."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import reconpriv as rp


@pytest.fixture(scope="session")
def adult_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Adult table as a user would upload it."""
    file = tmp_path_factory.mktemp("adult") / "adult.csv"
    pyarrow.csv.write_csv(pq.read_table(rp.dataset_path("adult")), file)
    return file
