"""How often 95 % intervals of shares, comparisons, averages and quantiles hold.

Releases of the census workers, each made with a key of its own, are asked tables of figures and
comparisons, drawn anew for every key from a pool; the truth is the answer of the same question to
the original table. Of each table a few rows of every class of sizes are kept, so that no class and
no table dominates. This writes docs/coverage-figures.csv and prints the table of
docs/how-to/figures.md, in less than an hour:

    python tools/figure_coverage.py
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import reconpriv as rp
from coverage_tables import fixed_key, open_table
from reconpriv.core.cells import CellBatch
from reconpriv.core.cube import Cube, collect
from reconpriv.core.kernel import Kernel
from reconpriv.queries.answer import Answerer, Selected, Settings
from reconpriv.queries.averages import Asked, average_rows
from reconpriv.queries.compare import Comparison, compare_sides, side_of
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
# The last class starts at 0.1 % of the census workers.
CLASSES = (("0 to 20", 0, 20), ("21 to 148", 21, 148), ("149 or more", 149, 10**9))
TABLES, PAIRS = 24, 80  # in the pool; pairs of each class
TABLES_ASKED, ROWS, PAIRS_ASKED = 2, 14, 9  # for each key; rows and pairs of each class
CELLS = 400  # of a table
SETTINGS = Settings()
AGE, AMONG_HOLDERS = "Age", "share among holders"
MEDIANS = ("median of a public number", "median of a finer public number")
OWN = ("average of the sensitive column", "median of the sensitive column")
QUESTIONS = (
    "share", AMONG_HOLDERS, "difference", "ratio", "difference, overlapping", "ratio, overlapping",
    "average of a public number", "sum of a public number", *MEDIANS, *OWN,
)  # fmt: skip

# The value and its limits of each row, by its labels.
Answers = dict[tuple[Any, ...], tuple[Any, Any, Any]]
Condition = dict[str, Any]


@dataclass(frozen=True)
class Fine:
    """Ages as if they were known to the day: every group of equal public values gets a birthday."""

    age: Any

    def of(self, part: Cube) -> Any:
        """The age of every group."""
        days = np.random.default_rng(part.groups).integers(365, size=part.groups)
        return self.age.of(part) + days / 365


@dataclass(frozen=True)
class TableAsked:
    """Every figure by groups: about a sensitive value, and about the whole sensitive column."""

    by: tuple[str, ...]
    value: Any
    marital: str
    ranked: bool  # whether the median of the sensitive column is asked for, which is slow

    def answers(self, answerer: Answerer) -> dict[str, Answers]:
        """The figures of all rows, by kind."""
        schema, by = answerer.cells.schema, self.by
        sensitive = schema.sensitive.name
        holders, everyone = select(answerer, {sensitive: self.value}), select(answerer, None)
        scores = {one: float(i) for i, one in enumerate(schema.domain)}
        own = measure_of(answerer, sensitive, scores)
        found = {
            OWN[0]: average_rows(answerer, Asked("average", own, everyone, ""), by, SETTINGS),
        }
        if self.ranked:
            found[OWN[1]] = quantile_rows(answerer, own, 0.5, everyone, by, SETTINGS, name="")
        if sensitive != AGE:
            found |= self._about_holders(answerer, holders)
        return {
            kind: {tuple(labels.values()): (f.value, f.low, f.high) for labels, f in rows}
            for kind, rows in found.items()
        }

    def _about_holders(self, answerer: Answerer, holders: Selected) -> dict[str, list[Any]]:
        """The figures about the holders of a sensitive value."""
        by, age = self.by, measure_of(answerer, AGE, None)
        some = select(answerer, {"Marital": self.marital})
        found = {"share": share_rows(answerer, asked_share(holders, None), by, SETTINGS)}
        if "Marital" not in by:
            found[AMONG_HOLDERS] = share_rows(answerer, asked_share(some, holders), by, SETTINGS)
        for kind in ("average", "sum"):
            asked = Asked(kind, age, holders, "")
            found[f"{kind} of a public number"] = average_rows(answerer, asked, by, SETTINGS)
        for kind, one in ((MEDIANS[0], age), (MEDIANS[1], replace(age, number=Fine(age.number)))):
            found[kind] = quantile_rows(answerer, one, 0.5, holders, by, SETTINGS, name="")
        return found

    def sizes(self, exact: Answerer) -> dict[bool, dict[tuple[Any, ...], float]]:
        """How many records hold the value (False), and how many there are (True), by row."""
        wanted = {False: {exact.cells.schema.sensitive.name: self.value}, True: None}
        return {
            own: {
                tuple(labels.values()): one.count
                for labels, one in exact.table(select(exact, where), self.by, SETTINGS)
            }
            for own, where in wanted.items()
        }


@dataclass(frozen=True)
class PairAsked:
    """The shares of a sensitive value on two sides, which may overlap."""

    a: Condition
    b: Condition
    value: Any

    @property
    def overlapping(self) -> bool:
        """Whether a record may be on both sides."""
        return not any(name in self.a and self.a[name] != self.b[name] for name in self.b)

    def found(self, answerer: Answerer) -> Comparison:
        """The comparison, among the groups that one of the sides has: others do not matter."""
        holds = {answerer.cells.schema.sensitive.name: self.value}
        inside = np.logical_or(
            *(answerer.mask(select(answerer, one), answerer.micro_groups)
              for one in (self.a, self.b))
        )  # fmt: skip
        answerer = Answerer(only(answerer.micro_groups, inside), answerer.design)
        a, b = (side_of(select(answerer, one | holds), None, "share") for one in (self.a, self.b))
        return compare_sides(answerer, a, b, SETTINGS)

    def answers(self, answerer: Answerer) -> dict[str, tuple[Any, Any, Any]]:
        """Difference and, if there is one, ratio."""
        found = self.found(answerer)
        more = ", overlapping" if self.overlapping else ""
        said = {"difference": (found.difference, found.difference_low, found.difference_high)}
        if found.ratio is not None:
            said["ratio"] = (found.ratio, found.ratio_low, found.ratio_high)
        return {kind + more: one for kind, one in said.items()}

    def populated(self, exact: Answerer) -> bool:
        """Whether there is anybody on either side."""
        return all(exact.count(select(exact, one), SETTINGS).count for one in (self.a, self.b))

    def size(self, exact: Answerer) -> float:
        """The number of holders on the side that has fewer."""
        holds = {exact.cells.schema.sensitive.name: self.value}
        return min(exact.count(select(exact, one | holds), SETTINGS).count
                   for one in (self.a, self.b))  # fmt: skip


class Study:
    """A table with a pool of questions and their true answers."""

    def __init__(self, name: str) -> None:
        """Read the table and draw the questions, the same in every run."""
        with open_table(name) as table:
            self.batches: list[CellBatch] = list(table.batches())
            self.raw = collect(self.batches, table.schema)
        self.name, self.schema = name, self.raw.schema
        # The original table, asked as if nothing had been perturbed.
        self.exact = Answerer(self.raw, Design(1.0, self.schema.domain_size, "none"))
        rng = np.random.default_rng(5)
        self._cells = self.raw.count / self.raw.count.sum()
        tables = [self._table(rng) for _ in range(TABLES)]
        self.tables = [(one, one.answers(self.exact), one.sizes(self.exact)) for one in tables]
        self.pairs = self._pairs(rng) if name != AGE else {}

    def _drawn(self, rng: np.random.Generator) -> tuple[Condition, Any]:
        """The public values of a record and the sensitive value of another one."""
        one, other = rng.choice(self.raw.count.size, 2, p=self._cells)
        group = int(self.raw.group[one])
        at = {
            column.name: values[int(codes[group])].as_py()
            for column, values, codes in zip(
                self.schema.public, self.raw.values, self.raw.codes, strict=True
            )
            if column.name != AGE
        }
        return at, self.schema.domain[int(self.raw.value[other])]

    def _names(self, at: Condition, rng: np.random.Generator, most: int = 3) -> list[str]:
        return [str(n) for n in rng.choice(list(at), int(rng.integers(1, most + 1)), replace=False)]

    def _table(self, rng: np.random.Generator) -> TableAsked:
        at, value = self._drawn(rng)
        by = self._names(at, rng)
        columns = zip(self.schema.public, self.raw.values, strict=True)
        lengths = {column.name: len(values) for column, values in columns}
        while len(by) > 1 and np.prod([lengths[name] for name in by]) > CELLS:
            by = by[1:]
        return TableAsked(tuple(by), value, at["Marital"], bool(rng.random() < 0.5))

    def _pair(self, rng: np.random.Generator) -> PairAsked:
        (at, value), (other, _) = self._drawn(rng), self._drawn(rng)
        names = self._names(at, rng)
        a = {name: at[name] for name in names}
        if rng.random() < 0.5:  # two values of one attribute
            return PairAsked(a, a | {names[0]: other[names[0]]}, value)
        return PairAsked(a, {name: at[name] for name in self._names(at, rng)}, value)

    def _pairs(self, rng: np.random.Generator) -> dict[str, list[tuple[PairAsked, Any]]]:
        found: dict[str, list[tuple[PairAsked, Any]]] = {label: [] for label, _, _ in CLASSES}
        while any(len(pool) < PAIRS for pool in found.values()):
            pair = self._pair(rng)
            if pair.a == pair.b or not pair.populated(self.exact):
                continue
            pool = found[class_of(pair.size(self.exact))]
            if len(pool) < PAIRS:
                pool.append((pair, pair.answers(self.exact)))
        return found

    def published(self, size: str, number: int) -> Cube:
        """The release of one key."""
        policy = rp.Policy(RETENTION, 0.5, 0.3, sample_size=size)
        return publish_cube(self.raw, self.batches, Kernel(self.schema, policy, fixed_key(number)))

    def cases(self, answerer: Answerer, rng: np.random.Generator) -> Iterator[Case]:
        """Questions drawn for a key: kind, class, true value and limits."""
        for i in rng.choice(len(self.tables), TABLES_ASKED, replace=False):
            asked, truth, sizes = self.tables[int(i)]
            for kind, rows in asked.answers(answerer).items():
                size = sizes[kind in OWN]
                for label, low, high in CLASSES:
                    inside = [key for key in rows if low <= size[key] <= high]
                    rng.shuffle(inside)
                    for key in inside[:ROWS]:
                        yield kind, label, truth[kind][key][0], *rows[key][1:]
        for label, pool in self.pairs.items():
            for i in rng.choice(len(pool), PAIRS_ASKED, replace=False):
                pair, true = pool[int(i)]
                for kind, (_, low, high) in pair.answers(answerer).items():
                    if kind in true:
                        yield kind, label, true[kind][0], low, high


Case = tuple[str, str, Any, Any, Any]


def only(cube: Cube, inside: np.ndarray) -> Cube:
    """Some groups of a cube, with the same codes."""
    cells = inside[cube.group]
    return replace(
        cube,
        codes=tuple(codes[inside] for codes in cube.codes),
        records=cube.records[inside],
        trials=cube.trials[inside],
        group=(np.cumsum(inside) - 1)[cube.group[cells]],
        value=cube.value[cells],
        count=cube.count[cells],
    )


def class_of(size: float) -> str:
    """The class of a number of records."""
    return next(label for label, low, high in CLASSES if low <= size <= high)


def measure(study: Study, size: str, keys: Sequence[int], wrong: float = 1.0) -> list[Any]:
    """Cases and hits of one design; ``wrong`` multiplies the p that the analyst is told."""
    design = Design(RETENTION * wrong, study.schema.domain_size, size)
    tally: dict[tuple[str, str], list[int]] = {}
    for number in keys:
        answerer = Answerer(study.published(size, number), design)
        for kind, label, value, low, high in study.cases(answerer, np.random.default_rng(number)):
            if value is None:
                continue
            one = tally.setdefault((kind, label), [0, 0, 0])
            edge = 1e-6 * max(abs(value), 1.0)
            above, below = high is not None and value > high + edge, value < low - edge
            for i, add in enumerate((True, not above and not below, below)):
                one[i] += add
    said = "" if wrong == 1 else f"{wrong:g}"
    return [
        (study.name, size, kind, label, said, *tally[kind, label])
        for kind, (label, _, _) in itertools.product(QUESTIONS, CLASSES)
        if (kind, label) in tally
    ]


def summary(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The table of docs/how-to/figures.md; ``rows`` are those of the file."""
    *small, (large, _, _) = CLASSES
    columns: dict[str, Mapping[str, str]] = {
        f"{label} holders": {"holders": label, "wrong_p": ""} for label, _, _ in small
    }
    for size in SIZES:
        columns[f"{large}: `{size}`"] = {"holders": large, "sample_size": size, "wrong_p": ""}
    columns["all"] = {"wrong_p": ""}
    columns["p too low"] = {"holders": large, "wrong_p": "0.7"}
    columns["p too high"] = {"holders": large, "wrong_p": "1.3"}
    lines = [f"| figure | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    for kind, age in [*((kind, False) for kind in QUESTIONS), *((kind, True) for kind in OWN)]:
        own = [r for r in rows if r["question"] == kind and (r["table"] == AGE) == age]
        cells = [_share(own, wanted) for wanted in columns.values()]
        lines.append(f"| {kind}{', Age' * age} | {' | '.join(cells)} |")
    return lines


def _share(rows: Sequence[Mapping[str, str]], wanted: Mapping[str, str]) -> str:
    some = [r for r in rows if all(r[name] == value for name, value in wanted.items())]
    cases, covered = (sum(int(r[name]) for r in some) for name in ("cases", "covered"))
    if not cases:
        return "–"
    return f"{100 * covered / cases:.1f} %" + (
        f" of {cases:,}" if wanted == {"wrong_p": ""} else ""
    )


def main() -> None:
    """Measure the designs that are named, or all of them, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=50)
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--tables", default="Education,Occupation,Age")
    parser.add_argument("--wrong", default="0.7,1.3", help="factors by which p is off, or nothing")
    parser.add_argument("--out", type=Path, default=CSV)
    chosen = parser.parse_args()
    sizes = chosen.sizes.split(",")
    designs = [(size, 1.0) for size in sizes]
    # At a wrong p intervals must miss.
    designs += [(sizes[0], float(one)) for one in chosen.wrong.split(",") if one]
    rows = []
    for name in chosen.tables.split(","):
        study = Study(name)
        for size, wrong in designs:
            if name == AGE and wrong != 1:
                continue
            many = chosen.keys if wrong == 1 else max(chosen.keys // 4, 1)
            # Keys of its own for each sample size: groups that are not sampled would be the same.
            first = 1000 * SIZES.index(size)
            rows += measure(study, size, range(first, first + many), wrong)
            with chosen.out.open("w", encoding="utf-8", newline="") as stream:
                writer = csv.writer(stream, lineterminator="\n")
                writer.writerow(HEAD)
                writer.writerows(rows)
            print(name, size, wrong, file=sys.stderr, flush=True)
    with chosen.out.open(encoding="utf-8", newline="") as stream:
        print(*summary(list(csv.DictReader(stream))), sep="\n")


if __name__ == "__main__":
    main()
