"""The commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from reconpriv._version import __version__
from reconpriv.cli import (
    analyst,
    attack,
    audit,
    columns,
    crosstab,
    doctor,
    learning,
    ledger,
    publish,
    regression,
    studio,
    study,
    tune,
)
from reconpriv.cli import options as opt
from reconpriv.cli.choices import Command
from reconpriv.cli.output import (
    reported,
    show,
    show_json,
)
from reconpriv.cli.streams import echo
from reconpriv.cli.usage import Commands
from reconpriv.messages.redaction import shown_path

_ROOT_NOTES = """[bold]Start here[/bold]

reconpriv demo
reconpriv columns TABLE -s COLUMN
reconpriv COMMAND --help

[bold]Exit status[/bold]

0  done
1  audit: a group is not private, or something must not be published;
   tune: no setting reaches the target; doctor: something needed is missing;
   ledger: a line is torn or was edited
2  bad input; nothing was written
70  a bug
129, 130, 143  interrupted; nothing unfinished was left behind

[bold]Environment[/bold]

TMPDIR  where counting spills to when memory runs short
RECONPRIV_DEBUG=1  show tracebacks, which may quote the table
NO_COLOR=1  plain text
XDG_CACHE_HOME  where the script of the charts is kept for the next report
"""

app = typer.Typer(
    name="reconpriv",
    cls=Commands,
    help="Publish a table with one sensitive column: groups resist reconstruction, counts stay"
    " accurate.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_ROOT_NOTES,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"reconpriv {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


def retention(
    rho1: Annotated[
        float, typer.Option("--rho1", help="The belief before seeing a published value.")
    ],
    rho2: Annotated[
        float, typer.Option("--rho2", help="The largest belief allowed after seeing it.")
    ],
    domain_size: Annotated[
        int, typer.Option("-m", "--domain-size", help="The number of sensitive values.")
    ],
    json: opt.Json = False,
) -> None:
    """Find the largest retention p with ρ1-ρ2 privacy, and its local differential privacy level."""
    with reported():
        from reconpriv.theory.perturbation import local_privacy_level, retention_for_privacy

        p = retention_for_privacy(rho1, rho2, domain_size)
        level = local_privacy_level(p, domain_size)
        if json:
            show_json({"retention": p, "local_dp_epsilon": level, "domain_size": domain_size})
        else:
            echo(f"largest retention p   {p:.6g}")
            echo(f"local-DP level        ε = {level:.6g}")


def keygen(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the key.")],
    json: opt.Json = False,
) -> None:
    """Make a secret 256-bit key that only you can read; never overwrites a file."""
    with reported():
        from reconpriv.core.randomness import Key
        from reconpriv.writing.marker import refuse_inside_release

        refuse_inside_release(file, "the key")
        Key.generate().write(file)
        if json:
            show_json({"key_file": str(file), "bits": 256})
        else:
            echo(
                f"Key written to {shown_path(file)} (256 bits, mode 0600)."
                " Keep it secret, keep it safe:"
            )
            echo(
                "anyone who has it can undo the randomisation; if you lose it, publishing the\n"
                "same table again gives adversaries a second, independent sample."
            )


def demo(
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Keep the release here instead of removing it."),
    ] = None,
    json: opt.Json = False,
) -> None:
    """Audit, publish and query a real table (48,842 people; occupation is sensitive)."""
    with reported():
        from reconpriv.cli.demo import demo_view, run_demo

        result = run_demo(out)
        if json:
            show_json(result.as_dict())
        else:
            show(demo_view(result))


def _add(command: Callable[..., None], panel: str, example: str) -> None:
    app.command(rich_help_panel=panel, epilog=opt.EXAMPLE + example)(command)


columns.register(app)
audit.register(app)
publish.register(app)
_add(retention, opt.PUBLISHER, "reconpriv retention --rho1 0.1 --rho2 0.5 -m 10")
_add(keygen, opt.PUBLISHER, "reconpriv keygen my.key")
analyst.register(app)
_add(demo, opt.MORE, "reconpriv demo --out demo-release")
doctor.register(app)
ledger.register(app)
attack.register(app)
learning.register(app)
regression.register(app)
crosstab.register(app)
studio.register(app)
study.register(app)
tune.register(app)
for _registered in app.registered_commands:
    _registered.cls = Command
