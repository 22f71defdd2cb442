"""The command that plays the adversary: attack."""

from __future__ import annotations

import contextlib
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconpriv.cli import options as opt
from reconpriv.cli.choices import attacks_using, registered
from reconpriv.cli.completion import tables
from reconpriv.cli.margin_options import NO_MARGINS, MarginOptions
from reconpriv.cli.output import reported, say_all, show, show_json
from reconpriv.cli.policy_options import NO_POLICY, PolicyOptions
from reconpriv.cli.progress import ticking
from reconpriv.cli.protect_options import NO_PROTECTION, ProtectOptions
from reconpriv.cli.table_options import TableOptions, taking_table
from reconpriv.errors import InputError, PolicyError
from reconpriv.messages.phrases import listed
from reconpriv.messages.redaction import shown_path

if TYPE_CHECKING:
    from reconpriv.attacks.run import Effort

ATTACK = "Attack"

AttackName = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="{attacks}.",
        autocompletion=registered("attacks"),
    ),
]
AttackSource = Annotated[
    str,
    typer.Argument(
        metavar="TABLE|RELEASE",
        help="A table, as for publish; or, for {attacks on releases}, a release folder, though"
        " then there is no truth to compare with.",
        autocompletion=tables,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    example = (
        opt.EXAMPLE + "reconpriv attack granularity example:census_workers -s Occupation"
        " --public all --drop Weight --sample-size paper"
    )
    app.command(rich_help_panel=opt.PUBLISHER, epilog=example)(attack)


def _refuse_ignored(name: str, effort: Effort) -> None:
    """Refuse an option that this attack does not use, rather than ignore it."""
    for field in fields(effort):
        uses = attacks_using(field.name)
        if uses and name not in uses and getattr(effort, field.name) != field.default:
            raise PolicyError(f"--{field.name} works only with the attack {listed(uses, 'or')}.")


@taking_table(source=AttackSource, sensitive_required=False, unattainable=False)
def attack(
    name: AttackName,
    table: TableOptions,
    policy_options: PolicyOptions = NO_POLICY,
    margins: MarginOptions = NO_MARGINS,
    protect: ProtectOptions = NO_PROTECTION,
    keys: Annotated[
        int,
        typer.Option("--keys", help="Publications to attack, each with its own key"
                     " ({attacks using keys}).", rich_help_panel=ATTACK),
    ] = 1,
    releases: Annotated[
        int, typer.Option("--releases", help="Releases to average ({attacks using releases}).",
                          rich_help_panel=ATTACK),
    ] = 16,
    updates: Annotated[
        int, typer.Option("--updates", help="Changes of the table, each published"
                          " ({attacks using updates}).", rich_help_panel=ATTACK),
    ] = 10,
    privacy: Annotated[
        float,
        typer.Option("--privacy", help="λ of the noisy counts ({attacks using privacy}).",
                     rich_help_panel=ATTACK),
    ] = 0.1,
    least: Annotated[
        int,
        typer.Option("--least", help="Leave out groups smaller than this ({attacks using least}).",
                     rich_help_panel=ATTACK),
    ] = 1,
    classifier: Annotated[
        str | None,
        typer.Option("--classifier", metavar="NAME", help="A classifier of scikit-learn that learns"
                     " from the release as well: {classifiers} ({attacks using classifier}).",
                     autocompletion=registered("classifiers"), rich_help_panel=ATTACK),
    ] = None,
    worst: Annotated[
        int,
        typer.Option("--worst", help="How many groups to show (internal).", rich_help_panel=ATTACK),
    ] = 5,
    json: opt.Json = False,
) -> None:  # fmt: skip
    """Attack your own table, or a release: what would an adversary find out?

    The result is for the publisher only: it compares the attack with the raw table.
    """
    with reported():
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
            given = policy_options.given or margins.given or protect.given
            if not table.only_source or given:
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
            chosen = policy_options.chosen(margins.chosen(), protect.chosen())
            policy = replace(chosen, unattainable="one-trial")
            policy.check_sampling()
            with ticking():
                opened = table.open()
            with contextlib.closing(opened):
                # A line that is printed would cut through a bar.
                say_all("warning", opened.warnings)
                suited = policy_options.on(policy, opened.schema, margins)
                with ticking(opened.schema.records, f"attack {name}") as bar:
                    result = run_attack(name, opened, suited.policy, replace(effort, progress=bar))
                say_all("note", suited.notes)
        if json:
            show_json(result.as_dict())
        else:
            from reconpriv.show.attacks import attack_view

            show(attack_view(result))
