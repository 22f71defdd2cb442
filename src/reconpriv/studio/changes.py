"""What differs between two publications, in words, and what that means for an adversary."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import reconpriv as rp
from reconpriv.messages.numbers import label
from reconpriv.studio.desk import Opened, Published, Settled
from reconpriv.studio.plan import Plan, Roles

_POLICY = {
    "retention": "p", "epsilon": "ε", "delta": "δ", "bound": "tail bound",
    "sample_size": "sample size", "unattainable": "groups that cannot be made private",
    "margins": "margins", "exposed_above": "φ", "harmless": "harmless values",
    "news_only": "news only",
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
# With the same key, changing these keeps the random words; any other change draws new ones.
_SAME_SAMPLE = set(_POLICY) - {"retention"}


def since_release(
    published: Published,
    opened: Opened | None,
    settled: Settled | None,
    policy: rp.Policy | None,
) -> list[str]:
    """Which settings differ from those of the release; empty if it is up to date."""
    made = published.settled
    if opened is not None and opened is not made.opened:
        if opened.identity != made.opened.identity:
            return [f"table: {made.opened.shown} → {opened.shown}"]
        if settled is None or settled.opened is not opened:
            return [f"{opened.shown} was opened again"]
    if settled is None:
        return []
    changed = role_changes(made.roles, settled.roles)
    if settled.opened.summary != made.opened.summary:
        changed.insert(0, f"the content of {made.opened.shown}")
    if policy is None:
        return [*changed, "a policy that cannot be used"]
    return [*changed, *policy_changes(published.plan.policy, policy)]


def role_changes(before: Roles, after: Roles) -> list[str]:
    """The roles that differ, each with both values if they are short."""
    found = []
    for part in fields(Roles):
        old, new = getattr(before, part.name), getattr(after, part.name)
        if old == new:
            continue
        label = _ROLES.get(part.name, part.name)
        if part.name == "public":
            gone = [f"without {name}" for name in old if name not in new]
            more = [f"with {name}" for name in new if name not in old]
            found.append(f"{label}: {', '.join([*gone, *more]) or 'another order'}")
        elif isinstance(old, str) and isinstance(new, str):
            found.append(f"{label}: {old or 'none'} → {new or 'none'}")
        else:
            names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
            found.append(f"{label}: {', '.join(names)}")
    return found


def policy_changes(before: rp.Policy, after: rp.Policy) -> list[str]:
    """The parameters that differ, with both values."""
    return [
        f"{_POLICY[name]}: {_shown(getattr(before, name))} → {_shown(getattr(after, name))}"
        for name in _changed(before, after)
    ]


def _changed(before: rp.Policy, after: rp.Policy) -> list[str]:
    return [name for name in _POLICY if getattr(before, name) != getattr(after, name)]


def same_key_means(before: Plan, after: Plan) -> str:
    """What publishing again with the same key reveals to an adversary; empty if nothing."""
    if _chosen_by(before.roles) != _chosen_by(after.roles):
        return (
            "The new release may hold other rows of the same people. With both releases an"
            " adversary sees several rows of a person, and a vote over them undoes the"
            " randomisation. Replace the last release; do not hand out both."
        )
    # No draw depends on the person's number but the choice of a row.
    person, rows = after.roles.person, after.roles.rows_per_person
    drawn = replace(before.roles, person=person, rows_per_person=rows)
    roles = [change.split(":")[0] for change in role_changes(drawn, after.roles)]
    changed = _changed(before.policy, after.policy)
    resampled = [*roles, *(_POLICY[name] for name in changed if name not in _SAME_SAMPLE)]
    if resampled:
        return (
            f"Even with the same key, a different {' and a different '.join(resampled)} makes"
            " an independent second sample, which an adversary can average with the first. Replace"
            " the last release; do not hand out both."
        )
    if "margins" in changed and before.policy.margins and after.policy.margins:
        return (
            "Different margins have noise of their own: with both releases an adversary knows"
            " more than either level of privacy says, since their ρ add up. Replace the last"
            " release; do not hand out both."
        )
    if changed:
        return (
            "With the same key, the new release shares its trials with the last one and gives no"
            " second sample away. Together they protect only as well as the weaker one."
        )
    return ""


def _chosen_by(roles: Roles) -> str:
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
