"""What all tests of the ledger share."""

import os

import pytest


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """No test here takes the power away; waiting for the disk is most of what they would do."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
