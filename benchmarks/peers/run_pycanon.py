"""pycanon: k-anonymity, or k-anonymity and l-diversity, of a data frame."""

from __future__ import annotations

import pandas as pd
from harness import Job, Task, main
from pycanon import anonymity

SENSITIVE = "Occupation"


def prepare(task: Task) -> pd.DataFrame:
    return pd.read_parquet(task.file).head(task.rows)


def k_anonymity(table: pd.DataFrame) -> dict[str, int]:
    public = [name for name in table.columns if name != SENSITIVE]
    return {"k": int(anonymity.k_anonymity(table, public))}


def both(table: pd.DataFrame) -> dict[str, int]:
    public = [name for name in table.columns if name != SENSITIVE]
    diversity = anonymity.l_diversity(table, public, [SENSITIVE])
    return {**k_anonymity(table), "l": int(diversity)}


if __name__ == "__main__":
    jobs = {"k": Job(prepare, k_anonymity), "k and l": Job(prepare, both)}
    main(jobs, ["pycanon", "pandas", "numpy"])
