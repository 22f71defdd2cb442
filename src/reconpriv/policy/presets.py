"""Policies with a name: settings that belong together, with a sentence on what they are for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconpriv.columns.schema import Schema
from reconpriv.messages.arguments import checked
from reconpriv.policy.policy import Policy
from reconpriv.registry import Registry


@dataclass(frozen=True)
class Preset:
    """A policy with a name; ``sentence`` says what it is for."""

    name: str
    sentence: str
    policy: Policy


PRESETS = Registry(
    "preset",
    (
        Preset(
            "recommended",
            "A promise that is a probability, for values that more than a quarter of a group hold,"
            " and margins, which make counts more accurate.",
            Policy(
                retention=0.5,
                tolerance=0.5,
                doubt=0.05,
                bound="exact",
                exposed_above=0.25,
                margins=1.0,
            ),
        ),
        Preset(
            "paper",
            "The paper's policy: a criterion by Chernoff's bound, for every value of every group.",
            Policy(retention=0.5, tolerance=0.5, doubt=0.3),
        ),
        Preset(
            "strict",
            "A promise that is a probability for every value, with trials that depend on group size"
            " alone, and no margins.",
            Policy(retention=0.5, tolerance=0.5, doubt=0.05, bound="exact", sampling="public"),
        ),
    ),
    former={
        "signed": "Use 'recommended' with an ε of 0 for margins, which is the same policy.",
        "accurate": "Use 'paper' with values exposed above 0.5, which is the same policy.",
    },
)

DEFAULT = RECOMMENDED = PRESETS["recommended"]
# Of two values, one trial at p = ½ tells too much; this is the largest p that the promise allows.
_TWO_VALUES = 2
_RETENTION_OF_TWO = 0.49
_TWO_COLUMNS = 2


@checked
def preset(name: str) -> Policy:
    """The policy of this name; change a field with :func:`dataclasses.replace`."""
    return PRESETS.find(name).policy


@dataclass(frozen=True)
class Fitted:
    """A policy for one table, and sentences on what was chosen for it."""

    policy: Policy
    notes: tuple[str, ...]


def fitted(policy: Policy, schema: Schema, *, retention: bool, margins: bool) -> Fitted:
    """The recommended policy for a table, and what is different in it from the preset, and why.

    ``retention`` and ``margins`` say which of the two may be chosen for the table.
    """
    notes: list[str] = []
    if retention and schema.domain_size == _TWO_VALUES and policy.tail_bound.exact:
        policy = replace(policy, retention=_RETENTION_OF_TWO)
        notes.append(
            f"p = {_RETENTION_OF_TWO} instead of 0.5: with two sensitive values, p = 0.5 would"
            " leave no number of trials that keeps the promise."
        )
    if margins and (reason := no_margins_reason(policy, schema)):
        policy = replace(policy, margins=None)
        notes.append(f"No margins are published: {reason}. Counts rest on the records alone.")
    return Fitted(policy, tuple(notes))


def no_margins_reason(policy: Policy, schema: Schema) -> str:
    """Why the recommended policy has no margins on this table; empty if it has."""
    if not policy.sampling_rule.counts_margins:
        return f"sampling rule {policy.sampling!r} does not count what they tell about a group"
    ignored = policy.wanted_protection.ignored
    if len({column.name for column in schema.public} - ignored) < _TWO_COLUMNS:
        return "with one public column, each row of them would be a single group"
    return ""


def policy_for(policy: Policy | str | None, schema: Schema) -> Fitted:
    """The policy that somebody asked for on a table: a policy, a preset's name, or nothing.

    Nothing stands for the recommended policy, fitted to the table.
    """
    if isinstance(policy, Policy):
        return Fitted(policy.on(schema), ())
    chosen = RECOMMENDED if policy is None else PRESETS.find(policy)
    free = chosen is RECOMMENDED
    found = fitted(chosen.policy, schema, retention=free, margins=free)
    return replace(found, policy=found.policy.on(schema))
