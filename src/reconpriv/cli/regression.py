"""The commands that fit regressions to a release: logistic and linear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reconpriv.cli import options as opt
from reconpriv.cli.learning import ReleaseFolder, Where
from reconpriv.cli.output import reported, say_all, show, show_json
from reconpriv.errors import PolicyError

if TYPE_CHECKING:
    from reconpriv.learning.regression import Regression

Features = Annotated[
    str,
    typer.Option(
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
Confidence = Annotated[
    float, typer.Option("--confidence", help="The confidence level of the intervals.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    example = "[bold]Example[/bold]\n\n"
    app.command(
        rich_help_panel=opt.ANALYST,
        epilog=example + "reconpriv logistic release/ --target Sales --features age,sex",
    )(logistic)
    app.command(
        rich_help_panel=opt.ANALYST,
        epilog=example + "reconpriv linear release/ --outcome age --features sex,occupation",
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
    memory: opt.Memory = None,
    json: opt.Json = False,
) -> None:
    """Fit the logistic regression of the sensitive column that the original table would have."""
    with reported():
        from reconpriv.release.release import open_release

        chosen = _features(features)
        opened = open_release(release, memory=memory)
        say_all("warning", opened.warnings)
        found = opened.logistic(
            target[0] if len(target) == 1 else target,
            chosen,
            where,
            merge=_merged(merge),
            reference=_references(reference),
            confidence=confidence,
        )
        _show(found, json)


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
    memory: opt.Memory = None,
    json: opt.Json = False,
) -> None:
    """Fit the linear regression of a public number that the original table would have."""
    with reported():
        from reconpriv.release.release import open_release

        chosen = _features(features)
        opened = open_release(release, memory=memory)
        say_all("warning", opened.warnings)
        found = opened.linear(
            outcome,
            chosen,
            where,
            merge=_merged(merge),
            reference=_references(reference),
            confidence=confidence,
        )
        _show(found, json)


def _show(found: Regression, json: bool) -> None:
    if json:
        show_json(found.as_dict())
    else:
        from reconpriv.show.regression import regression_view

        show(regression_view(found))


def _features(text: str) -> list[str]:
    names = opt.split_names(text)
    if not names:
        raise PolicyError("--features is empty.", hint="Name a column.")
    return names


def _merged(texts: list[str] | None) -> dict[str, list[str]]:
    pairs = opt.split_assignments("--merge", texts or [])
    return {name: opt.split_names(values) for name, values in pairs.items()}


def _references(texts: list[str] | None) -> dict[str, str]:
    return opt.split_assignments("--reference", texts or [])
