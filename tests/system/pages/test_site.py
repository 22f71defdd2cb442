"""The documentation site builds strictly, and a fault in a page fails the build."""

import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import build_docs
import cli_reference
import make_idea_figure
import reconpriv as rp
from repository import ROOT


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The files that the site is made of."""
    root = tmp_path_factory.mktemp("site") / "copy"
    for name in ("docs", "src", "tools"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("zensical.toml", *build_docs.OUTSIDE):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, root / name)
    return root


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A site with the settings of ours and few short pages, quick to break and build."""
    root = tmp_path_factory.mktemp("small")
    for name in ("src", "tools"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    inside = ("index.md", "tune.md", "threat-model.md", "reference/errors.md")
    for file in (*build_docs.OUTSIDE, *(f"docs/{page}" for page in inside)):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(f"# The page {file}\n", encoding="utf-8")
    shutil.copyfile(ROOT / "docs" / "site.css", root / "docs" / "site.css")
    nav = f"nav = {sorted({*inside, *build_docs.OUTSIDE.values()})}\n"
    settings = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    settings, found = re.subn(r"^nav = \[\n.*?^\]\n", nav, settings, flags=re.DOTALL | re.MULTILINE)
    assert found == 1
    (root / "zensical.toml").write_text(settings, encoding="utf-8")
    done = built(root)
    assert done.returncode == 0, done.stderr
    return root


def built(root):
    command = [sys.executable, str(root / "tools" / "build_docs.py"), str(root)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def site(copy):
    """The site as it should be."""
    done = built(copy)
    assert done.returncode == 0, done.stderr
    return copy / "site"


def test_the_site_builds(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) >= 40
    front = (site / "index.html").read_text(encoding="utf-8")
    assert "figures/idea.svg" in front
    assert (site / "figures" / "idea.svg").is_file()
    notebook = (site / "notebooks" / "publisher.html").read_text(encoding="utf-8")
    assert "48,842" in notebook
    assert "publisher-" in notebook  # its picture


NO_PAGE, NO_ANCHOR = "[x](nowhere.md)", "[x](threat-model.md#nothing-of-that-name)"
NO_PICTURE, ELSEWHERE = "![x](nowhere.png)", '<img src="https://example.org/x.png" alt="">'


@pytest.mark.parametrize(
    ("page", "added", "said"),
    [
        ("docs/tune.md", [NO_PAGE, NO_ANCHOR], ["nowhere.md", "nothing-of-that-name"]),
        ("docs/tune.md", [NO_PICTURE, ELSEWHERE], ["nowhere.png", "loads https://example.org"]),
        ("docs/tune.md", ["[x](../pyproject.toml)"], ["not on the site"]),
        ("docs/reference/errors.md", ["::: reconpriv.errors.NoSuchError"], ["NoSuchError"]),
        ("docs/lost.md", ["# A page that is in no menu"], ["lost.md"]),
    ],
    ids=["links", "pictures", "outside", "reference", "menu"],
)
def test_a_broken_page_fails_the_build(page, added, said, small):
    file = small / page
    before = file.read_text(encoding="utf-8") if file.exists() else None
    file.write_text("\n\n".join([before or "", *added]), encoding="utf-8")
    try:
        done = built(small)
    finally:
        if before is None:
            file.unlink()
        else:
            file.write_text(before, encoding="utf-8")
    assert done.returncode == 1
    assert [part for part in said if part not in done.stderr] == []
    assert "DocsError" not in done.stderr  # said in words, without our own traceback


def test_every_public_name_is_in_the_reference():
    pages = (ROOT / "docs" / "reference").glob("*.md")
    named = set(re.findall(r"^::: ([\w.]+)", "\n".join(p.read_text() for p in pages), re.MULTILINE))
    documented = {name.rsplit(".", 1)[-1] for name in named}
    errors = {"ReconprivError", "ReconprivWarning"} if "reconpriv.errors" in named else set()
    assert set(rp.__all__) - documented - errors == {"__version__"}


def test_the_reference_of_commands_is_up_to_date():
    page = ROOT / "docs" / "reference" / "cli.md"
    assert page.read_text(encoding="utf-8") == cli_reference.reference(), (
        "run python tools/cli_reference.py"
    )


def test_the_figures_are_what_their_script_draws():
    folder = ROOT / "docs" / "figures"
    drawn = make_idea_figure.figures()
    assert {name: (folder / name).read_text(encoding="utf-8") for name in drawn} == drawn


def test_links_move_with_their_page_but_not_in_code():
    text = "[a](docs/tune.md#fast) [b](https://example.org)\n```\n[c](docs/tune.md)\n```\n"
    moved = build_docs.moved_links(text, Path("CHANGELOG.md"))
    assert moved == "[a](tune.md#fast) [b](https://example.org)\n```\n[c](docs/tune.md)\n```\n"
    up = build_docs.moved_links("[r](../benchmarks/RESULTS.md)", Path("docs/scale.md"))
    assert up == "[r](benchmarks.md)\n"
    note = build_docs.moved_links("[n](../notebooks/analyst.ipynb)", Path("docs/tutorials/a.md"))
    assert note == "[n](../notebooks/analyst.md)\n"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def address(site):
    """The built site behind a local server."""
    serve = partial(_Quiet, directory=str(site))
    server = ThreadingHTTPServer(("127.0.0.1", 0), serve)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_browser_asks_no_other_host_and_a_phone_is_wide_enough(address, browser):
    asked, failed, too_wide = [], [], []
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.on("request", lambda request: asked.append(request.url))
    page.on("response", lambda answer: failed.append(answer.url) if answer.status >= 400 else None)
    for name in ("index", "tutorials/publisher", "notebooks/analyst", "paper", "reference/cli"):
        page.goto(f"{address}/{name}.html", wait_until="load")
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            too_wide.append(name)
    page.close()
    assert len(asked) > 10
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    assert failed == []
    assert too_wide == []
