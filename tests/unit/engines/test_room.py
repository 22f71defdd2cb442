"""Too little address space is refused before a library can crash the process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconpriv.engines.duckdb import engine, room
from refusals import check_sentence


@pytest.mark.parametrize("left", [-5, 0, 300 << 20, room.LEAST - 1])
def test_too_little_is_refused(cli: Callable, monkeypatch: pytest.MonkeyPatch, left: int) -> None:
    monkeypatch.setattr(room, "address_space_left", lambda: left)
    outcome = cli("audit", "example:adult", "-s", "sex", "--public", "race")
    assert outcome.code == 2
    check_sentence(outcome.err)
    assert f"leaves {max(left, 0) >> 20:,} MB" in outcome.err and "--memory" in outcome.err


@pytest.mark.parametrize("left", [None, room.LEAST])
def test_enough_is_enough(monkeypatch: pytest.MonkeyPatch, left: int | None) -> None:
    monkeypatch.setattr(room, "address_space_left", lambda: left)
    room.check_room()


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_memory_that_runs_out_later_is_no_bug(
    cli: Callable, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(engine, "open_source", fail)
    outcome = cli("audit", "example:adult", "-s", "sex", "--public", "race")
    assert outcome.code == 2
    check_sentence(outcome.err)
