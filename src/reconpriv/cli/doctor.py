"""The command that looks at the installation: doctor."""

from __future__ import annotations

import typer

from reconpriv.cli import options as opt
from reconpriv.cli.output import reported, show, show_json


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    example = opt.EXAMPLE + "reconpriv doctor --json"
    app.command(epilog=example, rich_help_panel=opt.MORE)(doctor)


def doctor(json: opt.Json = False) -> None:
    """Show what is installed, what is missing and the command that adds it.

    Covers Python, the extras, Java and a browser. Exits 0 if everything that
    every installation needs is there, 1 if something is missing.
    """
    with reported():
        from reconpriv.doctor import examine

        found = examine()
        if json:
            show_json(found.as_dict())
        else:
            from reconpriv.show.doctor import doctor_view

            show(doctor_view(found))
    if not found.healthy:
        raise typer.Exit(1)
