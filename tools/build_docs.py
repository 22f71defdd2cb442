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


def run_zensical(root: Path) -> None:
    """Build strictly; an unusual message is also a failure."""
    shutil.rmtree(root / SITE, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean"],
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


def build(root: Path) -> None:
    """Stage, build, check."""
    stage(root)
    check_nav(root)
    run_zensical(root)
    break_names(root / SITE)
    if wrong := faults(root / SITE):
        raise DocsError("\n".join(wrong))


def main() -> int:
    """Build the site of this repository, or of a copy of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    root = parser.parse_args().root
    try:
        build(root)
    except DocsError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{root / SITE / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
