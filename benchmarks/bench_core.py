"""Audit and publish against DuckDB's own GROUP BY and COPY of the same file, in the same run."""

from __future__ import annotations

import argparse

import jobs
from common import census_rows, machine, write_section

BARS = {"audit --no-columns": 1.2, "publish": 1.3}


JOBS = {
    "group by": jobs.group_by,
    "copy": jobs.copy,
    "audit --no-columns": lambda file: jobs.audit(file, columns=False),
    "audit": lambda file: jobs.audit(file, columns=True),
    "publish octave": lambda file: jobs.publish(file, sampling="octave"),
    "publish public": lambda file: jobs.publish(file, sampling="public"),
    "publish paper": lambda file: jobs.publish(file, sampling="paper"),
    "publish none": lambda file: jobs.publish(file, sampling="none"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--spread", action="store_true", help="twice as many cells")
    arguments = jobs.asked(parser, JOBS)
    rows = int(arguments.rows)
    file = census_rows(rows, spread=arguments.spread)
    best = jobs.best_of(arguments.rounds, __file__, list(JOBS), "--file", str(file))
    count, both = best["group by"]["seconds"], best["group by"]["seconds"] + best["copy"]["seconds"]
    lines = [
        f"{rows:,} rows x 7 text columns drawn from the census table, Parquet"
        + (", ages moved by up to two years (207,147 cells)" if arguments.spread else "")
        + "; Occupation sensitive, p = 0.5, tolerance 0.5, doubt 0.3.",
        f"Best of {arguments.rounds}, each job in a process of its own. {machine()}.",
        "",
        "| job | seconds | ratio | to | bar | peak MB |",
        "|---|---:|---:|---|---:|---:|",
    ]
    for job, result in best.items():
        floor, name = (
            (both, "GROUP BY + COPY") if job.startswith("publish") else (count, "GROUP BY")
        )
        bar = BARS.get("publish" if job.startswith("publish") else job)
        lines.append(
            f"| {job} | {result['seconds']:.2f} | {result['seconds'] / floor:.2f} | {name} |"
            f" {f'{bar:.1f}' if bar else ''} | {result['peak_mb']:.0f} |"
        )
    title = f"Core: {rows:,} rows" + (", ages spread" if arguments.spread else "")
    write_section(title, "\n".join(lines))


if __name__ == "__main__":
    main()
