"""reconpriv against its peers, each in its own environment, and against plain numpy.

The environments are created on demand in the cache folder and kept there; delete
``venvs`` in it to install the newest versions again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from common import CACHE, census_rows, machine, write_section
from reconpriv.theory.estimation.reconstruction import count_variance

SCRIPTS = Path(__file__).parent / "peers"
RETENTION = 0.5
BAR = 5.0  # times faster than the fastest peer
REPEATS = 3  # per process: a job of a few milliseconds is easily disturbed by other work
PART = 100_000  # of a larger column, for those that need more than a few microseconds per value
WRONG = 6.0  # standard errors: a reconstruction further off than this is wrong
AUDIT_ROWS = 300_000


class CannotRunError(Exception):
    """Why an entrant is left out, in a few words."""


@dataclass(frozen=True)
class Entrant:
    """A participant: a script, its job, and the packages its environment needs."""

    name: str
    script: str
    job: str = "calls"
    packages: tuple[str, ...] = ()  # empty: the environment that runs the benchmark
    slow: bool = False
    peer: bool = True

    @property
    def environment(self) -> str:
        return Path(self.script).stem.removeprefix("run_").replace("_", "-")


TEXT = Entrant("reconpriv, column of text", "run_reconpriv.py", "text", peer=False)
CODES = Entrant("reconpriv, column of integers", "run_reconpriv.py", "codes", peer=False)
FLOOR = Entrant("numpy, AES", "run_numpy.py", "aes", peer=False)
COLUMN = (
    FLOOR,
    Entrant("numpy, PCG64 (not secret)", "run_numpy.py", "pcg64", peer=False),
    TEXT,
    CODES,
    Entrant("multi-freq-ldpy", "run_multi_freq_ldpy.py", "calls", ("multi-freq-ldpy",)),
    Entrant(
        "multi-freq-ldpy, in a compiled loop", "run_multi_freq_ldpy.py", "loop",
        ("multi-freq-ldpy",),
    ),
    # It imports two packages that it does not declare.
    Entrant(
        "pure-ldp", "run_pure_ldp.py", packages=("pure-ldp", "scikit-learn", "statsmodels")
    ),
    # 0.6.6 does not load with scikit-learn 1.9.
    Entrant(
        "diffprivlib", "run_diffprivlib.py", packages=("diffprivlib", "scikit-learn<1.9"), slow=True
    ),
    Entrant("OpenDP", "run_opendp.py", packages=("opendp", "numpy"), slow=True),
    Entrant("sdcMicro pram", "run_sdcmicro.R", slow=True),
)  # fmt: skip
AUDIT = Entrant("reconpriv, read and audit", "run_reconpriv.py", "audit", peer=False)
AUDITS = (
    AUDIT,
    # For reference: half of an audit; it ignores sensitive values.
    Entrant("pycanon, k alone", "run_pycanon.py", "k", ("pycanon", "pyarrow"), peer=False),
    Entrant("pycanon, k and l", "run_pycanon.py", "k and l", ("pycanon", "pyarrow")),
)


@dataclass
class Outcome:
    """The best of an entrant's rounds, for the whole column, or why there is none."""

    rows: int
    seconds: float = float("inf")
    result: Any = None
    versions: dict[str, str] = field(default_factory=dict)
    problem: str = ""


def interpreter(entrant: Entrant) -> list[str]:
    """The command that runs an entrant's script; creates its environment if necessary."""
    if entrant.script.endswith(".R"):
        return [rscript()]
    if not entrant.packages:
        return [sys.executable]
    folder = CACHE / "venvs" / entrant.environment
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    made_of = folder / "packages.txt"
    wanted = "\n".join(entrant.packages)
    if not made_of.exists() or made_of.read_text(encoding="utf-8") != wanted:
        print(f"  installing {', '.join(entrant.packages)}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            called([sys.executable, "-m", "venv", str(folder)])
            called([str(python), "-m", "pip", "install", "--quiet", *entrant.packages])
        except CannotRunError as error:
            raise CannotRunError(f"cannot be installed: {error}") from None
        made_of.write_text(wanted, encoding="utf-8")
    return [str(python)]


def rscript() -> str:
    found = shutil.which("Rscript")
    if found is None:
        raise CannotRunError("no Rscript")
    try:
        called([found, "-e", "packageVersion('sdcMicro')"])
    except CannotRunError:
        raise CannotRunError("no sdcMicro") from None
    return found


def called(command: Sequence[str]) -> str:
    """The last line that a command prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        complaint = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise CannotRunError(complaint[-1][:120])
    return (done.stdout.strip().splitlines() or [""])[-1]


def race(
    entrants: Sequence[Entrant], file: Path, rows: int, domain_size: int, rounds: int
) -> dict[Entrant, Outcome]:
    """Run every entrant several times, interleaved, so a noisy minute hits them all; best counts.

    A slow entrant gets part of a large column, and its seconds are scaled up.
    """
    outcomes = {e: Outcome(min(rows, PART) if e.slow and rows > 1e6 else rows) for e in entrants}
    for number in range(rounds):
        for entrant, outcome in outcomes.items():
            if outcome.problem:
                continue
            try:
                answer = run(entrant, file, outcome.rows, domain_size)
            except CannotRunError as error:
                outcome.problem = str(error)
                print(f"  {entrant.name}: {error}", file=sys.stderr)
                continue
            seconds = answer["seconds"] * rows / outcome.rows
            print(f"  round {number + 1}: {entrant.name:36} {seconds:10.4f} s", file=sys.stderr)
            if seconds < outcome.seconds:
                outcome.seconds = seconds
                outcome.result, outcome.versions = answer["result"], answer["versions"]
    return outcomes


def run(entrant: Entrant, file: Path, rows: int, domain_size: int) -> dict[str, Any]:
    """Run one job in its own process and return what it prints."""
    command = [
        *interpreter(entrant), str(SCRIPTS / entrant.script), "--job", entrant.job,
        "--file", str(file), "--rows", str(rows), "--repeats", str(1 if entrant.slow else REPEATS),
        "--domain-size", str(domain_size), "--retention", str(RETENTION),
    ]  # fmt: skip
    answer: dict[str, Any] = json.loads(called(command))
    return answer


def column_file(rows: int, domain_size: int) -> Path:
    """A file of 32-bit codes, in which the share of code i is proportional to 1 / (i + 1)."""
    path = CACHE / f"column-{rows}-{domain_size}.i32"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        shares = 1 / np.arange(1, domain_size + 1)
        codes = np.random.default_rng(domain_size).choice(
            domain_size, rows, p=shares / shares.sum()
        )
        codes.astype("<i4").tofile(path.with_suffix(".part"))
        path.with_suffix(".part").rename(path)
    return path


def largest_error(frequencies: Sequence[float], file: Path, rows: int) -> float:
    """The largest error of a reconstruction, in standard errors of the perturbation."""
    m = len(frequencies)
    true = np.bincount(np.fromfile(file, dtype="<i4", count=rows), minlength=m)
    spread = np.sqrt(count_variance(true, rows, retention=RETENTION, domain_size=m))
    return float(np.max(np.abs(np.asarray(frequencies) * rows - true) / spread))


def verdict(outcomes: dict[Entrant, Outcome], ours: Entrant) -> str:
    """How many times faster ours is than the fastest peer, and whether that meets the bar."""
    peers = [e for e, outcome in outcomes.items() if e.peer and not outcome.problem]
    if not peers or outcomes[ours].problem:
        return f"{ours.name}: nothing to compare"
    fastest = min(peers, key=lambda e: outcomes[e].seconds)
    times = outcomes[fastest].seconds / outcomes[ours].seconds
    return (
        f"{ours.name}: {times:.1f} times faster than the fastest peer ({fastest.name});"
        f" bar {BAR:.0f}: {'met' if times >= BAR else 'NOT met'}"
    )


def column_table(outcomes: dict[Entrant, Outcome], file: Path, rows: int) -> list[str]:
    """One row per entrant, and the verdicts."""
    lines = [
        "| who | seconds | measured on | to numpy, AES | to reconpriv, text |"
        " to reconpriv, integers | largest error |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for entrant, outcome in outcomes.items():
        if outcome.problem:
            lines.append(f"| {entrant.name} | skipped: {outcome.problem} | | | | | |")
            continue
        ratios = [ratio(outcome, outcomes[other]) for other in (FLOOR, TEXT, CODES)]
        error = largest_error(outcome.result, file, outcome.rows)
        measured = "all" if outcome.rows == rows else f"{outcome.rows:,}, scaled"
        lines.append(
            f"| {entrant.name} | {outcome.seconds:.3f} | {measured} | {' | '.join(ratios)} |"
            f" {error:.1f}{' WRONG' if error > WRONG else ''} |"
        )
    return [*lines, "", *(f"- {verdict(outcomes, ours)}" for ours in (TEXT, CODES)), ""]


def audit_table(outcomes: dict[Entrant, Outcome]) -> list[str]:
    lines = ["| who | seconds | to reconpriv | finds |", "|---|---:|---:|---|"]
    for entrant, outcome in outcomes.items():
        if outcome.problem:
            lines.append(f"| {entrant.name} | skipped: {outcome.problem} | | |")
            continue
        finds = ", ".join(f"{name} = {value:,}" for name, value in outcome.result.items())
        lines.append(
            f"| {entrant.name} | {outcome.seconds:.3f} | {ratio(outcome, outcomes[AUDIT])} |"
            f" {finds} |"
        )
    return [*lines, "", f"- {verdict(outcomes, AUDIT)}", ""]


def ratio(outcome: Outcome, other: Outcome) -> str:
    if outcome.problem or other.problem:
        return ""
    times = outcome.seconds / other.seconds
    return f"{times:.2f}" if times < 10 else f"{times:,.0f}"


def versions(outcomes: Sequence[dict[Entrant, Outcome]]) -> str:
    """The relevant package versions of every environment."""
    held = {
        entrant.environment: ", ".join(f"{name} {v}" for name, v in outcome.versions.items())
        for table in outcomes
        for entrant, outcome in table.items()
        if outcome.versions
    }
    return "Environments: " + "; ".join(held.values()) + "."


def column_section(all_rows: Sequence[int], domain_sizes: Sequence[int], rounds: int) -> str:
    begun = machine()
    tables, outcomes = [], []
    for rows in all_rows:
        for domain_size in domain_sizes:
            print(f"{rows:,} values, m = {domain_size}", file=sys.stderr)
            file = column_file(rows, domain_size)
            outcomes.append(race(COLUMN, file, rows, domain_size, rounds))
            tables += [f"### {rows:,} values, m = {domain_size}", ""]
            tables += column_table(outcomes[-1], file, rows)
    intro = [
        f"One column perturbed, p = {RETENTION}, and its frequencies reconstructed. Best of"
        f" {rounds} interleaved rounds, each job in a process of its own that does it {REPEATS}"
        " times (diffprivlib, OpenDP and sdcMicro: once) from fresh input, timed after its imports"
        " and after a first run on 1,000 values (so compilation counts for nobody).",
        'reconpriv is called as a user would, `rp.perturb(df["x"], domain, retention=0.5,'
        " key=key)` and `rp.reconstruct(…)`, on a pandas column of text and on one of integers."
        " The peers and numpy get the integers 0 to m-1, converted beforehand to what each takes"
        " (diffprivlib: texts), and the ε that the retention amounts to. diffprivlib and OpenDP"
        " offer no reconstruction; numpy's stands in. `in a compiled loop` calls the client of"
        " multi-freq-ldpy from a numba loop of ours, which it does not offer but allows."
        " `scaled` rows are seconds for a part of the column times all / part.",
        "`largest error` is that of the reconstructed frequencies, in standard errors; it says"
        " that everybody did the same job.",
        f"At the start: {begun}. Load at the end {os.getloadavg()[0]:.1f}.",
        versions(outcomes),
        "",
    ]
    return "\n".join([*intro, *tables])


def audit_section(rows: int, rounds: int) -> str:
    begun = machine()
    file = census_rows(rows)
    outcomes = race(AUDITS, file, rows, 2, rounds)
    intro = [
        f"A pandas data frame of {rows:,} census records x 7 columns of text, Occupation"
        f" sensitive. Best of {rounds} interleaved rounds, each in a process of its own that does"
        f" it {REPEATS} times, timed after imports and a first run on 1,000 records. The nearest"
        " job, not the same one: pycanon finds the smallest k and l of any group, reconpriv tests"
        " every group against its policy. `k alone` is for reference: it looks at no sensitive"
        " value, and the bar is not held against it.",
        f"At the start: {begun}. Load at the end {os.getloadavg()[0]:.1f}.",
        versions([outcomes]),
        "",
    ]
    return "\n".join([*intro, *audit_table(outcomes)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[300_000, 1e7])
    parser.add_argument("--domain-sizes", type=int, nargs="+", default=[14, 50])
    parser.add_argument("--audit-rows", type=float, default=AUDIT_ROWS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--print", action="store_true", help="leave RESULTS.md alone")
    arguments = parser.parse_args()
    rows, audit_rows = [int(n) for n in arguments.rows], int(arguments.audit_rows)
    sections = {
        "Peers: one column": column_section(rows, arguments.domain_sizes, arguments.rounds),
        f"Peers: audit of {audit_rows:,} records": audit_section(audit_rows, arguments.rounds),
    }
    for title, text in sections.items():
        if arguments.print:
            print(text)
        else:
            write_section(title, text)


if __name__ == "__main__":
    main()
