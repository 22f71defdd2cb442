"""The command that proposes a role for every column: columns."""

from __future__ import annotations

from reconpriv.cli.options import shared as opt
from reconpriv.cli.options.declared import optional, taking
from reconpriv.cli.options.table import TableOptions
from reconpriv.cli.process.output import give, show_json, shown_command
from reconpriv.cli.process.progress import ticking
from reconpriv.cli.process.remedy_words import proposal_options
from reconpriv.cli.process.streams import echo
from reconpriv.messages.one_line import printable


@taking(
    TableOptions,
    left_out=("public", "drop", "person", "rows_per_person", "domain", "missing", "bin", "group"),
    instead={"sensitive": optional(TableOptions, "sensitive")},
)
def columns(table: TableOptions, json: bool = opt.JSON) -> None:
    """Propose a role for every column, with the reason: public, dropped, or the person's number.

    With -s, columns that give the sensitive value away are found, too. Nothing
    is published, and nothing is decided: only you know what else is sensitive.
    """
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
        give(found, json=False)
        if table.sensitive is not None:
            words = ["audit", table.source]
            for option, value in table.parts():
                words += [option] if value is None else [option, value]
            echo(printable(f"\n{shown_command(words, options)}"))
