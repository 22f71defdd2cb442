"""Figures 2 and 4: the share of violating micro groups against p, ε, δ and |D|."""

from __future__ import annotations

from reconpriv.auditing.audit_groups import audit_groups
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.columns.schema import Schema
from reconpriv.research.data import BASES, Population
from reconpriv.research.results import Result, Row, Step
from reconpriv.research.setting import SWEEPS, StudySize, sweep


def run_violations(population: Population, _: StudySize, step: Step) -> Result:
    """Audit every point of the sweeps, except sizes that the population cannot provide."""
    rows: list[Row] = []
    for base in BASES:
        counted: dict[int, tuple[Schema, list[CellBatch]]] = {}
        for parameter in SWEEPS:
            for value, setting in sweep(parameter):
                records = min(setting.records, population.largest)
                if parameter == "records" and records < setting.records:
                    continue
                if records not in counted:
                    # One sample at a time: the default size is counted again at most once.
                    with population.sample(base, records) as table:
                        counted = {records: (table.schema, list(table.batches()))}
                schema, batches = counted[records]
                report = audit_groups(batches, schema, setting.policy(), worst=0)
                rows.append(
                    {
                        "base": base,
                        "parameter": parameter,
                        "value": value,
                        "groups": report.groups,
                        "violating_groups": report.violating_groups,
                        "violating_records": report.violating_records,
                        "records": records,
                        "percent_groups": 100 * report.violating_groups / report.groups,
                        "percent_records": 100 * report.violating_records / records,
                    }
                )
            step(f"{base} violations against {parameter}")
    return Result("violations", tuple(rows))
