"""The commands that fit regressions to a release: logistic and linear."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reconpriv.cli import options as opt
from reconpriv.cli.chart_option import ChartFile, Overwrite, check_chart_option, give_answer
from reconpriv.cli.learning import Where
from reconpriv.cli.output import reported
from reconpriv.cli.release_options import (
    Confidence,
    Margins,
    ReleaseFolder,
    open_with_warnings,
)

if TYPE_CHECKING:
    from reconpriv.learning.regression import Regression

Features = Annotated[
    list[str],
    opt.several(
        "--features",
        metavar="A,B,…",
        help="The columns that explain; C(age) takes the values of a number as categories.",
    ),
]
Merge = Annotated[
    list[str] | None,
    typer.Option(
        "--merge",
        metavar="NAME=VALUE,…",
        help="Take several sensitive values as one with a new name; repeatable.",
    ),
]
Reference = Annotated[
    list[str] | None,
    typer.Option(
        "--reference",
        metavar="COLUMN=VALUE",
        help="Compare the values of a column with this one instead of the most frequent;"
        " repeatable.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(
        rich_help_panel=opt.ANALYST,
        epilog=opt.EXAMPLE + "reconpriv logistic release/ --target Sales --features age,sex",
    )(logistic)
    app.command(
        rich_help_panel=opt.ANALYST,
        epilog=opt.EXAMPLE + "reconpriv linear release/ --outcome age --features sex,occupation",
    )(linear)


def logistic(
    release: ReleaseFolder,
    target: Annotated[
        list[str],
        typer.Option(
            "--target",
            metavar="VALUE",
            help="A sensitive value against all others (repeat it for a set of them), or the"
            " sensitive column for a multinomial model.",
        ),
    ],
    features: Features,
    where: Where = None,
    merge: Merge = None,
    reference: Reference = None,
    confidence: Confidence = 0.95,
    margins: Margins = True,
    chart: ChartFile = None,
    overwrite: Overwrite = False,
    memory: opt.Memory = None,
    json: opt.Json = False,
) -> None:
    """Fit the logistic regression of the sensitive column that the original table would have."""
    with reported():
        asked = _asked(features, where, merge, reference, confidence, margins)
        check_chart_option(chart, overwrite=overwrite)
        opened = open_with_warnings(release, memory)
        found = opened.logistic(target[0] if len(target) == 1 else target, **asked)
        _show(found, chart, overwrite, json)


def linear(
    release: ReleaseFolder,
    outcome: Annotated[
        str, typer.Option("--outcome", metavar="COLUMN", help="The public number to explain.")
    ],
    features: Features,
    where: Where = None,
    merge: Merge = None,
    reference: Reference = None,
    confidence: Confidence = 0.95,
    margins: Margins = True,
    chart: ChartFile = None,
    overwrite: Overwrite = False,
    memory: opt.Memory = None,
    json: opt.Json = False,
) -> None:
    """Fit the linear regression of a public number that the original table would have."""
    with reported():
        asked = _asked(features, where, merge, reference, confidence, margins)
        check_chart_option(chart, overwrite=overwrite)
        opened = open_with_warnings(release, memory)
        _show(opened.linear(outcome, **asked), chart, overwrite, json)


def _show(found: Regression, chart: Path | None, overwrite: bool, json: bool) -> None:
    from reconpriv.show.regression import regression_view

    give_answer(found, regression_view, chart, overwrite=overwrite, json=json)


def _asked(
    features: list[str],
    where: str | None,
    merge: list[str] | None,
    reference: list[str] | None,
    confidence: float,
    margins: bool,
) -> dict[str, Any]:
    """What both regressions take, by the names that it has in Python."""
    merged = opt.split_assignments("--merge", merge or [], "Write NAME=VALUE,VALUE.")
    return {
        "features": opt.listed_names("--features", features),
        "where": where,
        "merge": {name: opt.split_names(values) for name, values in merged.items()},
        "reference": opt.split_assignments("--reference", reference or [], "Write COLUMN=VALUE."),
        "confidence": confidence,
        "margins": margins,
    }
