"""Shared by the benchmarks: generated tables, jobs in separate processes, ratios."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CACHE = Path(os.environ.get("RECONPRIV_BENCH_DIR", Path(__file__).parent / ".cache"))
COLUMNS = ("Age", "Gender", "Education", "Marital", "Race", "Workclass", "Occupation")


def census_rows(rows: int, *, spread: bool = False) -> Path:
    """Records drawn with replacement from the census table, all seven columns as text.

    With ``spread``, Age is shifted by up to two years, which doubles the number of cells.
    """
    import duckdb

    from reconpriv import dataset_path

    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / f"census-{rows}{'-spread' if spread else ''}.parquet"
    age = "Age + (hash(i * 7 + 1) % 5)::INT - 2" if spread else "Age"
    if path.exists():
        return path
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE w AS SELECT row_number() OVER () - 1 AS id, * FROM "
        f"'{dataset_path('census_workers')}'"
    )
    people = connection.execute("SELECT count(*) FROM w").fetchall()[0][0]
    connection.execute(
        f"""COPY (
            SELECT ({age})::VARCHAR AS Age, Gender, Education,
                   Marital, Race, Workclass, Occupation::VARCHAR AS Occupation
            FROM (SELECT range AS i, (hash(range) % {people})::BIGINT AS id FROM range({rows}))
            JOIN w USING (id)
        ) TO '{path}.part' (FORMAT parquet)"""
    )
    Path(f"{path}.part").rename(path)
    return path


def run_job(script: str, job: str, *arguments: str) -> dict[str, float]:
    """Run one job of a benchmark script in a fresh process; seconds exclude imports."""
    command = [sys.executable, script, "--job", job, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def report_job(work: Callable[[], Any]) -> None:
    """In the job's process: time the work and print the result."""
    begun = time.perf_counter()
    work()
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak_mb": peak}))


def best_of(
    rounds: int, script: str, jobs: list[str], *arguments: str
) -> dict[str, dict[str, float]]:
    """Run every job several times, interleaved, so a noisy minute hits them all; best counts."""
    best: dict[str, dict[str, float]] = {}
    for number in range(rounds):
        for job in jobs:
            result = run_job(script, job, *arguments)
            print(f"  round {number + 1}: {job:16} {result['seconds']:8.2f} s", file=sys.stderr)
            if job not in best or result["seconds"] < best[job]["seconds"]:
                best[job] = {
                    **result,
                    "peak_mb": max(result["peak_mb"], best.get(job, result)["peak_mb"]),
                }
    return best


def machine() -> str:
    """The machine, its load and the versions, on one line."""
    import duckdb
    import numpy
    import pyarrow

    from reconpriv import __version__

    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()},"
        f" reconpriv {__version__}, DuckDB {duckdb.__version__}, PyArrow {pyarrow.__version__},"
        f" numpy {numpy.__version__}"
    )


def write_section(title: str, text: str) -> None:
    """Replace one section of RESULTS.md, leaving the others."""
    path = Path(__file__).parent / "RESULTS.md"
    old = path.read_text(encoding="utf-8") if path.exists() else "# Benchmark results\n"
    head, *sections = old.split("\n## ")
    kept = [section for section in sections if not section.startswith(f"{title}\n")]
    body = "\n## ".join([head.rstrip() + "\n", *(s.rstrip() + "\n" for s in kept)])
    path.write_text(f"{body}\n## {title}\n\n{text.rstrip()}\n", encoding="utf-8")
    print(text)
