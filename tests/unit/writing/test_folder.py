"""Nearest names, installation hints, the text of a policy, and what a release folder refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import reconpriv as rp
from reconpriv.errors import InputError, OutputError
from reconpriv.extras import install_hint
from reconpriv.messages.nearest import nearest_name
from reconpriv.policy import Policy
from reconpriv.schema import Column, Kind, require_columns
from reconpriv.theory.bounds import BOUNDS, Bound, Tails
from reconpriv.writing.folder import release_around
from repository import ROOT

NAMES = ("age", "sex", "income", "education", "native_country", "hours-per-week")


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("agee", "age"), ("aeg", "age"), ("SEX", "sex"), ("set", "sex"), ("incom", "income"),
        ("eduction", "education"), ("hours_per_week", "hours-per-week"),
        ("country", "native_country"),
    ],
)  # fmt: skip
def test_a_slip_finds_the_name_that_was_meant(asked: str, near: str) -> None:
    assert nearest_name(asked, NAMES) == near


@pytest.mark.parametrize("asked", ["zzz", "name", "code", "id", "weight", "a", "zip", ""])
def test_another_name_is_not_taken_for_a_slip(asked: str) -> None:
    assert nearest_name(asked, NAMES) is None


def test_a_far_away_column_of_a_table_is_answered_with_the_list() -> None:
    columns = [Column(name, Kind.STRING) for name in NAMES]
    with pytest.raises(InputError, match="It has: age, sex"):
        require_columns(columns, ["name"], "public")
    with pytest.raises(InputError, match="Did you mean 'education'"):
        require_columns(columns, ["educatoin"], "public")


@pytest.mark.parametrize("bound", sorted(BOUNDS))
def test_a_policy_reads_as_it_is_written(bound: str) -> None:
    policy = Policy(0.5, 0.5, 0.3, bound=bound, sample_size="paper")
    assert eval(repr(policy)) == policy
    assert " at 0x" not in repr(policy) and "<" not in repr(policy)


def test_the_text_of_a_policy_is_short() -> None:
    assert repr(Policy(0.5, 0.5, 0.3)) == (
        "Policy(retention=0.5, epsilon=0.5, delta=0.3, bound='chernoff', sample_size='octave',"
        " unattainable='refuse')"
    )


def test_a_bound_of_ones_own_shows_its_name() -> None:
    def my_bound(count: object) -> Tails:
        raise NotImplementedError

    policy = Policy(0.5, 0.5, 0.3, bound=my_bound, sample_size="paper")
    assert "bound=my_bound," in repr(policy)
    # A name that is taken is still not the bound of that name.
    same = Policy(0.5, 0.5, 0.3, bound=Bound("chernoff", my_bound), sample_size="paper")
    assert "bound=chernoff," in repr(same)


@pytest.mark.parametrize("extra", ["query", "report", "studio", "spark", "formats", "databases"])
def test_an_installation_hint_names_packages_not_reconpriv(extra: str) -> None:
    hint = install_hint(extra)
    assert re.search(r"-m pip install '[a-z-]+>=[\d.]+'", hint), hint
    assert "reconpriv[" not in hint


def test_run_from_its_sources_the_hint_names_the_source_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import importlib.metadata

    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", missing)
    assert "pip install '.[query]'" in install_hint("query")


def test_no_message_names_an_installation_from_an_index() -> None:
    root = Path(rp.__file__).parent
    found = [
        file.name for file in root.rglob("*.py") if "pip install 'reconpriv[" in file.read_text()
    ]
    assert found == []


@pytest.fixture
def release(tmp_path: Path, cli: Callable) -> Path:
    (tmp_path / "t.csv").write_text("a,s\n" + "x,u\nx,v\ny,u\ny,v\n" * 30)
    done = cli("publish", tmp_path / "t.csv", tmp_path / "release", "-s", "s", "--test-key")
    assert done.code == 0, done.err
    return tmp_path / "release"


def tree(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


@pytest.mark.parametrize("inside", ["another", "deep/er/another"])
def test_a_release_is_refused_inside_a_release(release: Path, cli: Callable, inside: str) -> None:
    before = tree(release)
    done = cli("publish", release.parent / "t.csv", release / inside, "-s", "s", "--test-key")
    assert done.code == 2
    assert "'release' is a release" in done.err and "inside" in done.err
    assert tree(release) == before
    with rp.read(release.parent / "t.csv", sensitive="s") as table, pytest.raises(OutputError):
        table.publish(Policy(0.5, 0.5, 0.3), release / inside, key=rp.Key.test())
    assert tree(release) == before


def test_a_link_into_a_release_is_seen_through(release: Path, cli: Callable) -> None:
    link = release.parent / "link"
    link.symlink_to(release, target_is_directory=True)
    assert release_around(link / "x") == release.resolve()
    done = cli("publish", release.parent / "t.csv", link / "x", "-s", "s", "--test-key")
    assert done.code == 2 and "is a release" in done.err


def test_a_release_may_still_be_replaced_and_lie_beside_another(
    release: Path, cli: Callable
) -> None:
    table = release.parent / "t.csv"
    assert cli("publish", table, release, "-s", "s", "--test-key", "--overwrite").code == 0
    assert cli("publish", table, release.parent / "two", "-s", "s", "--test-key").code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("audit", "{t}", "-s", "s", "--groups", "{r}/groups.csv"),
        ("audit", "{t}", "-s", "s", "--report", "{r}/deep/report.html"),
        ("tune", "{t}", "-s", "s", "-o", "{r}/sweep.csv"),
        ("workload", "{t}", "-s", "s", "-o", "{r}/pool.csv"),
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
    assert "must not lie inside it" in done.err
    assert tree(release) == before


def test_the_readme_compares_with_the_alternatives_as_measured() -> None:
    root = ROOT
    readme = (root / "README.md").read_text(encoding="utf-8")
    section = readme.split("## A fair word on alternatives")[1].split("\n## ")[0]
    results = (root / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| sex, region.*?\| ([\d,]+) \| ([\d.]+) \| ([\d,]+) \|", results)
    assert [groups for groups, _, _ in rows] == ["20", "1,400"]
    for groups, noisy, released in rows:
        assert f"{groups} groups" in section and released in section
        assert f"{float(noisy):.1f} per count" in section
    assert readme.index("## A fair word") < readme.index("## More")
