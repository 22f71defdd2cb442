"""Commands on a small table, where most of the time is spent on starting."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import machine, write_section

BAR = 0.6  # seconds for an audit on an idle core
FLOOR = "import of numpy, DuckDB, PyArrow"
TABLE = ["example:adult", "-s", "occupation", "--public", "age,sex,race", "--missing", "value"]
QUESTION = "SELECT count(*) FROM release WHERE occupation = 'Sales'"


def commands(folder: Path) -> dict[str, list[str]]:
    """What is run, by name, in an order in which the release is there before it is queried."""
    reconpriv = [sys.executable, "-m", "reconpriv"]
    release = str(folder / "release")
    return {
        FLOOR: [sys.executable, "-c", "import numpy, duckdb, pyarrow"],
        "import reconpriv": [sys.executable, "-c", "import reconpriv"],
        "--version": [*reconpriv, "--version"],
        "audit": [*reconpriv, "audit", *TABLE],
        "publish": [*reconpriv, "publish", *TABLE, release, "--test-key", "--overwrite"],
        "query": [*reconpriv, "query", release, QUESTION],
    }


def run(command: list[str]) -> tuple[float, float]:
    """Seconds on the clock and of processor time; an audit exits 1 where groups are not private."""
    before, begun = os.times(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - begun, os.times()
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    busy = after.children_user - before.children_user
    return seconds, busy + after.children_system - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wanted = commands(Path(folder))
        for command in wanted.values():  # compiles what is not compiled yet
            run(command)
        # Interleaved, so a noisy minute hits them all.
        rounds = [{name: run(one) for name, one in wanted.items()} for _ in range(arguments.rounds)]
    best = {name: [min(one[name][i] for one in rounds) for i in range(2)] for name in wanted}
    lines = [
        f"{machine()}. The adult table (48,842 records, 575 groups), each command in a process of"
        f" its own; the best of {arguments.rounds} interleaved rounds. Ratios to the floor are of"
        f" processor time, which a busy machine changes less. Bar: an audit in {BAR} s on an idle"
        " core.",
        "",
        "| command | seconds | processor seconds | ratio to floor |",
        "|---|---|---|---|",
        *(
            f"| {name} | {seconds:.2f} | {busy:.2f} | {busy / best[FLOOR][1]:.1f} |"
            for name, (seconds, busy) in best.items()
        ),
    ]
    write_section("Start", "\n".join(lines))


if __name__ == "__main__":
    main()
