"""The parts of the publisher's report that try things: cheap attacks and the standard workload."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reconpriv.attacks.differencing import attack_differencing
from reconpriv.attacks.micro import attack_micro
from reconpriv.attacks.result import AttackResult
from reconpriv.attacks.target import Target
from reconpriv.audit import AuditReport
from reconpriv.errors import InputError
from reconpriv.policy import Policy
from reconpriv.tuning.report import Setting
from reconpriv.tuning.tuner import Tuner

if TYPE_CHECKING:
    from reconpriv.table import Table

# Larger tables are not attacked for a report: it should take seconds.
LAB_RECORDS = 2_000_000


def run(table: Table, policy: Policy, audit: AuditReport) -> tuple[tuple[AttackResult, ...], str]:
    """Micro reconstruction and differencing; or why they were not run."""
    if not audit.violating_groups:
        return (), "No group violates the policy under perturbation alone: nothing to attack."
    if audit.records > LAB_RECORDS:
        return (), (
            f"Not run: the table has more than {LAB_RECORDS:,} records. `reconpriv attack micro`"
            " runs the attack by itself."
        )
    target = Target.of(table, replace(policy, unattainable="one-trial"))
    found = [attack_micro(target)]
    if table.schema.public:
        found.append(attack_differencing(target))
    names = " and ".join(result.name for result in found)
    return tuple(found), (
        f"Run with keys of the lab, never with yours: {names}. `reconpriv attack` runs these and"
        " others one by one."
    )


def setting(table: Table, policy: Policy) -> Setting | None:
    """The policy judged by the standard workload; None where there is none, or it is too large."""
    if table.schema.records > LAB_RECORDS:
        return None
    try:
        tuner = Tuner.of(table.groups(), table.schema)
    except InputError:
        return None
    return tuner.setting(policy)
