"""Scaling with rows and with groups on one machine, with --memory 2GB, against plain DuckDB."""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path

import jobs
from common import CACHE, census_rows, machine, met, write_section
from jobs import MEMORY

BARS = {"audit": 1.1, "publish": 0.8}
GROUPS_BAR = 1.5
LIMIT_MB = 3000
SLOPE = 1.05


def grouped_rows(rows: int, groups: int) -> Path:
    """``rows`` rows in about ``groups`` groups of three text columns; 14 sensitive values."""
    import duckdb

    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / f"groups-{rows}-{groups}.parquet"
    if path.exists():
        return path
    side = max(2, round(groups ** (1 / 3)))
    duckdb.sql("SET enable_progress_bar = false")
    duckdb.sql(
        f"""COPY (
            SELECT 'a' || (g % {side}) AS a, 'b' || (g // {side} % {side}) AS b,
                   'c' || (g // {side * side}) AS c, 'occ' || (hash(i * 11 + 3) % 14) AS Occupation
            FROM (SELECT range AS i, (hash(range) % {groups})::BIGINT AS g FROM range({rows}))
        ) TO '{path}.part' (FORMAT parquet)"""
    )
    Path(f"{path}.part").rename(path)
    return path


def load(release: str) -> None:
    """Open a release and answer a first query."""
    import warnings

    import reconpriv as rp

    warnings.simplefilter("ignore")
    first = rp.open(release)
    first.count(**{first.manifest["reconpriv"]["sensitive"]: first.info()["domain"][0]})


JOBS = {
    "group by": jobs.group_by,
    "copy": jobs.copy,
    "audit": lambda file: jobs.audit(file, memory=MEMORY),
    "publish": lambda file: jobs.publish(file, memory=MEMORY),
    "load": load,
}


def growth(sizes: list[int], rounds: int) -> None:
    lines = [
        "Rows x 7 text columns drawn from the census table, Parquet; Occupation sensitive, octave,"
        f" `memory={MEMORY}`.",
        f"Best of {rounds}, each job in a process of its own. {machine()}.",
        "",
        "| rows | GROUP BY ALL s | COPY s | audit s | to GROUP BY | publish s |"
        " to (GROUP BY + COPY) | audit MB | publish MB |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    found = {}
    for rows in sizes:
        file = census_rows(rows)
        timed = ["group by", "copy", "audit", "publish"]
        found[rows] = best = jobs.best_of(rounds, __file__, timed, "--file", str(file))
        count, copied = best["group by"]["seconds"], best["copy"]["seconds"]
        checked, published = best["audit"], best["publish"]
        lines.append(
            f"| {rows:,} | {count:.2f} | {copied:.2f} | {checked['seconds']:.2f} |"
            f" {checked['seconds'] / count:.2f} | {published['seconds']:.2f} |"
            f" {published['seconds'] / (count + copied):.2f} | {checked['peak_mb']:.0f} |"
            f" {published['peak_mb']:.0f} |"
        )
    largest = found[sizes[-1]]
    count, copied = largest["group by"]["seconds"], largest["copy"]["seconds"]
    ratios = {
        "audit": largest["audit"]["seconds"] / count,
        "publish": largest["publish"]["seconds"] / (count + copied),
    }
    lines.append("")
    for job, ratio in ratios.items():
        slope = log_slope({rows: best[job]["seconds"] for rows, best in found.items()})
        peak = largest[job]["peak_mb"]
        lines.append(
            f"- {job} at {sizes[-1]:,} rows: {ratio:.2f} (bar {BARS[job]}:"
            f" {met(ratio, BARS[job])}), {peak:.0f} MB (bar {LIMIT_MB}: {met(peak, LIMIT_MB)}),"
            f" slope of log time over log rows {slope:.2f} (bar {SLOPE}: {met(slope, SLOPE)})."
        )
    write_section("Growth over rows", "\n".join(lines))


def many_groups(rows: int, sizes: list[int], rounds: int) -> None:
    lines = [
        f"{rows:,} rows x 4 text columns, groups by hashing; octave, `memory={MEMORY}`.",
        f"Best of {rounds}, each job in a process of its own. {machine()}.",
        "",
        "| groups | GROUP BY ALL s | audit s | to GROUP BY | publish s | audit MB | publish MB |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    ratios = {}
    for groups in sizes:
        file = grouped_rows(rows, groups)
        best = jobs.best_of(rounds, __file__, ["group by", "audit", "publish"], "--file", str(file))
        count = best["group by"]["seconds"]
        lines.append(
            f"| {groups:,} | {count:.2f} | {best['audit']['seconds']:.2f} |"
            f" {best['audit']['seconds'] / count:.2f} | {best['publish']['seconds']:.2f} |"
            f" {best['audit']['peak_mb']:.0f} | {best['publish']['peak_mb']:.0f} |"
        )
        ratios[groups] = best["audit"]["seconds"] / count
    peak = max(best["audit"]["peak_mb"], best["publish"]["peak_mb"])
    lines.append("")
    lines += [
        f"- audit of {groups:,} groups: {ratio:.2f} (bar {GROUPS_BAR}: {met(ratio, GROUPS_BAR)})."
        for groups, ratio in ratios.items()
        if groups >= 10**6
    ]
    lines += ["", f"At {sizes[-1]:,} groups {peak:.0f} MB (bar {LIMIT_MB}: {met(peak, LIMIT_MB)})."]
    write_section("Growth over groups", "\n".join(lines))


def loading(rows: int, rounds: int) -> None:
    """The same release as records and as cells, opened and queried once."""
    import reconpriv as rp

    seconds = {}
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        with rp.read(census_rows(rows), sensitive="Occupation", public="all") as table:
            policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
            for form in ("parquet", "csv", "cells"):
                table.publish(policy, f"{folder}/{form}", key=rp.Key.test(), file_format=form)
        for form in ("parquet", "csv", "cells"):
            best = jobs.best_of(rounds, __file__, ["load"], "--file", f"{folder}/{form}")
            data = next(Path(folder, form).glob("data.*"))
            seconds[form] = best["load"]["seconds"], data.stat().st_size / 1e6
    lines = [
        f"A release of {rows:,} records opened, checked, loaded and asked one query.",
        f"Best of {rounds}, each in a process of its own. {machine()}.",
        "",
        "| format | seconds | against cells | data MB |",
        "|---|---:|---:|---:|",
    ]
    for form, (taken, size) in seconds.items():
        ratio = taken / seconds["cells"][0]
        lines.append(f"| {form} | {taken:.2f} | {ratio:.1f} | {size:.1f} |")
    write_section(f"Loading a release of {rows:,} records", "\n".join(lines))


def log_slope(seconds: dict[int, float]) -> float:
    """The least-squares slope of log time over log size."""
    points = [(math.log(size), math.log(taken)) for size, taken in seconds.items()]
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    above = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return above / sum((x - mean_x) ** 2 for x, _ in points)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=float, default=1e8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["rows", "groups", "load"])
    arguments = jobs.asked(parser, JOBS)
    sizes = [10**k for k in range(5, round(math.log10(arguments.largest)) + 1)]
    if arguments.only in (None, "rows"):
        growth(sizes, arguments.rounds)
    if arguments.only in (None, "groups"):
        many_groups(2 * 10**7, [10**4, 10**5, 10**6, 10**7], arguments.rounds)
    if arguments.only in (None, "load"):
        loading(10**7, arguments.rounds)


if __name__ == "__main__":
    main()
