"""1,000 averages by GROUP BY against the same counts, each in one pass over the cells."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import reconpriv as rp
from common import machine, write_section

BAR = 3.0  # times as long as the counts


def seconds(ask: Callable[[], object], rounds: int) -> float:
    """The shortest of several times."""
    found = []
    for _ in range(rounds):
        begun = time.perf_counter()
        ask()
        found.append(time.perf_counter() - begun)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    lines = [
        "Figures of a release of the bundled census workers (148,318 records, six public columns,"
        " Occupation sensitive), of one occupation by Age and Education, and by Age and Occupation."
        f" Best of {arguments.rounds}. {machine()}.",
        "",
        "| figure | rows | count s | figure s | times as long | bar |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
        public = ["Age", "Gender", "Education", "Marital", "Race", "Workclass"]
        with rp.read("example:census_workers", sensitive="Occupation", public=public) as table:
            table.publish(policy, Path(folder) / "r", key=rp.Key.generate())
        release = rp.open(Path(folder) / "r")
        release.count(Gender="Male")  # loads the cells
        for by, where in (("Education", "WHERE Occupation = 10"), ("Occupation", "")):
            sql = f"SELECT Age, {by}, {{}} FROM release {where} GROUP BY Age, {by}"
            counts = seconds(lambda sql=sql: release.sql(sql.format("count(*)")), arguments.rounds)
            many = len(release.sql(sql.format("count(*)")))
            for figure in ("avg(Age)", "sum(Age)", "share(*)"):
                took = seconds(
                    lambda sql=sql, figure=figure: release.sql(sql.format(figure)), arguments.rounds
                )
                lines.append(
                    f"| {figure} by Age, {by} | {many:,} | {counts:.3f} | {took:.3f} |"
                    f" {took / counts:.1f} | {BAR:.0f} |"
                )
    write_section("Figures: 1,000 averages", "\n".join(lines))


if __name__ == "__main__":
    main()
