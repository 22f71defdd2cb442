"""The small table that most cases start from, the commands that read it, and what must come out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

from campaign.case import DONE, NOT_PRIVATE, REFUSED, Case, Check, Outcome, Step
from campaign.place import RAW, Place

PUBLIC = ("region", "age")
SENSITIVE = "income"
NAMES = (*PUBLIC, "note", SENSITIVE)
_REGIONS = ("north", "south", "west", 'Zürich, "old"')

Row = tuple[str, int, str, str]
Pair = tuple[str, str]


def rows(rng: Random, number: int = 60) -> list[Row]:
    """Records: two public columns, one that nobody publishes, and the sensitive one."""
    return [
        (rng.choice(_REGIONS), rng.randrange(20, 24), f"{RAW}-{i}", rng.choice("abc"))
        for i in range(number)
    ]


def columns(records: Iterable[Row]) -> dict[str, list[object]]:
    """The same, column by column."""
    return {
        name: list(values) for name, values in zip(NAMES, zip(*records, strict=True), strict=True)
    }


def audit(source: str, *more: str) -> Step:
    """Audit the table."""
    return Step(
        ("audit", source, "-s", SENSITIVE, "--public", ",".join(PUBLIC), "--no-columns", *more),
        codes=(DONE, NOT_PRIVATE, REFUSED),
    )


def publish(source: str, *more: str) -> Step:
    """Publish it with every record kept, so that its public columns can be compared."""
    return Step(
        (
            "publish", source, "out", "-s", SENSITIVE, "--public", ",".join(PUBLIC),
            "--key", "my.key", "--sampling", "none", *more,
        ),
        writes=("out",),
    )  # fmt: skip


def query(sql: str, *more: str) -> Step:
    """Ask the release, which was made a moment ago and must answer."""
    return Step(("query", "out", sql, *more))


def reading(rng: Random, source: str, *more: str) -> tuple[Step, ...]:
    """Audit the table, or publish it and ask for its groups, which must be answered."""
    if rng.random() < 0.3:
        return (audit(source, *more),)
    made = publish(source, *more, "--format", rng.choice(("parquet", "parquet", "csv", "cells")))
    asked = query("SELECT region, age, count(*) FROM release GROUP BY region, age", "--json")
    return made, Step(asked.args, codes=(DONE,))


def same_groups(read: Callable[[Place], Iterable[Pair] | None]) -> Check:
    """Compare the groups that a release answers with those of a plain reader of the same file."""

    def check(case: Case, place: Place, outcomes: list[Outcome]) -> list[str] | None:
        if len(case.steps) < 2:
            return None
        expected = read(place)
        if expected is None:
            return None
        wanted = Counter((_text(region), _text(age)) for region, age in expected)
        answer = json.loads(outcomes[-1].out)
        found: Counter[Pair] = Counter()
        for row in answer["rows"]:  # a missing value and an empty one are both nothing here
            found[_text(row["labels"]["region"]), _text(row["labels"]["age"])] += row["count"]
        differ = [group for group in wanted | found if wanted.get(group) != found.get(group)]
        return [f"{one}: {found.get(one)} for {wanted.get(one)}" for one in differ[:3]]

    return check


def _text(value: object) -> str:
    """A value as CSV would hold it, whatever its type."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
