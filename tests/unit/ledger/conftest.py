"""What all tests of the ledger share."""

import os

import pytest

from ledger_desk import KEY
from open_tables import close_all


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """No test here takes the power away; waiting for the disk is most of what they would do."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="module", autouse=True)
def tables_are_closed():
    yield
    close_all()


@pytest.fixture
def desk(tmp_path):
    """A folder with a key."""
    KEY.write(tmp_path / "my.key")
    return tmp_path
