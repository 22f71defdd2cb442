"""How often the test of no difference rejects where there is none, for docs/how-to/figures.md.

A table in which two groups of people have the same shares is published with 2,000 keys;
release.compare and the usual test on the published rows are asked whether they differ. Writes
docs/no-difference.csv:

    python tools/no_difference_level.py
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

import reconpriv as rp
from coverage_tables import fixed_key
from reconpriv.answers.answerer import Answerer
from reconpriv.ask.question import side_of
from reconpriv.cells.cube import Cube, collect
from reconpriv.estimate.compare import compare_sides
from reconpriv.estimate.counts import Design, Settings
from reconpriv.protect.publish_cube import published_cube

CSV = Path(__file__).parent.parent / "docs" / "no-difference.csv"
HEAD = ("sampling", "share", "simulations", "rejected", "rejected_naively", "interval_misses")
SHARES = {"nurse": 0.3, "pilot": 0.05}


def null_table() -> pa.Table:
    """Women and men in regions of different sizes; of both, 30 % are nurses and 5 % pilots."""
    columns: dict[str, list[str]] = {"sex": [], "region": [], "job": []}
    for sex, sizes in (("F", (73, 91, 110, 126)), ("M", (120, 150, 170, 200))):
        left = {job: round(share * sum(sizes)) for job, share in SHARES.items()}
        for region, size in zip("abcd", sizes, strict=True):
            jobs = []
            for job, share in SHARES.items():
                own = left[job] if region == "d" else round(share * size)
                left[job] -= own
                jobs += [job] * own
            jobs += np.resize(["baker", "clerk", "cook", "smith"], size - len(jobs)).tolist()
            columns["job"] += jobs
            columns["sex"] += [sex] * size
            columns["region"] += [region] * size
    return pa.table(columns)


def naive_p_value(cube: Cube, value: int) -> float:
    """The usual test of two proportions, on published rows as if they were the original ones."""
    women = np.asarray(cube.codes[0] == 0)[cube.group]
    counts, sizes = [], []
    for inside in (women, ~women):
        sizes.append(float(cube.count[inside].sum()))
        counts.append(float(cube.count[inside & (cube.value == value)].sum()))
    pooled = sum(counts) / sum(sizes)
    error = math.sqrt(pooled * (1.0 - pooled) * sum(1.0 / size for size in sizes))
    return math.erfc(abs(counts[0] / sizes[0] - counts[1] / sizes[1]) / error / math.sqrt(2.0))


def measure(size: str, simulations: int) -> list[tuple[object, ...]]:
    """How often each test rejects at 5 %, and the interval misses 0."""
    with rp.read(null_table(), sensitive="job", public="all") as table:
        raw = collect(table.batches(), table.schema)
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=size)
    design = Design(0.5, raw.schema.domain_size, size)
    tally = {job: np.zeros(3, dtype=np.int64) for job in SHARES}
    for number in range(simulations):
        cube = published_cube(raw, policy, fixed_key(number))
        answerer = Answerer(cube, design)
        for job in SHARES:
            sides = [side_of(answerer.selected({"sex": sex, "job": job}), None, "share")
                     for sex in "FM"]  # fmt: skip
            found = compare_sides(answerer, sides[0], sides[1], Settings())
            naive = naive_p_value(cube, raw.schema.domain.index(job))
            misses = not found.difference_low <= 0.0 <= found.difference_high
            tally[job] += np.array([(found.p_value or 0.0) < 0.05, naive < 0.05, misses])
    return [(size, SHARES[job], simulations, *counts.tolist()) for job, counts in tally.items()]


def main() -> None:
    """Measure all sampling rules and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=2_000)
    chosen = parser.parse_args()
    rows = []
    for size in ("none", "octave", "public"):
        rows += measure(size, chosen.simulations)
        print(*rows[-2:], file=sys.stderr, flush=True)
    with CSV.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEAD)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
