"""A workspace with its page: what it takes to look at one step, and no more."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from reconpriv.studio.server.serve import own_folder
from reconpriv.studio.work.plan import DeclaredRoles
from reconpriv.studio.work.workspace import Workspace
from studio_walk import enter, served

ROLES = DeclaredRoles("job", ("sex", "age", "town"))


@pytest.fixture(scope="session")
def people(tmp_path_factory):
    """2,000 people in groups large and small; a few lack a job, and everybody has a number."""
    rng, rows = np.random.default_rng(3), 2_000
    sex, town = rng.choice(["F", "M"], rows), rng.choice(["N", "S", "W"], rows, p=[0.6, 0.3, 0.1])
    nurse = rng.random(rows) < np.where(sex == "F", 0.4, 0.2)
    job = np.where(nurse, "nurse", rng.choice(["baker", "clerk", "pilot"], rows)).astype(object)
    number = (np.arange(rows) * 37) % 20_011
    folder = tmp_path_factory.mktemp("people")
    table = pa.table({"sex": sex, "age": rng.integers(20, 70, rows), "town": town, "job": job,
                      "number": number})  # fmt: skip
    pq.write_table(table, folder / "people.parquet")
    job[:40] = None
    pa.csv.write_csv(table.set_column(3, "job", pa.array(job)), folder / "people.csv")
    return folder


@pytest.fixture
def workspace(tmp_path):  # made first: a temporary folder of the process follows
    with own_folder() as home:
        made = Workspace(home)
        yield made
        made.close()


@pytest.fixture
def page(browser):
    """A page that may not ask any other machine for anything, nor meet an error of its own."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    opened = context.new_page()
    asked, broken = set(), []
    opened.on("request", lambda request: asked.add(request.url.split("/")[2]))
    opened.on("websocket", lambda socket: asked.add(socket.url.split("/")[2]))
    opened.on("pageerror", lambda error: broken.append(str(error)))
    yield opened
    context.close()
    assert all(host.startswith("127.0.0.1:") for host in asked if host)
    assert broken == []


@pytest.fixture
def show(page, workspace):
    """Serve the workspace as it is, and open its page."""
    with served(workspace) as address:
        yield lambda: enter(page, address)
        page.goto("about:blank")
