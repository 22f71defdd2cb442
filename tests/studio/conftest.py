"""A browser for the studio's tests: Debian's chromium, driven by Playwright."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import reconpriv as rp


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """One browser for all tests; where there is none, CI fails and a laptop skips."""
    from playwright.sync_api import sync_playwright
    from studio_walk import CHROMIUM, launch

    if not Path(CHROMIUM).exists():
        reason = f"{CHROMIUM} is missing (apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        running = launch(playwright)
        yield running
        running.close()


@pytest.fixture(scope="session")
def adult_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Adult table as a user would upload it."""
    file = tmp_path_factory.mktemp("adult") / "adult.csv"
    pyarrow.csv.write_csv(pq.read_table(rp.dataset_path("adult")), file)
    return file
