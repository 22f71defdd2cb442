"""Policies with a name: settings that belong together, with a sentence on what they are for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconpriv.messages.arguments import checked
from reconpriv.policy import Policy
from reconpriv.registry import Registry
from reconpriv.schema import Schema


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
            "A promise that is a probability, for shares above a quarter, and margins: counts are"
            " more accurate than with plain perturbation.",
            Policy(0.5, 0.5, 0.05, bound="exact", exposed_above=0.25, margins=1.0),
        ),
        Preset(
            "paper",
            "The paper's policy: every value of every group is protected, by Chernoff's bound.",
            Policy(0.5, 0.5, 0.3),
        ),
        Preset(
            "signed",
            "The promise is a probability that a steward can sign: exact tails, for shares above"
            " a quarter.",
            Policy(0.5, 0.5, 0.05, bound="exact", exposed_above=0.25),
        ),
        Preset(
            "strict",
            "The same promise for every value, with trials that depend on group size alone.",
            Policy(0.5, 0.5, 0.05, bound="exact", sample_size="public"),
        ),
        Preset(
            "accurate",
            "Only values that most of a group hold are protected; counts are nearly as accurate as"
            " with plain perturbation.",
            Policy(0.5, 0.5, 0.3, exposed_above=0.5),
        ),
    ),
)

DEFAULT = RECOMMENDED = PRESETS["recommended"]
# Of two values, one trial at p = ½ tells too much; this is the largest p that the promise allows.
_TWO_VALUES = 2
_RETENTION_OF_TWO = 0.49


@checked
def preset(name: str) -> Policy:
    """The policy of this name; change a field with :func:`dataclasses.replace`."""
    return PRESETS.find(name).policy


def fitted(policy: Policy, schema: Schema, *, retention: bool, margins: bool) -> Fitted:
    """The recommended policy for a table, and what is different in it from the preset, and why.

    ``retention`` and ``margins`` say which of the two may be chosen for the table.
    """
    notes: list[str] = []
    if retention and schema.domain_size == _TWO_VALUES and policy.tail_bound.lattice:
        policy = replace(policy, retention=_RETENTION_OF_TWO)
        notes.append(
            f"p = {_RETENTION_OF_TWO}: with two sensitive values, p = 0.5 would leave no number of"
            " trials that keeps the promise."
        )
    if margins and policy.margins is not None and len(schema.public) < _TWO_VALUES:
        policy = replace(policy, margins=None)
        notes.append(
            "No margins are published: with one public column, each row of them would be a single"
            " group. Counts rest on the records alone."
        )
    return Fitted(policy, tuple(notes))


@dataclass(frozen=True)
class Fitted:
    """A policy for one table, and sentences on what was chosen for it."""

    policy: Policy
    notes: tuple[str, ...]
