"""What the estimator model gains over the unbiased one, by size of the answer, and its honesty.

The paper's queries over two and three public columns (answers of 0.1 % of the table or more) are
asked of releases made with fixed keys; the truth is the answer of the original table. This writes
docs/model.csv and the table of docs/how-to/small-areas.md, in a few minutes:

    python tools/model_tables.py
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import reconpriv as rp
from coverage_tables import fixed_key, open_table
from reconpriv.answers.answerer import Answerer
from reconpriv.ask.workload import make_workload
from reconpriv.cells.cube import Cube, collect
from reconpriv.estimate.counts import Design, Settings
from reconpriv.estimate.measurements import prepare_margins
from reconpriv.protect.margins.plan import planned_margins
from reconpriv.protect.publish_cube import published_cube

DOCS = Path(__file__).parent.parent / "docs"
CSV, PAGE = DOCS / "model.csv", DOCS / "how-to" / "small-areas.md"
START, END = "<!-- measured: python tools/model_tables.py -->", "<!-- end of measured -->"
HEAD = (
    "table", "sampling", "margins", "columns", "true_count", "asked", "error_mle",
    "error_model", "squared_error_over_stated",
)  # fmt: skip
TABLES = ("Occupation", "Education", "Adult", "interactions")
DESIGNS = (("octave", 1.0), ("public", 1.0), ("octave", None))
CLASSES = ((0, 99), (100, 299), (300, 999), (1000, 10**9))
QUERIES, KEYS, RETENTION = 3_000, 8, 0.5


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


def releases(raw: Cube, policy: rp.Policy, keys: int) -> Iterator[Answerer]:
    """Releases of one table with fixed keys."""
    design = Design.of(policy, raw.schema)
    for number in range(keys):
        key, margins = fixed_key(number), None
        plan = planned_margins(raw.map_groups, policy, raw.schema, key)
        cube = published_cube(raw, policy, key, plan.counted)
        if plan.published:
            margins = prepare_margins(cube, plan.published, plan.variance, design)
        yield Answerer(cube, design, margins)


def measured(name: str, size: str, margins: float | None, keys: int) -> list[dict[str, object]]:
    """The errors of one design, by number of public columns and class of true count."""
    with opened(name) as table:
        raw = collect(table.batches(), table.schema)
    policy = rp.Policy(
        retention=RETENTION, tolerance=0.5, doubt=0.3, sampling=size, margins=margins
    )
    work = make_workload(raw, queries=QUERIES)
    found = []
    for answerer in releases(raw, policy, keys):
        asked = [answerer.select(None, query) for query in work.queries]
        unbiased = answerer.count_many(asked, Settings())
        leaning = answerer.count_many(asked, Settings("model"))
        for query, truth, one, other in zip(asked, work.answers, unbiased, leaning, strict=True):
            stated = other.standard_error**2
            errors = (one.count - truth, other.count - truth)
            found.append((len(query.equalities), truth, *map(abs, errors), stated))
    rows = np.array(found, dtype=np.float64)
    results = []
    for columns in (2, 3):
        for low, high in (*CLASSES, (0, 10**9)):
            chosen = (rows[:, 0] == columns) & (rows[:, 1] >= low) & (rows[:, 1] <= high)
            if not chosen.any():
                continue
            _, truth, one, other, stated = rows[chosen].T
            label = (
                "all" if high - low == 10**9 else f"{low}+" if high == 10**9 else f"{low}-{high}"
            )
            means = (one / truth).mean(), (other / truth).mean(), (other**2).mean() / stated.mean()
            numbers = [columns, label, truth.size, *(f"{x:.4f}" for x in means)]
            head = [name, size, "none" if margins is None else f"{margins:g}"]
            results.append(dict(zip(HEAD, [*head, *numbers], strict=True)))
    return results


def page_tables(rows: list[dict[str, str]]) -> str:
    """What is gained over two and over three columns, and how honest the stated error is."""
    lines = [
        START, "",
        "| table, sampling rule | margins | columns | error, `mle` | error, `model` | gain"
        " | squared error over stated | lowest and highest class |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for whole in (row for row in rows if row["true_count"] == "all"):
        design = [whole[name] for name in HEAD[:4]]
        own = [
            float(row["squared_error_over_stated"])
            for row in rows
            if [row[name] for name in HEAD[:4]] == design
            and row["true_count"] != "all"
            and int(row["asked"]) >= 100
        ]
        before, after = float(whole["error_mle"]), float(whole["error_model"])
        ends = f"{min(own):.2f} to {max(own):.2f}" if own else "-"
        lines.append(
            f"| {whole['table']}, `{whole['sampling']}`"
            f" | {'none' if whole['margins'] == 'none' else 'ε = ' + whole['margins']}"
            f" | {whole['columns']} | {before:.3f} | {after:.3f}"
            f" | {100 * (1 - after / before):.0f} %"
            f" | {float(whole['squared_error_over_stated']):.2f} | {ends} |"
        )
    return "\n".join([*lines, "", END])


def main() -> None:
    """Measure, unless only the page is to be written again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="use the figures in docs/model.csv")
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--out", type=Path, default=CSV)
    chosen = parser.parse_args()
    if not chosen.page:
        with chosen.out.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, HEAD, lineterminator="\n")
            writer.writeheader()
            for name in chosen.tables:
                for size, margins in DESIGNS:
                    writer.writerows(measured(name, size, margins, chosen.keys))
                    stream.flush()
                    sys.stderr.write(f"{name} {size} {margins}\n")
    if chosen.out == CSV:
        with CSV.open(newline="") as stream:
            text = page_tables(list(csv.DictReader(stream)))
        page = PAGE.read_text()
        before, rest = page.split(START)
        PAGE.write_text(before + text + rest.split(END)[1])


if __name__ == "__main__":
    main()
