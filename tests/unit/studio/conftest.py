"""A workspace without a page, and the Adult table in it."""

from __future__ import annotations

import pytest

from reconpriv.studio.work.workspace import Workspace
from studio_workspace import ADULT, POLICY, load


@pytest.fixture
def workspace(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    made = Workspace(home)
    yield made
    made.close()


@pytest.fixture(scope="session")
def adult_loaded(tmp_path_factory):
    """Occupations by age, race and sex in a workspace of their own."""
    made = Workspace(tmp_path_factory.mktemp("adult"))
    yield load(made, "example:adult", ADULT)
    made.close()


@pytest.fixture(scope="session")
def adult_report(adult_loaded):
    return adult_loaded.table.audit(POLICY, worst=1, columns=False)
