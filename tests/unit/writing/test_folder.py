"""What may not be written into a release folder, and what may be written next to one."""

import pytest

import reconpriv as rp
from reconpriv.errors import OutputError
from reconpriv.policy.policy import Policy
from reconpriv.writing.marker import release_around

ROLES = ("-s", "s", "--public=all")
PUBLISHED = (*ROLES, "--test-key")


@pytest.fixture
def release(tmp_path, cli):
    (tmp_path / "t.csv").write_text("a,s\n" + "x,u\nx,v\ny,u\ny,v\n" * 30)
    done = cli("publish", tmp_path / "t.csv", tmp_path / "release", *PUBLISHED)
    assert done.code == 0, done.err
    return tmp_path / "release"


def tree(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


@pytest.mark.parametrize("inside", ["another", "deep/er/another"])
def test_a_release_is_refused_inside_a_release(release, cli, inside):
    before = tree(release)
    done = cli("publish", release.parent / "t.csv", release / inside, *PUBLISHED)
    assert done.code == 2
    assert "'release' is a release" in done.err and "inside" in done.err
    assert tree(release) == before
    with (
        rp.read(release.parent / "t.csv", sensitive="s", public="all") as table,
        pytest.raises(OutputError),
    ):
        table.publish(
            Policy(retention=0.5, tolerance=0.5, doubt=0.3), release / inside, key=rp.Key.test()
        )
    assert tree(release) == before


def test_a_link_into_a_release_is_seen_through(release, cli):
    link = release.parent / "link"
    link.symlink_to(release, target_is_directory=True)
    assert release_around(link / "x") == release.resolve()
    done = cli("publish", release.parent / "t.csv", link / "x", *PUBLISHED)
    assert done.code == 2 and "is a release" in done.err


def test_a_release_may_still_be_replaced_and_lie_beside_another(release, cli):
    table = release.parent / "t.csv"
    assert cli("publish", table, release, *PUBLISHED, "--overwrite").code == 0
    assert cli("publish", table, release.parent / "two", *PUBLISHED).code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("audit", "{t}", *ROLES, "--groups", "{r}/groups.csv"),
        ("audit", "{t}", *ROLES, "--report", "{r}/deep/report.html"),
        ("tune", "{t}", *ROLES, "-o", "{r}/sweep.csv"),
        ("workload", "{t}", *ROLES, "-o", "{r}/pool.csv"),
        ("keygen", "{r}/key"),
    ],
    ids=lambda command: command[0],
)
def test_nothing_internal_is_written_into_a_release(release, cli, command):
    before = tree(release)
    places = {"t": release.parent / "t.csv", "r": release}
    done = cli(*(word.format(**places) for word in command))
    assert done.code == 2, done.err
    assert "must not be inside it" in done.err
    assert tree(release) == before


@pytest.mark.parametrize("command", ["audit", "publish", "tune"])
def test_a_release_is_not_taken_for_a_table(release, cli, command):
    out = [release.parent / "again"] if command == "publish" else []
    done = cli(command, release, *out, *ROLES)
    assert done.code == 2 and "'release' is a release: its values are randomised" in done.err
    assert "Give the table that it was made from." in done.err
    assert not (release.parent / "again").exists()
