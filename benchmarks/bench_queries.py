"""5,000 count queries in one batch against 5,000 DuckDB statements over data.parquet."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import duckdb

import reconpriv as rp
from common import COLUMNS, census_rows, machine, write_section

# Times faster than the statements: records alone, and with margins of ε = 1.
BARS = {None: 20.0, 1.0: 10.0}


def literal(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def statement(query: dict[str, object], data: Path, sensitive: str) -> str:
    """What an analyst without the batch would run: |S| and O* of one query."""
    where = " AND ".join(
        f'"{name}" = {literal(value)}' for name, value in query.items() if name != sensitive
    )
    return (
        f'SELECT count(*), count(*) FILTER (WHERE "{sensitive}" = {literal(query[sensitive])})'
        f" FROM '{data}' WHERE {where}"
    )


def measure(
    sensitive: str, margins: float | None, rows: int, rounds: int, queries: int, folder: Path
) -> list[str]:
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, margins=margins)
    name = f"{sensitive} {'alone' if margins is None else 'with margins'}"
    with rp.read(census_rows(rows), sensitive=sensitive, public="all") as table:
        pool = table.workload(queries=queries)
        table.publish(policy, folder / name, key=rp.Key.generate())
        m = table.schema.domain_size
    data = folder / name / "data.parquet"
    batch_seconds, statement_seconds = [], []
    for _ in range(rounds):
        begun = time.perf_counter()
        release = rp.open(folder / name)
        release.count_many(list(pool.queries))
        batch_seconds.append(time.perf_counter() - begun)
        connection = duckdb.connect()
        begun = time.perf_counter()
        sums = [
            connection.execute(statement(query, data, sensitive)).fetchall()[0]
            for query in pool.queries
        ]
        statement_seconds.append(time.perf_counter() - begun)
    t = (1 - policy.retention) / m
    expected = [(observed - 1 * t * records) / policy.retention for records, observed in sums]
    answers = release.count_many(list(pool.queries), estimator="records")
    equal = expected == [answer.count for answer in answers]
    ratio = min(statement_seconds) / min(batch_seconds)
    level = "" if margins is None else f"ε = {margins:g}"
    return [
        f"| {sensitive} | {level} | {len(pool):,} | {min(batch_seconds):.2f} |"
        f" {min(statement_seconds):.2f} | {ratio:.0f} | {BARS[margins]:.0f} |"
        f" {'yes' if equal else 'NO'} |"
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--queries", type=int, default=5_000)
    arguments = parser.parse_args()
    rows = int(arguments.rows)
    lines = [
        f"The paper's pool on a release of {rows:,} records (columns {', '.join(COLUMNS)}), opened,"
        " loaded, its hashes checked and all queries answered in one batch, against the same"
        " queries as DuckDB statements over data.parquet. A statement gives what the records say;"
        " all equal compares it with the answers from records alone."
        f" Best of {arguments.rounds}. {machine()}.",
        "",
        "| sensitive | margins | queries | batch s | statements s | times faster | bar |"
        " all equal |",
        "|---|---|---:|---:|---:|---:|---:|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for sensitive in ("Education", "Occupation"):
            for margins in BARS:
                lines += measure(
                    sensitive, margins, rows, arguments.rounds, arguments.queries, Path(folder)
                )
    write_section(f"Queries: {rows:,} records", "\n".join(lines))


if __name__ == "__main__":
    main()
