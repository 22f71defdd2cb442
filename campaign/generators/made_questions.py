"""Made questions about made tables, asked of releases; DuckDB on the original table is the referee.

What is made and compared is in tests/oracle, where the tests ask a few hundred of these questions.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from random import Random

from campaign.case import DONE, Case, Generator, Outcome, Step
from campaign.place import Place
from campaign.run import in_fork

sys.path.append(str(Path(__file__).parents[2] / "tests"))

from oracle.properties import DESIGNS, property_faults
from oracle.run import ask_all

_SHOWN = 3


def _make(rng: Random, _: Place) -> Case:
    seed = rng.randrange(10**9)
    design = rng.randrange(len(DESIGNS)) if rng.random() < 0.25 else None
    what = "answers" if design is None else f"intervals, {DESIGNS[design].name}"
    return Case(f"{what}, table {seed}", (Step(()),), {"seed": seed, "design": design})


def _asked(seed: int, design: int | None, folder: Path) -> list[str]:
    """The faults that the questions about one table found."""
    if design is not None:
        return property_faults(seed, DESIGNS[design], folder, 40)[1]
    return ask_all(seed, folder, selects=15, counts=2, python=15).faults


def _run(case: Case, place: Place) -> list[Outcome]:
    begun, before = time.monotonic(), place.snapshot()
    folder = place.root / "releases"
    folder.mkdir()
    faults = in_fork(_asked, case.facts["seed"], case.facts["design"], folder)
    out = json.dumps(faults).encode()
    return [Outcome(DONE, out, b"", time.monotonic() - begun, before, place.snapshot())]


def _check(_: Case, __: Place, outcomes: list[Outcome]) -> list[str]:
    return list(json.loads(outcomes[0].out))[:_SHOWN]


MADE = Generator(
    "oracle",
    "60 made questions about each of many made tables, in SQL, Python and batches, compared with"
    " DuckDB on the original table; the intervals of their answers",
    0.5,
    _make,
    check=_check,
    run=_run,
)
