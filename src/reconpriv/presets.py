"""Policies with a name: settings that belong together, with a sentence on what they are for."""

from __future__ import annotations

from dataclasses import dataclass

from reconpriv.messages.arguments import checked
from reconpriv.policy import Policy
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

DEFAULT = PRESETS["paper"]


@checked
def preset(name: str) -> Policy:
    """The policy of this name; change a field with :func:`dataclasses.replace`."""
    return PRESETS.find(name).policy
