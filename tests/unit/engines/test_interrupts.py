"""An interrupt while a thread starts: nothing goes on behind the back of whoever cleans up."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reconpriv.engines.polling import polling
from reconpriv.engines.record_file import RecordFile


@pytest.fixture
def interrupt_at_start(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every thread's start is followed at once by Ctrl-C, before the caller goes on."""
    real = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        real(thread)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(threading.Thread, "start", start)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupt_at_start")
def test_an_abandoned_file_is_no_longer_written_to(tmp_path: Path) -> None:
    ended = threading.Event()

    class SlowFile(RecordFile):
        def _write(self, rows: Any) -> None:
            time.sleep(0.3)
            super()._write(rows)
            ended.set()

    file = SlowFile(tmp_path / "data.parquet", ["count"])
    file.add([np.arange(5)])
    with pytest.raises(KeyboardInterrupt):
        file.close()
    file.abandon()
    assert ended.is_set()


@pytest.mark.usefixtures("interrupt_at_start")
def test_nobody_asks_after_the_end() -> None:
    alive = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt), polling(lambda: None, every=0.01):
        pytest.fail("the interrupt comes first")
    assert set(threading.enumerate()) <= alive


def test_it_asks_until_the_end() -> None:
    asked = threading.Event()
    with polling(asked.set, every=0.001):
        assert asked.wait(10)
