"""Which questions suit a release, for docs/how-to/which-questions.md: how wide intervals are.

Random counts of a sensitive value over one to three public columns are asked of releases made with
the default policy. This writes docs/questions.csv, the table of the page and its figure:

    python -m lab.questions            # a few minutes
    python -m lab.questions --draw     # page and figure alone
"""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

import numpy as np

import reconpriv as rp
from lab.recommended import opened
from lab.tried_tables import TABLES
from reconpriv.answers.answerer import Answerer
from reconpriv.attacks.attacked_table import AttackedTable
from reconpriv.estimate.counts import Design, Settings
from reconpriv.estimate.measurements import prepare_margins
from reconpriv.research.results import Result, Row, read_result
from reconpriv.show.charts import drawing as charts
from reconpriv.show.charts import palette
from reconpriv.show.charts.drawing import LegendEntry

DOCS = Path(__file__).resolve().parents[1] / "docs"
CSV, FIGURE = DOCS / "questions.csv", DOCS / "figures" / "questions.svg"
PAGE = DOCS / "how-to" / "which-questions.md"
NAMES = {"Adult": "Adult", "Occupation": "census"}
TITLES = {
    "Adult": "Adult: 48,842 people, 575 groups",
    "Occupation": "Census: 148,318 people, 24,858 groups",
}
COLUMNS = {1: "one column", 2: "two columns", 3: "three columns"}
LOOKS = dict(zip(COLUMNS.values(), (palette.FIRST, palette.SECOND, palette.THIRD), strict=True))
# True counts from these on are a class; one with few questions is left out.
CLASSES = (30, 100, 300, 1_000, 3_000)
QUESTIONS, KEYS, FEWEST = 6_000, 20, 30

_PLACE = re.compile(r"(<!-- from questions.csv -->\n).*?(<!-- end -->)", re.DOTALL)


def measured(name: str, keys: int = KEYS) -> list[Row]:
    """A row for each number of columns and class of true counts."""
    with opened(TABLES[name]()) as table:
        pool = table.workload(queries=QUESTIONS, min_selectivity=CLASSES[0] / table.schema.records)
        target = AttackedTable.of(table, rp.preset("recommended"))
    true = pool.answers.astype(float)
    columns = np.array([len(query) - 1 for query in pool.queries])
    place = np.searchsorted(CLASSES, true, side="right") - 1
    found = [_asked(target, number, pool.queries) for number in range(keys)]
    count, low, high = (np.array(part) for part in zip(*found, strict=True))
    half, off = (high - low) / 2 / true, np.abs(count - true) / true
    holds = (low <= true) & (true <= high)
    return [
        {
            "table": name,
            "columns": many,
            "from_count": CLASSES[one],
            "questions": int(some.sum()),
            "half_width": float(np.median(half[:, some])),
            "mean_error": float(off[:, some].mean()),
            "covered": float(holds[:, some].mean()),
            "keys": keys,
        }
        for many in COLUMNS
        for one in range(len(CLASSES))
        if (some := (columns == many) & (place == one)).sum() >= FEWEST
    ]


def _asked(
    target: AttackedTable, number: int, queries: tuple[dict[str, rp.Value], ...]
) -> tuple[list[float], ...]:
    """Estimates and the ends of their intervals, from one release."""
    published = target.publication(number)
    design = Design.of(target.policy, target.schema)
    margins = prepare_margins(published.cube, published.tables, published.variance, design)
    answerer = Answerer(published.cube, design, margins)
    found = answerer.count_many([answerer.select(None, one) for one in queries], Settings())
    return [one.count for one in found], [one.low for one in found], [one.high for one in found]


def renewed(text: str, rows: tuple[Row, ...]) -> str:
    """The page with the table of these rows."""
    lines = [
        "| true count | "
        + " | ".join(f"{name}, {many}" for name in NAMES.values() for many in COLUMNS.values())
        + " |"
    ]
    lines.append("|---|" + "---:|" * (len(NAMES) * len(COLUMNS)))
    known = {(row["table"], row["columns"], row["from_count"]): row for row in rows}
    for start, end in zip(CLASSES, (*CLASSES[1:], None), strict=True):
        cells = (known.get((name, many, start)) for name in NAMES for many in COLUMNS)
        widths = ("–" if one is None else f"± {100 * one['half_width']:.0f} %" for one in cells)
        title = f"{start:,} to {end:,}" if end else f"{start:,} or more"
        lines.append(f"| {title} | {' | '.join(widths)} |")
    return _PLACE.sub(lambda found: f"{found[1]}\n" + "\n".join(lines) + f"\n\n{found[2]}", text)


def draw(rows: tuple[Row, ...], target: Path) -> None:
    """A panel per table: how wide an interval is, by what is counted."""
    alt = charts.altair("experiments")
    panels = []
    for name, title in TITLES.items():
        points = [
            {"x": row["from_count"], "y": row["half_width"], "series": COLUMNS[row["columns"]]}
            for row in rows
            if row["table"] == name
        ]
        x = alt.X("x:Q", title="true count, from",
                  scale=alt.Scale(type="log", domain=[20, 5_000], nice=False),
                  axis=alt.Axis(values=list(CLASSES), format=",d"))  # fmt: skip
        y = alt.Y("y:Q", title="95 % interval: ± share of count",
                  scale=alt.Scale(type="log", domain=[0.006, 1], nice=False),
                  axis=charts.percent_axis(values=[0.01, 0.03, 0.1, 0.3, 1.0]))  # fmt: skip
        panels.append(charts.panel(charts.lines(points, LOOKS, x, y), 300, 200, title))
    entries = [LegendEntry(name, look) for name, look in LOOKS.items()]
    charts.save(charts.figure(panels, entries=entries), target)


def main() -> None:
    """Measure, unless only the page is wanted; then write file, page and figure."""
    warnings.simplefilter("ignore")
    if "--draw" not in sys.argv[1:]:
        Result(CSV.stem, tuple(row for name in NAMES for row in measured(name))).write(DOCS)
    rows = read_result(CSV).rows
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    draw(rows, FIGURE)


if __name__ == "__main__":
    main()
