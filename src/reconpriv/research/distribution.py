"""Figure 1: the frequency distribution of the sensitive attribute in EDU-300K and OCC-300K."""

from __future__ import annotations

from reconpriv.columns.schema import json_value
from reconpriv.research.data import BASES, Population
from reconpriv.research.results import Result, Row, Step
from reconpriv.research.setting import DEFAULT, StudySize


def run_distribution(population: Population, _: StudySize, step: Step) -> Result:
    """The share of every sensitive value, most frequent first."""
    rows: list[Row] = []
    for base in BASES:
        records = min(DEFAULT.records, population.largest)
        with population.sample(base, records) as table:
            counts = table.engine.value_counts(table.schema.sensitive)
        ranked = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
        for rank, (value, count) in enumerate(ranked, start=1):
            rows.append(
                {
                    "base": base,
                    "rank": rank,
                    "value": json_value(value),
                    "frequency": count / records,
                    "records": records,
                }
            )
        step(f"{base} distribution")
    return Result("distribution", tuple(rows))
