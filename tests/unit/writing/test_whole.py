"""Files and folders are complete or absent, and errors say what went wrong."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from reconpriv.errors import InputError, MissingFileError, OutputError
from reconpriv.writing.file import RAW, check_file, current_umask, whole_file
from reconpriv.writing.folder import Replaceable, new_folder

Whole = Callable[..., AbstractContextManager[Path]]


@pytest.fixture(params=[whole_file, new_folder], ids=["file", "folder"])
def whole(request):
    opened: Whole = request.param
    return opened


def _fill(work, text="all of it"):
    (work / "part" if work.is_dir() else work).write_text(text)


def test_it_appears_when_it_is_whole(whole, tmp_path):
    with whole(tmp_path / "out", overwrite=False) as work:
        assert work.parent.parent == tmp_path and work.parent.name.startswith(".reconpriv-")
        _fill(work)
        assert not (tmp_path / "out").exists()
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (OSError(28, "No space left on device"), OutputError, "out could not be written: No space"),
        (OSError("[x.cc:3] It broke. Detail: /home/me"), OutputError, "written: It broke."),
        (MissingFileError("Gone."), MissingFileError, "^Gone"),
        (InputError("Odd."), InputError, "^Odd"),
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
    ],
    ids=["system", "arrow", "missing", "input", "interrupted"],
)
def test_a_failure_leaves_nothing_and_says_why(whole, tmp_path, error, kind, says):
    with pytest.raises(kind, match=says) as caught, whole(tmp_path / "out", overwrite=False) as w:
        _fill(w)
        raise error
    assert "/home/me" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_stays_unless_it_may_be_replaced(whole, tmp_path):
    (tmp_path / "out").write_text("old")
    with pytest.raises(OutputError, match="exists already"), whole(tmp_path / "out",
                                                                    overwrite=False):  # fmt: skip
        raise AssertionError
    assert (tmp_path / "out").read_text() == "old"


@pytest.mark.parametrize(("private", "mode"), [("", 0o666 & ~current_umask()), (RAW, 0o600)])
def test_what_tells_about_the_raw_table_is_its_owners_alone(tmp_path, private, mode):
    with whole_file(tmp_path / "out", private=private) as work:
        _fill(work)
    assert (tmp_path / "out").stat().st_mode & 0o777 == mode


def test_only_an_earlier_folder_of_its_kind_is_replaced(tmp_path):
    ours = Replaceable(lambda folder: (folder / "part").exists(), "one of ours")
    for text in ("first", "second"):
        with new_folder(tmp_path / "out", overwrite=True, earlier=ours) as work:
            _fill(work, text)
    assert (tmp_path / "out" / "part").read_text() == "second"
    with (
        pytest.raises(OutputError, match="is not a release; it will not be replaced"),
        new_folder(tmp_path / "out", overwrite=True),
    ):
        raise AssertionError
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_nothing_private_lies_inside_a_release(tmp_path):
    (tmp_path / "datapackage.json").write_text('{"reconpriv": {}}')
    check_file(tmp_path / "notes.txt")
    with pytest.raises(OutputError, match="is a release; the notes must not be inside it"):
        check_file(tmp_path / "notes.txt", private="the notes")
