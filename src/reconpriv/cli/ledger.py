"""The command that reads the ledger of a key."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from reconpriv.cli import options as opt
from reconpriv.cli.choices import one_of
from reconpriv.cli.output import reported, show, show_json
from reconpriv.cli.streams import echo
from reconpriv.errors import PolicyError

ACTIONS = ("show", "verify", "repair")
EXIT_NOT_SOUND = 1


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    example = opt.EXAMPLE + "reconpriv ledger show my.key"
    app.command(rich_help_panel=opt.PUBLISHER, epilog=example)(ledger)


def ledger(
    action: Annotated[
        str,
        typer.Argument(
            metavar="show|verify|repair",
            autocompletion=one_of(*ACTIONS),
            help="Show the publications; check every line and the count of trials; or remove a"
            " last line that lacks its end and a count that is not sound.",
        ),
    ],
    key: Annotated[Path, typer.Argument(metavar="KEY", help="The key file beside the ledger.")],
    json: opt.Json = False,
) -> None:
    """Show or check what was published with a key: the ledger beside the key file.

    verify exits 0 if every line is as it was written and the count of trials goes
    with them, 1 if not. show refuses a ledger that fails verification.
    """
    sound = True
    with reported():
        if action not in ACTIONS:
            raise PolicyError(
                f"A ledger cannot be asked to {action!r}.",
                hint=f"Choose one of: {', '.join(ACTIONS)}.",
            )
        from reconpriv.ledger.ledger import Ledger
        from reconpriv.show.ledger import ledger_view

        found = Ledger(key)
        if action == "show":
            if json:
                show_json(found.as_dict())
            else:
                show(ledger_view(found))
        else:
            repaired = found.repair() if action == "repair" else ()
            check = found.check()
            sound = check.sound
            if json:
                extra = {"repaired": bool(repaired)} if action == "repair" else {}
                show_json(check.as_dict() | extra)
            else:
                if action == "repair":
                    echo(" ".join(repaired) or "There was nothing to repair.")
                echo(check.verdict)
                if check.repairable:
                    echo(f"To repair it: reconpriv ledger repair {shlex.quote(str(key))}")
    if not sound:
        raise typer.Exit(EXIT_NOT_SOUND)
