"""How often 95 % intervals hold, by true count and group size, for docs/coverage.md.

Every cell of the full public combinations and of all tables of one to three public attributes is
queried on releases made with fixed keys, so the same run gives the same figures:

    python tools/coverage_tables.py            # all designs; a few minutes
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import coverage_by_class
import reconpriv as rp
from reconpriv.cells.cube import Cube, collect, combinations
from reconpriv.cells.sums import Sums, sum_selections
from reconpriv.estimate.counts import Design
from reconpriv.estimate.set_counts import SetCounts
from reconpriv.protect.publish_cube import published_cube
from wrap_markdown import wrapped

DOCS = Path(__file__).parent.parent / "docs"
CSV, PAGE = DOCS / "coverage.csv", DOCS / "coverage.md"

CLASSES = ("0", "1", "2-3", "4-7", "8-15", "16-40", "41-200", "201+")
_BORDERS = np.array([1, 2, 4, 8, 16, 41, 201])
COMMON = "0.1 % of the table or more"
ONE, SEVERAL, TOGETHER = "one value", "a set of values", "all cells of a table together"
CONFIDENCE = 0.95
KEYS = {"Occupation": 4, "Education": 4, "equal groups": 40}
TABLES = tuple(KEYS)
SIZES = ("none", "octave", "public")
RETENTIONS = (0.2, 0.5, 0.8)
ENOUGH = 500  # cases needed to judge a share
HEAD = ("table", "sampling", "p", "question", "true_count", "group_size", "cases", "covered")

Row = tuple[str, str, float, str, str, str, int, int]
_PUBLIC = ("Age", "Gender", "Education", "Marital", "Race", "Workclass", "Occupation")


def open_table(name: str) -> rp.Table:
    """The census workers with one of their columns sensitive, or a table of equal groups."""
    if name in _PUBLIC:
        public = [column for column in _PUBLIC if column != name]
        return rp.read("example:census_workers", sensitive=name, public=public)
    # 120 groups of 210 records, each with its own skewed distribution over six values.
    records, groups = 210, list(itertools.product("abcd", range(5), "uvwxyz"))
    values = []
    for number in range(len(groups)):
        weights = np.roll(0.5 ** np.arange(1, 7), number)
        shares = np.floor(np.cumsum(weights / weights.sum()) * records + 1e-9).astype(int)
        values += np.repeat([f"v{i}" for i in range(6)], np.diff(shares, prepend=0)).tolist()
    columns = [np.repeat([g[i] for g in groups], records) for i in range(3)]
    table = pa.table([*map(pa.array, columns), pa.array(values)], names=["A", "B", "C", "S"])
    return rp.read(table, sensitive="S", public="all")


def selections(cube: Cube) -> Iterator[tuple[np.ndarray, int]]:
    """Every group by itself, then the tables of one to three attributes (of three: the first)."""
    yield np.arange(cube.groups), cube.groups
    everything = np.ones(cube.groups, dtype=bool)
    for size in (1, 2, 3):
        for attributes in itertools.combinations(range(len(cube.codes)), size):
            if size < 3 or attributes[0] == 0:
                keys, selection = combinations(cube, attributes, everything)
                yield selection, keys.shape[1]


def measure(name: str, size: str, p: float) -> list[Row]:
    """The coverage of one design: cases and hits by question, true count and group size."""
    keys = KEYS[name]
    with open_table(name) as table:
        raw = collect(table.batches(), table.schema)
    m = table.schema.domain_size
    tally = Tally(0.001 * int(raw.records.sum()))
    policy, design = (
        rp.Policy(retention=p, tolerance=0.5, doubt=0.3, sampling=size),
        Design(p, m, size),
    )
    draws = [np.random.default_rng(number) for number in range(keys)]
    cubes = [published_cube(raw, policy, fixed_key(number)) for number in range(keys)]
    for selection, cells in selections(raw):
        truth = sum_selections(raw, selection, cells, None)
        for cube, draw in zip(cubes, draws, strict=True):
            sums = sum_selections(cube, selection, cells, None)
            counts = SetCounts(sums, design)
            inside = _inside(truth, counts.limits(CONFIDENCE))
            tally.add(ONE, inside, truth.observed, truth.records[:, None])
            wide = counts.limits(CONFIDENCE, inside.size)
            tally.add_all(_inside(truth, wide))
            chosen = draw.choice(m, int(draw.integers(2, m - 1)), replace=False).tolist()
            true, sums = (sum_selections(c, selection, cells, chosen) for c in (raw, cube))
            ends = SetCounts.of(sums, chosen, design).limits(CONFIDENCE)
            tally.add(SEVERAL, _inside(true, ends), true.observed, true.records)
    return [(name, size, p, *where, *map(int, found)) for where, found in tally.rows()]


def fixed_key(number: int) -> rp.Key:
    """The same keys in every run."""
    return rp.Key(hashlib.sha256(f"coverage {number}".encode()).digest())


class Tally:
    """Cases and hits by question, class of true count and class of group size."""

    def __init__(self, common: float) -> None:
        """Counts of at least ``common`` also get a separate class."""
        self._common = common
        self._found: dict[tuple[str, str, str], np.ndarray] = {}

    def add(self, question: str, inside: Any, truth: Any, records: Any) -> None:
        """Record which intervals held."""
        width = len(CLASSES)
        group = np.broadcast_to(np.searchsorted(_BORDERS, records, "right"), truth.shape)
        place = (np.searchsorted(_BORDERS, truth, "right") * width + group).reshape(-1)
        cases = np.bincount(place, minlength=width * width)
        hits = np.bincount(place, weights=inside.reshape(-1), minlength=width * width)
        for i in np.flatnonzero(cases):
            self._note(question, CLASSES[i // width], CLASSES[i % width], cases[i], hits[i])
        common = truth >= self._common
        self._note(question, COMMON, "any", common.sum(), inside[common].sum())

    def add_all(self, inside: Any) -> None:
        """Record whether all intervals of a table held together."""
        self._note(TOGETHER, "any", "any", 1, bool(inside.all()))

    def _note(self, question: str, count: str, group: str, cases: Any, hits: Any) -> None:
        total = self._found.setdefault((question, count, group), np.zeros(2, dtype=np.int64))
        total += int(cases), int(hits)

    def rows(self) -> list[tuple[tuple[str, str, str], Any]]:
        """Everything recorded, in order."""
        return sorted((where, found) for where, found in self._found.items() if found[0])


def _inside(truth: Sums, ends: tuple[Any, Any]) -> Any:
    low, high = ends
    return (low - 1e-6 <= truth.observed) & (truth.observed <= high + 1e-6)


def read_rows() -> list[Row]:
    """The committed figures."""
    with CSV.open(encoding="utf-8", newline="") as stream:
        return [
            (r["table"], r["sampling"], float(r["p"]), r["question"], r["true_count"],
             r["group_size"], int(r["cases"]), int(r["covered"]))
            for r in csv.DictReader(stream)
        ]  # fmt: skip


def write_rows(rows: list[Row]) -> None:
    """Write the figures, for the page and for the test that recomputes some of them."""
    with CSV.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEAD)
        writer.writerows(rows)


def write_page() -> None:
    """Write the page from the figures of both files."""
    PAGE.write_text(page(read_rows()), encoding="utf-8")


def _percent(rows: list[Row]) -> str:
    cases, hits = (sum(row[i] for row in rows) for i in (6, 7))
    return f"{100 * hits / cases:.1f} %" if cases else "–"


def worst(rows: list[Row]) -> tuple[float, Row]:
    """The row with the smallest share, among those with enough cases."""
    return min((row[7] / row[6], row) for row in rows if row[6] >= ENOUGH)


def page(rows: list[Row]) -> str:
    """The tables in words."""
    single = [row for row in rows if row[3] != TOGETHER]
    classed = [row for row in single if row[4] != COMMON]
    share, low = worst(classed)
    parts = [
        _INTRODUCTION.format(
            intervals=sum(row[6] for row in classed), worst=100 * share, enough=ENOUGH,
            table=low[0], size=low[1], p=low[2], question=low[3], count=low[4], group=low[5],
            cases=low[6],
        ),
        *_grid("By true count", 4, CLASSES, classed),
        *_grid("By number of records asked about", 5, CLASSES[1:], classed),
        f"\n## Answers of {COMMON}\n",
        _COMMON_WORDS,
        *_by_retention([row for row in single if row[4] == COMMON]),
        "\n## All cells of a table together (`simultaneous`)\n",
               "This is how often all intervals of a table hold at once:\n",
        *_by_retention([row for row in rows if row[3] == TOGETHER]),
        "",
        coverage_by_class.section(coverage_by_class.read_rows()),
        "For the reasons, see [intervals rest on the published design]"
        "(decisions/0011-intervals.md) and [figures](decisions/0029-figures.md).",
    ]  # fmt: skip
    return wrapped("\n".join(parts) + "\n")


_INTRODUCTION = """\
# How often the intervals hold

A 95 % interval should contain the true count at least 95 % of the time, whatever the count and
however few records it is about. This page measures how often it does: first counts, then
[every other figure](#every-figure-by-its-worst-class). It is
written by `python tools/coverage_tables.py`, and a test checks part of it again.

Three tables are published with p = 0.2, 0.5 and 0.8: the census workers with Occupation or with
Education sensitive (four keys each), and a table of 120 groups of 210 records (forty keys). Every
sensitive value, and a random set of values, is counted in every full combination of public values
and in tables of one, two and three public columns: {intervals:,} intervals. Answers from one
release share its noise, so a share over four releases may be off by a point or two.

**The worst class covers {worst:.1f} %**: {table}, sampling rule `{size}`, p = {p:g}, {question},
true count {count}, {group} records asked about; {cases:,} intervals. Classes with fewer than
{enough} intervals are left out of that comparison; all are in [coverage.csv](coverage.csv).

Small counts are covered more often than 95 % of the time: a group of one record has only two
possible counts, and an interval that contains the true one 95 % of the time must often contain
both."""


_COMMON_WORDS = """\
Here an interval should not be wider than necessary, either. In the table of equal groups, a single
group is that large. If it is sampled, it rests on a few trials, so its counts move in steps of
several records, and no interval covers such a count exactly 95 % of the time.
"""


def _by_retention(rows: list[Row]) -> list[str]:
    lines = _head("table, sampling rule", [f"p = {p:g}" for p in RETENTIONS])
    for name, size in itertools.product(TABLES, SIZES):
        designs = ((name, size, p) for p in RETENTIONS)
        cells = [_percent([r for r in rows if r[:3] == design]) for design in designs]
        lines.append(f"| {name}, `{size}` | {' | '.join(cells)} |")
    return lines


def _head(first: str, names: list[str]) -> list[str]:
    return [f"| {first} | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]


def _grid(title: str, place: int, classes: tuple[str, ...], rows: list[Row]) -> list[str]:
    """Coverage by class for every rule: over all intervals, and at the worst p and table."""
    names = [f"{size}{what}" for size in SIZES for what in (", all", ", worst")]
    lines = ["", f"## {title}", "", *_head(title.lower().removeprefix("by "), names)]
    for one in classes:
        cells = []
        for size in SIZES:
            here = [row for row in rows if row[place] == one and row[1] == size]
            parts = [[r for r in here if (r[0], r[2]) == part] for part in
                     itertools.product(TABLES, RETENTIONS)]  # fmt: skip
            shares = [
                sum(r[7] for r in part) / cases
                for part in parts
                if (cases := sum(r[6] for r in part)) >= ENOUGH
            ]
            cells += [_percent(here), f"{100 * min(shares):.1f} %" if shares else "–"]
        lines.append(f"| {one} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Measure everything and write both files."""
    rows: list[Row] = []
    for name, size, p in itertools.product(TABLES, SIZES, RETENTIONS):
        rows += measure(name, size, p)
        print(name, size, p, file=sys.stderr, flush=True)
    write_rows(rows)
    write_page()


if __name__ == "__main__":
    main()
