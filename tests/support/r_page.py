"""The R code of a Markdown page, as one script, and what the page says it prints."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from example_runner import blocks


@dataclass(frozen=True)
class RPage:
    """The ```r blocks of a page in order; a ```text block right below one is what it prints."""

    code: tuple[str, ...]
    printed: str

    def script(self) -> str:
        return "\n".join(self.code) + "\n"


def r_page(page: Path) -> RPage:
    code, printed, below = [], [], False
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "r":
            code.append(block.text)
        elif block.language == "text" and block.follows_on and below:
            printed.append(block.text)
        below = block.language == "r"
    return RPage(tuple(code), "\n".join(printed))
