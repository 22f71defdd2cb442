"""Every generator; a new one is a file in ``generators`` and a line here."""

from __future__ import annotations

from math import ceil

from campaign.case import Generator
from campaign.generators import (
    binary,
    delimited,
    made_questions,
    manifests,
    names,
    options,
    questions,
    short_of,
    stopped,
    together,
)

GENERATORS: dict[str, Generator] = {
    one.name: one
    for one in (
        delimited.CSV,
        binary.PARQUET,
        binary.ARROW,
        delimited.JSON,
        binary.EXCEL,
        binary.STATISTICAL,
        binary.DATABASES,
        names.NAMES,
        options.OPTIONS,
        manifests.MANIFESTS,
        questions.ANSWERED,
        questions.BROKEN,
        questions.BATCH,
        made_questions.MADE,
        stopped.KILLS,
        together.TWO,
        short_of.SHORT,
    )
}


def plan(cases: int, names: list[str] | None = None) -> list[tuple[Generator, int]]:
    """Which cases to run: each generator its share, in turns, so that any prefix is a fair mix."""
    chosen = [one for one in GENERATORS.values() if names is None or one.name in names]
    total = sum(one.share for one in chosen)
    wanted = {one.name: ceil(cases * one.share / total) for one in chosen}
    placed = [
        ((number + 0.5) / wanted[one.name], one.name, number)
        for one in chosen
        for number in range(wanted[one.name])
    ]
    return [(GENERATORS[name], number) for _, name, number in sorted(placed)]
