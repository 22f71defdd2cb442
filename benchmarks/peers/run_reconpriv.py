"""reconpriv: a column of a data frame perturbed and reconstructed; a data frame audited."""

from __future__ import annotations

from typing import Any

import pandas as pd
from harness import Job, Task, main

import reconpriv as rp

KEY = rp.Key.test()
POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)


def texts(task: Task) -> tuple[pd.Series, list[Any], float]:
    """The column as text, as a table has it."""
    domain = [f"occupation {i:02}" for i in range(task.domain_size)]
    column = pd.Series(pd.Categorical.from_codes(task.codes(), domain), name="x").astype("str")
    return column, domain, task.retention


def codes(task: Task) -> tuple[pd.Series, list[Any], float]:
    """The column as the integers that the peers are given."""
    return pd.Series(task.codes(), name="x"), list(range(task.domain_size)), task.retention


def perturb_and_reconstruct(ready: tuple[pd.Series, list[Any], float]) -> Any:
    column, domain, retention = ready
    perturbed = rp.perturb(column, domain, retention=retention, key=KEY)
    return rp.reconstruct(perturbed, domain, retention=retention).frequencies


def frame(task: Task) -> pd.DataFrame:
    return pd.read_parquet(task.file).head(task.rows)


def audit(table: pd.DataFrame) -> dict[str, int]:
    with rp.read(table, sensitive="Occupation", public="all") as opened:
        report = opened.audit(POLICY)
    return {"groups": report.groups}


JOBS = {
    "text": Job(texts, perturb_and_reconstruct),
    "codes": Job(codes, perturb_and_reconstruct),
    "audit": Job(frame, audit),
}

if __name__ == "__main__":
    main(JOBS, ["reconpriv", "pandas"])
