"""What the studio's tests upload, and the page they walk through."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import reconpriv as rp

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from reconpriv.studio.desk import Desk


@pytest.fixture(scope="session")
def adult_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Adult table as a user would upload it."""
    file = tmp_path_factory.mktemp("adult") / "adult.csv"
    pyarrow.csv.write_csv(pq.read_table(rp.dataset_path("adult")), file)
    return file


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that may not ask any other machine for anything, nor meet an error of its own."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    opened = context.new_page()
    asked: set[str] = set()
    broken: list[str] = []
    opened.on("request", lambda request: asked.add(request.url.split("/")[2]))
    opened.on("websocket", lambda socket: asked.add(socket.url.split("/")[2]))
    opened.on("pageerror", lambda error: broken.append(str(error)))
    yield opened
    hosts = {host for host in asked if host}
    context.close()
    assert all(host.startswith("127.0.0.1:") for host in hosts)
    assert broken == []


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk without a page."""
    from reconpriv.studio.desk import Desk

    home = tmp_path / "home"
    home.mkdir()
    made = Desk(home)
    yield made
    made.close()
