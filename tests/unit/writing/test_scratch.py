"""What a dead process left is removed by the next one; what is in use is not touched."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from reconpriv.writing import scratch as module
from reconpriv.writing.file import whole_file
from reconpriv.writing.folder import Replaceable, new_folder
from reconpriv.writing.scratch import Scratch, sweep

# A process that is killed while it works: nothing of its own gets to run.
KILLED = """
import os, signal, sys
from pathlib import Path
from reconpriv.writing.scratch import Scratch
kept = Scratch(Path(sys.argv[1]), hidden=True)
(kept.path / "raw").write_text("raw")
exec(sys.argv[2])
os.kill(os.getpid(), signal.SIGKILL)
"""
OURS = Replaceable(lambda folder: (folder / "part").exists(), "one of ours")


def leave(place, more=""):
    subprocess.run([sys.executable, "-c", KILLED, str(place), more], check=False, timeout=60)
    (left,) = (path for path in place.iterdir() if path.name.startswith(".reconpriv-"))
    assert (left / "raw").exists()
    return left


def test_the_next_run_removes_what_a_killed_one_left(tmp_path):
    leave(tmp_path)
    with Scratch(tmp_path) as folder:
        assert list(tmp_path.iterdir()) == [folder]
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("whole", [whole_file, new_folder])
def test_so_does_the_next_output_in_a_folder(whole, tmp_path):
    with whole(tmp_path / "one", overwrite=False):  # type: ignore[operator]
        pass
    leave(tmp_path)
    with whole(tmp_path / "two", overwrite=False):  # type: ignore[operator]
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_a_folder_in_use_is_not_touched(tmp_path):
    kept = Scratch(tmp_path)
    look = "import sys; from pathlib import Path; from reconpriv.writing.scratch import sweep;"
    subprocess.run(
        [sys.executable, "-c", f"{look} sweep(Path({str(tmp_path)!r}))"], check=True, timeout=60
    )
    sweep(tmp_path)
    assert kept.path.exists()
    kept.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", ["name", "mode", "link", "locked elsewhere", "file"])
def test_what_is_not_ours_for_certain_is_not_touched(tmp_path, change):
    place = tmp_path / "place"
    place.mkdir()
    left = leave(place)
    if change == "name":
        left.rename(place / ".reconpriv-mine")
    elif change == "mode":
        left.chmod(0o755)
    elif change == "link":
        left.rename(tmp_path / "elsewhere")
        left.symlink_to(tmp_path / "elsewhere")
    elif change == "locked elsewhere":  # as on a file system without locks
        (left / "lock").rename(left / "unlocked")
    else:
        left.rename(tmp_path / "elsewhere")
        left.write_text("a file")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    sweep(place)
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_users_folder_is_not_touched(tmp_path):
    left = leave(tmp_path)
    os.chown(left, 12345, 12345)
    sweep(tmp_path)
    assert left.exists()


def test_a_process_killed_before_it_had_a_lock(tmp_path):
    (tmp_path / "reconpriv-0123456789abcdef").mkdir(mode=0o700)
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_one_that_is_taken_for_dead_while_it_is_made_is_made_again(tmp_path, monkeypatch):
    plain, calls = module._lock, []

    def swept_first(folder, held):
        calls.append(folder)
        if len(calls) == 1:
            sweep(tmp_path)
        return plain(folder, held)

    monkeypatch.setattr(module, "_lock", swept_first)
    with Scratch(tmp_path) as folder:
        assert len(calls) == 2 and calls[1] == folder
        sweep(tmp_path)
        assert folder.exists()


def test_a_release_that_was_laid_aside_is_put_back(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part").write_text("old")
    leave(tmp_path, "kept.lay_aside(Path(sys.argv[1]) / 'out')")
    assert not (tmp_path / "out").exists()
    sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "part").read_text() == "old"


def test_it_is_not_put_back_over_a_newer_one(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part").write_text("old")
    leave(tmp_path, "kept.lay_aside(Path(sys.argv[1]) / 'out')")
    with new_folder(tmp_path / "new", overwrite=False) as work:
        (work / "part").write_text("new")
    with new_folder(tmp_path / "out", overwrite=True, earlier=OURS) as work:
        (work / "part").write_text("newest")
    assert (tmp_path / "out" / "part").read_text() == "newest"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "out"]


def test_a_copy_of_the_process_does_not_remove_it(tmp_path):
    held: list[int] = []
    with Scratch(tmp_path) as folder:
        module._remove(folder, held, os.getpid() + 1)
        assert folder.exists()
