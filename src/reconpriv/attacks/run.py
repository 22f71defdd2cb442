"""The attacks by name, on a table or on a release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reconpriv.attacks.differencing import attack_differencing
from reconpriv.attacks.granularity import attack_granularity, infer_from_release
from reconpriv.attacks.micro import attack_micro, guess_from_release
from reconpriv.attacks.ratio import attack_ratio
from reconpriv.attacks.repeat import attack_repeat
from reconpriv.attacks.result import AttackResult
from reconpriv.attacks.side_channels import attack_side_channels, scan_release
from reconpriv.attacks.target import Target
from reconpriv.errors import InputError, PolicyError
from reconpriv.policy import Policy
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.load import load_cube
from reconpriv.release.manifest import Manifest
from reconpriv.table import Table
from reconpriv.theory.bounds import BOUNDS


@dataclass(frozen=True)
class Effort:
    """How much of an attack is run; each attack takes what it needs.

    :param keys: how many publications, each with its own key (micro, granularity).
    :param releases: how many releases of the same table (repeat).
    :param privacy: the ε of differentially private answers (ratio).
    :param draws: how often those answers are drawn (ratio).
    :param least: the fewest records of a group that is looked at (granularity).
    :param worst: how many of the groups told best are shown.
    """

    keys: int = 1
    releases: int = 16
    privacy: float = 0.1
    draws: int = 1_000
    least: int = 1
    worst: int = 5

    def __post_init__(self) -> None:
        """Refuse counts that make no sense."""
        for name, least in (("keys", 1), ("draws", 1), ("least", 1), ("worst", 0)):
            if getattr(self, name) < least:
                raise PolicyError(f"The number of {name} must be at least {least}.")


OnTable = Callable[[Table, Policy, Effort], AttackResult]

ATTACKS: dict[str, OnTable] = {
    "micro": lambda table, policy, how: attack_micro(
        Target.of(table, policy), keys=how.keys, worst=how.worst
    ),
    "ratio": lambda table, policy, how: attack_ratio(
        Target.of(table, policy), privacy=how.privacy, draws=how.draws, worst=how.worst
    ),
    "granularity": lambda table, policy, how: attack_granularity(
        Target.of(table, policy), keys=how.keys, least=how.least, worst=how.worst
    ),
    "repeat": lambda table, policy, how: attack_repeat(
        Target.of(table, policy), releases=how.releases, worst=how.worst
    ),
    "differencing": lambda table, policy, how: attack_differencing(
        Target.of(table, policy), worst=how.worst
    ),
    "side-channels": lambda table, policy, _: attack_side_channels(table, policy),
}
ON_RELEASE = ("micro", "granularity", "side-channels")


def check_name(name: str) -> None:
    """Refuse an attack that is not there."""
    if name not in ATTACKS:
        raise InputError(
            f"There is no attack called {name!r}.", hint=f"Choose one of: {', '.join(ATTACKS)}."
        )


def attack(name: str, table: Table, policy: Policy, effort: Effort | None = None) -> AttackResult:
    """Run an attack against a publisher's own table, whose truth measures it.

    :param name: ``micro``, ``ratio``, ``granularity``, ``repeat``, ``differencing`` or
        ``side-channels``.
    """
    check_name(name)
    policy.check_sampling()
    return ATTACKS[name](table, policy, effort or Effort())


def attack_release(name: str, folder: Path, *, show: int = 20) -> AttackResult:
    """Run an attack on a release as its adversary would: without the table, so without truth.

    :param name: ``micro``, ``granularity`` or ``side-channels``.
    :param show: how many groups are shown.
    """
    check_name(name)
    if name not in ON_RELEASE:
        raise InputError(
            f"The attack {name!r} needs the table itself.",
            hint=f"On a release there are: {', '.join(ON_RELEASE)}.",
        )
    stored = ReleaseFolder.open(folder)
    stored.check_files()
    if name == "side-channels":
        return scan_release(folder)
    cube = load_cube(stored)
    if name == "micro":
        return guess_from_release(cube, stored.manifest.retention, show=show)
    return infer_from_release(cube, _policy(stored.manifest), show=show)


def _policy(manifest: Manifest) -> Policy:
    if manifest.bound not in BOUNDS:
        raise InputError(
            f"The release was made with a bound of its own, {manifest.bound!r}, which is not known"
            " here: its sizes cannot be inverted."
        )
    return Policy(
        manifest.retention,
        manifest.epsilon,
        manifest.delta,
        bound=manifest.bound,
        sample_size=manifest.sample_size,
    )
