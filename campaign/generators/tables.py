"""The small table that most cases start from, and the commands that read it."""

from __future__ import annotations

from random import Random

from campaign.case import DONE, NOT_PRIVATE, REFUSED, Step
from campaign.place import RAW

PUBLIC = ("region", "age")
SENSITIVE = "income"
NAMES = (*PUBLIC, "note", SENSITIVE)
_REGIONS = ("north", "south", "west", 'Zürich, "old"')


def rows(rng: Random, number: int = 60) -> list[tuple[str, int, str, str]]:
    """Records: two public columns, one that nobody publishes, and the sensitive one."""
    return [
        (rng.choice(_REGIONS), rng.randrange(20, 24), f"{RAW}-{i}", rng.choice("abc"))
        for i in range(number)
    ]


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
            "--key", "my.key", "--sample-size", "none", *more,
        ),
        writes=("out",),
    )  # fmt: skip


def query(sql: str, *more: str) -> Step:
    """Ask the release."""
    return Step(("query", "out", sql, *more))


def reading(rng: Random, source: str, *more: str) -> tuple[Step, ...]:
    """Audit the table, or publish it and ask how many records it has."""
    if rng.random() < 0.4:
        return (audit(source, *more),)
    return publish(source, *more), query("SELECT count(*) FROM release", "--json")
