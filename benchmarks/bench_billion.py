"""A billion records in a folder of ten files: audit and publish against DuckDB's own GROUP BY."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import jobs
from common import CACHE, draw_census, machine, write_section

FILES = 10
OPTIONS = ("--sensitive", "Occupation", "--public=all", "--memory", jobs.MEMORY)

JOBS = {"group by": lambda folder: jobs.group_by(f"{folder}/*.parquet")}
COMMANDS = {
    "audit": ["audit"],
    "publish, cells": ["publish", "--format", "cells"],
    "publish, records": ["publish"],
}


def measure(records: int, home: Path) -> tuple[dict[str, jobs.Found], dict[str, float]]:
    """Time and memory of each job, and the MB of each table that was read or written."""
    folder = home / "table"
    folder.mkdir()
    begun = time.perf_counter()
    draw_census([folder / f"part-{number}.parquet" for number in range(FILES)], records)
    print(f"  made in {time.perf_counter() - begun:.0f} s", file=sys.stderr)
    size = {"group by": megabytes(folder)}
    found = {"group by": jobs.run_job(__file__, "group by", "--file", str(folder))}
    jobs.told("group by", found["group by"])
    key = home / "publisher.key"
    jobs.run_command("keygen", str(key))
    for job, (name, *options) in COMMANDS.items():
        out = home / job
        written = [str(out), "--key", str(key)] if name == "publish" else []
        found[job] = jobs.run_command(name, str(folder), *written, *OPTIONS, *options)
        jobs.told(job, found[job])
        if written:
            size[job] = megabytes(out)
    return found, size


def megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.iterdir()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=float, default=1e9)
    arguments = jobs.asked(parser, JOBS)
    records = int(arguments.records)
    CACHE.mkdir(parents=True, exist_ok=True)
    # Removed however this ends, by Ctrl-C as well.
    with tempfile.TemporaryDirectory(prefix="billion-", dir=CACHE) as home:
        found, size = measure(records, Path(home))
    floor = found["group by"]
    lines = [
        f"{records:,} records x 7 text columns drawn from the census table, a folder of {FILES}"
        f" Parquet files; Occupation sensitive, octave, `--memory {jobs.MEMORY}`. `group by` is"
        " DuckDB's GROUP BY ALL of the folder, in a process of its own; the others are commands,"
        f" timed from start to end. MB are those of the folder that was read or written."
        f" Each once. {machine()}.",
        "",
        "| job | seconds | to GROUP BY | CPU s | to GROUP BY | peak MB | MB |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for job, one in found.items():
        lines.append(
            f"| {job} | {one['seconds']:.1f} | {one['seconds'] / floor['seconds']:.2f} |"
            f" {one['cpu']:.1f} | {one['cpu'] / floor['cpu']:.2f} | {one['peak_mb']:.0f} |"
            f" {f'{size[job]:.1f}' if job in size else ''} |"
        )
    write_section(f"A folder of {records:,} records", "\n".join(lines))


if __name__ == "__main__":
    main()
