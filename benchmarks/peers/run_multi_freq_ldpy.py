"""multi-freq-ldpy: GRR client and its aggregator by matrix inversion."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import Job, Task, main
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from numba import njit


def values(task: Task) -> tuple[Any, Task]:
    """A list of Python integers: its compiled client takes those faster than numpy's."""
    return task.codes().tolist(), task


def array(task: Task) -> tuple[Any, Task]:
    return task.codes(), task


def calls(ready: tuple[Any, Task]) -> Any:
    """As its documentation does it: a call of the client for each value."""
    column, task = ready
    reports = [GRR_Client(value, task.domain_size, task.epsilon) for value in column]
    return GRR_Aggregator_MI(reports, task.domain_size, task.epsilon)


@njit
def every(column: Any, k: int, epsilon: float) -> Any:
    """The same client from a compiled loop, which it does not offer but allows."""
    reports = np.empty_like(column)
    for i in range(column.size):
        reports[i] = GRR_Client(column[i], k, epsilon)
    return reports


def loop(ready: tuple[Any, Task]) -> Any:
    column, task = ready
    reports = every(column, task.domain_size, task.epsilon)
    return GRR_Aggregator_MI(reports.tolist(), task.domain_size, task.epsilon)


if __name__ == "__main__":
    main(
        {"calls": Job(values, calls), "loop": Job(array, loop)},
        ["multi-freq-ldpy", "numba", "numpy"],
    )
