"""How often 95 % intervals of shares, comparisons, averages and quantiles hold, for docs/coverage.md.

Random questions are asked of releases of the census workers made with fixed keys; the truth is the
answer of the same question to the original table:

    python tools/figure_coverage.py            # writes docs/coverage-figures.csv; a quarter of an hour
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from coverage_tables import fixed_key, open_table

import reconpriv as rp
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
CLASSES = (("up to 100", 0, 100), ("101 to 1,000", 101, 1_000), ("more", 1_001, 10**9))
SETTINGS = Settings()
QUESTIONS = (
    "share", "share among holders", "difference", "ratio", "difference, overlapping",
    "average of a public number", "sum of a public number", "median of a public number",
    "average of the sensitive column", "median of the sensitive column",
)  # fmt: skip

# The value and its limits, one triple per figure.
Triple = tuple[Any, Any, Any]


@dataclass(frozen=True)
class Question:
    """A condition on public columns, another one to compare with, and a sensitive value."""

    where: dict[str, Any]
    other: dict[str, Any]
    value: Any
    holders: int


def questions(raw: Cube, rng: np.random.Generator, many: int) -> list[Question]:
    """Random conditions of one to three columns on values of random records, holders in classes."""
    schema = raw.schema
    names = [column.name for column in schema.public]
    found: list[Question] = []
    chances = raw.records / raw.records.sum()
    answerer = truth_of(raw)
    wanted = itertools.cycle(CLASSES)
    _, low, high = next(wanted)
    tries = 0
    while len(found) < many:
        group = int(rng.choice(raw.groups, p=chances))
        columns = rng.choice(len(names), int(rng.integers(1, 4)), replace=False)
        columns = [int(c) for c in columns if names[c] != "Age" or rng.random() < 0.2]
        where = {names[c]: raw.values[c][int(raw.codes[c][group])].as_py() for c in columns}
        value = schema.domain[int(rng.choice(schema.domain_size))]
        selected = select(answerer, where | {schema.sensitive.name: value})
        holders = int(answerer.count(selected, SETTINGS).count)
        tries += 1
        if not columns or not max(low, 5) <= holders <= high:
            continue
        other = dict(where)
        changed = columns[0]
        options = [v for v in raw.values[changed].to_pylist() if v != where[names[changed]]]
        other[names[changed]] = options[int(rng.integers(len(options)))]
        if answerer.count(select(answerer, other), SETTINGS).count < 50:
            continue
        found.append(Question(where, other, value, holders))
        _, low, high = next(wanted)
    return found


def truth_of(raw: Cube) -> Answerer:
    """The original table, asked as if nothing had been perturbed."""
    return Answerer(raw, Design(1.0, raw.schema.domain_size, "none"))


def ask(answerer: Answerer, one: Question) -> Iterator[tuple[str, Triple]]:
    """All figures of a question."""
    schema = answerer.cells.schema
    sensitive = schema.sensitive.name
    holders = select(answerer, one.where | {sensitive: one.value})
    others = select(answerer, one.other | {sensitive: one.value})
    everyone = select(answerer, one.where)
    (first, *rest) = one.where
    among = select(answerer, {name: one.where[name] for name in rest} | {sensitive: one.value})

    def triple(rows: list[tuple[Any, Any]]) -> Triple:
        figure = rows[0][1]
        return figure.value, figure.low, figure.high

    yield "share", triple(share_rows(answerer, asked_share(holders, None), (), SETTINGS))
    part = asked_share(select(answerer, {first: one.where[first]}), among)
    yield "share among holders", triple(share_rows(answerer, part, (), SETTINGS))
    sides = [side_of(chosen, None, "share") for chosen in (holders, others)]
    found = compare_sides(answerer, sides[0], sides[1], SETTINGS)
    yield "difference", (found.difference, found.difference_low, found.difference_high)
    if found.ratio is not None:
        yield "ratio", (found.ratio, found.ratio_low, found.ratio_high)
    wide = select(answerer, {name: one.where[name] for name in rest} | {sensitive: one.value})
    sides = [side_of(chosen, None, "share") for chosen in (holders, wide)]
    found = compare_sides(answerer, sides[0], sides[1], SETTINGS)
    ends = found.difference, found.difference_low, found.difference_high
    yield "difference, overlapping", ends
    if "Age" not in one.where:
        age = measure_of(answerer, "Age", None)
        for kind in ("average", "sum"):
            rows = average_rows(answerer, Asked(kind, age, holders, ""), (), SETTINGS)
            yield f"{kind} of a public number", triple(rows)
        rows = quantile_rows(answerer, age, 0.5, holders, (), SETTINGS, name="")
        yield "median of a public number", triple(rows)
    scores = {value: float(i) for i, value in enumerate(schema.domain)}
    own = measure_of(answerer, sensitive, scores)
    rows = average_rows(answerer, Asked("average", own, everyone, ""), (), SETTINGS)
    yield "average of the sensitive column", triple(rows)
    own = replace(own, steps=None)
    rows = quantile_rows(answerer, own, 0.5, everyone, (), SETTINGS, name="")
    yield "median of the sensitive column", triple(rows)


def measure(
    name: str, size: str, many: int, keys: int, wrong: float = 1.0
) -> list[tuple[Any, ...]]:
    """Cases and hits of one design; ``wrong`` multiplies the p that the analyst is told."""
    with open_table(name) as table:
        batches = list(table.batches())
        raw = collect(batches, table.schema)
    asked = questions(raw, np.random.default_rng(5), many)
    truth = [dict(ask(truth_of(raw), one)) for one in asked]
    policy = rp.Policy(RETENTION, 0.5, 0.3, sample_size=size)
    design = Design(RETENTION * wrong, table.schema.domain_size, size)
    tally: dict[tuple[str, str], list[int]] = {}
    for number in range(keys):
        cube = publish_cube(raw, batches, Kernel(table.schema, policy, fixed_key(number)))
        answerer = Answerer(cube, design)
        for one, true in zip(asked, truth, strict=True):
            holders = next(label for label, low, high in CLASSES if low <= one.holders <= high)
            try:
                answers = dict(ask(answerer, one))
            except rp.ReconprivError:
                continue
            for question, (_, low, high) in answers.items():
                if question not in true:
                    continue
                value = true[question][0]
                counts = tally.setdefault((question, holders), [0, 0, 0])
                counts[0] += 1
                edge = 1e-9 * max(abs(value), 1.0)
                above = high is not None and value > high + edge
                counts[1] += not above and value >= low - edge
                counts[2] += value < low - edge
    return [
        (name, size, question, holders, "" if wrong == 1 else f"{wrong:g}", *tally[question, holders])
        for question, (holders, _, _) in itertools.product(QUESTIONS, CLASSES)
        if (question, holders) in tally
    ]


def main() -> None:
    """Measure everything and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=102)
    parser.add_argument("--keys", type=int, default=20)
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--tables", default="Education,Occupation")
    parser.add_argument("--dry", action="store_true", help="print instead of writing the file")
    chosen = parser.parse_args()
    rows = []
    for name, size in itertools.product(chosen.tables.split(","), chosen.sizes.split(",")):
        rows += measure(name, size, chosen.questions, chosen.keys)
        print(name, size, file=sys.stderr, flush=True)
    for name, wrong in itertools.product(chosen.tables.split(","), (0.7, 1.3)):
        rows += measure(name, "none", chosen.questions, 3, wrong)
    if chosen.dry:
        for row in rows:
            print(*row, f"{row[6] / row[5]:.3f}", sep=" | ")
        return
    with CSV.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEAD)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
