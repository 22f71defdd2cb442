"""Figures 6 and 7, not in the paper: what margins give analysts, and what they give an adversary.

The analysts' error is that of the paper's pool. The adversary wants the largest frequency of each
violating group and has the best linear unbiased estimate from records and margins,
with the true variances as weights. Its variance says how often it is within the tolerance (normal
form), and the releases show whether that is so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reconpriv.ask.plan import QueryPlan
from reconpriv.ask.workload import mean_relative_error
from reconpriv.attacks.attacked_table import AttackedTable, Publication
from reconpriv.attacks.best_estimate import best_estimates, normal_share
from reconpriv.auditing.verdicts import judge
from reconpriv.cells.cube import Cube
from reconpriv.cells.randomness import Key
from reconpriv.datasets import dataset_path
from reconpriv.errors import PolicyError
from reconpriv.estimate.measurements import Measurements
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import sample_limits
from reconpriv.protect.margins.noise import noisy_tables
from reconpriv.reading import read
from reconpriv.research.data import BASES, Population, study_key
from reconpriv.research.results import Result, Row, Step
from reconpriv.research.setting import DEFAULT, RETENTIONS, StudyPoint, StudySize
from reconpriv.research.sweeps import Prepared, mean_and_spread, prepare
from reconpriv.table import Table
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.estimation.design import trial_variance

RULES = ("none", "octave", "public")
# Without margins; with them; and with the rows, too, that would give a group away.
WITHOUT, WITH, EVERY_ROW = "none", "published", "every row"
ADULT = "ADULT"
TABLES = (*BASES, ADULT)
EPSILON = 1.0


@dataclass(frozen=True)
class _Attacked:
    """The groups that an adversary is after, in a table, with s_g and the limit of each."""

    target: AttackedTable
    groups: Ints
    limits: Floats
    private_sizes: Floats

    @classmethod
    def of(cls, raw: Cube, policy: Policy) -> _Attacked:
        """The groups that violate a policy unless they are sampled."""
        batch, m = raw.as_batch(), raw.schema.domain_size
        private_sizes, private = judge(batch, policy, m)
        groups = np.flatnonzero(~private)
        limits = sample_limits(batch, policy, m)[groups]
        target = AttackedTable(raw.schema, replace(policy, margins=EPSILON), batch)
        return cls(target, groups, limits, private_sizes[groups])

    def publication(self, margins: str, key: Key) -> Publication:
        """Records, and the margins of one of the variants that are compared."""
        with_margins = self.target.policy
        if margins == WITH:
            return self.target.publication_as(with_margins, key)
        # Rows that are not counted as trials leave the records as they are without margins.
        plain = self.target.publication_as(replace(with_margins, margins=None), key)
        if margins == WITHOUT:
            return plain
        plan = self.target.margins(with_margins, key)
        tables = noisy_tables(plan.totals.tables, plan.variance, self.target.schema, key)
        return replace(plain, tables=tables, variance=plan.variance)

    def told(self, published: Publication) -> Row:
        """How often the best linear unbiased estimate of the largest frequency is close."""
        best = best_estimates(self.target, published, self.groups, self.target.values[self.groups])
        tolerance, effective = self.target.policy.tolerance, best.effective_trials
        limited = np.isfinite(self.limits) & (self.limits >= 1.0)
        of_limit = effective[limited] / self.limits[limited]
        near = np.abs(best.combined - best.truth) <= tolerance * best.truth
        return {
            "adversary": normal_share(best, tolerance).mean(),
            "adversary_measured": near.mean(),
            "trials": best.trials.mean(),
            "effective_trials": effective.mean(),
            "over_limit": (of_limit > 1.0 + 1e-9).mean() if of_limit.size else 0.0,
            "largest_of_limit": of_limit.max(initial=0.0),
            "largest_of_s_g": (effective / self.private_sizes).max(),
        }


# What is found where no group violates the policy.
_NOBODY: Row = {
    **dict.fromkeys(("adversary", "adversary_measured", "trials", "effective_trials"), ""),
    "over_limit": "",
    "largest_of_limit": 0.0,
    "largest_of_s_g": 0.0,
}


def run_margins(population: Population, effort: StudySize, step: Step) -> Result:
    """Error and adversary's success of every sampling rule, with and without margins."""
    rows: list[Row] = []
    for base in TABLES:
        with _table(population, base) as table:
            prepared = prepare(table, effort.queries)
        for retention in (DEFAULT.retention,) if effort.fast else RETENTIONS:
            setting = replace(DEFAULT, retention=retention)
            keys = effort.keys if retention == DEFAULT.retention else (effort.keys + 1) // 2
            for rule in RULES:
                for margins in _variants(setting, rule):
                    rows += _measured(prepared, base, setting, rule, margins, keys)
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


def _variants(setting: StudyPoint, rule: str) -> tuple[str, ...]:
    """What is compared: no row would be left out where no group is promised anything."""
    several = rule != "none" and setting == DEFAULT
    return (WITHOUT, WITH, EVERY_ROW) if several else (WITHOUT, WITH)


def _measured(
    prepared: Prepared, base: str, setting: StudyPoint, rule: str, margins: str, keys: int
) -> list[Row]:
    """The row of one design; none if margins would give every group of a table away."""
    attacked = _Attacked.of(prepared.raw, setting.policy(rule))
    found: list[Row] = []
    errors, rows = np.zeros(keys), np.zeros(keys)
    for number in range(keys):
        try:
            published = attacked.publication(margins, study_key(number))
        except PolicyError:
            return []
        ready = published.measurements
        estimates = combined_estimates(prepared.plan, published.cube, ready)
        errors[number] = mean_relative_error(estimates, prepared.workload.answers)
        rows[number] = ready.rows
        found.append(attacked.told(published) if attacked.groups.size else _NOBODY)
    left_out = 0.0
    if margins != WITHOUT:
        plan = attacked.target.margins(attacked.target.policy, None)
        left_out = plan.totals.rows - float(rows.mean())

    def over_keys(name: str) -> Any:
        values = [one[name] for one in found]
        if name.startswith("largest"):
            return float(max(values))
        return float(np.mean(values)) if attacked.groups.size else ""

    return [
        {
            "base": base,
            "retention": setting.retention,
            "method": rule,
            "margins": margins,
            **mean_and_spread(errors),
            **{name: over_keys(name) for name in _NOBODY},
            "rows": float(rows.mean()),
            "rows_left_out": left_out,
            "violating_groups": attacked.groups.size,
            "keys": errors.size,
            "queries": len(prepared.workload),
            "records": prepared.workload.records,
        }
    ]


def combined_estimates(plan: QueryPlan, cube: Cube, margins: Measurements) -> Floats:
    """The unbiased count of every query of a pool, from records and margins.

    The same as a release answers (estimate.linear), without the variances, which take longest.
    """
    p, m = margins.design.retention, margins.design.domain_size
    one_trial = trial_variance(margins.shares, p, m)
    unknown = cube.scale * cube.records
    estimates = plan.estimates(cube, p)
    for subset in plan.subsets if margins.rows else ():
        told = margins.incidence(cube).sums_by(unknown, subset.positions, subset.keys)
        weights = margins.spectrum.weights(
            told, one_trial[subset.values], margins.noise(1), subset.rows
        )
        estimates[subset.queries] += np.sum(weights * margins.distance.T[subset.values], axis=1)
    return estimates
