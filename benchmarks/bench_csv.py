"""CSV: audit, publish and a first look against DuckDB's own GROUP BY of the same file."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import jobs
from common import CACHE, census_rows, machine, met, write_section
from jobs import MEMORY

BAR = 2.0


def csv_rows(rows: int) -> Path:
    """The records of :func:`common.census_rows` as CSV."""
    import duckdb

    path = CACHE / f"census-{rows}.csv"
    if not path.exists():
        source = census_rows(rows)
        duckdb.execute(f"COPY (FROM '{source}') TO '{path}.part' (FORMAT csv, HEADER)")
        Path(f"{path}.part").rename(path)
    return path


def describe(file: str) -> None:
    import reconpriv as rp

    rp.describe(file)


def upload(file: str) -> None:
    """What the studio does with an upload once it has come: take it and look at it."""
    from reconpriv.studio.work.workspace import Workspace

    with tempfile.TemporaryDirectory(dir=Path(file).parent) as home:
        sent = Path(home) / "0.csv"
        sent.hardlink_to(file)
        Workspace(Path(home)).take_upload(str(sent), "table.csv")


JOBS = {
    "group by": jobs.group_by,
    "audit": lambda file: jobs.audit(file, memory=MEMORY),
    "publish": lambda file: jobs.publish(file, memory=MEMORY),
    "describe": describe,
    "studio upload": upload,
    "audit of a query": lambda file: jobs.audit(file, memory=MEMORY, sql="SELECT * FROM input"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[2e6, 1e7])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = jobs.asked(parser, JOBS)
    lines = [
        "Rows x 7 columns drawn from the census table, CSV; Occupation sensitive, octave,"
        f" `memory={MEMORY}`. GROUP BY ALL with the types that DuckDB guesses. `studio"
        " upload` is what follows the transfer; `audit of a query` has"
        " `sql='SELECT * FROM input'`.",
        f"Best of {arguments.rounds}, each job in a process of its own. {machine()}.",
        "",
        f"| rows | job | seconds | to GROUP BY | bar {BAR} | peak MB |",
        "|---:|---|---:|---:|---|---:|",
    ]
    for rows in map(int, arguments.rows):
        best = jobs.best_of(arguments.rounds, __file__, list(JOBS), "--file", str(csv_rows(rows)))
        for job, found in best.items():
            ratio = found["seconds"] / best["group by"]["seconds"]
            verdict = "" if job == "group by" else met(ratio, BAR)
            lines.append(
                f"| {rows:,} | {job} | {found['seconds']:.2f} | {ratio:.2f} | {verdict} |"
                f" {found['peak_mb']:.0f} |"
            )
    write_section("CSV", "\n".join(lines))


if __name__ == "__main__":
    main()
