"""The attacks by name, on a table or on a release.

Each is imported only when it is run, so help and completion, which list them, are quick.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconpriv.errors import InputError, PolicyError
from reconpriv.messages.arguments import checked
from reconpriv.registry import Registry

if TYPE_CHECKING:
    from reconpriv.attacks.result import AttackResult
    from reconpriv.engines.base import Progress
    from reconpriv.policy.policy import Policy
    from reconpriv.release.folder import ReleaseFolder
    from reconpriv.table import Table


@dataclass(frozen=True)
class Effort:
    """How much effort an attack makes; each attack uses the fields it needs.

    :param keys: how many publications, each with its own key.
    :param releases: how many releases of the same table.
    :param updates: how often the table changes and is published again.
    :param privacy: the ε of differentially private answers.
    :param draws: how often those answers are drawn.
    :param least: the smallest group to look at, in records.
    :param worst: how many of the most exposed groups are shown.
    :param classifier: the name of a classifier in ``reconpriv.learning.classifiers.CLASSIFIERS``,
        or an object with the interface of scikit-learn, which learns from the release as well.
    :param progress: what is told which step is under way, and which share of it is done.
    """

    keys: int = 1
    releases: int = 16
    updates: int = 10
    privacy: float = 0.1
    draws: int = 1_000
    least: int = 1
    worst: int = 5
    classifier: Any = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for name, least in (("keys", 1), ("updates", 1), ("draws", 1), ("least", 1), ("worst", 0)):
            if getattr(self, name) < least:
                raise PolicyError(f"The number of {name} must be at least {least}.")


OnTable = Callable[["Table", "Policy", Effort], "AttackResult"]
OnRelease = Callable[["ReleaseFolder", int], "AttackResult"]


@dataclass(frozen=True)
class Attack:
    """An attack by name, with the question it answers.

    ``on_release`` is None if it needs the table itself. ``uses`` are the fields of
    :class:`Effort` that it uses besides ``worst``.
    """

    name: str
    question: str
    on_table: OnTable
    on_release: OnRelease | None = None
    uses: tuple[str, ...] = ()


# What an attack is made on.
PROMISED = "the groups that the policy makes a promise about"
GROUPS = "the micro groups"
PEOPLE = "single people"
TABLE = "the table itself"

# Name, what it is made on, which fields of an effort it uses, and the question.
_ATTACKS = (
    ("micro", PROMISED, ("keys",), "Can a group be reconstructed from its own records?"),
    ("pool", GROUPS, ("keys",),
     "Do neighbouring groups, such as people a year older, give a better estimate?"),
    ("infer", PEOPLE, ("keys", "classifier"),
     "Does a model learnt from the release guess better about those who are in it?"),
    ("model", GROUPS, ("keys",),
     "Does a model of what people are like, fitted to margins alone, give a group away?"),
    ("ratio", PROMISED, ("privacy", "draws"),
     "How well does the paper's attack on noisy counts do? For comparison."),
    ("granularity", PROMISED, ("keys", "least"),
     "Do the copies of a trial give away the number of trials, and with it f?"),
    ("repeat", PROMISED, ("releases",), "What do many releases with fresh keys reveal together?"),
    ("updates", PROMISED, ("updates",),
     "What does a series of releases with one key reveal while the table changes?"),
    ("differencing", PROMISED, (),
     "Does the difference between two larger sets give a better estimate of a group?"),
    ("margins", PROMISED, ("keys",),
     "Do the margins alone give a group away, as the ratio of two noisy counts?"),
    ("persons", TABLE, ("keys",),
     "Where a person has several rows, does a vote over them give the value away?"),
    ("side-channels", TABLE, (), "Do the files reveal more than the rows?"),
)  # fmt: skip
_ON_RELEASES = ("micro", "pool", "model", "granularity", "side-channels")


def _attack(name: str, on: str, uses: tuple[str, ...], question: str) -> Attack:
    """``attack_NAME``, and ``guess_from_release``, in the module of this name."""
    own = name.replace("-", "_")

    def module() -> Any:
        return import_module(f"reconpriv.attacks.{own}")

    def run(table: Table, policy: Policy, how: Effort) -> AttackResult:
        from reconpriv.attacks.attacked_table import AttackedTable
        from reconpriv.engines.base import no_progress

        found: Callable[..., AttackResult] = getattr(module(), f"attack_{own}")
        given, heard = {field: getattr(how, field) for field in uses}, how.progress or no_progress
        if on == TABLE:
            return found(table, policy, progress=heard, **given)
        target = AttackedTable.of(table, policy, heard)
        if on != PEOPLE:
            given["worst"] = how.worst
        return found(target.by_promise() if on == PROMISED else target, **given)

    def guess(release: ReleaseFolder, show: int) -> AttackResult:
        found: AttackResult = module().guess_from_release(release, show=show)
        return found

    return Attack(name, question, run, guess if name in _ON_RELEASES else None, uses)


ATTACKS = Registry("attack", [_attack(*line) for line in _ATTACKS], InputError)


def on_releases() -> list[str]:
    """The attacks that need only a release."""
    return [one.name for one in ATTACKS.values() if one.on_release is not None]


@checked
def attack(
    name: str, table: Table, policy: Policy | str | None = None, effort: Effort | None = None
) -> AttackResult:
    """Run an attack against a publisher's own table and measure it against the truth.

    :param name: the name of one of :data:`ATTACKS`, such as ``micro``.
    :param policy: a policy or the name of a preset; without one, the recommended policy.
    """
    chosen = ATTACKS.find(name)
    policy = table.fitted(policy)
    policy.check_sampling()
    return chosen.on_table(table, policy, effort or Effort())


@checked
def attack_release(name: str, folder: str | os.PathLike[str], *, show: int = 20) -> AttackResult:
    """Run an attack on a release as an adversary would: without the table, so without the truth.

    :param name: the name of one of :data:`ATTACKS` that needs no table, such as ``micro``.
    :param show: how many groups are shown.
    """
    chosen = ATTACKS.find(name)
    if chosen.on_release is None:
        raise InputError(
            f"The attack {name!r} needs the table itself.",
            hint=f"Attacks that work on a release: {', '.join(on_releases())}.",
        )
    from reconpriv.release.folder import ReleaseFolder

    stored = ReleaseFolder.open(Path(folder))
    stored.check_files()
    return chosen.on_release(stored, show)
