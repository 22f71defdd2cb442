"""diffprivlib: ExponentialCategorical with all utilities equal, which is randomised response."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
from diffprivlib.mechanisms import ExponentialCategorical
from harness import Job, Task, main


def prepare(task: Task) -> tuple[list[str], list[str], ExponentialCategorical, Task]:
    """It takes texts; that each is as far from every other makes the rest uniform."""
    domain = [f"{i:02}" for i in range(task.domain_size)]
    utility = [(one, other, 1) for one, other in combinations(domain, 2)]
    mechanism = ExponentialCategorical(epsilon=task.epsilon, utility_list=utility)
    return [domain[code] for code in task.codes().tolist()], domain, mechanism, task


def work(ready: tuple[list[str], list[str], ExponentialCategorical, Task]) -> Any:
    """It offers no reconstruction: ours stands in."""
    column, domain, mechanism, task = ready
    counts = Counter(mechanism.randomise(value) for value in column)
    return task.invert(np.array([counts[value] for value in domain]))


if __name__ == "__main__":
    main({"calls": Job(prepare, work)}, ["diffprivlib", "scikit-learn", "numpy"])
