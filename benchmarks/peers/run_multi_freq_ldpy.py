"""multi-freq-ldpy: GRR client and its aggregator by matrix inversion."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import Job, Task, main
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from numba import njit

Ready = tuple[Any, int, float]


def values(task: Task) -> Ready:
    """A list of Python integers: its compiled client takes those faster than numpy's."""
    return task.codes().tolist(), task.domain_size, task.epsilon


def array(task: Task) -> Ready:
    return task.codes(), task.domain_size, task.epsilon


def calls(ready: Ready) -> Any:
    """The client called for each value."""
    column, k, epsilon = ready
    reports = [GRR_Client(value, k, epsilon) for value in column]
    return GRR_Aggregator_MI(reports, k, epsilon)


@njit
def every(column: Any, k: int, epsilon: float) -> Any:
    """The same client from a compiled loop, which it does not offer but allows."""
    reports = np.empty_like(column)
    for i in range(column.size):
        reports[i] = GRR_Client(column[i], k, epsilon)
    return reports


def loop(ready: Ready) -> Any:
    column, k, epsilon = ready
    return GRR_Aggregator_MI(every(column, k, epsilon).tolist(), k, epsilon)


if __name__ == "__main__":
    main(
        {"calls": Job(values, calls), "loop": Job(array, loop)},
        ["multi-freq-ldpy", "numba", "numpy"],
    )
