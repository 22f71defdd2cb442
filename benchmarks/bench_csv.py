"""CSV: audit, publish and a first look against DuckDB's own GROUP BY of the same file."""

from __future__ import annotations

import argparse
from pathlib import Path

import bench_core
import bench_scale
from common import CACHE, best_of, census_rows, machine, report_job, write_section

BAR = 2.0
MEMORY = bench_scale.MEMORY


def csv_rows(rows: int) -> Path:
    """The records of :func:`common.census_rows` as CSV."""
    import duckdb

    path = CACHE / f"census-{rows}.csv"
    if not path.exists():
        source = census_rows(rows)
        duckdb.execute(f"COPY (FROM '{source}') TO '{path}.part' (FORMAT csv, HEADER)")
        Path(f"{path}.part").rename(path)
    return path


def audit(file: str, sql: str | None = None) -> None:
    import reconpriv as rp

    with rp.read(file, sensitive="Occupation", memory=MEMORY, sql=sql) as table:
        table.audit(rp.Policy(retention=0.5, epsilon=0.5, delta=0.3))


def describe(file: str) -> None:
    import reconpriv as rp

    rp.describe(file)


JOBS = {
    "group by": bench_core.group_by,
    "audit": audit,
    "publish": lambda file: bench_scale.publish(file, "parquet"),
    "describe": describe,
    "audit of a query": lambda file: audit(file, "SELECT * FROM input"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[2e6, 1e7])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--job")
    parser.add_argument("--file")
    arguments = parser.parse_args()
    if arguments.job:
        bench_core.warm_imports()
        report_job(lambda: JOBS[arguments.job](arguments.file))
        return
    lines = [
        "Rows x 7 columns drawn from the census table, CSV; Occupation sensitive, octave,"
        f" `memory={MEMORY}`. GROUP BY ALL with the types that DuckDB guesses. `describe` is the"
        " studio's first look at an upload; `audit of a query` has `sql='SELECT * FROM input'`.",
        f"Best of {arguments.rounds}, each job in a process of its own. {machine()}.",
        "",
        f"| rows | job | seconds | to GROUP BY | bar {BAR} | peak MB |",
        "|---:|---|---:|---:|---|---:|",
    ]
    for rows in map(int, arguments.rows):
        best = best_of(arguments.rounds, __file__, list(JOBS), "--file", str(csv_rows(rows)))
        for job, found in best.items():
            ratio = found["seconds"] / best["group by"]["seconds"]
            verdict = "" if job == "group by" else bench_scale.met(ratio, BAR)
            lines.append(
                f"| {rows:,} | {job} | {found['seconds']:.2f} | {ratio:.2f} | {verdict} |"
                f" {found['peak_mb']:.0f} |"
            )
    write_section("CSV", "\n".join(lines))


if __name__ == "__main__":
    main()
