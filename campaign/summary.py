"""The table of a run, as text and in docs/reliability.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from campaign.case import Generator
from campaign.judge import RULES
from campaign.run import Result

BEGIN, END = "<!-- the table: begin -->", "<!-- the table: end -->"
PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"


def table(results: Iterable[Result], generators: Iterable[Generator]) -> str:
    """One row per generator: how many cases, how they ended, how many broke a rule."""
    found = list(results)
    rows = [
        "| what is bad | what is tried | cases | done | refused | answers compared | failed |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for one in generators:
        mine = [result for result in found if result.generator == one.name]
        if mine:
            rows.append(f"| {one.name} | {one.tries} | {' | '.join(_figures(mine))} |")
    rows.append(f"| **all** | | {' | '.join(_figures(found))} |")
    return "\n".join(rows)


def _figures(results: list[Result]) -> list[str]:
    done = sum(bool(one.codes) and one.codes[-1] in (0, 1) for one in results)
    refused = sum(bool(one.codes) and one.codes[-1] == 2 for one in results)
    answers = sum(one.compared for one in results)
    failed = sum(bool(one.faults) for one in results)
    return [f"{number:,}" for number in (len(results), done, refused, answers, failed)]


def failures(results: Iterable[Result]) -> str:
    """Each failed case with the command that repeats it, and how often each rule was broken."""
    found = [one for one in results if one.faults]
    rules = Counter(fault.rule for one in found for fault in one.faults)
    lines = [
        f"{one.generator} {one.number}: {one.what}; "
        + "; ".join(f"{fault.rule}: {fault.detail}" for fault in one.faults)
        for one in found
    ]
    return "\n".join([*lines, *(f"{rule} ({RULES[rule]}): {n:,}" for rule, n in rules.items())])


def write_page(text: str, page: Path = PAGE) -> None:
    """Put the table into its page, between the two marks."""
    whole = page.read_text(encoding="utf-8")
    before, rest = whole.split(BEGIN)
    _, after = rest.split(END)
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
