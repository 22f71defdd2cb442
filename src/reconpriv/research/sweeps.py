"""Figures 1 to 5: distributions, violating groups, and the error of counts, along the sweeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.ask.plan import QueryPlan, plan_queries
from reconpriv.ask.workload import Workload, make_workload, mean_relative_error
from reconpriv.auditing.audit_groups import audit_part, join_parts
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.cube import Cube, collect
from reconpriv.columns.schema import Schema, json_value
from reconpriv.estimate.counts import Design
from reconpriv.protect.publish_cube import published_cube
from reconpriv.research.data import BASES, Population, study_key
from reconpriv.research.results import Result, Row, Step
from reconpriv.research.setting import DEFAULT, METHODS, SWEEPS, StudyPoint, StudySize, sweep
from reconpriv.table import Table
from reconpriv.theory.arrays import Floats

T = TypeVar("T")


def run_distribution(population: Population, _: StudySize, step: Step) -> Result:
    """Figure 1: the share of every sensitive value, most frequent first."""
    rows: list[Row] = []
    for base in BASES:
        records = min(DEFAULT.records, population.largest)
        with population.sample(base, records) as table:
            counts = table.engine.value_counts(table.schema.sensitive)
        ranked = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
        rows += [
            {
                "base": base,
                "rank": rank,
                "value": json_value(value),
                "frequency": count / records,
                "records": records,
            }
            for rank, (value, count) in enumerate(ranked, start=1)
        ]
        step(f"{base} distribution")
    return Result("distribution", tuple(rows))


def run_violations(population: Population, _: StudySize, step: Step) -> Result:
    """Figures 2 and 4: the share of violating micro groups against p, ε, δ and |D|."""
    rows: list[Row] = []

    def counted(table: Table) -> tuple[Schema, list[CellBatch]]:
        return table.schema, list(table.batches())

    for point, setting, (schema, batches) in _sweeps(population, counted):
        policy = setting.policy()
        part = audit_part(batches, schema, policy, worst=0)
        report = join_parts([part], schema, policy, worst=0)
        rows.append(
            {
                **point,
                "groups": report.groups,
                "violating_groups": report.violating_groups,
                "violating_records": report.violating_records,
                "records": report.records,
                "percent_groups": 100 * report.violating_groups / report.groups,
                "percent_records": 100 * report.violating_records / report.records,
            }
        )
        step("{base} violations at {parameter} {value:g}".format(**point))
    return Result("violations", tuple(rows))


def run_error(population: Population, effort: StudySize, step: Step) -> Result:
    """Figures 3 and 5: the mean relative error over the pool, with its spread over keys."""
    rows: list[Row] = []
    done: dict[tuple[str, StudyPoint, str], Floats] = {}
    samples = _sweeps(population, lambda table: prepare(table, effort.queries))
    for point, setting, prepared in samples:
        for method, rule in METHODS.items():
            # UP does not depend on ε and δ, so it is run once for all of them.
            plain = StudyPoint(retention=setting.retention, records=setting.records)
            seen = (point["base"], plain if rule == "none" else setting, rule)
            if seen not in done:
                done[seen] = _errors(prepared, setting, rule, effort.keys)
            rows.append(
                {
                    **point,
                    "method": method,
                    **mean_and_spread(done[seen]),
                    "keys": effort.keys,
                    "queries": len(prepared.workload),
                    "records": prepared.workload.records,
                }
            )
        step("{base} error at {parameter} {value:g}".format(**point))
    return Result("error", tuple(rows))


def _sweeps(
    population: Population, prepared: Callable[[Table], T]
) -> Iterator[tuple[Row, StudyPoint, T]]:
    """Every point of the sweeps, except sizes that the population cannot provide."""
    for base in BASES:
        samples: dict[int, T] = {}
        for parameter in SWEEPS:
            for value, setting in sweep(parameter):
                records = min(setting.records, population.largest)
                if parameter == "records" and records < setting.records:
                    continue
                if records not in samples:
                    # One sample at a time: the default size is prepared again at most once.
                    with population.sample(base, records) as table:
                        samples = {records: prepared(table)}
                point = {"base": base, "parameter": parameter, "value": value}
                yield point, setting, samples[records]


def mean_and_spread(errors: Floats) -> Row:
    """Over keys."""
    spread = float(errors.std(ddof=1)) if errors.size > 1 else 0.0
    return {"error": float(errors.mean()), "spread": spread}


@dataclass(frozen=True)
class Prepared:
    """A sample with its query pool planned, ready to be published repeatedly."""

    raw: Cube
    plan: QueryPlan
    workload: Workload


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


def _errors(prepared: Prepared, setting: StudyPoint, sampling: str, keys: int) -> Floats:
    policy, errors = setting.policy(sampling), np.zeros(keys)
    for number in range(keys):
        cube = published_cube(prepared.raw, policy, study_key(number))
        estimates = prepared.plan.estimates(cube, setting.retention)
        errors[number] = mean_relative_error(estimates, prepared.workload.answers)
    return errors
