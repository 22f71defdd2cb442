"""The command that tabulates two columns or more: crosstab."""

from __future__ import annotations

from typing import Annotated

import typer

from reconpriv.cli import options as opt
from reconpriv.cli.chart_option import ChartFile, Overwrite, check_chart_option, give_answer
from reconpriv.cli.choices import one_of
from reconpriv.cli.output import reported
from reconpriv.cli.release_options import (
    Confidence,
    EstimatorName,
    ReleaseFolder,
    WholeBins,
    open_with_warnings,
)
from reconpriv.errors import PolicyError


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        rich_help_panel=opt.ANALYST,
        epilog=opt.EXAMPLE + "reconpriv crosstab release/ occupation sex --shares column"
        " --totals --widest 5%",
    )(crosstab)


def crosstab(
    release: ReleaseFolder,
    rows: Annotated[
        str, typer.Argument(metavar="ROWS", help="The column, or columns A,B,…, down the side.")
    ],
    columns: Annotated[
        str | None,
        typer.Argument(metavar="COLUMN", help="The column across the top.", show_default=False),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="SQL", help="A condition, to tabulate only some records."),
    ] = None,
    shares: Annotated[
        str | None,
        typer.Option(
            "--shares",
            metavar="row|column|all",
            autocompletion=one_of("row", "column", "all"),
            help="Shares of the row, the column or the whole table instead of counts.",
        ),
    ] = None,
    totals: Annotated[
        bool, typer.Option("--totals", help="Add totals by row, by column and of everything.")
    ] = False,
    widest: Annotated[
        str | None,
        typer.Option(
            "--widest",
            metavar="LIMIT",
            help="Flag wider intervals: a number of records, or 20% of the estimate; of shares,"
            " 5% means percentage points.",
        ),
    ] = None,
    estimator: EstimatorName = "mle",
    confidence: Confidence = 0.95,
    simultaneous: Annotated[
        bool,
        typer.Option("--simultaneous", help="Make all intervals hold at once, at that level."),
    ] = False,
    whole_bins: WholeBins = False,
    chart: ChartFile = None,
    overwrite: Overwrite = False,
    memory: opt.Memory = None,
    json: opt.Json = False,
) -> None:
    """Tabulate columns of the original table, with intervals: counts or shares, and totals."""
    with reported():
        names = opt.split_names(rows)
        if not names:
            raise PolicyError("ROWS is empty.", hint="Name a column.")
        check_chart_option(chart, overwrite=overwrite)
        opened = open_with_warnings(release, memory)
        found = opened.crosstab(
            names if columns is None else [*names, columns],
            where,
            shares=shares,
            totals=totals,
            widest=widest,
            estimator=estimator,
            confidence=confidence,
            simultaneous=simultaneous,
            whole_bins=whole_bins,
        )
        from reconpriv.show.crosstab import two_way_view

        give_answer(
            found, lambda one: two_way_view(one.two_way()), chart, overwrite=overwrite, json=json
        )
