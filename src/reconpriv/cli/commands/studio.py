"""The studio command."""

from __future__ import annotations

from importlib.util import find_spec

import typer

from reconpriv.cli.options.declared import argument, option
from reconpriv.cli.process.signals import nothing_begun
from reconpriv.errors import InputError, PolicyError


def studio(
    table: str | None = argument(
        "TABLE",
        "The table to open, as for audit; you can also open or upload one in the page.",
        None,
    ),
    sensitive: str | None = option("-s, --sensitive", "The sensitive column."),
    port: int = option("--port", "The port to listen on; 0 picks a free one.", 0, min=0, max=65535),
    listen: str = option(
        "--listen ADDRESS",
        "The IPv4 address to listen on. In a container use 0.0.0.0, and publish the port on"
        " 127.0.0.1 only.",
        "127.0.0.1",
    ),
    no_browser: bool = option(
        "--no-browser", "Print the address without opening a browser.", False
    ),
) -> None:
    """Choose a policy with sliders and pictures, in a web app that runs on this machine only."""
    if find_spec("shiny") is None:
        from reconpriv.extras import install_hint

        raise PolicyError(
            "The studio needs Shiny, which is not installed.", hint=install_hint("studio")
        )
    if table == "-":
        raise InputError("The studio does not read standard input; give it a file.")
    with nothing_begun():
        from reconpriv.studio.server.serve import run_studio

    run_studio(
        table, sensitive=sensitive, port=port, listen=listen, browser=not no_browser, say=_say
    )


def _say(line: str) -> None:
    typer.echo(line, err=False)
