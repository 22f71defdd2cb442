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

    @property
    def needs_arrow(self) -> bool:
        return any("library(arrow" in code for code in self.code)

    def script(self) -> str:
        return "\n".join(self.code) + "\n"

    def without_arrow(self) -> str:
        """The same with arrow's only function here replaced by a command `as-csv`."""
        copy = 'read_parquet <- function(file) read.csv(pipe(paste("as-csv", file)))\n'
        kept = self.script().replace("library(arrow, warn.conflicts = FALSE)\n", copy)
        assert "arrow" not in kept
        return kept


def r_page(page: Path) -> RPage:
    code, printed, below = [], [], False
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "r":
            code.append(block.text)
        elif block.language == "text" and block.follows_on and below:
            printed.append(block.text)
        below = block.language == "r"
    return RPage(tuple(code), "\n".join(printed))
