"""OpenDP: make_randomized_response, a call for each value."""

from __future__ import annotations

from typing import Any

import numpy as np
import opendp.prelude as dp
from harness import Job, Task, main

dp.enable_features("contrib")


def prepare(task: Task) -> tuple[list[int], dp.Measurement, Task]:
    measurement = dp.m.make_randomized_response(list(range(task.domain_size)), task.truthful)
    return task.codes().tolist(), measurement, task


def work(ready: tuple[list[int], dp.Measurement, Task]) -> Any:
    """It offers no reconstruction of categories: ours stands in."""
    column, measurement, task = ready
    perturbed = [measurement(value) for value in column]
    return task.invert(np.bincount(perturbed, minlength=task.domain_size))


if __name__ == "__main__":
    main({"calls": Job(prepare, work)}, ["opendp", "numpy"])
