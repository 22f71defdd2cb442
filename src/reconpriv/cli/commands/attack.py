"""The command that plays the adversary: attack."""

from __future__ import annotations

import contextlib
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconpriv.cli.options import shared as opt
from reconpriv.cli.options.choices import attacks_using
from reconpriv.cli.options.declared import argument, option, optional, taking
from reconpriv.cli.options.policy import PolicyOptions
from reconpriv.cli.options.table import ENGINE, TableOptions
from reconpriv.cli.process.completion import tables
from reconpriv.cli.process.output import give, say_all
from reconpriv.cli.process.progress import ticking
from reconpriv.errors import InputError, PolicyError
from reconpriv.messages.phrases import listed
from reconpriv.messages.redaction import shown_path

if TYPE_CHECKING:
    from reconpriv.attacks.run import Effort

_SOURCE: Any = argument(
    "TABLE|RELEASE",
    "A table, as for publish; or, for {attacks on releases}, a release folder, though then there is"
    " no truth to compare with.",
    autocompletion=tables,
)


def _effort(name: str, help: str, default: Any) -> Any:
    """An option that some attacks use."""
    words = "" if name == "worst" else f" ({{attacks using {name}}})"
    return option(f"--{name}", f"{help}{words}.", default, rich_help_panel="Attack")


def _refuse_ignored(name: str, effort: Effort) -> None:
    """Refuse an option that this attack does not use, rather than ignore it."""
    for field in fields(effort):
        uses = attacks_using(field.name)
        if uses and name not in uses and getattr(effort, field.name) != field.default:
            raise PolicyError(f"--{field.name} works only with the attack {listed(uses, 'or')}.")


@taking(
    TableOptions,
    PolicyOptions,
    left_out=(*ENGINE, "unattainable"),
    instead={"source": _SOURCE, "sensitive": optional(TableOptions, "sensitive")},
)
def attack(
    name: str = argument("NAME", "{attacks}.", choices="attacks"),
    *,
    table: TableOptions,
    policy_options: PolicyOptions,
    keys: int = _effort("keys", "Publications to attack, each with its own key", 1),
    releases: int = _effort("releases", "Releases to average", 16),
    updates: int = _effort("updates", "Changes of the table, each published", 10),
    privacy: float = _effort("privacy", "λ of the noisy counts", 0.1),
    least: int = _effort("least", "Leave out groups smaller than this", 1),
    classifier: str | None = option(
        "--classifier NAME",
        "A classifier of scikit-learn that learns from the release as well: {classifiers}"
        " ({attacks using classifier}).",
        choices="classifiers",
        rich_help_panel="Attack",
    ),
    worst: int = _effort("worst", "How many groups to show (internal)", 5),
    json: bool = opt.JSON,
) -> None:
    """Attack your own table, or a release: what would an adversary find out?

    The result is for the publisher only: it compares the attack with the raw table.
    """
    from reconpriv.attacks.run import ATTACKS, Effort, attack_release
    from reconpriv.attacks.run import attack as run_attack
    from reconpriv.writing.marker import is_release

    ATTACKS.find(name)
    effort = Effort(
        keys=keys,
        releases=releases,
        updates=updates,
        privacy=privacy,
        least=least,
        worst=worst,
        classifier=classifier,
    )
    _refuse_ignored(name, effort)
    if is_release(Path(table.source)):
        if not table.only_source or policy_options.given:
            raise PolicyError(
                "A release has its columns and its policy already.",
                hint="Leave out the table and policy options.",
            )
        with ticking(what=f"attack {name}"):
            result = attack_release(name, Path(table.source), show=max(worst, 1))
    elif table.sensitive is None:
        raise InputError(
            f"{shown_path(table.source)} is not a release; a table needs its sensitive column.",
            hint="Name it with -s, or give a folder that `reconpriv publish` made.",
        )
    else:
        policy = replace(policy_options.chosen(), unattainable="one-trial")
        policy.check_sampling()
        with ticking():
            opened = table.open()
        with contextlib.closing(opened):
            # A line that is printed would cut through a bar.
            say_all("warning", opened.warnings)
            suited = policy_options.on(policy, opened.schema)
            with ticking(opened.schema.records, f"attack {name}") as bar:
                result = run_attack(name, opened, suited.policy, replace(effort, progress=bar))
            say_all("note", suited.notes)
    give(result, json=json)
