"""What the benchmarks time, each job in a process of its own: DuckDB's own work, and ours."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Job = Callable[[str], Any]
Found = dict[str, float]

MEMORY = "2GB"


def group_by(file: str) -> None:
    import duckdb

    duckdb.connect().sql(f"SELECT *, count(*) AS n FROM '{file}' GROUP BY ALL").to_arrow_table()


def copy(file: str) -> None:
    import duckdb

    with tempfile.TemporaryDirectory(dir=Path(file).parent) as folder:
        duckdb.connect().execute(f"COPY (FROM '{file}') TO '{folder}/copy.parquet'")


def _policy(preset: str | None, **wishes: Any) -> Any:
    """The policy of this name, or the paper's with some wishes."""
    import reconpriv as rp

    if preset is not None:
        return rp.preset(preset)
    return rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, **wishes)


def audit(
    file: str,
    columns: bool | None = None,
    *,
    preset: str | None = None,
    sampling: str = "octave",
    **settings: Any,
) -> None:
    import reconpriv as rp

    with rp.read(file, sensitive="Occupation", public="all", **settings) as table:
        table.audit(_policy(preset, sampling=sampling), columns=columns)


def publish(
    file: str,
    form: str = "parquet",
    *,
    memory: str | None = None,
    preset: str | None = None,
    **wishes: Any,
) -> None:
    """Publish with a preset, or with the wishes for the policy, and remove the release."""
    import reconpriv as rp

    policy = _policy(preset, **wishes)
    with (
        tempfile.TemporaryDirectory(dir=Path(file).parent) as folder,
        rp.read(file, sensitive="Occupation", public="all", memory=memory) as table,
    ):
        table.publish(policy, f"{folder}/release", key=rp.Key.test(), file_format=form)


def asked(parser: argparse.ArgumentParser, jobs: Mapping[str, Job]) -> argparse.Namespace:
    """The arguments of a benchmark; where they name a job, do it, report and exit."""
    parser.add_argument("--job", choices=list(jobs), help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        warm_imports()
        _report(lambda: jobs[arguments.job](arguments.file))
        parser.exit()
    return arguments


def warm_imports() -> None:
    """Load the modules of both sides before timing."""
    import duckdb  # noqa: F401
    import pandas  # noqa: F401 - as PyArrow does with its first array
    import pyarrow.parquet  # noqa: F401
    import scipy.special  # noqa: F401

    import reconpriv.engines.duckdb.engine
    import reconpriv.protect.margins.plan
    import reconpriv.release.publication
    import reconpriv.release.release
    import reconpriv.table  # noqa: F401


def _report(work: Callable[[], Any]) -> None:
    """In the job's process: time the work and print the result."""
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    work()
    print(json.dumps(_found(begun, resource.getrusage(resource.RUSAGE_SELF), before)))


def _found(
    begun: float, used: resource.struct_rusage, before: resource.struct_rusage | None = None
) -> Found:
    seconds = time.perf_counter() - begun
    cpu = used.ru_utime + used.ru_stime
    if before is not None:
        cpu -= before.ru_utime + before.ru_stime
    return {"seconds": seconds, "cpu": cpu, "peak_mb": used.ru_maxrss / 1024}


def run_command(*arguments: str) -> Found:
    """Run ``reconpriv`` with these arguments as a user would; an audit may find violations."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "reconpriv", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise subprocess.CalledProcessError(process.returncode, command)
    return _found(begun, used)


def run_job(script: str, job: str, *arguments: str) -> Found:
    """Run one job of a benchmark script in a fresh process; seconds exclude imports."""
    command = [sys.executable, script, "--job", job, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def best_of(rounds: int, script: str, jobs: list[str], *arguments: str) -> dict[str, Found]:
    """Run every job several times, interleaved, so a noisy minute hits them all; best counts."""
    best: dict[str, Found] = {}
    for number in range(rounds):
        for job in jobs:
            result = run_job(script, job, *arguments)
            told(f"round {number + 1}: {job}", result)
            if job not in best or result["seconds"] < best[job]["seconds"]:
                best[job] = {
                    **result,
                    "peak_mb": max(result["peak_mb"], best.get(job, result)["peak_mb"]),
                }
    return best


def told(job: str, result: Found) -> None:
    """One line as the work goes on."""
    cpu = f", {result['cpu']:8.2f} s of CPU" if "cpu" in result else ""
    taken = f"{result['seconds']:8.2f} s{cpu}, {result['peak_mb']:6.0f} MB"
    print(f"  {job:32} {taken}", file=sys.stderr)
