"""How often 95 % intervals of shares, comparisons, averages and quantiles hold.

Tables of figures and random comparisons are asked of releases of the census workers made with fixed
keys; the truth is the answer of the same question to the original table. This writes
docs/coverage-figures.csv, in an hour:

    python tools/figure_coverage.py
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import reconpriv as rp
from coverage_tables import fixed_key, open_table
from reconpriv.core.cube import Cube, collect
from reconpriv.core.kernel import Kernel
from reconpriv.queries.answer import Answerer, Settings
from reconpriv.queries.averages import Asked, average_rows
from reconpriv.queries.compare import compare_sides, side_of
from reconpriv.queries.estimate import Design
from reconpriv.queries.measures import measure_of
from reconpriv.queries.plan import publish_cube
from reconpriv.queries.quantiles import quantile_rows
from reconpriv.queries.selections import select
from reconpriv.queries.shares import asked_share, share_rows

CSV = Path(__file__).parent.parent / "docs" / "coverage-figures.csv"
HEAD = ("table", "sample_size", "question", "holders", "wrong_p", "cases", "covered", "below")
SIZES = ("none", "octave", "public")
RETENTION = 0.5
CLASSES = (("0 to 20", 0, 20), ("21 to 200", 21, 200), ("201 or more", 201, 10**9))
PAIRS = 60  # of conditions to compare
SETTINGS = Settings()
QUESTIONS = (
    "share", "share among holders", "difference", "ratio", "difference, overlapping",
    "average of a public number", "sum of a public number", "median of a public number",
    "average of the sensitive column", "median of the sensitive column",
)  # fmt: skip

# The value and its limits of each row, by its labels.
Answers = dict[tuple[Any, ...], tuple[Any, Any, Any]]
GROUPINGS = (
    ("Gender",), ("Workclass",), ("Marital", "Gender"), ("Race", "Gender"),
    ("Workclass", "Gender"), ("Workclass", "Marital", "Race"),
)  # fmt: skip


def truth_of(raw: Cube) -> Answerer:
    """The original table, asked as if nothing had been perturbed."""
    return Answerer(raw, Design(1.0, raw.schema.domain_size, "none"))


def table_answers(answerer: Answerer, by: tuple[str, ...], value: Any) -> dict[str, Answers]:
    """Every figure by groups: about a sensitive value, and about the whole sensitive column."""
    schema = answerer.cells.schema
    sensitive = schema.sensitive.name
    holders, everyone = select(answerer, {sensitive: value}), select(answerer, None)
    women = select(answerer, {"Marital": "Never married"})
    age = measure_of(answerer, "Age", None)
    scores = {one: float(i) for i, one in enumerate(schema.domain)}
    own = measure_of(answerer, sensitive, scores)
    found = {
        "share": share_rows(answerer, asked_share(holders, None), by, SETTINGS),
        "share among holders": share_rows(answerer, asked_share(women, holders), by, SETTINGS),
        "average of the sensitive column": average_rows(
            answerer, Asked("average", own, everyone, ""), by, SETTINGS
        ),
        "median of a public number": quantile_rows(
            answerer, age, 0.5, holders, by, SETTINGS, name=""
        ),
        "median of the sensitive column": quantile_rows(
            answerer, own, 0.5, everyone, by, SETTINGS, name=""
        ),
    }
    for kind in ("average", "sum"):
        found[f"{kind} of a public number"] = average_rows(
            answerer, Asked(kind, age, holders, ""), by, SETTINGS
        )
    return {
        question: {tuple(labels.values()): (one.value, one.low, one.high) for labels, one in rows}
        for question, rows in found.items()
    }


def compared(answerer: Answerer, a: Asker, b: Asker, value: Any) -> dict[str, Answers]:
    """The difference and the ratio of two shares of a sensitive value, which may overlap."""
    extra = {answerer.cells.schema.sensitive.name: value}
    sides = [side_of(select(answerer, one | extra), None, "share") for one in (a, b)]
    found = compare_sides(answerer, sides[0], sides[1], SETTINGS)
    ends = found.difference, found.difference_low, found.difference_high
    disjoint = any(name in a and a[name] != b[name] for name in b)
    name = "difference" if disjoint else "difference, overlapping"
    ratio = found.ratio, found.ratio_low, found.ratio_high
    return {name: {(): ends}} | ({"ratio": {(): ratio}} if found.ratio is not None else {})


Asker = dict[str, Any]


def pairs(raw: Cube, rng: np.random.Generator, many: int) -> list[tuple[Asker, Asker, Any]]:
    """Two conditions and a value each; every second pair overlaps."""
    names = [column.name for column in raw.schema.public]
    chances = raw.records / raw.records.sum()
    found = []
    for number in range(many):
        group = int(rng.choice(raw.groups, p=chances))
        value = raw.schema.domain[
            int(raw.value[rng.choice(raw.value.size, p=raw.count / raw.count.sum())])
        ]
        one, two = (names[int(i)] for i in rng.choice(len(names), 2, replace=False))
        at = {name: raw.values[i][int(raw.codes[i][group])].as_py() for i, name in enumerate(names)}
        if number % 2:
            found.append(({one: at[one]}, {two: at[two]}, value))
            continue
        options = [v for v in raw.values[names.index(two)].to_pylist() if v != at[two]]
        other = options[int(rng.integers(len(options)))]
        found.append(({two: at[two]}, {two: other}, value))
    return found


def measure(name: str, size: str, keys: int, wrong: float = 1.0) -> list[tuple[Any, ...]]:
    """Cases and hits of one design; ``wrong`` multiplies the p that the analyst is told."""
    with open_table(name) as table:
        batches = list(table.batches())
        raw = collect(batches, table.schema)
    rng = np.random.default_rng(5)
    common = np.bincount(raw.value, weights=raw.count, minlength=raw.schema.domain_size)
    values = [
        raw.schema.domain[int(i)]
        for i in rng.choice(common.size, len(GROUPINGS), p=common / common.sum())
    ]
    exact = truth_of(raw)
    asked: list[tuple[Callable[[Answerer], dict[str, Answers]], Any]] = []
    for by, value in zip(GROUPINGS, values, strict=True):
        asked.append((partial(table_answers, by=by, value=value), (by, value)))
    for a, b, value in pairs(raw, rng, PAIRS):
        asked.append((partial(compared, a=a, b=b, value=value), (a, value)))
    truth = [question(exact) for question, _ in asked]
    holders = [_holders(exact, about) for _, about in asked]
    policy = rp.Policy(RETENTION, 0.5, 0.3, sample_size=size)
    design = Design(RETENTION * wrong, table.schema.domain_size, size)
    tally: dict[tuple[str, str], list[int]] = {}
    for number in range(keys):
        cube = publish_cube(raw, batches, Kernel(table.schema, policy, fixed_key(number)))
        answerer = Answerer(cube, design)
        for (question, _), true, counts in zip(asked, truth, holders, strict=True):
            for kind, rows in question(answerer).items():
                for key, (_, low, high) in rows.items():
                    value = true.get(kind, {}).get(key, (None,))[0]
                    if value is None:
                        continue
                    one = tally.setdefault((kind, _class(counts[key])), [0, 0, 0])
                    edge = 1e-6 * max(abs(value), 1.0)
                    above = high is not None and value > high + edge
                    below = value < low - edge
                    for i, add in enumerate((True, not above and not below, below)):
                        one[i] += add
    said = "" if wrong == 1 else f"{wrong:g}"
    return [
        (name, size, kind, label, said, *tally[kind, label])
        for kind, (label, _, _) in itertools.product(QUESTIONS, CLASSES)
        if (kind, label) in tally
    ]


def _class(holders: float) -> str:
    return next(label for label, low, high in CLASSES if low <= holders <= high)


def _holders(exact: Answerer, about: Any) -> dict[tuple[Any, ...], float]:
    """How many records hold the sensitive value that a question is about, row by row."""
    where, value = about
    condition = {exact.cells.schema.sensitive.name: value}
    if isinstance(where, dict):
        return {(): exact.count(select(exact, where | condition), SETTINGS).count}
    rows = exact.table(select(exact, condition), where, SETTINGS)
    return {tuple(labels.values()): one.count for labels, one in rows}


def main() -> None:
    """Measure the designs that are named, or all of them, and add them to the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=12)
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--tables", default="Education,Occupation")
    parser.add_argument("--out", type=Path, default=CSV)
    chosen = parser.parse_args()
    tables = chosen.tables.split(",")
    designs = [
        (name, size, chosen.keys, 1.0) for name in tables for size in chosen.sizes.split(",")
    ]
    # At a wrong p intervals must miss.
    designs += [
        (name, "none", max(chosen.keys // 4, 1), wrong) for name in tables for wrong in (0.7, 1.3)
    ]
    rows = []
    for design in designs:
        rows += measure(*design)
        with chosen.out.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(HEAD)
            writer.writerows(rows)
        print(*design, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
