"""Publishing with margins against publishing without, in the same run."""

from __future__ import annotations

import argparse

import jobs
from common import census_rows, machine, write_section

BAR = 1.15
EPSILON = 1.0


JOBS = {
    "publish": jobs.publish,
    "publish --margins 1": lambda file: jobs.publish(file, margins=EPSILON),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = jobs.asked(parser, JOBS)
    rows = int(arguments.rows)
    best = jobs.best_of(arguments.rounds, __file__, list(JOBS), "--file", str(census_rows(rows)))
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
