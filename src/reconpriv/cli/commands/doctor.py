"""The command that looks at the installation: doctor."""

from __future__ import annotations

import typer

from reconpriv.cli.options import shared as opt
from reconpriv.cli.process.output import give


def doctor(json: bool = opt.JSON) -> None:
    """Show what is installed, what is missing and the command that adds it.

    Covers Python, the extras, Java and a browser. Exits 0 if everything that
    every installation needs is there, 1 if something is missing.
    """
    from reconpriv.doctor import examine

    found = examine()
    give(found, json=json)
    if not found.healthy:
        raise typer.Exit(1)
