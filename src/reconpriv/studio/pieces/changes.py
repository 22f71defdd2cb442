"""What differs between two publications, in words, and what that means for an adversary."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import reconpriv as rp
from reconpriv.columns.schema import Schema
from reconpriv.ledger.entries import Fingerprint
from reconpriv.messages.numbers import label
from reconpriv.messages.phrases import listed
from reconpriv.policy.margin_settings import NO_MARGINS
from reconpriv.studio.work.keys import TableKey
from reconpriv.studio.work.plan import DeclaredRoles, PublicationPlan
from reconpriv.studio.work.workspace import LoadedTable, Opened, Published

_POLICY = {
    "retention": "p", "tolerance": "tolerance", "doubt": "doubt", "bound": "tail bound",
    "sampling": "sampling rule", "unattainable": "groups that cannot be made private",
    "margins": "margins", "protect": "protection", "exposed_above": "φ",
    "harmless": "harmless values",
}  # fmt: skip
_ROLES = {
    "sensitive": "sensitive column",
    "public": "set of public columns",
    "missing": "treatment of missing sensitive values",
    "bins": "binning",
    "groups": "grouping",
    "person": "person’s number",
    "rows_per_person": "rows per person",
}


def since_release(
    published: Published,
    opened: Opened | None,
    loaded: LoadedTable | None,
    policy: rp.Policy | None,
) -> list[str]:
    """Which settings differ from those of the release; empty if it is up to date."""
    made = published.loaded
    if opened is not None and opened is not made.opened:
        if opened.identity != made.opened.identity:
            return [f"table: {made.opened.shown} → {opened.shown}"]
        unknown = loaded is None or loaded.opened is not opened
        if unknown and not opened.same_content(made.opened):
            return [f"{opened.shown} was opened again"]
    if loaded is None:
        return []
    changed = role_changes(made.roles, loaded.roles)
    same = loaded.opened.same_content(made.opened)
    if not same and loaded.opened.summary != made.opened.summary:
        changed.insert(0, f"the content of {made.opened.shown}")
    if policy is None:
        return [*changed, "a policy that cannot be used"]
    return [*changed, *policy_changes(published.plan.policy, policy)]


def role_changes(before: DeclaredRoles, after: DeclaredRoles) -> list[str]:
    """The roles that differ, each with both values if they are short."""
    found = []
    for part in fields(DeclaredRoles):
        old, new = getattr(before, part.name), getattr(after, part.name)
        if old == new:
            continue
        if part.name == "public":
            gone = [f"without {name}" for name in old if name not in new]
            more = [f"with {name}" for name in new if name not in old]
            words = ", ".join([*gone, *more]) or "another order"
        elif isinstance(old, str):
            words = f"{old or 'none'} → {new or 'none'}"
        else:
            words = ", ".join(name for name in {**old, **new} if old.get(name) != new.get(name))
        found.append(f"{_ROLES[part.name]}: {words}")
    return found


def policy_changes(before: rp.Policy, after: rp.Policy) -> list[str]:
    """The parameters that differ, with both values."""
    pairs = ((name, getattr(before, name), getattr(after, name)) for name in _POLICY)
    return [f"{_POLICY[n]}: {_shown(old)} → {_shown(new)}" for n, old, new in pairs if old != new]


def same_key_means(known: TableKey, plan: PublicationPlan, schema: Schema) -> str:
    """What publishing again with the key of a table reveals to an adversary; empty if nothing."""
    if _chosen_by(known.plan.roles) != _chosen_by(plan.roles):
        return (
            "The new release may hold other rows of the same people. With both releases an"
            " adversary sees several rows of a person, and a vote over them undoes the"
            " randomisation. Replace the last release; do not hand out both."
        )
    before, after = known.plan.policy, plan.policy
    resampled = Fingerprint.of(known.key, schema, after).differences(
        Fingerprint.of(known.key, known.schema, before)
    )
    if resampled:
        return (
            f"Even with the same key, another {listed(resampled)} makes an independent second"
            " sample, which an adversary can average with the first. Replace the last release; do"
            " not hand out both."
        )
    if len({before.wanted_margins, after.wanted_margins} - {NO_MARGINS}) > 1:
        return (
            "Different margins have noise of their own: with both releases an adversary knows"
            " more than either level of privacy says, since their ρ add up. Replace the last"
            " release; do not hand out both."
        )
    if policy_changes(before, after):
        return (
            "With the same key, the new release shares its trials with the last one and gives no"
            " second sample away. Together they protect only as well as the weaker one."
        )
    return ""


def _chosen_by(roles: DeclaredRoles) -> str:
    """The column by which one row of each person is chosen; empty if all rows are kept."""
    return roles.person if roles.keeps_one else ""


def _shown(value: Any) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(label, value))
    if isinstance(value, rp.Margins):
        return f"ε = {value.epsilon:.3g}"
    return f"{value:g}" if isinstance(value, float) else str(getattr(value, "name", value))
