"""The commands: each with its panel of the help and its example."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from reconpriv._version import __version__
from reconpriv.cli.commands.analyst import (
    chi_square,
    crosstab,
    export,
    info,
    learn,
    linear,
    logistic,
    query,
    report,
    workload,
)
from reconpriv.cli.commands.more import demo, doctor, experiment, keygen, ledger, retention, studio
from reconpriv.cli.commands.publisher import attack, audit, columns, publish
from reconpriv.cli.commands.record import record
from reconpriv.cli.commands.tune import tune
from reconpriv.cli.options.declared import option, parameter, signed
from reconpriv.cli.process.output import Printed, reported
from reconpriv.cli.process.usage import Command, Commands

PUBLISHER, ANALYST, MORE = "For the publisher", "For the analyst", "More"
_ADULT = "example:adult -s occupation --public age,sex,race --missing value"
COMMANDS: list[tuple[Callable[..., Any], str, str]] = [
    (columns, PUBLISHER, "columns example:adult -s occupation"),
    (audit, PUBLISHER, f"audit {_ADULT}"),
    (
        publish,
        PUBLISHER,
        "keygen my.key && reconpriv publish example:adult release/ -s occupation --public"
        " age,sex,race --missing value --key my.key",
    ),
    (record, PUBLISHER, "record example:adult release/ --key my.key -o record.json"),
    (retention, PUBLISHER, "retention --rho1 0.1 --rho2 0.5 -m 10"),
    (keygen, PUBLISHER, "keygen my.key"),
    (
        query,
        ANALYST,
        "query release/ \"SELECT sex, count(*) FROM release WHERE occupation = 'Sales' GROUP BY"
        ' sex"',
    ),
    (info, ANALYST, "info release/"),
    (export, ANALYST, "export release/ people.sav"),
    (report, ANALYST, "report release/ -o report.html"),
    (workload, ANALYST, f"workload {_ADULT} --release release/"),
    (demo, MORE, "demo --out demo-release"),
    (doctor, MORE, "doctor --json"),
    (ledger, PUBLISHER, "ledger show my.key"),
    (
        attack,
        PUBLISHER,
        "attack granularity example:census_workers -s Occupation --public all --drop Weight"
        " --sampling paper",
    ),
    (chi_square, ANALYST, "chi-square release/ sex"),
    (learn, ANALYST, "learn release/ --target sex --test example:adult --json"),
    (logistic, ANALYST, "logistic release/ --target Sales --features age,sex"),
    (linear, ANALYST, "linear release/ --outcome age --features sex,occupation"),
    (crosstab, ANALYST, "crosstab release/ occupation sex --shares column --totals --widest 5%"),
    (studio, PUBLISHER, "studio example:adult -s occupation"),
    (experiment, MORE, "experiment all --fast --out study/"),
    (tune, PUBLISHER, f"tune {_ADULT} --max-error 0.1"),
]

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


def _printing(command: Callable[..., Any]) -> Callable[..., None]:
    """The command with its result printed, and its errors as a sentence and an exit code."""

    @functools.wraps(command)
    def run(json: bool = False, **given: object) -> None:
        with reported():
            result = command(**given)
            if result is not None:
                (result if isinstance(result, Printed) else Printed(result)).give(json=json)

    parameters = [*inspect.signature(command).parameters.values()]
    if command is not studio:
        parameters.append(parameter("json", bool, _JSON))
    return signed(run, parameters)


_JSON = option("--json", "Print JSON instead of text.", False)
for _command, _panel, _example in COMMANDS:
    app.command(
        _command.__name__.replace("_", "-"),
        cls=Command,
        rich_help_panel=_panel,
        epilog=f"[bold]Example[/bold]\n\nreconpriv {_example}",
    )(_printing(_command))
