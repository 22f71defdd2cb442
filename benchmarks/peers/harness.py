"""What the scripts of this folder share: their input, their timing, their line of JSON.

Every script runs in an environment of its own, so this needs numpy and nothing else.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

WARM_UP_ROWS = 1_000


@dataclass(frozen=True)
class Task:
    """A column of codes 0 to m-1 (or, for an audit, a table) and how it is to be randomised."""

    file: str
    rows: int
    domain_size: int
    retention: float

    @property
    def epsilon(self) -> float:
        """The ε of local differential privacy that a retention p amounts to."""
        other = (1 - self.retention) / self.domain_size
        return float(np.log((self.retention + other) / other))

    @property
    def truthful(self) -> float:
        """The probability that the published value is the true one, drawn or kept."""
        return self.retention + (1 - self.retention) / self.domain_size

    def codes(self) -> NDArray[np.int64]:
        """The first values of the column."""
        return np.fromfile(self.file, dtype="<i4", count=self.rows).astype(np.int64)

    def invert(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        """Frequencies from the counts after perturbation, for who does not offer it."""
        observed = counts / counts.sum()
        return np.asarray((observed - (1 - self.retention) / self.domain_size) / self.retention)


@dataclass(frozen=True)
class Job:
    """``prepare`` puts the input into the form that is taken, untimed; ``work`` is timed."""

    prepare: Callable[[Task], Any]
    work: Callable[[Any], Any]

    def run(self, task: Task, repeats: int = 1) -> tuple[float, Any]:
        """Least seconds and last result, each time from fresh input.

        A small task comes first: it loads and compiles whatever is needed.
        """
        self.work(self.prepare(replace(task, rows=min(task.rows, WARM_UP_ROWS))))
        least = float("inf")
        for _ in range(repeats):
            ready = self.prepare(task)
            begun = time.perf_counter()
            result = self.work(ready)
            least = min(least, time.perf_counter() - begun)
        return least, result


def main(jobs: Mapping[str, Job], packages: Sequence[str]) -> None:
    """Run the job that the command line names and print what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", choices=list(jobs), default=next(iter(jobs)))
    parser.add_argument("--file", required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--domain-size", type=int, default=2)
    parser.add_argument("--retention", type=float, default=0.5)
    arguments = parser.parse_args()
    task = Task(arguments.file, arguments.rows, arguments.domain_size, arguments.retention)
    seconds, result = jobs[arguments.job].run(task, arguments.repeats)
    versions = {package: version(package) for package in packages}
    if isinstance(result, np.ndarray):
        result = result.tolist()
    print(json.dumps({"seconds": seconds, "result": result, "versions": versions}))
