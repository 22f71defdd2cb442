"""Settings per second of a sweep on the census table, and the cost of one by publishing."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import reconpriv as rp
from common import COLUMNS, machine, write_section
from reconpriv.tuning.sweep import sweep
from reconpriv.tuning.tuner import Tuner

BAR = 2_000
PAPER: dict[str, Any] = {"current": rp.preset("paper")}
SWEEPS = {
    "default (exact, margins)": {},
    "exact": {"margins": [None]},
    "Chernoff": PAPER,
    "Chernoff, fine": {
        **PAPER,
        "retentions": np.linspace(0.1, 0.9, 41),
        "tolerances": np.linspace(0.3, 0.9, 13),
    },
    "Chernoff, margins": {**PAPER, "margins": [1.0]},
    "none": {**PAPER, "samplings": "none"},
    "paper": {**PAPER, "samplings": "paper", "retentions": [0.3, 0.5, 0.7]},
}


def by_publishing(table: rp.Table, tuner: Tuner) -> float:
    """The seconds for one setting without a formula: publish, run the workload, audit."""
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        release = table.publish(policy, Path(folder) / "r", key=rp.Key.generate())
        release.workload_error(tuner.workload)
    table.audit(policy)
    return time.perf_counter() - begun


def measure(sensitive: str, rounds: int) -> list[str]:
    public = [name for name in COLUMNS if name != sensitive]
    source = rp.dataset_path("census_workers")
    lines = []
    with rp.read(source, sensitive=sensitive, public=public) as table:
        prepared = []
        for name, choice in SWEEPS.items():
            seconds = []
            for _ in range(rounds):
                begun = time.perf_counter()
                tuner = table.tuner()
                prepared.append(time.perf_counter() - begun)
                begun = time.perf_counter()
                report = sweep(tuner, **choice)
                seconds.append(time.perf_counter() - begun)
            count, best = len(report.settings), min(seconds)
            bar = f"{BAR:,}" if name in ("Chernoff", "Chernoff, fine") else ""
            lines.append(
                f"| {sensitive} | {name} | {count:,} | {best:.2f} | {count / best:,.0f} | {bar} |"
            )
        publishing = min(by_publishing(table, tuner) for _ in range(rounds))
    lines.append(f"| {sensitive} | one pass to prepare | | {min(prepared):.2f} | | |")
    lines.append(f"| {sensitive} | by publishing | 1 | {publishing:.2f} | {1 / publishing:.1f} | |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    lines = [
        "The census table (148,318 records, six public columns), the standard workload of 5,000"
        " queries. Settings of p, ε, δ and sampling rule with their violations, trials, expected"
        " error and risk; each sweep with a tuner of its own, so nothing is kept from the one"
        f" before. Best of {arguments.rounds}. {machine()}.",
        "",
        "| sensitive | sweep | settings | seconds | settings a second | bar |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for sensitive in ("Education", "Occupation"):
        lines += measure(sensitive, arguments.rounds)
    write_section("Tune: 148,318 records", "\n".join(lines))


if __name__ == "__main__":
    main()
