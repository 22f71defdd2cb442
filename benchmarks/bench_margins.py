"""Publishing and auditing with margins against doing so without, in the same run."""

from __future__ import annotations

import argparse

import jobs
from common import census_rows, machine, met, write_section

EPSILON = 1.0
PLAIN = {"sampling": "none"}
RECOMMENDED = {"preset": "recommended"}

JOBS = {
    "publish, plain": lambda file: jobs.publish(file, **PLAIN),
    "publish, recommended": lambda file: jobs.publish(file, **RECOMMENDED),
    "publish, octave": jobs.publish,
    "publish, octave --margins 1": lambda file: jobs.publish(file, margins=EPSILON),
    "audit, plain": lambda file: jobs.audit(file, **PLAIN),
    "audit, recommended": lambda file: jobs.audit(file, **RECOMMENDED),
    "audit --no-columns, plain": lambda file: jobs.audit(file, False, **PLAIN),
    "audit --no-columns, recommended": lambda file: jobs.audit(file, False, **RECOMMENDED),
}
# Each job with the one that it is compared with, and by how much it may take longer.
BARS = {
    "publish, recommended": ("publish, plain", 1.25),
    "publish, octave --margins 1": ("publish, octave", 1.15),
    "audit, recommended": ("audit, plain", 1.2),
    "audit --no-columns, recommended": ("audit --no-columns, plain", 1.2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = jobs.asked(parser, JOBS)
    rows = int(arguments.rows)
    best = jobs.best_of(arguments.rounds, __file__, list(JOBS), "--file", str(census_rows(rows)))
    lines = [
        f"A table of {rows:,} records (Occupation sensitive, six public columns). `plain` is"
        " perturbation without sampling or margins, `recommended` the preset. Best of"
        f" {arguments.rounds}; processor seconds are those of the best, and a busy machine changes"
        f" them less. {machine()}.",
        "",
        "| job | seconds | processor s | peak MB | ratio | of processor s | bar |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for job, found in best.items():
        line = f"| {job} | {found['seconds']:.2f} | {found['cpu']:.2f} | {found['peak_mb']:,.0f} |"
        if job not in BARS:
            lines.append(line + " | | |")
            continue
        floor, bar = best[BARS[job][0]], BARS[job][1]
        ratio, busy = (found[what] / floor[what] for what in ("seconds", "cpu"))
        lines.append(f"{line} {ratio:.2f} | {busy:.2f} | {bar:.2f}: {met(ratio, bar)} |")
    write_section(f"Margins: {rows:,} records", "\n".join(lines))


if __name__ == "__main__":
    main()
