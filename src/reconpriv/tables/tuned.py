"""Choosing a policy for a table: settings tried without publishing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from reconpriv.attacks.pool import pooled_share, quickly_pooled
from reconpriv.auditing.column_risk import ColumnRisk
from reconpriv.auditing.giveaways import ColumnsSeen
from reconpriv.auditing.obstacles import Accepted, giveaway_obstacle
from reconpriv.policy.presets import Fitted
from reconpriv.tables.opened import OpenTable
from reconpriv.tuning.report import Target, TuneReport
from reconpriv.tuning.sweep import sweep
from reconpriv.tuning.tuner import Tuner


def tune_table(
    table: OpenTable,
    tuner: Tuner,
    fit: Fitted,
    target: Target,
    choices: Mapping[str, Any],
    *,
    pooled: bool | None,
) -> TuneReport:
    """Sweep the ``choices`` around the current policy, and say what stands in the way."""
    current = fit.policy
    if pooled is None:
        pooled = target.max_pooled is not None or quickly_pooled(tuner.cube)
    share = partial(pooled_share, tuner.cube, exposing=current) if pooled else None
    report = sweep(tuner, target=target, current=current, pooled=share, **choices)
    found = tuple(
        ColumnRisk(name, values, identifier=True)
        for name, values in table.checks.known_identifiers.items()
    )
    seen = ColumnsSeen.of(table.schema)
    seen.add(tuner.batch)
    told = seen.giveaways(current.harmless, tuner.cube)
    obstacles = (
        table.checks.people_obstacle(),
        giveaway_obstacle(told, table.schema.sensitive.name, Accepted()),
    )
    warned = tuple(one.sentence for one in obstacles if one is not None)
    report = replace(report, warnings=table.warnings + warned, identifiers=found)
    return report.noted(fit.notes)
