"""What the estimator smooth gains over the unbiased one, by size of the answer, and its coverage.

A pool of the paper's queries (answers of 0.01 % of the table or more) is asked of releases made
with fixed keys; the truth is the answer of the original table. A refused question is left out of
both errors, and counted. This writes docs/smooth.csv and the table of docs/how-to/small-areas.md,
in a quarter of an hour:

    python tools/smooth_tables.py
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

import reconpriv as rp
from coverage_tables import fixed_key, open_table
from reconpriv.core.cube import collect
from reconpriv.core.kernel import Kernel
from reconpriv.errors import InputError
from reconpriv.queries.answer import Answerer, Settings
from reconpriv.queries.estimate import Design
from reconpriv.queries.plan import publish_cube
from reconpriv.queries.workload import make_workload

DOCS = Path(__file__).parent.parent / "docs"
CSV, PAGE = DOCS / "smooth.csv", DOCS / "how-to" / "small-areas.md"
START, END = "<!-- measured: python tools/smooth_tables.py -->", "<!-- end of measured -->"
HEAD = (
    "table", "sample_size", "pool", "true_count", "asked", "smoothed", "error_mle", "error_smooth",
    "covered_mle", "covered_smooth", "squared_error_over_promised",
)  # fmt: skip
TABLES = ("Education", "Occupation", "Adult", "interactions")
SIZES = ("none", "octave", "public")
POOLS = {"0.01 %": 0.0001}
CLASSES = ((0, 29), (30, 59), (60, 149), (150, 299), (300, 999), (1000, 10**9))
QUERIES, KEYS, RETENTION = 2_000, 2, 0.5


def opened(name: str) -> rp.Table:
    """A table of the example data, or one whose columns act on the sensitive one only jointly."""
    if name == "Adult":
        public = ["age", "sex", "race", "education"]
        return rp.read("example:adult", sensitive="occupation", public=public, missing="value")
    if name != "interactions":
        return open_table(name)
    rng = np.random.default_rng(15)
    n = 60_000
    a, b, c = rng.integers(0, 12, n), rng.integers(0, 12, n), rng.integers(0, 4, n)
    likely = (a + 5 * b) % 6  # every value is as frequent in every row and column
    value = np.where(rng.random(n) < 0.7, likely, rng.integers(0, 6, n))
    columns = {"A": a, "B": b, "C": c, "S": [f"v{one}" for one in value]}
    return rp.read(pa.table(columns), sensitive="S", public="all")


def measured(name: str, size: str, pool: str, keys: int) -> list[dict[str, object]]:
    """The errors of one design, by class of true count."""
    with opened(name) as table:
        batches = list(table.batches())
        raw = collect(batches, table.schema)
    policy = rp.Policy(RETENTION, 0.5, 0.3, sample_size=size)
    design = Design(RETENTION, table.schema.domain_size, size)
    work = make_workload(raw, queries=QUERIES, min_selectivity=POOLS[pool])
    found = []
    for number in range(keys):
        cube = publish_cube(raw, batches, Kernel(table.schema, policy, fixed_key(number)))
        answerer = Answerer(cube, design)
        asked = [answerer.select(None, query) for query in work.queries]
        direct = answerer.count_many(asked, Settings())
        try:
            smooth = answerer.count_many(asked, Settings("smooth"))
        except InputError:
            smooth = direct
        for truth, one, other in zip(work.answers.tolist(), direct, smooth, strict=True):
            error = other.mean_squared_error
            found.append(
                (
                    truth,
                    error is not None,
                    abs(one.count - truth) / truth,
                    abs(other.count - truth) / truth,
                    one.low <= truth <= one.high,
                    other.low <= truth <= other.high,
                    (other.count - truth) ** 2 / error if error else np.nan,
                )
            )
    rows = np.array(found, dtype=np.float64)
    results = []
    for low, high in (*CLASSES, (0, 10**9)):
        inside = rows[(rows[:, 0] >= low) & (rows[:, 0] <= high)]
        some = inside[inside[:, 1] == 1]
        if not inside.size:
            continue
        means = some[:, 2:].mean(axis=0) if some.size else np.full(5, np.nan)
        label = "all" if high - low == 10**9 else f"{low}+" if high == 10**9 else f"{low}-{high}"
        numbers = [label, len(inside), len(some), *(f"{x:.4f}" for x in means)]
        results.append(dict(zip(HEAD, [name, size, pool, *numbers], strict=True)))
    return results


def page_tables(rows: list[dict[str, str]]) -> str:
    """What is gained on all questions, and the worst and best class of each release."""
    lines = [
        START, "",
        "| table, sample size | answers of | smoothed | error, `mle` | error, `smooth` | gain"
        " | worst class | covered | worst class |",
        "|---|---|---:|---:|---:|---:|---|---:|---|",
    ]  # fmt: skip
    keys = dict.fromkeys((r["table"], r["sample_size"], r["pool"]) for r in rows)
    for key in keys:
        own = [r for r in rows if (r["table"], r["sample_size"], r["pool"]) == key]
        (whole,) = [r for r in own if r["true_count"] == "all"]
        share = int(whole["smoothed"]) / int(whole["asked"])
        head = f"| {key[0]}, `{key[1]}` | {key[2]} or more | {100 * share:.0f} %"
        classes = [r for r in own if r["true_count"] != "all" and int(r["smoothed"]) >= 10]
        if share == 0 or not classes:
            lines.append(f"{head} | - | - | - | - | - | - |")
            continue
        loser = min(classes, key=_gain)
        open_ = min(classes, key=lambda r: float(r["covered_smooth"]))
        lines.append(
            f"{head} | {float(whole['error_mle']):.3f} | {float(whole['error_smooth']):.3f}"
            f" | {100 * _gain(whole):.0f} % | {100 * _gain(loser):.0f} % ({loser['true_count']})"
            f" | {100 * float(whole['covered_smooth']):.1f} %"
            f" | {100 * float(open_['covered_smooth']):.1f} % ({open_['true_count']}) |"
        )
    return "\n".join([*lines, "", END])


def _gain(row: dict[str, str]) -> float:
    return 1.0 - float(row["error_smooth"]) / float(row["error_mle"])


def main() -> None:
    """Measure, unless only the page is to be written again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="use the figures in docs/smooth.csv")
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--out", type=Path, default=CSV)
    chosen = parser.parse_args()
    if not chosen.page:
        with chosen.out.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, HEAD, lineterminator="\n")
            writer.writeheader()
            for name in chosen.tables:
                for size in SIZES:
                    for pool in POOLS:
                        writer.writerows(measured(name, size, pool, chosen.keys))
                        stream.flush()
                        sys.stderr.write(f"{name} {size} {pool}\n")
    if chosen.out == CSV:
        with CSV.open(newline="") as stream:
            text = page_tables(list(csv.DictReader(stream)))
        page = PAGE.read_text()
        before, rest = page.split(START)
        PAGE.write_text(before + text + rest.split(END)[1])


if __name__ == "__main__":
    main()
