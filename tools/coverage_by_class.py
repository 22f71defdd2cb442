"""How often 95 % intervals of every figure hold, by the worst class, for docs/coverage.md.

Two real tables and a made one with everything that is awkward (one huge group, one skewed, one in
which all agree, people who are alone, one income of a million) are published with many keys and
every kind of policy. Each question is a class of its own: a figure about some records. The made
table holds copies of itself, which are asked about one by one, so that a key gives many cases. The
truth is the answer to the same question from a release in which nothing is perturbed. This writes
docs/coverage-by-class.csv and the part of docs/coverage.md that names the worst classes:

    python tools/coverage_by_class.py                   # everything; an hour on two idle cores
    python tools/coverage_by_class.py --tables Adult --designs "octave;paper" --out /tmp/some.csv
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import itertools
import math
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import reconpriv as rp
from reconpriv.answers.answerer import Answerer
from reconpriv.ask.selections import both, public_part
from reconpriv.estimate.counts import Settings, quantile
from reconpriv.estimate.pieces import cut_into_pieces
from reconpriv.theory.estimation.combined_limits import combination_limits, ratio_limits

DOCS = Path(__file__).parent.parent / "docs"
CSV = DOCS / "coverage-by-class.csv"
HEAD = (
    "table", "design", "figure", "asked", "answered", "covered", "too_low", "too_high", "warned",
)  # fmt: skip
COPIES = 20  # of the made table
KEYS = 20
KEYS_OF_REAL_TABLES = 60
UNPERTURBED = 1 - 1e-12
HARD = 1e-6  # relative distance that is rounding error


@dataclass(frozen=True)
class Made:
    """A table, its roles, and what is asked about it."""

    name: str
    table: pa.Table | str
    sensitive: str
    public: tuple[str, ...]
    values: tuple[Any, ...]  # sensitive values to ask about, frequent ones first
    by: tuple[str, ...]  # each row of these tables is a class; "" is the whole table
    numbers: tuple[str, ...]
    some: str  # a condition on public columns
    shares: tuple[str, ...]  # conditions whose share among holders is asked for
    pairs: tuple[tuple[str, str], ...]  # records to compare
    protect: Mapping[str, Any]
    missing: str = "refuse"
    copy: str = ""  # the column that tells copies of the table apart
    keys: int = KEYS_OF_REAL_TABLES


class Limits(NamedTuple):
    """An answer, reduced to what is judged; everything is None where nothing can be said."""

    value: Any
    low: Any
    high: Any
    remarks: tuple[str, ...]


Answers = dict[tuple[str, str, Any], Limits]  # by figure, what it is about, and copy


DESIGNS: dict[str, rp.Policy] = {
    "none": rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none"),
    "octave": rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3),
    "public": rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="public"),
    "paper": rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="paper"),
    "signed": replace(rp.preset("recommended"), margins=None),
    "strict": rp.preset("strict"),
    "octave, p = .2": rp.Policy(retention=0.2, tolerance=0.5, doubt=0.3),
    "octave, p = .8": rp.Policy(retention=0.8, tolerance=0.5, doubt=0.3),
    "none, margins": rp.Policy(
        retention=0.5, tolerance=0.5, doubt=0.3, sampling="none", margins=1.0
    ),
    "octave, margins": rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, margins=1.0),
    "public, margins": rp.Policy(
        retention=0.5, tolerance=0.5, doubt=0.3, sampling="public", margins=1.0
    ),
    "octave, protected": rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3),
}
PROTECTED = "protected"


def awkward(m: int) -> Made:
    """Groups of every awkward kind, with a sensitive column of m values."""
    rng = np.random.default_rng(m)
    values = [f"v{i:03d}" for i in range(m)]
    even = np.full(m, 1.0 / m)
    rows: list[tuple[int, str, str, int, int, str]] = []

    def add(site: str, sex: str, age: int, income: int, held: Sequence[str]) -> None:
        rows.extend((copy, site, sex, age, income, one) for copy in range(COPIES) for one in held)

    def drawn(size: int, first: float) -> list[str]:
        """A share of the first value, some of the second, a few of the third, any of the rest."""
        rest = (1.0 - first) * even
        rest[0] += first
        return [values[i] for i in rng.choice(m, size, p=rest / rest.sum())]

    add("huge", "F", 40, 1000, [*drawn(5995, 0.4), *values[-1:] * 5])
    add("skewed", "M", 40, 1000, [values[0]] * 540 + drawn(60, 0.0))
    add("full", "F", 40, 1000, [values[0]] * 300)
    for i in range(60):
        size = int(rng.integers(5, 60))
        add("plain", "FM"[i % 2], 20 + i, int(rng.integers(500, 2000)), drawn(size, i / 80))
    for i in range(250):
        add("lone", "FM"[i % 2], 18 + i % 70, 600 + 3 * i, drawn(1, 0.3))
    for i in range(40):
        add("rich", "FM"[i % 2], 25 + i, 800 + 10 * i, drawn(75, 0.25))
    add("rich", "F", 50, 1_000_000, values[:1])
    columns = list(zip(*rows, strict=True))
    names = ("copy", "site", "sex", "age", "income", "ill")
    sites = [f"site = '{one}'" for one in ("huge", "skewed", "full", "plain", "lone", "rich")]
    pairs = [(one, other) for one, other in itertools.combinations(sites, 2) if other > one]
    return Made(
        f"awkward, m = {m}",
        pa.table(dict(zip(names, map(pa.array, columns), strict=True))),
        "ill",
        names[:-1],
        (values[0], values[1 % m], values[-1])[: min(m, 3)],
        ("", "site"),
        ("age", "income"),
        "sex = 'F'",
        tuple(sites),
        (*pairs, ("sex = 'F'", "age >= 40"), ("site = 'plain'", "sex = 'F'")),
        {"age": 20, "income": "*"},
        copy="copy",
        keys=KEYS,
    )


def adult() -> Made:
    """A real table with few public columns, so that groups are large."""
    return Made(
        "Adult", "example:adult", "occupation", ("age", "sex", "race"),
        ("Prof-specialty", "Sales", "Armed-Forces"), ("", "sex", "race"), ("age",),
        "sex = 'Female'", ("race = 'Other'", "age < 25", "age = 30"),
        (("sex = 'Female'", "sex = 'Male'"), ("race = 'Other'", "age < 25"),
         ("age = 30", "race = 'Black'")),
        {"age": 10}, "value",
    )  # fmt: skip


def census() -> Made:
    """A real table with six public columns, so that groups are small."""
    return Made(
        "census", "example:census_workers", "Occupation",
        ("Age", "Gender", "Education", "Marital", "Race", "Workclass"),
        (), ("", "Gender", "Race"), ("Age",),
        "Gender = 2", ("Race = 2", "Age < 25", "Age = 30 AND Gender = 1 AND Race = 1"),
        (("Gender = 1", "Gender = 2"), ("Race = 2", "Age < 25"), ("Age = 30", "Race = 3")),
        {"Age": 10},
    )  # fmt: skip


TABLES: dict[str, Callable[[], Made]] = {
    "awkward, m = 2": lambda: awkward(2),
    "awkward, m = 14": lambda: awkward(14),
    "awkward, m = 200": lambda: awkward(200),
    "Adult": adult,
    "census": census,
}


def _limits(answer: Any, scores: Mapping[Any, float]) -> Limits:
    """An estimate or a figure as limits; classes as their places in the domain."""
    value = answer.count if hasattr(answer, "count") else answer.value
    ends = (scores.get(one) if isinstance(one, str) else one
            for one in (value, answer.low, answer.high))  # fmt: skip
    return Limits(*ends, answer.remarks)


def answers(made: Made, release: Any) -> Answers:
    """Every figure about every class, as a release has it."""
    domain, own = release.domain, made.sensitive
    scores = {one: float(i) for i, one in enumerate(domain)}
    values = made.values or (domain[0], domain[len(domain) // 2], domain[-1])
    found: Answers = {}

    def ask(figures: Mapping[str, str], by: str, where: str = "", about: str = "") -> None:
        groups = [one for one in (made.copy, by) if one]
        text = f"SELECT {', '.join([*groups, *figures.values()])} FROM release"
        text += f" WHERE {where}" if where else ""
        text += f" GROUP BY {', '.join(groups)}" if groups else ""
        try:
            table = release.sql(text, scores=scores)
        except rp.errors.ReconprivError:
            return
        for labels, line in table if hasattr(table, "rows") else [({}, (table,))]:
            copy = labels.get(made.copy)
            place = str(labels[by]) if by else "all"
            cells = line if isinstance(line, tuple) else (line,)
            for figure, one in zip(figures, cells, strict=True):
                name, _, what = figure.partition(": ")
                asked = ", ".join(filter(None, (what, place, about)))
                found[name, asked, copy] = _limits(one, scores)

    numbers = {f"{kind}: {n}": f"{call}({n}{more})" for n in made.numbers
               for kind, call, more in (("average", "avg", ""), ("sum", "sum", ""),
                                        ("median", "median", ""),
                                        ("quantile", "quantile", ", 0.9"))}  # fmt: skip
    among = {f"share among holders: {one}": f"share({one})" for one in made.shares}
    for by in made.by:
        for value in values:
            held = f"{own} = {_literal(value)}"
            ask({"count": "count(*)", **numbers, f"share among holders: {made.some}":
                 f"share({made.some})"}, by, held, str(value))  # fmt: skip
            ask({"share": f"share({held})"}, by, "", str(value))
            if not by:
                ask(among, by, held, str(value))
        half = ", ".join(map(_literal, domain[: max(len(domain) // 2, 1)]))
        ask({"count of a set": "count(*)"}, by, f"{own} IN ({half})")
        ask({f"{kind} of the sensitive column": f"{call}({own})" for kind, call in
             (("average", "avg"), ("sum", "sum"), ("median", "median"))}, by)  # fmt: skip
        public = {f"average of public columns: {n}": f"avg({n})" for n in made.numbers}
        ask({"count of public columns": f"count(*) FILTER ({made.some})",
             "share of public columns": f"share({made.some})", **public}, by)  # fmt: skip
    for (a, b), value in itertools.product(made.pairs, values):
        for figure, by_copy in compared(release.answerer, a, b, {own: value}, made.copy).items():
            for copy, one in by_copy.items():
                found[figure, f"{a} and {b}, {value}", copy] = one
    return found


def compared(
    answerer: Answerer, a: str, b: str, held: dict[str, Any], copy: str
) -> dict[str, dict[Any, Limits]]:
    """Two counts and two shares side by side, in every copy of the table."""
    by, settings, z = [copy] if copy else [], Settings(), quantile(0.95)
    holders = answerer.selected(held)
    sides = [both(answerer.selected(one), holders) for one in (a, b)]
    pieces = cut_into_pieces(answerer, sides, by, settings)
    sizes = np.ones((2, pieces.keys.shape[1], 1))
    for i, one in enumerate(sides):
        rows = answerer.table(public_part(one), by, settings)
        sizes[i, :, 0] = [estimate.count for _, estimate in rows]
    shares, counts = pieces.members[:, None] / sizes, pieces.members[:, None]
    labels = [one.get(copy) for one in answerer.labels(by, pieces.keys)]
    remarks = answerer.count(sides[0], settings).remarks
    found = {
        "difference of shares": combination_limits(shares[0] - shares[1], pieces.parts, z),
        "difference of counts": combination_limits(counts[0] - counts[1], pieces.parts, z),
        "ratio": ratio_limits(shares[0], shares[1], pieces.parts, z, (0.0, math.inf)),
    }
    values = (shares * pieces.parts.value).sum(axis=-1), (counts * pieces.parts.value).sum(axis=-1)
    centre = {
        "difference of shares": values[0][0] - values[0][1],
        "difference of counts": values[1][0] - values[1][1],
        "ratio": np.divide(*values[0], out=np.full(len(labels), np.nan), where=values[0][1] > 0),
    }
    return {
        figure: {
            label: Limits(None if math.isnan(value) else value, low, high, remarks)
            for label, value, low, high in zip(labels, centre[figure], *ends, strict=True)
        }
        for figure, ends in found.items()
    }


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)


def fixed_key(number: int) -> rp.Key:
    """The same keys in every run."""
    return rp.Key(hashlib.sha256(f"coverage by class {number}".encode()).digest())


def opened(made: Made) -> rp.Table:
    """The table, with its roles."""
    return rp.read(made.table, sensitive=made.sensitive, public=list(made.public),
                   missing=made.missing)  # fmt: skip


def policy_of(made: Made, design: str) -> rp.Policy:
    """The policy of a design, with the columns of the table that it pools."""
    policy = DESIGNS[design]
    return replace(policy, protect=dict(made.protect)) if PROTECTED in design else policy


def measure(name: str, design: str, keys: Sequence[int]) -> list[Any]:
    """Cases and hits of every question of one table and design."""
    warnings.simplefilter("ignore")
    made = TABLES[name]()
    tally: dict[tuple[str, str], np.ndarray] = {}
    with opened(made) as table, tempfile.TemporaryDirectory() as folder:
        plain = rp.Policy(retention=UNPERTURBED, tolerance=0.5, doubt=0.3, sampling="none")
        truth = answers(made, table.publish(plain, f"{folder}/exact", key=fixed_key(0)))
        policy = policy_of(made, design)
        for number in keys:
            release = table.publish(
                policy, f"{folder}/release", key=fixed_key(number), overwrite=True
            )
            for asked, found in answers(made, release).items():
                if asked in truth and truth[asked].value is not None:
                    total = tally.setdefault(asked[:2], np.zeros(5, dtype=np.int64))
                    total += _judged(found, truth[asked].value)
    return [(name, design, *asked, *map(int, line)) for asked, line in tally.items()]


WARNINGS = ("approximate", "may cover less", "does not cover")


def _judged(found: Limits, true: float) -> tuple[int, ...]:
    """Answered, covered, too low, too high, and covered or with a warning."""
    if found.low is None and found.high is None and found.value is None:
        return 0, 0, 0, 0, 0
    slack = HARD * max(abs(true), 1.0)
    too_low = found.high is not None and true > found.high + slack
    too_high = found.low is not None and true < found.low - slack
    held = not too_low and not too_high
    warned = any(word in remark for remark in found.remarks for word in WARNINGS)
    return 1, held, too_low, too_high, held or warned


def _job(job: tuple[str, str, range]) -> list[Any]:
    return measure(*job)


def summed(rows: list[Any]) -> list[Any]:
    """One row for each class."""
    found: dict[tuple[Any, ...], np.ndarray] = {}
    for row in rows:
        total = found.setdefault(tuple(row[:4]), np.zeros(5, dtype=np.int64))
        total += np.array(row[4:])
    return [(*where, *map(int, total)) for where, total in found.items()]


def read_rows(file: Path = CSV) -> list[Any]:
    """The committed figures."""
    with file.open(encoding="utf-8", newline="") as stream:
        _, *rows = csv.reader(stream)
    return [(*row[:4], *map(int, row[4:])) for row in rows]


LEAST, ENOUGH = 0.93, 60  # cases that are needed to judge a class


def below(row: Any, covered: int = 5) -> bool:
    """Whether a class covers less than it should, by more than three standard errors."""
    share, error = row[covered] / row[4], math.sqrt(LEAST * (1.0 - LEAST) / row[4])
    return share < LEAST - 3.0 * error


def section(rows: list[Any]) -> str:
    """The part of the page that names the worst class of every figure."""
    judged = [row for row in rows if row[4] >= ENOUGH]
    failing = [row for row in judged if below(row)]
    unsaid = [row for row in judged if below(row, 8)]
    sizes = [row[4] for row in judged]
    lines = [
        "## Every figure, by its worst class",
        "",
        _WORDS.format(
            classes=len(judged), cases=sum(row[4] for row in judged), enough=ENOUGH,
            failing=len(failing), unsaid=len(unsaid), copies=COPIES,
            fewest=min(sizes), most=max(sizes),
            least=300.0 * math.sqrt(LEAST * (1.0 - LEAST) / max(sizes)),
            largest=300.0 * math.sqrt(LEAST * (1.0 - LEAST) / min(sizes)),
            tables="; ".join(dict.fromkeys(row[0] for row in judged)),
            designs="; ".join(dict.fromkeys(row[1] for row in judged)),
        ),
        "",
        "| figure | classes | worst without a remark | of | which | worst with a remark |",
        "|---|---:|---:|---:|---|---|",
    ]  # fmt: skip
    for figure in dict.fromkeys(row[2] for row in judged):
        own = [row for row in judged if row[2] == figure]
        plain, noted = (
            sorted((row[5] / row[4], row) for row in own if (row[1] == "paper") == said)
            for said in (False, True)
        )
        share, worst = plain[0]
        with_remark = f"{100 * noted[0][0]:.1f} %; {noted[0][1][3]}" if noted else "–"
        lines.append(
            f"| {figure} | {len(own)} | {100 * share:.1f} % | {worst[4]} |"
            f" {worst[0]}; {worst[1]}; {worst[3]} | {with_remark} |"
        )
    return "\n".join([*lines, "", _REMARKS])


_WORDS = """\
Each question about each kind of record is a class of its own here: counts, shares, averages, sums,
quantiles and comparisons about a huge group, a skewed one, one in which everybody holds the same
value, people who are alone, small groups, and records among which one income of a million
outweighs all others. The made table holds {copies} copies of itself, which are asked about one by
one. Real tables are asked about the rows of their columns.

Tables: {tables}. Designs: {designs}.

There are {classes:,} classes with at least {enough} cases, {cases:,} cases in all. In {failing} of
them, intervals hold less than 93 % of the time by more than three standard errors; {unsaid} of
these carry no remark that says so. A class has {fewest} to {most} cases, so three standard errors
are {least:.0f} to {largest:.0f} points. `python tools/coverage_by_class.py` measures them again."""

_REMARKS = """\
"With a remark" are answers from releases made with sampling rule `paper`, whose trials and sizes
are secret: each of them says that its interval is approximate. All classes are in
[coverage-by-class.csv](coverage-by-class.csv).
"""


def _write(file: Path, rows: list[Any]) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEAD)
        writer.writerows(rows)


_AT_ONCE = 20  # keys of one process


def main() -> None:
    """Measure everything that is named, print the worst, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, help="instead of those of each table")
    parser.add_argument("--tables", default=";".join(TABLES))
    parser.add_argument("--designs", default=";".join(DESIGNS))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=CSV)
    chosen = parser.parse_args()
    jobs = [
        (name, design, range(first, min(first + _AT_ONCE, keys)))
        for name in chosen.tables.split(";")
        for keys in [chosen.keys or TABLES[name]().keys]
        for design in chosen.designs.split(";")
        for first in range(0, keys, _AT_ONCE)
    ]  # fmt: skip
    rows: list[Any] = []
    with ProcessPoolExecutor(chosen.processes) as pool:
        for i, found in enumerate(pool.map(_job, jobs)):
            rows = summed([*rows, *found])
            _write(chosen.out, rows)
            print(f"{i + 1} of {len(jobs)}: {jobs[i][:2]}", file=sys.stderr, flush=True)
    for share, row in sorted((row[5] / row[4], row) for row in rows if row[4])[:20]:
        print(f"{100 * share:5.1f} %", *row)
    if chosen.out == CSV:
        import coverage_tables  # noqa: PLC0415 - which includes this section

        coverage_tables.write_page()


if __name__ == "__main__":
    main()
