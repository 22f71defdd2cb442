"""A signal waits until what must not be cut in two is done."""

import signal

import pytest

from reconpriv.writing import scratch
from reconpriv.writing.scratch import Scratch, uninterrupted


@pytest.fixture(autouse=True)
def usual_ctrl_c():
    """Python's own handler: a command that ran in this process before ignores what comes late."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_waits_for_the_end_of_the_block():
    before, done = signal.getsignal(signal.SIGINT), []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done.append(True)
    assert done
    assert signal.getsignal(signal.SIGINT) is before


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with uninterrupted():
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_cleaning_up_is_not_interrupted(tmp_path, monkeypatch):
    plain = scratch.shutil.rmtree

    def interrupted(*args, **how):
        signal.raise_signal(signal.SIGINT)
        plain(*args, **how)  # type: ignore[arg-type]

    folder = Scratch(tmp_path)
    (folder.path / "raw").write_text("raw")
    monkeypatch.setattr(scratch.shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        folder.close()
    assert list(tmp_path.iterdir()) == []
