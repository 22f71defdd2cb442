"""What may not be written into a release folder, and what may be written next to one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import reconpriv as rp
from reconpriv.errors import OutputError
from reconpriv.policy import Policy
from reconpriv.writing.marker import release_around


@pytest.fixture
def release(tmp_path: Path, cli: Callable) -> Path:
    (tmp_path / "t.csv").write_text("a,s\n" + "x,u\nx,v\ny,u\ny,v\n" * 30)
    done = cli(
        "publish", tmp_path / "t.csv", tmp_path / "release", "-s", "s", "--public=all", "--test-key"
    )
    assert done.code == 0, done.err
    return tmp_path / "release"


def tree(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


@pytest.mark.parametrize("inside", ["another", "deep/er/another"])
def test_a_release_is_refused_inside_a_release(release: Path, cli: Callable, inside: str) -> None:
    before = tree(release)
    done = cli(
        "publish",
        release.parent / "t.csv",
        release / inside,
        "-s",
        "s",
        "--public=all",
        "--test-key",
    )
    assert done.code == 2
    assert "'release' is a release" in done.err and "inside" in done.err
    assert tree(release) == before
    with (
        rp.read(release.parent / "t.csv", sensitive="s", public="all") as table,
        pytest.raises(OutputError),
    ):
        table.publish(Policy(0.5, 0.5, 0.3), release / inside, key=rp.Key.test())
    assert tree(release) == before


def test_a_link_into_a_release_is_seen_through(release: Path, cli: Callable) -> None:
    link = release.parent / "link"
    link.symlink_to(release, target_is_directory=True)
    assert release_around(link / "x") == release.resolve()
    done = cli(
        "publish", release.parent / "t.csv", link / "x", "-s", "s", "--public=all", "--test-key"
    )
    assert done.code == 2 and "is a release" in done.err


def test_a_release_may_still_be_replaced_and_lie_beside_another(
    release: Path, cli: Callable
) -> None:
    table = release.parent / "t.csv"
    assert (
        cli("publish", table, release, "-s", "s", "--public=all", "--test-key", "--overwrite").code
        == 0
    )
    assert (
        cli("publish", table, release.parent / "two", "-s", "s", "--public=all", "--test-key").code
        == 0
    )


@pytest.mark.parametrize(
    "command",
    [
        ("audit", "{t}", "-s", "s", "--public=all", "--groups", "{r}/groups.csv"),
        ("audit", "{t}", "-s", "s", "--public=all", "--report", "{r}/deep/report.html"),
        ("tune", "{t}", "-s", "s", "--public=all", "-o", "{r}/sweep.csv"),
        ("workload", "{t}", "-s", "s", "--public=all", "-o", "{r}/pool.csv"),
        ("keygen", "{r}/key"),
    ],
    ids=lambda command: command[0],
)
def test_nothing_internal_is_written_into_a_release(
    release: Path, cli: Callable, command: tuple[str, ...]
) -> None:
    before = tree(release)
    places = {"t": release.parent / "t.csv", "r": release}
    done = cli(*(word.format(**places) for word in command))
    assert done.code == 2, done.err
    assert "must not be inside it" in done.err
    assert tree(release) == before


@pytest.mark.parametrize("command", ["audit", "publish", "tune"])
def test_a_release_is_not_taken_for_a_table(release: Path, cli: Callable, command: str) -> None:
    out = [release.parent / "again"] if command == "publish" else []
    done = cli(command, release, *out, "-s", "s", "--public=all")
    assert done.code == 2 and "'release' is a release: its values are randomised" in done.err
    assert "Give the table that it was made from." in done.err
    assert not (release.parent / "again").exists()
