"""The command that proposes a role for every column: columns."""

from __future__ import annotations

import typer

from reconpriv.cli import options as opt
from reconpriv.cli.output import reported, show, show_json, shown_command
from reconpriv.cli.progress import ticking
from reconpriv.cli.remedy_words import proposal_options
from reconpriv.cli.streams import echo
from reconpriv.cli.table_options import TableOptions, taking_table
from reconpriv.messages.one_line import printable


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    example = "reconpriv columns example:adult -s occupation"
    app.command(rich_help_panel=opt.PUBLISHER, epilog=opt.EXAMPLE + example)(columns)


@taking_table(
    engines=True,
    sensitive_required=False,
    left_out=("public", "drop", "person", "rows_per_person", "domain", "missing", "bin", "group"),
)
def columns(table: TableOptions, json: opt.Json = False) -> None:
    """Propose a role for every column, with the reason: public, dropped, or the person's number.

    With -s, columns that give the sensitive value away are found, too. Nothing
    is published, and nothing is decided: only you know what else is sensitive.
    """
    with reported():
        from reconpriv.reading import propose_roles

        opt.warn_of_password(table.source)
        with ticking():
            found = propose_roles(
                table.source,
                sensitive=table.sensitive,
                sql=table.sql,
                table=table.table,
                threads=table.threads,
                memory=table.memory,
                engine=table.engine,
                master=table.master,
                labels=table.labels,
            )
        options = proposal_options(found)
        if json:
            show_json(found.as_dict() | {"options": options})
        else:
            from reconpriv.show.proposals import proposals_view

            show(proposals_view(found))
            if table.sensitive is not None:
                words = ["audit", table.source]
                for option, value in table.parts():
                    words += [option] if value is None else [option, value]
                echo(printable(f"\n{shown_command(words, options)}"))
