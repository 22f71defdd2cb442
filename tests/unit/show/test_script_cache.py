"""Scripts are made once, and made again where the cache cannot be trusted or used."""

import pytest

from reconpriv.show.charts.drawing import cache_folder, kept

SCRIPT = "const é = '\r\n';\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "reconpriv"
    return cache_folder()


class Maker:
    """Counts how often a script is made."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1
        return SCRIPT


def test_a_script_is_made_once(folder):
    make = Maker()
    assert kept("a.js", make) == kept("a.js", make) == SCRIPT
    assert make.times == 1
    assert [path.name for path in folder.iterdir()] == ["a.js"]
    assert (folder / "a.js").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("harm", ["edited", "torn", "not text", "writable by others"])
def test_a_file_that_was_changed_is_made_again(folder, harm):
    kept("a.js", Maker())
    path, make = folder / "a.js", Maker()
    whole = path.read_bytes()
    if harm == "writable by others":
        path.chmod(0o666)
    else:
        harmed = {"edited": whole + b"alert(1)", "torn": whole[:40], "not text": b"\xff\xfe\n"}
        path.write_bytes(harmed[harm])
    assert kept("a.js", make) == SCRIPT
    assert make.times == 1
    assert kept("a.js", make) == SCRIPT
    assert make.times == 1
    assert path.read_bytes() == whole


def test_without_a_place_to_keep_it_a_script_is_made_each_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    make = Maker()
    assert kept("a.js", make) == kept("a.js", make) == SCRIPT
    assert make.times == 2


def test_an_error_while_making_it_is_passed_on_and_leaves_nothing(folder):
    def fail():
        raise ValueError("no bundle")

    with pytest.raises(ValueError, match="no bundle"):
        kept("a.js", fail)
    assert not list(folder.glob("*"))
