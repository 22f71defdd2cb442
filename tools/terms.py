"""List where a page uses a term of the glossary before it explains it: terms.py [PAGE ...].

A first use counts as explained inside a link, in bold or italics (where a page explains the term
itself), in a heading, or in a sentence that links to the term. Code, tables and captions are left
out: a table may be a list of what the page is about to explain.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
GLOSSARY = DOCS / "glossary.md"
# Pages for whoever publishes, analyses or answers for a release; the others are for those who know.
PAGES = ("index.md", "gallery.md", "how-to/*.md", "tutorials/*.md", "promise.md", "protection.md",
         "reports.md", "scale.md", "studio.md", "words.md")  # fmt: skip
# What a term looks like in a text, where its heading does not say so: a pattern by heading.
WORDS = {
    "Public and sensitive columns": r"(public|sensitive) (columns?|values?)",
    "Role": r"roles?",
    "Person's number": r"person's numbers?",
    "Group": r"groups? of look-alikes|micro groups?",
    "Trial": r"trials?|perturb(ed|ing|s|ation)?",
    "Tolerance and doubt": r"tolerance|doubt",
    "Policy": r"(?<!row\s)(?<!security\s)polic(y|ies)",
    "Violating group": r"violat(e|es|ing) groups?",
    "Exposed value": r"exposed values?|harmless",
    "Sampling rule": r"sampling rules?|sample sizes?",
    "PRAM": r"PRAM",
    "Margin": r"margins?",
    "Effective trials": r"effective trials",
    "Key": r"(?<!sort\s)keys?",
}
_FENCE = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.DOTALL | re.MULTILINE)
_LEFT_OUT = re.compile(r"<!--.*?-->|^\|.*$|<(picture|small)\b.*?</\1>|!\[[^\]]*\]\([^)]*\)|`[^`]*`",
                       re.DOTALL | re.MULTILINE)  # fmt: skip
_EXPLAINED = re.compile(r"\[[^\]]*\]\([^)]*\)|\*\*[^*]+\*\*|\*[^*\n]+\*|^#+ .*$", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.:?!])\s+|\n\s*\n|\n(?=[-*\d])")


def anchor(heading: str) -> str:
    """What a heading is called in a link."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def terms(glossary: str) -> dict[str, re.Pattern[str]]:
    """The terms of the glossary: how each looks in a text, by its anchor."""
    headings = re.findall(r"^### (.+)$", glossary, re.MULTILINE)
    patterns = {one: WORDS.get(one, re.escape(one.lower()) + "s?") for one in headings}
    return {anchor(one): _compiled(words) for one, words in patterns.items()}


def _compiled(words: str) -> re.Pattern[str]:
    """Whole words in any case; a line may break between them."""
    return re.compile(rf"\b({words})\b".replace("\\ ", r"\s+").replace(" ", r"\s+"), re.I)


def prose(text: str) -> str:
    """A page without code, tables and pictures, each line in its place."""
    for pattern in (_FENCE, _LEFT_OUT):
        text = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    return text


def unexplained(text: str, known: dict[str, re.Pattern[str]]) -> Iterator[tuple[int, str, str]]:
    """The line, the term and the sentence of every first use that nothing explains."""
    plain = prose(text)
    spans = [found.span() for found in _EXPLAINED.finditer(plain)]
    breaks = [0, *(found.start() for found in _SENTENCE.finditer(plain)), len(plain)]
    for name, words in known.items():
        uses = words.finditer(plain)
        first = next((one for one in uses if name == "pram" or not one[0].isupper()), None)
        if first is None or any(start <= first.start() < end for start, end in spans):
            continue
        begin = max(one for one in breaks if one <= first.start())
        sentence = plain[begin : min(one for one in breaks if one > first.start())]
        if f"#{name})" not in sentence:
            yield plain.count("\n", 0, first.start()) + 1, name, " ".join(sentence.split())


def pages() -> list[Path]:
    """The pages that explain what they use."""
    found = (page for pattern in PAGES for page in DOCS.glob(pattern))
    return sorted(found)


def main(names: list[str]) -> int:
    """Print what is found; exits 1 if there is anything."""
    known = terms(GLOSSARY.read_text(encoding="utf-8"))
    found = 0
    for page in [Path(name) for name in names] or pages():
        for line, term, sentence in unexplained(page.read_text(encoding="utf-8"), known):
            print(f"{page}:{line}: {term}: {sentence}")
            found = 1
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
