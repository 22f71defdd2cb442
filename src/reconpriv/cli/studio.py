"""The studio command."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

import typer

from reconpriv.cli import options as opt
from reconpriv.cli.output import reported
from reconpriv.cli.signals import nothing_begun
from reconpriv.errors import InputError, PolicyError


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        rich_help_panel=opt.PUBLISHER,
        epilog=opt.EXAMPLE + "reconpriv studio example:adult -s occupation",
    )(studio)


def studio(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE",
            help="The table to open, as for audit; you can also open or upload one in the page.",
        ),
    ] = None,
    sensitive: Annotated[
        str | None, typer.Option("-s", "--sensitive", help="The sensitive column.")
    ] = None,
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, help="The port to listen on; 0 picks a free one."),
    ] = 0,
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            metavar="ADDRESS",
            help="The IPv4 address to listen on. In a container use 0.0.0.0, and publish the port"
            " on 127.0.0.1 only.",
        ),
    ] = "127.0.0.1",
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address without opening a browser.")
    ] = False,
) -> None:
    """Choose a policy with sliders and pictures, in a web app that runs on this machine only."""
    with reported():
        if find_spec("shiny") is None:
            from reconpriv.extras import install_hint

            raise PolicyError(
                "The studio needs Shiny, which is not installed.",
                hint=install_hint("studio"),
            )
        if table == "-":
            raise InputError("The studio does not read standard input; give it a file.")
        with nothing_begun():
            from reconpriv.studio.serve import run_studio

        run_studio(
            table,
            sensitive=sensitive,
            port=port,
            listen=listen,
            browser=not no_browser,
            say=_say,
        )


def _say(line: str) -> None:
    typer.echo(line, err=False)
