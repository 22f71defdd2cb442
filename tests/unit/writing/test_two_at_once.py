"""Two publishers with one output: one of them wins, and neither leaves a trace."""

from pathlib import Path

import pytest

from reconpriv.errors import OutputError
from reconpriv.writing import folder as module
from reconpriv.writing.file import whole_file
from reconpriv.writing.folder import Replaceable, exchange, new_folder

OURS = Replaceable(lambda folder: (folder / "part").exists(), "one of ours")


@pytest.fixture(params=["exchange", "two steps"])
def out(request, tmp_path, monkeypatch):
    if request.param == "two steps":
        monkeypatch.setattr(module, "exchange", lambda *_: False)
    return tmp_path / "out"


def write(out, text, *, overwrite, meanwhile):
    with new_folder(out, overwrite=overwrite, earlier=OURS) as work:
        (work / "part").write_text(text)
        meanwhile()


def test_the_second_does_not_replace_the_first(out):
    def first():
        write(out, "first", overwrite=False, meanwhile=lambda: None)

    with pytest.raises(OutputError, match="exists already"):
        write(out, "second", overwrite=False, meanwhile=first)
    assert (out / "part").read_text() == "first"
    assert list(out.parent.iterdir()) == [out]


def test_nor_does_the_second_file(tmp_path):
    with pytest.raises(OutputError, match="exists already"), whole_file(tmp_path / "out") as second:
        second.write_text("second")
        with whole_file(tmp_path / "out") as first:
            first.write_text("first")
    assert (tmp_path / "out").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("there", [False, True])
def test_with_overwrite_the_last_one_stays(out, there):
    if there:
        write(out, "old", overwrite=False, meanwhile=lambda: None)

    def first():
        write(out, "first", overwrite=True, meanwhile=lambda: None)

    write(out, "second", overwrite=True, meanwhile=first)
    assert (out / "part").read_text() == "second"
    assert list(out.parent.iterdir()) == [out]


def test_what_is_no_release_stays_even_if_it_came_late(out):
    def stranger():
        out.mkdir()
        (out / "letter").write_text("dear")

    with pytest.raises(OutputError, match="is not one of ours"):
        write(out, "second", overwrite=True, meanwhile=stranger)
    assert (out / "letter").read_text() == "dear"
    assert list(out.parent.iterdir()) == [out]


def test_a_publisher_that_moves_the_old_one_away_in_between(tmp_path, monkeypatch):
    """Without an exchange the place is empty for a moment, and another one may take it."""
    out = tmp_path / "out"
    write(out, "old", overwrite=False, meanwhile=lambda: None)
    calls = []

    def interfere(work, target):
        calls.append(work)
        if len(calls) == 1:
            target.rename(tmp_path / "moved")
        return False

    monkeypatch.setattr(module, "exchange", interfere)
    write(out, "new", overwrite=True, meanwhile=lambda: None)
    assert (out / "part").read_text() == "new"


def test_an_old_release_returns_if_the_new_one_cannot_be_put(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write(out, "old", overwrite=False, meanwhile=lambda: None)
    monkeypatch.setattr(module, "exchange", lambda *_: False)
    plain, calls = Path.rename, []

    def failing(path, target):
        if path.name == "new":
            calls.append(path)
            if len(calls) == 2:
                raise OSError(5, "Input/output error")
        return plain(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OutputError, match="Input/output error"):
        write(out, "new", overwrite=True, meanwhile=lambda: None)
    assert (out / "part").read_text() == "old"
    assert list(tmp_path.iterdir()) == [out]


def test_two_folders_change_places_in_one_step(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if not exchange(tmp_path / "one", tmp_path / "other"):
        pytest.skip("this system cannot exchange folders")
    assert (tmp_path / "one" / "other").exists() and (tmp_path / "other" / "one").exists()
    assert not exchange(tmp_path / "one", tmp_path / "missing")
