"""What every test of the command line shares."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """A command that has ended ignores signals; the process of the tests goes on."""
    before = {number: signal.getsignal(number) for number in _ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
