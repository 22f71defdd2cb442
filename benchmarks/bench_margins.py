"""Publishing with margins against publishing without, in the same run."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from common import best_of, census_rows, machine, report_job, write_section

BAR = 1.15
EPSILON = 1.0


def publish(file: str, margins: float | None) -> None:
    import reconpriv as rp

    policy = rp.Policy(retention=0.5, epsilon=0.5, delta=0.3, margins=margins)
    folder = Path(tempfile.mkdtemp(dir=Path(file).parent))
    try:
        with rp.read(file, sensitive="Occupation") as table:
            table.publish(policy, folder / "release", key=rp.Key.test())
    finally:
        shutil.rmtree(folder)


def warm_imports() -> None:
    """Load the modules of both jobs before timing."""
    import pyarrow.parquet  # noqa: F401
    import scipy.special  # noqa: F401

    import reconpriv.core.margin_plan
    import reconpriv.engines.duckdb.engine
    import reconpriv.table  # noqa: F401


JOBS = {
    "publish": lambda file: publish(file, None),
    "publish --margins 1": lambda file: publish(file, EPSILON),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--job", choices=list(JOBS))
    parser.add_argument("file", nargs="?")
    arguments = parser.parse_args()
    if arguments.job:
        warm_imports()
        report_job(lambda: JOBS[arguments.job](arguments.file))
        return
    rows = int(arguments.rows)
    best = best_of(arguments.rounds, __file__, list(JOBS), str(census_rows(rows)))
    plain, margins = best.values()
    ratio = margins["seconds"] / plain["seconds"]
    lines = [
        f"A table of {rows:,} records (Occupation sensitive, six public columns), sample size"
        f" octave, margins of every public column with ε = 1. Best of {arguments.rounds}."
        f" {machine()}.",
        "",
        "| job | seconds | peak MB | of publish | bar |",
        "|---|---:|---:|---:|---:|",
        f"| publish | {plain['seconds']:.2f} | {plain['peak_mb']:,.0f} | 1.00 | |",
        f"| publish --margins 1 | {margins['seconds']:.2f} | {margins['peak_mb']:,.0f} |"
        f" {ratio:.2f} | {BAR:.2f} |",
    ]
    write_section(f"Margins: {rows:,} records", "\n".join(lines))


if __name__ == "__main__":
    main()
