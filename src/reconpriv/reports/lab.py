"""The parts of the publisher's report that try things out: cheap attacks, the standard workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconpriv.attacks.attacked_table import AttackedTable
from reconpriv.attacks.differencing import attack_differencing
from reconpriv.attacks.micro import attack_micro
from reconpriv.attacks.result import AttackResult
from reconpriv.auditing.audit_report import AuditReport
from reconpriv.cells.cube import Cube
from reconpriv.engines.base import Progress, no_progress
from reconpriv.policy.policy import Policy
from reconpriv.reports.page import Section, note
from reconpriv.show.document import Heading, Paragraph, Part
from reconpriv.show.results.lessons import attack_document
from reconpriv.theory.tails.bounds import resolve_bound
from reconpriv.tuning.columns import standard_workload
from reconpriv.tuning.recommend import by_margins, frontier
from reconpriv.tuning.report import Setting
from reconpriv.tuning.sweep import SweptValues, sweep, usual_unless
from reconpriv.tuning.tuner import Tuner

# Larger tables are not attacked for a report, which should take seconds.
LAB_RECORDS = 2_000_000
_EXPLAINED = {
    "micro": "within tolerance: violating groups whose largest exposed frequency is found so"
    " closely; exact"
    " tails: the share predicted for it; error 50%: the median relative error; guess right:"
    " violating groups whose most frequent value is guessed; all groups: the same for all groups;"
    " persons: people whose own value is that guess."
}
# Columns of an attack's table that check the attack itself, or would be too many for a page.
_LEFT_OUT = ("with copies", "z", "error 10%", "error 25%", "error 75%", "error 90%")


def run(
    cube: Cube | None, policy: Policy, audit: AuditReport, progress: Progress = no_progress
) -> tuple[tuple[AttackResult, ...], str]:
    """Micro reconstruction and differencing; or why they were not run."""
    if not audit.violating_groups:
        return (), "No group violates the policy under perturbation alone: nothing to attack."
    if cube is None or audit.records > LAB_RECORDS:
        return (), (
            f"Not run: the table has more than {LAB_RECORDS:,} records. The attack micro can be"
            " run on its own."
        )
    target = AttackedTable(
        cube.schema,
        replace(policy, unattainable="one-trial"),
        cube.as_batch(),
        progress=lambda step, done: progress(f"attacking: {step}", done),
    )
    found = [attack_micro(target, check=False)]
    if cube.schema.public:
        found.append(attack_differencing(target))
    names = " and ".join(result.name for result in found)
    return tuple(found), (
        f"Run with the lab's own keys, never with yours: {names}. These and other attacks can be"
        " run one by one."
    )


@dataclass(frozen=True)
class Tradeoff:
    """A policy and the best others that protect single records as well, by the analysts' error.

    ``alone`` have no margins, ``with_margins`` do; ``no_margins`` says why none can.
    """

    setting: Setting
    alone: tuple[Setting, ...]
    with_margins: tuple[Setting, ...]
    no_margins: str


def tradeoff(cube: Cube | None, policy: Policy) -> Tradeoff | None:
    """The policy judged by the standard workload; None if there is none, or it is too large."""
    if cube is None or cube.records.sum() > LAB_RECORDS:
        return None
    workload = standard_workload(cube)
    if workload is None:
        return None
    bound, p = policy.tail_bound, policy.retention
    bound = bound if bound.sizes_classes else resolve_bound("chernoff")
    margins = usual_unless(policy)
    retentions = SweptValues.of(bound, [margins]).retentions
    report = sweep(
        Tuner.on(cube, workload),
        retentions=[*(one for one in retentions if one < p), p],
        bound=bound,
        margins=[None, margins],
        current=policy,
        risk=False,
    )
    alone, beside = map(frontier, by_margins(report.settings))
    return Tradeoff(report.current, tuple(alone), tuple(beside), report.no_margins)


def section(attacks: Sequence[AttackResult], explained: str) -> Section:
    """What the attacks found, with their rates and tables."""
    parts: list[Part] = [Paragraph(explained)]
    for result in attacks:
        shown = replace(result, worst=(), table=tuple(map(_columns, result.table)))
        parts += [Heading(result.name), *attack_document(shown, closed=False)]
        parts += [note(_EXPLAINED[result.name])] if result.name in _EXPLAINED else []
    return Section("lab", "What the attack lab found", parts)


def _columns(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _LEFT_OUT}
