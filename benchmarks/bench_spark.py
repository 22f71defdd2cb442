"""Spark in local mode, with one and two executors' worth of threads, against DuckDB on one file."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import jobs
from common import census_rows, machine, write_section


def work(file: str, job: str) -> dict[str, Any]:
    """Audit, then publish twice: the second publication finds a warm session."""
    import resource

    import reconpriv as rp

    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
    folder = Path(tempfile.mkdtemp(dir=Path(file).parent))
    threads = int(job.rsplit(maxsplit=1)[-1])
    spark: dict[str, Any] = {"engine": "spark", "master": f"local[{threads}]", "memory": "4GB"}
    begun = time.perf_counter()
    try:
        settings = spark if job.startswith("spark") else {"threads": threads}
        with rp.read(file, sensitive="Occupation", public="all", **settings) as table:
            opened = time.perf_counter()
            table.audit(policy)
            audited = time.perf_counter()
            table.publish(policy, folder / "one", key=rp.Key.test())
            first = time.perf_counter()
            if job.startswith("spark"):
                table.publish(policy, folder / "two", key=rp.Key.test())
            second = time.perf_counter()
    finally:
        shutil.rmtree(folder)
    return {
        "seconds": second - begun,
        "peak_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
        "open": opened - begun,
        "audit": audited - opened,
        "publish": first - audited,
        "again": second - first,
    }


JOBS = ["duckdb 1", "duckdb 2", "spark 1", "spark 2"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=2e7)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--job")
    parser.add_argument("--file")
    arguments = parser.parse_args()
    if arguments.job:
        jobs.warm_imports()
        print(json.dumps(work(arguments.file, arguments.job)))
        return
    rows = int(arguments.rows)
    best = jobs.best_of(arguments.rounds, __file__, JOBS, "--file", str(census_rows(rows)))
    floor = best["duckdb 2"]
    lines = [
        f"{rows:,} rows x 7 text columns drawn from the census table, Parquet; octave; the releases"
        " are the same bytes. DuckDB counts once for both audit and publication.",
        f"Best of {arguments.rounds}. {machine()}.",
        "",
        "| engine and threads | open s | audit s | publish s | publish again s |"
        " audit + publish to DuckDB's on 2 threads |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for job, found in best.items():
        both = found["audit"] + found["publish"]
        ratio = both / (floor["audit"] + floor["publish"])
        again = f"{found['again']:.1f}" if job.startswith("spark") else ""
        lines.append(
            f"| {job} | {found['open']:.1f} | {found['audit']:.1f} | {found['publish']:.1f} |"
            f" {again} | {ratio:.1f} |"
        )
    write_section(f"Spark: {rows:,} rows", "\n".join(lines))


if __name__ == "__main__":
    main()
