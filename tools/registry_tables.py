"""Write the documents' tables of what is registered; a test fails when they are out of date.

A table is written between ``<!-- table: NAME -->`` and ``<!-- end of table -->``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from reconpriv.attacks.run import ATTACKS
from reconpriv.estimate.counts import ESTIMATORS
from reconpriv.policy.presets import DEFAULT, PRESETS
from reconpriv.policy.sampling_rules import offered
from reconpriv.sources.formats import FORMATS, GZIP, Format
from reconpriv.theory.tails.bounds import BOUNDS

DOCS = Path(__file__).resolve().parents[1] / "docs"
_PLACE = re.compile(r"(<!-- table: ([a-z ]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)

Row = tuple[str, ...]


def _samplings() -> list[Row]:
    head = ("`--sampling`", "trials that a large group keeps", "what it reveals to an adversary")
    return [head, *((f"`{one.name}`", one.explanation, one.tells) for one in offered())]


def _bounds() -> list[Row]:
    head = ("`--bound`", "", "sampling rules")
    rounded = ", ".join(f"`{one.name}`" for one in offered() if not one.rounds_up)
    return [
        head,
        *(
            (f"`{one.name}`", one.explanation, "all" if one.sizes_classes else rounded)
            for one in BOUNDS.values()
        ),
    ]


def _presets() -> list[Row]:
    head = (
        "`--preset`",
        "",
        "p",
        "tolerance",
        "doubt",
        "bound",
        "sampling",
        "exposed above",
        "margins",
    )
    rows = []
    for one in PRESETS.values():
        policy, margins = one.policy, one.policy.wanted_margins
        numbers = (policy.retention, policy.tolerance, policy.doubt)
        name = f"`{one.name}`{' (default)' if one is DEFAULT else ''}"
        rows.append(
            (
                name,
                one.sentence,
                *(f"{number:g}" for number in numbers),
                f"`{policy.tail_bound.name}`",
                f"`{policy.sampling}`",
                f"{policy.exposed_above:g}",
                f"ε = {margins.epsilon:.3g}" if margins else "none",
            )
        )
    return [head, *rows]


def _estimators() -> list[Row]:
    head = ("`--estimator`", "")
    return [head, *((f"`{one.name}`", one.explanation) for one in ESTIMATORS.values())]


def _attacks() -> list[Row]:
    head = ("attack", "the question", "on a release")
    return [
        head,
        *((f"`{a.name}`", a.question, "yes" if a.on_release else "no") for a in ATTACKS.values()),
    ]


def _formats() -> list[Row]:
    return [("file", "endings", "Spark"), *map(_format, FORMATS.values())]


def _format(one: Format) -> Row:
    endings = ", ".join(f"`{ending}`" for ending in one.endings)
    spark = ("yes" if one.local else "only Spark") if one.distributed else "no"
    return one.label, endings + (f", also `{GZIP}`" if one.gzip else ""), spark


TABLES: dict[str, Callable[[], list[Row]]] = {
    "presets": _presets,
    "sampling rules": _samplings,
    "bounds": _bounds,
    "estimators": _estimators,
    "attacks": _attacks,
    "formats": _formats,
}


def table(name: str) -> str:
    """A table as Markdown."""
    head, *rows = TABLES[name]()
    lines = ["| " + " | ".join(cells) + " |\n" for cells in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head) + "\n")
    return "".join(lines).replace("|  |", "| |")


def renewed(text: str) -> str:
    """A page with its tables brought up to date."""
    return _PLACE.sub(lambda found: f"{found[1]}\n{table(found[2])}\n{found[3]}", text)


def pages() -> dict[Path, list[str]]:
    """The pages that have such tables, and which ones."""
    found = {
        page: [name for _, name, _ in _PLACE.findall(page.read_text(encoding="utf-8"))]
        for page in sorted(DOCS.rglob("*.md"))
    }
    return {page: names for page, names in found.items() if names}


if __name__ == "__main__":
    for page in pages():
        page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")
        sys.stdout.write(f"{page}\n")
