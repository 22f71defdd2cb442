"""The attacks by name, on a table or on a release.

Each is imported only when it is run, so help and completion, which list them, are quick.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconpriv.errors import InputError, PolicyError
from reconpriv.messages.arguments import checked
from reconpriv.registry import Registry

if TYPE_CHECKING:
    from reconpriv.attacks.attacked_table import Publication
    from reconpriv.attacks.result import AttackResult
    from reconpriv.engines.base import Progress
    from reconpriv.policy import Policy
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
        """Refuse counts that make no sense."""
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


def _micro(table: Table, policy: Policy, how: Effort) -> AttackResult:
    from reconpriv.attacks.attacked_table import AttackedTable
    from reconpriv.attacks.micro import attack_micro

    return attack_micro(
        AttackedTable.of_groups(table, policy, how.progress), keys=how.keys, worst=how.worst
    )


def _micro_on_release(release: ReleaseFolder, show: int) -> AttackResult:
    from reconpriv.attacks.micro import guess_from_release
    from reconpriv.queries.estimate import Design
    from reconpriv.queries.margins import prepare_margins
    from reconpriv.release.load import load_group_cube
    from reconpriv.release.margin_file import read_margins

    manifest, cube = release.manifest, load_group_cube(release)
    design = Design.of(manifest.policy, manifest.schema)
    margins = None
    if manifest.margins is not None:
        margins = prepare_margins(cube, read_margins(release), manifest.margins.variance, design)
    return guess_from_release(cube, design, margins, show=show)


def _pool(table: Table, policy: Policy, how: Effort) -> AttackResult:
    from reconpriv.attacks.attacked_table import AttackedTable
    from reconpriv.attacks.pool import attack_pool

    return attack_pool(
        AttackedTable.of(table, policy, how.progress), keys=how.keys, worst=how.worst
    )


def _pool_on_release(release: ReleaseFolder, show: int) -> AttackResult:
    from reconpriv.attacks.pool import guess_from_release

    return guess_from_release(_publication(release), show=show)


def _infer(table: Table, policy: Policy, how: Effort) -> AttackResult:
    from reconpriv.attacks.attacked_table import AttackedTable
    from reconpriv.attacks.infer import attack_infer

    return attack_infer(
        AttackedTable.of(table, policy, how.progress), keys=how.keys, classifier=how.classifier
    )


def _model(table: Table, policy: Policy, how: Effort) -> AttackResult:
    from reconpriv.attacks.attacked_table import AttackedTable
    from reconpriv.attacks.model import attack_model

    return attack_model(
        AttackedTable.of(table, policy, how.progress), keys=how.keys, worst=how.worst
    )


def _model_on_release(release: ReleaseFolder, show: int) -> AttackResult:
    from reconpriv.attacks.model import guess_from_release

    return guess_from_release(_publication(release), show=show)


def _publication(release: ReleaseFolder) -> Publication:
    """What an adversary has of a release: its groups, and its margins."""
    from reconpriv.attacks.attacked_table import Publication
    from reconpriv.release.load import load_group_cube
    from reconpriv.release.margin_file import read_margins

    return Publication(release.manifest.policy, load_group_cube(release), read_margins(release))


def _ratio(table: Table, policy: Policy, how: Effort) -> AttackResult:
    from reconpriv.attacks.attacked_table import AttackedTable
    from reconpriv.attacks.ratio import attack_ratio

    return attack_ratio(
        AttackedTable.of_groups(table, policy, how.progress),
        privacy=how.privacy,
        draws=how.draws,
        worst=how.worst,
    )


def _granularity(table: Table, policy: Policy, how: Effort) -> AttackResult:
    from reconpriv.attacks.attacked_table import AttackedTable
    from reconpriv.attacks.granularity import attack_granularity

    return attack_granularity(
        AttackedTable.of_groups(table, policy, how.progress),
        keys=how.keys,
        least=how.least,
        worst=how.worst,
    )


def _granularity_on_release(release: ReleaseFolder, show: int) -> AttackResult:
    from reconpriv.attacks.granularity import infer_from_release
    from reconpriv.release.load import load_group_cube

    return infer_from_release(load_group_cube(release), release.manifest.policy, show=show)


def _repeat(table: Table, policy: Policy, how: Effort) -> AttackResult:
    from reconpriv.attacks.attacked_table import AttackedTable
    from reconpriv.attacks.repeat import attack_repeat

    return attack_repeat(
        AttackedTable.of_groups(table, policy, how.progress), releases=how.releases, worst=how.worst
    )


def _updates(table: Table, policy: Policy, how: Effort) -> AttackResult:
    from reconpriv.attacks.attacked_table import AttackedTable
    from reconpriv.attacks.updates import attack_updates

    return attack_updates(
        AttackedTable.of_groups(table, policy, how.progress), updates=how.updates, worst=how.worst
    )


def _differencing(table: Table, policy: Policy, how: Effort) -> AttackResult:
    from reconpriv.attacks.attacked_table import AttackedTable
    from reconpriv.attacks.differencing import attack_differencing

    return attack_differencing(
        AttackedTable.of_groups(table, policy, how.progress), worst=how.worst
    )


def _margins(table: Table, policy: Policy, how: Effort) -> AttackResult:
    from reconpriv.attacks.attacked_table import AttackedTable
    from reconpriv.attacks.margin_ratio import attack_margins

    return attack_margins(
        AttackedTable.of(table, policy, how.progress), keys=how.keys, worst=how.worst
    )


def _persons(table: Table, policy: Policy, how: Effort) -> AttackResult:
    from reconpriv.attacks.persons import PeoplesRows, attack_persons

    return attack_persons(PeoplesRows.of(table, policy, how.progress), keys=how.keys)


def _side_channels(table: Table, policy: Policy, how: Effort) -> AttackResult:
    from reconpriv.attacks.side_channels import attack_side_channels

    return attack_side_channels(table, policy, how.progress)


def _side_channels_on_release(release: ReleaseFolder, _: int) -> AttackResult:
    from reconpriv.attacks.side_channels import scan_release

    return scan_release(release.path)


ATTACKS = Registry(
    "attack",
    (
        Attack(
            "micro",
            "Can a group be reconstructed from its own records?",
            _micro,
            _micro_on_release,
            uses=("keys",),
        ),
        Attack(
            "pool",
            "Do neighbouring groups, such as people a year older, give a better estimate?",
            _pool,
            _pool_on_release,
            uses=("keys",),
        ),
        Attack(
            "infer",
            "Does a model learnt from the release guess better about those who are in it?",
            _infer,
            uses=("keys", "classifier"),
        ),
        Attack(
            "model",
            "Does a model of what people are like, fitted to margins alone, give a group away?",
            _model,
            _model_on_release,
            uses=("keys",),
        ),
        Attack(
            "ratio",
            "How well does the paper's attack on noisy counts do? For comparison.",
            _ratio,
            uses=("privacy", "draws"),
        ),
        Attack(
            "granularity",
            "Do the copies of a trial give away the number of trials, and with it f?",
            _granularity,
            _granularity_on_release,
            uses=("keys", "least"),
        ),
        Attack(
            "repeat",
            "What do many releases with fresh keys reveal together?",
            _repeat,
            uses=("releases",),
        ),
        Attack(
            "updates",
            "What does a series of releases with one key reveal while the table changes?",
            _updates,
            uses=("updates",),
        ),
        Attack(
            "differencing",
            "Does the difference between two larger sets give a better estimate of a group?",
            _differencing,
        ),
        Attack(
            "margins",
            "Do the margins alone give a group away, as the ratio of two noisy counts?",
            _margins,
            uses=("keys",),
        ),
        Attack(
            "persons",
            "Where a person has several rows, does a vote over them give the value away?",
            _persons,
            uses=("keys",),
        ),
        Attack(
            "side-channels",
            "Do the files reveal more than the rows?",
            _side_channels,
            _side_channels_on_release,
        ),
    ),
    InputError,
)


def on_releases() -> list[str]:
    """The attacks that need only a release."""
    return [one.name for one in ATTACKS.values() if one.on_release is not None]


@checked
def attack(
    name: str,
    table: Table,
    policy: Policy | str | None = None,
    effort: Effort | None = None,
) -> AttackResult:
    """Run an attack against a publisher's own table and measure it against the truth.

    :param name: the name of one of :data:`ATTACKS`, such as ``micro``.
    :param policy: a policy or the name of a preset; without one, the recommended policy.
    """
    chosen = ATTACKS.find(name)
    policy = table.chosen(policy)
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
