"""Side files are read whole, so what has no end, or never begins, is refused."""

import os
import threading

import pytest

from reconpriv.errors import InputError
from reconpriv.messages import text_files as side_files
from reconpriv.messages.text_files import read_side_file


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_pipe_that_nobody_writes_into_is_refused(pipe, monkeypatch):
    monkeypatch.setattr(side_files, "_PATIENCE", 0.05)
    with pytest.raises(InputError, match="is a pipe that nobody writes into"):
        read_side_file(pipe, "domain file")


@pytest.mark.parametrize("content", [b"", b"a\nb\n", b"x" * 300_000])
def test_a_pipe_is_read_to_its_end(pipe, content):
    writer = threading.Thread(target=pipe.write_bytes, args=[content])
    writer.start()
    assert read_side_file(pipe, "domain file") == content.decode()
    writer.join()


def test_a_slow_writer_is_waited_for(monkeypatch):
    monkeypatch.setattr(side_files, "_PATIENCE", 0.0)
    out, into = os.pipe()
    writer = threading.Timer(0.1, lambda: (os.write(into, b"late"), os.close(into)))
    writer.start()
    assert read_side_file(f"/dev/fd/{out}", "domain file") == "late"
    os.close(out)


def test_a_pipe_without_end_and_a_device_are_refused(pipe, monkeypatch):
    monkeypatch.setattr(side_files, "LARGEST", 1 << 20)

    def forever():
        with pipe.open("wb", buffering=0) as stream, pytest.raises(BrokenPipeError):
            while True:
                stream.write(b"y\n" * 1000)

    writer = threading.Thread(target=forever)
    writer.start()
    with pytest.raises(InputError, match="larger than 1 MB"):
        read_side_file(pipe, "domain file")
    writer.join()
    with pytest.raises(InputError, match="it is a device"):
        read_side_file("/dev/zero", "domain file")
