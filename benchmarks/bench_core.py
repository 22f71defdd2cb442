"""Audit and publish against DuckDB's own GROUP BY and COPY of the same file, in the same run."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from common import best_of, census_rows, machine, report_job, write_section

BARS = {"audit --no-columns": 1.2, "publish": 1.3}


def group_by(file: str) -> None:
    import duckdb

    duckdb.connect().sql(f"SELECT *, count(*) AS n FROM '{file}' GROUP BY ALL").to_arrow_table()


def copy(file: str) -> None:
    import duckdb

    with tempfile.TemporaryDirectory(dir=Path(file).parent) as folder:
        duckdb.connect().execute(f"COPY (FROM '{file}') TO '{folder}/copy.parquet'")


def audit(file: str, columns: bool) -> None:
    import reconpriv as rp

    with rp.read(file, sensitive="Occupation") as table:
        table.audit(rp.Policy(retention=0.5, epsilon=0.5, delta=0.3), columns=columns)


def publish(file: str, sample_size: str) -> None:
    import reconpriv as rp

    policy = rp.Policy(retention=0.5, epsilon=0.5, delta=0.3, sample_size=sample_size)
    folder = Path(tempfile.mkdtemp(dir=Path(file).parent))
    try:
        with rp.read(file, sensitive="Occupation") as table:
            table.publish(policy, folder / "release", key=rp.Key.test())
    finally:
        shutil.rmtree(folder)


def warm_imports() -> None:
    """Load the modules of both sides before timing."""
    import duckdb  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import scipy.special  # noqa: F401

    import reconpriv.engines.duckdb.engine
    import reconpriv.table  # noqa: F401


JOBS = {
    "group by": group_by,
    "copy": copy,
    "audit --no-columns": lambda file: audit(file, columns=False),
    "audit": lambda file: audit(file, columns=True),
    "publish octave": lambda file: publish(file, "octave"),
    "publish public": lambda file: publish(file, "public"),
    "publish paper": lambda file: publish(file, "paper"),
    "publish none": lambda file: publish(file, "none"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--spread", action="store_true", help="twice as many cells")
    parser.add_argument("--job")
    parser.add_argument("--file")
    arguments = parser.parse_args()
    if arguments.job:
        warm_imports()
        report_job(lambda: JOBS[arguments.job](arguments.file))
        return
    rows = int(arguments.rows)
    file = census_rows(rows, spread=arguments.spread)
    best = best_of(arguments.rounds, __file__, list(JOBS), "--file", str(file))
    count, both = best["group by"]["seconds"], best["group by"]["seconds"] + best["copy"]["seconds"]
    lines = [
        f"{rows:,} rows x 7 text columns drawn from the census table, Parquet"
        + (", ages moved by up to two years (207,147 cells)" if arguments.spread else "")
        + "; Occupation sensitive, p = 0.5, ε = 0.5, δ = 0.3.",
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
