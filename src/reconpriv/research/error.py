"""Figures 3 and 5: the relative error of count queries for UP, RP and the hardened sample sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.ask.plan import QueryPlan, plan_queries
from reconpriv.ask.workload import Workload, make_workload, mean_relative_error
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.cube import Cube, collect
from reconpriv.columns.schema import Schema
from reconpriv.estimate.counts import Design
from reconpriv.protect.publish_cube import published_cube
from reconpriv.research.data import BASES, Population, study_key
from reconpriv.research.results import Result, Row, Step
from reconpriv.research.setting import METHODS, SWEEPS, StudyPoint, StudySize, sweep
from reconpriv.table import Table


@dataclass(frozen=True)
class Prepared:
    """A sample with its query pool planned, ready to be published repeatedly."""

    raw: Cube
    plan: QueryPlan
    workload: Workload


def run_error(population: Population, effort: StudySize, step: Step) -> Result:
    """The mean and spread over repeated keys of the mean relative error over the pool."""
    rows: list[Row] = []
    for base in BASES:
        prepared: dict[int, Prepared] = {}
        done: dict[tuple[StudyPoint, str], list[float]] = {}
        for parameter in SWEEPS:
            for value, setting in sweep(parameter):
                records = min(setting.records, population.largest)
                if parameter == "records" and records < setting.records:
                    continue
                if records not in prepared:
                    # One sample at a time: the default size is prepared again at most once.
                    with population.sample(base, records) as table:
                        prepared = {records: prepare(table, effort.queries)}
                for method, sample_size in METHODS.items():
                    seen = _key(setting, sample_size)
                    if seen not in done:
                        done[seen] = _errors(prepared[records], setting, sample_size, effort.keys)
                    errors = np.array(done[seen])
                    rows.append(
                        {
                            "base": base,
                            "parameter": parameter,
                            "value": value,
                            "method": method,
                            "error": float(errors.mean()),
                            "spread": float(errors.std(ddof=1)) if errors.size > 1 else 0.0,
                            "keys": errors.size,
                            "queries": len(prepared[records].workload),
                            "records": records,
                        }
                    )
                step(f"{base} error at {parameter} {value:g}")
    return Result("error", tuple(rows))


def _key(setting: StudyPoint, sample_size: str) -> tuple[StudyPoint, str]:
    """UP does not depend on ε and δ, so it is run once for all of them."""
    if sample_size == "none":
        return StudyPoint(retention=setting.retention, records=setting.records), sample_size
    return setting, sample_size


def prepare(table: Table, queries: int) -> Prepared:
    """A table's cells, and the paper's pool of queries on it."""
    return prepare_cells(list(table.batches()), table.schema, queries)


def prepare_cells(batches: list[CellBatch], schema: Schema, queries: int) -> Prepared:
    """The same for cells that are in memory already."""
    raw = collect(batches, schema)
    workload = make_workload(raw, queries=queries)
    answerer = Answerer(raw, Design(1.0, schema.domain_size, "none"))
    selected = [answerer.select(None, query) for query in workload.queries]
    return Prepared(raw, plan_queries(raw, selected), workload)


def _errors(prepared: Prepared, setting: StudyPoint, sample_size: str, keys: int) -> list[float]:
    policy = setting.policy(sample_size)
    errors = []
    for number in range(keys):
        cube = published_cube(prepared.raw, policy, study_key(number))
        estimates = prepared.plan.estimates(cube, setting.retention)
        errors.append(mean_relative_error(estimates, prepared.workload.answers))
    return errors
