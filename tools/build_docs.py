"""Build the documentation site into site/: stage its pages, build them strictly, check the result.

Pages are staged in build/docs because some lie outside docs/ (benchmark results, change log) and
their links must also work on a code forge, and because notebooks become pages. Zensical's strict
mode finds broken links between pages; what it ignores (images, files, links in the API
reference, messages of mkdocstrings, requests to other hosts) is checked here.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

sys.path.insert(0, str(Path(__file__).parent))
from notebook_page import notebook_page

# Files outside docs/ that are also pages of the site.
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/RESULTS.md": "benchmarks.md",
    "src/reconpriv/data/README.md": "tables.md",
}
STAGE = Path("build/docs")
SITE = Path("site")
FENCE = re.compile(r"^ *(```|~~~)")
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
LONG_NAME = re.compile(r"(?<=<code>)[\w./:]{25,}(?=</code>)")
USUAL = re.compile(r"Build (started|finished)|No issues found|Built in|^\s*$")


class DocsError(Exception):
    """The site cannot be built as it is."""


def page_of(path: Path) -> Path | None:
    """Where a file of the repository is on the site, if it is there."""
    text = path.as_posix()
    if text in OUTSIDE:
        return Path(OUTSIDE[text])
    if path.parts[:1] != ("docs",):
        return None
    inside = path.relative_to("docs")
    return inside.with_suffix(".md") if path.suffix == ".ipynb" else inside


def moved_links(text: str, source: Path) -> str:
    """A page with its links adapted to the site; code blocks are left alone."""
    lines, fenced = [], False
    for line in text.splitlines():
        if FENCE.match(line):
            fenced = not fenced
        lines.append(line if fenced else LINK.sub(lambda m: _moved(m, source), line))
    return "\n".join(lines) + "\n"


def _moved(match: re.Match[str], source: Path) -> str:
    target = match[2]
    if re.match(r"[a-z]+:|#", target):
        return match[0]
    name, _, anchor = target.partition("#")
    place = Path(os.path.normpath(source.parent / name))
    there, here = page_of(place), page_of(source)
    if there is None or here is None:
        raise DocsError(f"{source} links to {target}, which is not on the site.")
    moved = os.path.relpath(there, here.parent)
    return f"{match[1]}{moved}{'#' if anchor else ''}{anchor}{match[3]}"


def stage(root: Path) -> None:
    """Put every page and picture where Zensical reads them."""
    folder = root / STAGE
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "docs", folder)
    sources = sorted(path.relative_to(root) for path in (root / "docs").rglob("*"))
    for source in [*sources, *map(Path, OUTSIDE)]:
        if source.suffix not in (".md", ".ipynb") or source == Path("README.md"):
            continue
        page = folder / (page_of(source) or "")
        text = (root / source).read_text(encoding="utf-8")
        if source.suffix == ".ipynb":
            (folder / source.relative_to("docs")).unlink()
            text = notebook_page(text, page)
        page.write_text(moved_links(text, source), encoding="utf-8")


def check_nav(root: Path) -> None:
    """Check that every page is in the navigation."""
    config = tomllib.loads((root / "zensical.toml").read_text(encoding="utf-8"))
    named = set(re.findall(r"[\w/.-]+\.md", str(config["project"]["nav"])))
    folder = root / STAGE
    pages = {page.relative_to(folder).as_posix() for page in folder.rglob("*.md")}
    if lost := sorted(pages - named):
        raise DocsError(f"Not in the nav of zensical.toml: {', '.join(lost)}.")


def run_zensical(root: Path, version: str = "") -> None:
    """Build strictly, into a folder of this version if one is given; odd messages are failures."""
    shutil.rmtree(root / SITE / version, ignore_errors=True)
    config = root / ".zensical.toml"
    text = (root / "zensical.toml").read_text(encoding="utf-8")
    text = text.replace('site_dir = "site"', f'site_dir = "{(SITE / version).as_posix()}"')
    config.write_text(text.replace("VERSION", documented(version)), encoding="utf-8")
    try:
        _run_zensical(root, config.name)
    finally:
        config.unlink()


def documented(version: str) -> str:
    """What the footer of each page calls the version: as given, or that of the package."""
    own = Path(__file__).resolve().parents[1] / "src" / "reconpriv" / "_version.py"
    (found,) = re.findall(r'__version__ = "(.+)"', own.read_text(encoding="utf-8"))
    return version or found


def _run_zensical(root: Path, config: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", config],
        cwd=root,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    unusual = [line for line in said.splitlines() if not USUAL.search(line)]
    if done.returncode or unusual:
        raise DocsError("\n".join(unusual) or f"zensical exited with {done.returncode}")


class _Page(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(found.get("href", ""))
        self.loads += [found["src"]] if "src" in found else []
        self.loads += [part.split()[0] for part in found.get("srcset", "").split(",") if part]


def break_names(site: Path) -> None:
    """Let a long name in a table break after a dot, colon or underscore, not within a word."""
    for file in site.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        broken = LONG_NAME.sub(lambda m: re.sub(r"(?<=[/._:])(?=\w)", "<wbr>", m[0]), text)
        file.write_text(broken, encoding="utf-8")


def faults(site: Path) -> list[str]:
    """Broken links, and anything a page would load from another host."""
    files = sorted(file for file in site.rglob("*.html") if file.name != "404.html")
    pages = {file: _Page(file.read_text(encoding="utf-8")) for file in files}
    found = []
    for file, page in pages.items():
        for target in page.loads + page.links:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in page.loads and parts.scheme != "data":
                    found.append(f"{file.relative_to(site)} loads {target}")
                continue
            there = Path(os.path.normpath(file.parent / unquote(parts.path)))
            there = file if not parts.path else there / "index.html" if there.is_dir() else there
            anchor = unquote(parts.fragment)
            known = pages[there].anchors if there in pages else {anchor}
            if not there.is_file() or (anchor and anchor not in known | {"__top"}):
                found.append(f"{file.relative_to(site)} leads to {target}, which is not there")
    return found


def list_versions(site: Path) -> None:
    """The first page of a site with several versions: a link to each, the newest first."""

    def number(folder: Path) -> list[tuple[int, str]]:
        return [(int(part or 0), rest) for part, rest in re.findall(r"(\d*)(\D*)", folder.name)]

    found = sorted((page.parent for page in site.glob("*/index.html")), key=number, reverse=True)
    items = "".join(f'<li><a href="{one.name}/index.html">{one.name}</a></li>' for one in found)
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>reconpriv</title>'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme"'
        ' content="light dark"><body style="font-family: sans-serif"><h1>reconpriv</h1>'
        f"<p>Documentation by version, the newest first:</p><ul>{items}</ul></body></html>\n"
    )
    (site / "index.html").write_text(page, encoding="utf-8")


def build(root: Path, version: str = "") -> Path:
    """Stage, build, check; returns the first page."""
    if not re.fullmatch(r"[\w][\w.+-]*|", version):
        raise DocsError(f"A version is letters, digits, dots and dashes; got {version!r}.")
    if not version and any((root / SITE).glob("[0-9]*/index.html")):
        raise DocsError("site/ holds versions: name one (make docs VERSION=…), or remove site/.")
    stage(root)
    check_nav(root)
    run_zensical(root, version)
    place = root / SITE / version
    break_names(place)
    if wrong := faults(place):
        raise DocsError("\n".join(wrong))
    if version:
        list_versions(root / SITE)
    return root / SITE / "index.html"


def main() -> int:
    """Build the site of this repository, or of a copy of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--version", default="", help="build into site/VERSION, and list versions")
    given = parser.parse_args()
    try:
        page = build(given.root, given.version)
    except DocsError as error:
        print(error, file=sys.stderr)
        return 1
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
