"""What all tests of the ledger share."""

import os

import pytest

from open_tables import close_all


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """No test here takes the power away; waiting for the disk is most of what they would do."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="module", autouse=True)
def tables_are_closed():
    yield
    close_all()
