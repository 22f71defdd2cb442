"""Figures 6 and 7, not in the paper: what margins give analysts, and what they give an adversary.

The analysts' error is that of the paper's pool. The adversary wants the largest frequency of each
violating group and has the best linear unbiased estimate from records and margins,
with the true variances as weights. Its variance says how often it is within ±ε (normal form), and
the releases show whether that is so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.attacks.attacked_table import count_of, largest_values
from reconpriv.attacks.best_estimate import within_reach
from reconpriv.core.cells import CellBatch
from reconpriv.core.cube import Cube
from reconpriv.core.kernel import Kernel
from reconpriv.core.margin_noise import noisy_tables
from reconpriv.core.margin_plan import MarginPlan, margins_of
from reconpriv.core.margin_tables import MarginTable
from reconpriv.core.randomness import Key
from reconpriv.core.sample_sizes import sample_limits
from reconpriv.core.verdicts import judge
from reconpriv.datasets import dataset_path
from reconpriv.errors import PolicyError
from reconpriv.policy import Policy
from reconpriv.queries.estimate import Design
from reconpriv.queries.margins import PreparedMargins, prepare_margins
from reconpriv.queries.plan import Plan, publish_cube
from reconpriv.queries.workload import mean_relative_error
from reconpriv.reading import read
from reconpriv.research.data import BASES, Population, study_key
from reconpriv.research.error import Prepared, prepare
from reconpriv.research.results import Result, Row, Step
from reconpriv.research.setting import DEFAULT, RETENTIONS, Setting, StudySize
from reconpriv.table import Table
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.design import mixing
from reconpriv.theory.reconstruction import reconstruct_count

SIZES = ("none", "octave", "public")
# Without margins; with them; and with the rows, too, that would give a group away.
WITHOUT, WITH, EVERY_ROW = "none", "published", "every row"
ADULT = "ADULT"
TABLES = (*BASES, ADULT)
EPSILON = 1.0


@dataclass(frozen=True)
class _Group:
    """The groups an adversary is after, and what is true of them."""

    number: Ints
    value: Ints
    count: Ints
    limits: Floats
    private_sizes: Floats


@dataclass(frozen=True)
class _Found:
    """One release: the analysts' error, and what an adversary gets out of it."""

    error: float
    predicted: float
    measured: float
    trials: float
    effective: float
    over_limit: float
    largest_of_limit: float
    largest_of_private_size: float = 0.0
    rows: int = 0
    left_out: int = 0


def run_margins(population: Population, effort: StudySize, step: Step) -> Result:
    """Error and adversary's success of every sample size, with and without margins."""
    rows: list[Row] = []
    for base in TABLES:
        with _table(population, base) as table:
            prepared = prepare(table, effort.queries)
        for retention in (DEFAULT.retention,) if effort.fast else RETENTIONS:
            setting = replace(DEFAULT, retention=retention)
            keys = effort.keys if retention == DEFAULT.retention else (effort.keys + 1) // 2
            for size in SIZES:
                for margins in _variants(setting, size):
                    rows += _measured(prepared, base, setting, size, margins, keys)
            step(f"{base} margins at p {retention:g}")
    return Result("margins", tuple(rows))


@contextmanager
def _table(population: Population, base: str) -> Iterator[Table]:
    """A sample of the census, or all of Adult: occupations by age, sex and race."""
    if base == ADULT:
        path, public = dataset_path("adult"), ["age", "sex", "race"]
        with read(path, sensitive="occupation", public=public, missing="value") as table:
            yield table
    else:
        with population.sample(base, min(DEFAULT.records, population.largest)) as table:
            yield table


def _variants(setting: Setting, size: str) -> tuple[str, ...]:
    """What is compared: no row would be left out where no group is promised anything."""
    several = size != "none" and setting == DEFAULT
    return (WITHOUT, WITH, EVERY_ROW) if several else (WITHOUT, WITH)


def _measured(
    prepared: Prepared, base: str, setting: Setting, size: str, margins: str, keys: int
) -> list[Row]:
    """The row of one design; none if margins would give every group of a table away."""
    policy = setting.policy(size)
    groups = _violating(prepared.raw, policy)
    try:
        found = [_release(prepared, policy, margins, groups, study_key(i)) for i in range(keys)]
    except PolicyError:
        return []
    errors = np.array([one.error for one in found])

    def mean(name: str) -> float:
        return float(np.mean([getattr(one, name) for one in found]))

    def attacked(name: str) -> float | str:
        return mean(name) if groups.number.size else ""

    return [
        {
            "base": base,
            "retention": setting.retention,
            "method": size,
            "margins": margins,
            "error": float(errors.mean()),
            "spread": float(errors.std(ddof=1)) if errors.size > 1 else 0.0,
            "adversary": attacked("predicted"),
            "adversary_measured": attacked("measured"),
            "trials": attacked("trials"),
            "effective_trials": attacked("effective"),
            "over_limit": attacked("over_limit"),
            "largest_of_limit": max(one.largest_of_limit for one in found),
            "largest_of_s_g": max(one.largest_of_private_size for one in found),
            "rows": mean("rows"),
            "rows_left_out": mean("left_out"),
            "violating_groups": groups.number.size,
            "keys": errors.size,
            "queries": len(prepared.workload),
            "records": prepared.workload.records,
        }
    ]


def _violating(raw: Cube, policy: Policy) -> _Group:
    batch, m = raw.as_batch(), raw.schema.domain_size
    private_sizes, private = judge(batch, policy, m)
    number = np.flatnonzero(~private)
    value = largest_values(raw)
    limits = sample_limits(batch, policy, m)
    return _Group(
        number,
        value[number],
        count_of(raw, value)[number],
        limits[number],
        private_sizes[number],
    )


def _release(prepared: Prepared, policy: Policy, margins: str, groups: _Group, key: Key) -> _Found:
    """Publish once; ask the pool, then attack."""
    raw, answers = prepared.raw, prepared.workload.answers
    design = Design.of(policy, raw.schema)
    if margins == WITHOUT:
        cube = _published(raw, prepared.batches, policy, key, None)
        error = mean_relative_error(prepared.plan.estimates(cube, policy.retention), answers)
        return _attacked(raw, cube, None, None, groups, design, policy.epsilon, error)
    plan = margins_of(raw, replace(policy, margins=EPSILON), key)
    every = margins == EVERY_ROW
    tables = (
        noisy_tables(plan.totals.tables, plan.variance, raw.schema, key)
        if every
        else plan.published
    )
    cube = _published(raw, prepared.batches, policy, key, None if every else plan)
    ready = prepare_margins(cube, tables, plan.variance, design)
    estimates = combined_estimates(prepared.plan, cube, ready)
    found = _attacked(
        raw, cube, ready, tables, groups, design, policy.epsilon,
        mean_relative_error(estimates, answers),
    )  # fmt: skip
    return replace(found, rows=ready.rows, left_out=plan.totals.rows - ready.rows)


def _published(
    raw: Cube, batches: list[CellBatch], policy: Policy, key: Key, plan: MarginPlan | None
) -> Cube:
    kernel = Kernel(raw.schema, policy, key, None if plan is None else plan.counted)
    return publish_cube(raw, batches, kernel)


def combined_estimates(plan: Plan, cube: Cube, margins: PreparedMargins) -> Floats:
    """The unbiased count of every query of a pool, from records and margins.

    The same as a release answers (queries.margins), without the variances, which take longest.
    """
    p, m = margins.design.retention, margins.design.domain_size
    holder, anybody = mixing(p, m)
    unknown = cube.scale * cube.records
    estimates = plan.estimates(cube, p)
    for subset in plan.subsets:
        told = np.zeros(subset.keys * margins.rows)
        for rows in margins.rows_of(cube).T:
            inside = np.flatnonzero((subset.positions >= 0) & (rows >= 0))
            slot = subset.positions[inside] * margins.rows + rows[inside]
            told += np.bincount(slot, weights=unknown[inside], minlength=told.size)
        weights = margins.spectrum.weights(
            told.reshape(subset.keys, margins.rows),
            (holder * margins.shares + anybody)[subset.values],
            margins.noise(1),
            subset.rows,
        )
        estimates[subset.queries] += np.sum(weights * margins.distance.T[subset.values], axis=1)
    return estimates


def _attacked(
    raw: Cube,
    cube: Cube,
    margins: PreparedMargins | None,
    tables: tuple[MarginTable, ...] | None,
    groups: _Group,
    design: Design,
    epsilon: float,
    error: float,
) -> _Found:
    """How often the best linear unbiased estimate of the largest frequency is within ±ε."""
    if not groups.number.size:
        return _Found(error, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    sizes, trials = raw.records[groups.number], cube.trials[groups.number]
    holder, anybody = mixing(design.retention, design.domain_size)
    variance = sizes**2 / trials * (holder * groups.count / sizes + anybody)
    value = np.zeros(cube.groups, dtype=np.int64)
    value[groups.number] = groups.value
    estimate = reconstruct_count(
        count_of(cube, value)[groups.number], cube.records[groups.number],
        retention=design.retention, domain_size=design.domain_size,
    )  # fmt: skip
    alone = variance
    if margins is not None:
        assert tables is not None
        told, moved = _told(raw, cube, margins, tables, groups, design)
        estimate, variance = estimate + variance * moved, variance - variance**2 * told
    reach = np.asarray(epsilon * groups.count, dtype=np.float64)
    effective = trials * alone / variance
    limited = np.isfinite(groups.limits) & (groups.limits >= 1.0)
    of_limit = effective[limited] / groups.limits[limited]
    return _Found(
        error=error,
        predicted=float(within_reach(reach, variance).mean()),
        measured=float((np.abs(estimate - groups.count) <= reach).mean()),
        trials=float(trials.mean()),
        effective=float(effective.mean()),
        over_limit=float((of_limit > 1.0 + 1e-9).mean()) if of_limit.size else 0.0,
        largest_of_limit=float(of_limit.max(initial=0.0)),
        largest_of_private_size=float((effective / groups.private_sizes).max()),
    )


def _told(
    raw: Cube,
    cube: Cube,
    margins: PreparedMargins,
    tables: tuple[MarginTable, ...],
    groups: _Group,
    design: Design,
) -> tuple[Floats, Floats]:
    """b'Q^-1 b and b'Q^-1 (M - B D) of every group (theory.margins), with the true variances."""
    true = replace(raw, trials=cube.trials)
    exact = prepare_margins(true, tables, margins.variance, replace(design, retention=1.0))
    holder, anybody = mixing(design.retention, design.domain_size)
    noise = margins.noise(1) * np.eye(margins.rows)
    rows = margins.rows_of(cube)[groups.number]
    told, moved = np.zeros((2, groups.number.size))
    for value in np.unique(groups.value).tolist():
        some = np.flatnonzero(groups.value == value)
        unknown = holder * exact.observed[value] + anybody * exact.products
        inverse = np.linalg.inv(unknown + noise)
        pulled = np.append(inverse @ margins.distance[:, value], 0.0)
        padded = np.pad(inverse, (0, 1))
        mine = rows[some]
        moved[some] = pulled[mine].sum(axis=1)
        told[some] = padded[mine[:, :, None], mine[:, None, :]].sum(axis=(1, 2))
    return told, moved
