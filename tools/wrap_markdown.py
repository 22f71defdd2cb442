"""Wrap the paragraphs and lists of Markdown files at 120 characters: wrap_markdown.py [FILE ...].

Without a file, every page of the repository. Code, tables, comments, headings and HTML stay as they
are, and so does what the page says: only white space between words changes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

WIDTH = 120
ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("docs", "benchmarks", "campaign", "lab", "src", "tests", "r", ".github")

_FENCE = re.compile(r"^ *(```+|~~~+)")
_ITEM = re.compile(r"^( *)([-*+]|\d{1,3}[.)])( +)(?=\S)")
_QUOTE = re.compile(r"^ {0,3}> ?")
_HTML = re.compile(r"^ *</?[a-z][^>]*>? *", re.IGNORECASE)
# A line of a table, a heading; and outside a paragraph a link's target, an admonition, a rule.
_ROW = re.compile(r"^ *(\||#{1,6} )")
_LINE = re.compile(r"^ *(\[[^\]]+\]: |!!! |\?\?\? |([-=*_])\2{2,} *$)")
# What holds together: code, the text of a badge, the target of a link or picture, anything else
# without white space.
_WORD = re.compile(
    r"(?:(`+)(?!`).+?(?<!`)\1(?!`)|!\[[^\]]{1,30}(?=\])|\]\([^)\s]*(?: \"[^\"]*\")?\)|\S)+"
)
# A line must not begin with what would start something else.
_STARTS = re.compile(r"^([>|=]|[-+*]$|#{1,6}$|\d{1,9}[.)]$|[-_]{2,}$)")


def wrapped(text: str, width: int = WIDTH) -> str:
    """The page with its paragraphs and lists wrapped."""
    return "".join(f"{line}\n" for line in _wrap(text.splitlines(), width))


@dataclass
class _Paragraph:
    """Lines that are one paragraph, and what its first and its other lines begin with."""

    first: str
    rest: str
    lines: list[str]


def _wrap(lines: list[str], width: int) -> Iterator[str]:
    paragraph: _Paragraph | None = None
    indent, number = 0, 0  # of the text of the list item that we are in
    while number < len(lines):
        line = lines[number]
        taken = _verbatim(lines[number:], indent, inside=paragraph is not None)
        item, quote = _ITEM.match(line), _QUOTE.match(line)
        if paragraph and (taken or item or quote or not line.strip()):
            yield from _filled(paragraph, width)
            paragraph = None
        if taken:
            yield from lines[number : number + taken]
        elif not line.strip():
            yield ""
        elif quote:
            quoted = list(takewhile(_QUOTE.match, lines[number:]))
            inner = _wrap([_QUOTE.sub("", one) for one in quoted], width - 2)
            yield from (f"> {one}".rstrip() for one in inner)
            taken = len(quoted)
        elif item:
            indent = item.end()
            paragraph = _Paragraph(line[:indent], " " * indent, [line[indent:]])
        elif paragraph:
            paragraph.lines.append(line)
        else:
            margin = line[: len(line) - len(line.lstrip())]
            indent = min(indent, len(margin))
            paragraph = _Paragraph(margin, margin, [line])
        if paragraph and line.endswith("\\"):  # a line break that is meant
            yield from _filled(paragraph, width)
            paragraph = _Paragraph(paragraph.rest, paragraph.rest, [])
        number += max(taken, 1)
    if paragraph:
        yield from _filled(paragraph, width)


def _verbatim(lines: list[str], indent: int, *, inside: bool) -> int:
    """How many lines from the first stay as they are; ``inside`` a paragraph fewer kinds do."""
    line = lines[0]
    if fence := _FENCE.match(line):
        return _up_to(lines, lambda one: one.strip().strip(fence[1][0]) == "" and fence[1] in one)
    if line.lstrip().startswith("<!--"):
        return _up_to(lines, lambda one: "-->" in one, first=0)
    if not inside and (_HTML.match(line) or line.startswith(":::")):  # an entry of the reference
        return len(list(takewhile(str.strip, lines)))
    margin = len(line) - len(line.lstrip())
    code = margin >= (indent if margin >= indent else 0) + 4 and not _ITEM.match(line)
    return int(bool(_ROW.match(line) or (not inside and (_LINE.match(line) or code))))


def _up_to(lines: list[str], ends: Callable[[str], bool], first: int = 1) -> int:
    """How many lines there are up to one that ends what the first began."""
    return next((n + 1 for n in range(first, len(lines)) if ends(lines[n])), len(lines))


def _filled(paragraph: _Paragraph, width: int) -> Iterator[str]:
    line = paragraph.first
    for position, part in enumerate(_parts(" ".join(map(str.strip, paragraph.lines)))):
        if position and len(line) + 1 + len(part) > width:
            yield line.rstrip()
            line = paragraph.rest + part
        else:
            line += f" {part}" if position else part
    if line.strip():
        yield line.rstrip()


def _parts(text: str) -> list[str]:
    """Words, each with those behind it that must not begin a line."""
    parts: list[str] = []
    for found in _WORD.finditer(text):
        if parts and _STARTS.match(found[0]):
            parts[-1] += f" {found[0]}"
        else:
            parts.append(found[0])
    return parts


def pages() -> list[Path]:
    """Every Markdown file of the repository."""
    inside = (page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))
    return sorted([*ROOT.glob("*.md"), *inside])


def main(names: list[str]) -> int:
    """Wrap the files and say which ones changed."""
    for page in [Path(name) for name in names] or pages():
        before = page.read_text(encoding="utf-8")
        after = wrapped(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"{page}: wrapped")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
