"""What an index, conda and pip read: extras, the recipe, the description, the badges."""

from __future__ import annotations

import re
import tomllib

import pytest

import build_docs
import reconpriv as rp
from badges import FOLDER, badges
from oldest_versions import constraints
from readme_hook import with_addresses
from repository import ROOT

TEXT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PROJECT = tomllib.loads(TEXT)["project"]
EXTRAS = PROJECT["optional-dependencies"]
RECIPE = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
IN_CONDA = {"duckdb": "python-duckdb"}


def packages_of(extra):
    """The packages that an extra brings, those of the extras that it refers to included."""
    found = set()
    for one in EXTRAS[extra]:
        others = re.fullmatch(r"reconpriv\[([\w,]+)\]", one)
        names = others[1].split(",") if others else []
        found |= set().union(*map(packages_of, names)) if names else {one}
    return found


def test_all_is_everything_and_the_former_name_still_works():
    every = set().union(*(packages_of(extra) for extra in EXTRAS))
    assert packages_of("all") == every
    assert packages_of("experiments") == packages_of("attacks") > packages_of("report")
    assert packages_of("studio") > packages_of("query") | packages_of("report")
    former = {"query", "experiments", "attacks", "spark", "report", "databases", "formats", "learn"}
    assert set(EXTRAS) == former | {"studio", "all"}


def test_each_package_is_named_once():
    named = [one for lines in EXTRAS.values() for one in lines if not one.startswith("reconpriv[")]
    assert len(named) == len(set(named)) and not set(named) & set(PROJECT["dependencies"])


def test_the_tests_need_no_newer_version_than_the_package():
    group = tomllib.loads(TEXT)["dependency-groups"]["test"]
    floors = dict(one.split(">=") for extra in EXTRAS for one in packages_of(extra))
    tested = dict(re.sub(r"\[\w+\]", "", one).split(">=") for one in group)
    assert {name: tested[name] for name in floors if name in tested} == {
        name: floor for name, floor in floors.items() if name in tested
    }
    assert set(tested) > set(floors)


def test_every_floor_has_a_constraint():
    named = {line.split("==")[0] for line in constraints()}
    every = [*PROJECT["dependencies"], *(one for extra in EXTRAS for one in packages_of(extra))]
    assert named == {one.split(">=")[0] for one in every}


def section(name):
    """The packages under a heading of the recipe, as pip would write them."""
    lines = re.search(rf"^  {name}:\n((?:    - .+\n)+)", RECIPE, re.MULTILINE)
    assert lines is not None
    return [line.strip("- ").replace(" ", "") for line in lines[1].splitlines()]


def in_conda(requirements):
    return sorted(re.sub(r"^[\w-]+", lambda m: IN_CONDA.get(m[0], m[0]), r) for r in requirements)


def test_the_recipe_needs_what_the_package_needs():
    python = f"python{PROJECT['requires-python']}"
    assert sorted(section("run")) == in_conda([python, *PROJECT["dependencies"]])
    assert sorted(section("run_constrained")) == in_conda(packages_of("all"))
    assert section("host") == [python, "pip", *tomllib.loads(TEXT)["build-system"]["requires"]]


def test_the_recipe_is_that_of_this_version_and_command():
    assert f'  version: "{rp.__version__}"\n' in RECIPE
    assert f"  license: {PROJECT['license']}\n" in RECIPE
    assert PROJECT["description"] in RECIPE and PROJECT["urls"]["Homepage"] in RECIPE
    (command,) = PROJECT["scripts"].items()
    assert f"    - {' = '.join(command)}\n" in RECIPE


def test_links_of_the_description_lead_into_the_repository():
    home = "https://forge.example/us/it"
    page = (
        "[a](docs/a.md#b) ![p](docs/p.svg) [c](#c) [d](https://e.example)\n"
        '<source srcset="docs/n.svg"><img src="docs/p.png" alt="x (y)">\n'
    )
    assert with_addresses(page, home) == (
        f"[a]({home}/blob/main/docs/a.md#b) ![p]({home}/raw/main/docs/p.svg) [c](#c)"
        " [d](https://e.example)\n"
        f'<source srcset="{home}/raw/main/docs/n.svg"><img src="{home}/raw/main/docs/p.png"'
        ' alt="x (y)">\n'
    )


def test_every_link_of_the_readme_is_found():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    page = with_addresses(text, PROJECT["urls"]["Source"])
    assert re.findall(r"\]\((?!https?:|#)[^)]*\)|(?:src|srcset)=\"(?!https:)", page) == []
    inside = re.findall(rf"{PROJECT['urls']['Source']}/(?:blob|raw)/main/([^)#\"\s]+)", page)
    assert len(inside) > 8 and [path for path in inside if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", badges())
def test_a_badge_says_what_is_true(name):
    assert (FOLDER / name).read_text(encoding="utf-8") == badges()[name]
    assert f"docs/figures/{name}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_no_badge_says_how_a_build_went():
    text = "".join(badges().values())
    assert not re.search(r"passing|coverage|build|https?://(?!www\.w3\.org)", text)


def test_the_versions_of_the_site_are_listed_newest_first(tmp_path):
    for name in ("0.9", "0.10.1", "0.2.0", "0.10"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("x", encoding="utf-8")
    (tmp_path / "assets").mkdir()
    build_docs.list_versions(tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'href="([^"]+)"', page) == [
        f"{name}/index.html" for name in ("0.10.1", "0.10", "0.9", "0.2.0")
    ]
    assert build_docs.documented("") == rp.__version__ and build_docs.documented("1.0") == "1.0"
    assert "Documents reconpriv VERSION" in (ROOT / "zensical.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("version", ["../elsewhere", "a b", "/", ".hidden"])
def test_a_version_cannot_lead_elsewhere(version, tmp_path):
    with pytest.raises(build_docs.DocsError, match="A version is letters"):
        build_docs.build(tmp_path, version)


def test_a_site_with_versions_is_not_overwritten_by_one_without(tmp_path):
    (tmp_path / "site" / "0.2.0").mkdir(parents=True)
    (tmp_path / "site" / "0.2.0" / "index.html").write_text("x", encoding="utf-8")
    with pytest.raises(build_docs.DocsError, match="name one"):
        build_docs.build(tmp_path)
    assert (tmp_path / "site" / "0.2.0" / "index.html").exists()
