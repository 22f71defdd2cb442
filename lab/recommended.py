"""Compare policies on tables that none was chosen on, for docs/recommended.md.

For every table (lab/tried_tables.py, which says how to get them) and policy this measures the
analysts' error, what an adversary gets and, with margins, whether the promise holds. It writes
docs/recommended.csv, the tables of the page and its figure:

    python -m lab.recommended                # everything: an hour on an idle machine
    python -m lab.recommended --coverage     # how often intervals hold, a few minutes
    python -m lab.recommended --tables "Adult;towns" --policies "plain;signed"
    python -m lab.recommended --draw                     # page and figure alone

Rows of tables and policies that are not measured again stay as they are.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from dataclasses import replace
from itertools import combinations
from pathlib import Path

# Matrices here are small: several threads would wait for each other, ten times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import reconpriv as rp
from lab.counts_covered import counts_covered
from lab.policy_trial import OneTable, measure
from lab.recommended_page import COVERAGE, CSV, OTHERS, write_page
from lab.tried_tables import TABLES, NotInstalledError, Tried
from reconpriv.attacks.attacked_table import AttackedTable
from reconpriv.errors import ReconprivError
from reconpriv.research.results import Result, Row, read_result

PAPER = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
SIGNED = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.05, bound="exact", exposed_above=0.25)
RECOMMENDED = replace(SIGNED, margins=1.0)
POLICIES = {
    "plain": replace(PAPER, sampling="none"),
    "plain with margins": replace(PAPER, sampling="none", margins=1.0),
    "paper": PAPER,
    "signed": SIGNED,
    "recommended": RECOMMENDED,
    "strict": rp.preset("strict"),
    # The promise is checked with these as well.
    "public": replace(RECOMMENDED, sampling="public"),
    "pairs": RECOMMENDED,  # and with margins by pairs of columns, see with_pairs
}
KEYS, QUERIES = 10, 5_000
# Tails of 5 % take many keys to see; a table of few groups has few values to pool.
TAIL_KEYS, TAIL_KEYS_OF_FEW, FEW_GROUPS = 300, 600, 1_000
TAIL_KEYS_OF_OTHERS = 30  # policies that are checked besides
ROWS_OF_PAIRS = 20
COVERED, COVERAGE_KEYS = ("Adult", "voters"), 60


def opened(tried: Tried) -> rp.Table:
    """The table with its roles."""
    return rp.read(
        tried.table, sensitive=tried.sensitive, public=list(tried.public),
        bin=dict(tried.bins) or None, missing="value",
    )  # fmt: skip


def with_pairs(target: AttackedTable) -> rp.Policy:
    """The recommended policy with margins by pairs of columns, too, if these have few rows."""
    names = [column.name for column in target.schema.public]
    values = [np.unique(column.codes).size for column in target.batch.public]
    pairs = [(names[i], names[j]) for i, j in combinations(range(len(names)), 2)
             if values[i] * values[j] <= ROWS_OF_PAIRS]  # fmt: skip
    return replace(RECOMMENDED, margins=rp.Margins(1.0, tables=[*names, *pairs]))


def measured(name: str, policies: list[str], keys: int, tail_keys: int) -> list[Row]:
    """The rows of one table; a policy that refuses it has none."""
    rows = []
    with opened(TABLES[name]()) as table:
        # All policies are attacked in the groups that violate the same promise.
        one = OneTable.of(AttackedTable.of(table, SIGNED), QUERIES)
    for policy in policies:
        start = time.monotonic()
        try:
            often = tail_keys or _tail_keys(policy, one.target.batch.groups)
            tried = with_pairs(one.target) if policy == "pairs" else POLICIES[policy]
            found = measure(one, tried, keys, often)
        except ReconprivError as problem:
            print(f"{name}, {policy}: {problem}", file=sys.stderr, flush=True)
            continue
        rows.append({"table": name, "policy": policy, **found})
        _say(rows[-1], time.monotonic() - start)
    return rows


def _tail_keys(policy: str, groups: int) -> int:
    if policy in OTHERS:
        return TAIL_KEYS_OF_OTHERS
    return TAIL_KEYS_OF_FEW if groups <= FEW_GROUPS else TAIL_KEYS


def _say(row: Row, seconds: float) -> None:
    told = ", ".join(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
                     for name, value in row.items())  # fmt: skip
    print(f"{told}; {seconds:.0f} s", file=sys.stderr, flush=True)


def merged(old: tuple[Row, ...], new: list[Row]) -> list[Row]:
    """New rows in place of old ones, in the order of tables and policies, all with all columns."""
    found = {(row["table"], row["policy"]): row for row in (*old, *new)}
    order = [(table, policy) for table in TABLES for policy in POLICIES]
    rows = [found[one] for one in order if one in found]
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name, "") for name in names} for row in rows]


def covered(names: list[str], keys: int) -> list[Row]:
    """How often intervals of the recommended policy hold, on some tables."""
    found = []
    for name in names:
        with opened(TABLES[name]()) as table:
            target = AttackedTable.of(table, RECOMMENDED)
        found += [{"table": name, **row} for row in counts_covered(target, keys)]
    return found


def main() -> None:
    """Measure what is named, then write file, page and figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default=";".join(TABLES))
    parser.add_argument("--policies", default=";".join(POLICIES))
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--tail-keys", type=int, default=0)
    parser.add_argument("--coverage", action="store_true", help="measure intervals, nothing else")
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    parser.add_argument("--out", type=Path, default=CSV)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = list(read_result(chosen.out).rows) if chosen.out.exists() else []
    try:
        if chosen.coverage:
            found = covered(list(COVERED), COVERAGE_KEYS)
            Result(COVERAGE.stem, tuple(found)).write(COVERAGE.parent)
        for name in () if chosen.draw or chosen.coverage else chosen.tables.split(";"):
            new = measured(name, chosen.policies.split(";"), chosen.keys, chosen.tail_keys)
            rows = merged(tuple(rows), new)
            if rows:
                Result(chosen.out.stem, tuple(rows)).write(chosen.out.parent)
    except NotInstalledError as problem:
        sys.exit(str(problem))
    if chosen.out == CSV:
        write_page()


if __name__ == "__main__":
    main()
