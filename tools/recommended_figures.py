"""Compare policies on tables that none was chosen on, for docs/recommended.md.

For every table (tools/tried_tables.py, which says how to get them) and policy this measures the
analysts' error, what an adversary gets and, with margins, whether the promise holds. It writes
docs/recommended.csv, the table of the page and its figure:

    python tools/recommended_figures.py                            # everything
    python tools/recommended_figures.py --tables "Adult;towns" --policies "plain;signed"
    python tools/recommended_figures.py --draw                     # page and figure alone

Rows of tables and policies that are not measured again stay as they are.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import reconpriv as rp
from reconpriv.attacks.attacked_table import AttackedTable
from reconpriv.errors import ReconprivError
from reconpriv.research.recommended import OneTable, measure
from reconpriv.research.results import Result, Row, read_result
from reconpriv.show import charts, palette
from reconpriv.show.charts import Key
from reconpriv.show.palette import Look
from tried_tables import TABLES, NotInstalledError, Tried

DOCS = Path(__file__).resolve().parents[1] / "docs"
CSV, PAGE = DOCS / "recommended.csv", DOCS / "recommended.md"
FIGURE = DOCS / "figures" / "recommended.svg"

PAPER = rp.Policy(0.5, 0.5, 0.3)
SIGNED = rp.Policy(0.5, 0.5, 0.05, bound="exact", exposed_above=0.25)
POLICIES = {
    "plain": replace(PAPER, sample_size="none"),
    "paper": PAPER,
    "signed": SIGNED,
    "recommended": replace(SIGNED, margins=1.0),
}
# Not in the comparison: margins with the paper's bound, for values above a quarter.
OTHERS = {"paper with margins": replace(PAPER, exposed_above=0.25, margins=1.0)}
NAMES = {
    "plain": "perturbation alone",
    "paper": "the paper's policy",
    "signed": "signed",
    "recommended": "signed with margins",
}
LOOKS = {
    "plain": palette.PLAIN,
    "paper": palette.SECOND,
    "signed": palette.THIRD,
    "recommended": Look(palette.BLUE, "square"),
}
KEYS, TAIL_KEYS, QUERIES = 10, 250, 5_000


def opened(tried: Tried) -> rp.Table:
    """The table with its roles."""
    return rp.read(
        tried.table, sensitive=tried.sensitive, public=list(tried.public),
        bin=dict(tried.bins) or None, missing="value",
    )  # fmt: skip


def measured(name: str, policies: list[str], keys: int, tail_keys: int) -> list[Row]:
    """The rows of one table; a policy that refuses it has none."""
    rows = []
    with opened(TABLES[name]()) as table:
        # All policies are attacked in the groups that violate the same promise.
        one = OneTable.of(AttackedTable.of(table, SIGNED), QUERIES)
    for policy in policies:
        start = time.monotonic()
        try:
            found = measure(one, (POLICIES | OTHERS)[policy], keys, tail_keys)
        except ReconprivError as problem:
            print(f"{name}, {policy}: {problem}", file=sys.stderr, flush=True)
            continue
        rows.append({"table": name, "policy": policy, **found})
        _say(rows[-1], time.monotonic() - start)
    return rows


def _say(row: Row, seconds: float) -> None:
    print(
        f"{row['table']}, {row['policy']}: error {row['error']:.4f}, right {row['right'] or 0:.3f}"
        f" (expected {row['right_expected'] or 0:.3f}) of {row['attacked_groups']},"
        f" trials {row['trials'] or 0:.1f}, below {row['below_own']} and {row['below_both']}"
        f" of {row['exposed']}, smallest {row['smallest_own']} and {row['smallest_both']},"
        f" over {row['over_limit']} of {row['violating_groups']}, at most"
        f" {row['largest_of_limit']}, left out {row['rows_left_out']}; {seconds:.0f} s",
        file=sys.stderr, flush=True,
    )  # fmt: skip


def merged(old: tuple[Row, ...], new: list[Row]) -> list[Row]:
    """New rows in place of old ones, in the order of tables and policies."""
    found = {(row["table"], row["policy"]): row for row in (*old, *new)}
    order = [(table, policy) for table in TABLES for policy in POLICIES | OTHERS]
    return [found[one] for one in order if one in found]


_PLACE = re.compile(r"(<!-- from recommended.csv -->\n).*?(<!-- end -->)", re.DOTALL)


def renewed(text: str, rows: tuple[Row, ...]) -> str:
    """The page with the tables of these rows, in the order of its places."""
    parts = iter(["\n".join(_comparison(rows)), "\n".join(_promise(rows))])
    return _PLACE.sub(lambda place: f"{place[1]}\n{next(parts)}\n\n{place[2]}", text)


def _comparison(rows: tuple[Row, ...]) -> list[str]:
    """Error and adversary's success of every table, a column for each policy."""
    lines = [
        "| table | records | groups | public columns | values | attacked groups | "
        + " | ".join(NAMES.values()) + " |",
        "|---|" + "---:|" * (5 + len(NAMES)),
    ]  # fmt: skip
    for table in dict.fromkeys(row["table"] for row in rows):
        own = {row["policy"]: row for row in rows if row["table"] == table}
        first = next(iter(own.values()))
        counts = (first[one] for one in ("records", "groups", "public_columns", "values",
                                         "attacked_groups"))  # fmt: skip
        cells = (_pair(own.get(policy)) for policy in NAMES)
        lines.append(f"| {table} | {' | '.join(f'{one:,}' for one in counts)} |"
                     f" {' | '.join(cells)} |")  # fmt: skip
    return lines


def _pair(row: Row | None) -> str:
    if row is None:
        return "–"
    right = "–" if row["right"] == "" else f"{row['right']:.0%}".replace("%", " %")
    return f"{row['error']:.3f}, {right}"


def _promise(rows: tuple[Row, ...]) -> list[str]:
    """Whether the promise of the recommended policy holds."""
    lines = [
        "| table | exposed values | keys | too rarely wrong: own records, with margins |"
        " smallest tail: own records, with margins | groups above their limit | by at most |"
        " rows left out |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        if row["policy"] != "recommended":
            continue
        share = 100 * row["over_limit"] / max(row["violating_groups"], 1)
        by = max(row["largest_of_limit"] - 1.0, 0.0)
        lines.append(
            f"| {row['table']} | {row['exposed']:,} | {row['tail_keys']:,} |"
            f" {row['below_own']}, {row['below_both']} |"
            f" {row['smallest_own']:.3f}, {row['smallest_both']:.3f} |"
            f" {row['over_limit']:.1f} of {row['violating_groups']:,} ({share:.1f} %) |"
            f" {100 * by:.0f} % | {row['rows_left_out']:.1f} of"
            f" {row['rows'] + row['rows_left_out']:.0f} |"
        )
    return lines


def draw(rows: tuple[Row, ...], *targets: Path) -> None:
    """A panel for each table: the analysts' error against what an adversary gets right."""
    alt = charts.altair("experiments")
    shown = [row for row in rows if row["policy"] in LOOKS and row["right"] != ""]
    ticks = [0.01, 0.03, 0.1, 0.3, 1.0]
    span = [min(0.01, *(row["error"] for row in shown)) * 0.9,
            max(0.3, *(row["error"] for row in shown)) * 1.15]  # fmt: skip
    panels: list[Any] = []
    for table in dict.fromkeys(row["table"] for row in shown):
        own = [{"x": row["error"], "y": row["right"], "series": row["policy"]}
               for row in shown if row["table"] == table]  # fmt: skip
        last = len(panels) % 2
        x = alt.X("x:Q", title="analysts' mean error", scale=alt.Scale(type="log", domain=span),
                  axis=charts.percent_axis(values=ticks))  # fmt: skip
        y = alt.Y("y:Q", title=None if last else "adversary is right",
                  axis=charts.percent_axis(values=[0, 0.25, 0.5, 0.75, 1.0]),
                  scale=alt.Scale(domain=[0, 1.0]))  # fmt: skip
        base = alt.Chart(charts.rows(own)).encode(x=x, y=y)
        panels.append(charts.panel(charts.points(base, LOOKS, size=110), 190, 120, table))
    entries = [Key(NAMES[one], look, "mark") for one, look in LOOKS.items()
               if any(row["policy"] == one for row in shown)]  # fmt: skip
    charts.save(charts.figure(panels, entries=entries, width=440), *targets)


def write_page(rows: tuple[Row, ...]) -> None:
    """The tables of the page, and the figure."""
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    draw(rows, FIGURE)


def main() -> None:
    """Measure what is named, then write file, page and figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default=";".join(TABLES))
    parser.add_argument("--policies", default=";".join(POLICIES))
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--tail-keys", type=int, default=TAIL_KEYS)
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    parser.add_argument("--out", type=Path, default=CSV)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = list(read_result(chosen.out).rows) if chosen.out.exists() else []
    try:
        for name in () if chosen.draw else chosen.tables.split(";"):
            new = measured(name, chosen.policies.split(";"), chosen.keys, chosen.tail_keys)
            rows = merged(tuple(rows), new)
            if rows:
                Result(chosen.out.stem, tuple(rows)).write(chosen.out.parent)
    except NotInstalledError as problem:
        sys.exit(str(problem))
    if chosen.out == CSV:
        write_page(read_result(CSV).rows)


if __name__ == "__main__":
    main()
