"""The commands that learn from a release: chi-square and learn."""

from __future__ import annotations

from typing import Annotated

import typer

from reconpriv.cli import options as opt
from reconpriv.cli.output import reported, show, show_json
from reconpriv.cli.release_options import Margins, ReleaseFolder, open_with_warnings

Where = Annotated[
    str | None,
    typer.Option(
        "--where", metavar="SQL", help="A condition on public columns, to use only some records."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(
        "chi-square",
        rich_help_panel=opt.ANALYST,
        epilog=opt.EXAMPLE + "reconpriv chi-square release/ sex",
    )(chi_square)
    app.command(
        rich_help_panel=opt.ANALYST,
        epilog=opt.EXAMPLE + "reconpriv learn release/ --target sex --test example:adult --json",
    )(learn)


def chi_square(
    release: ReleaseFolder,
    columns: Annotated[
        str, typer.Argument(metavar="A,B,…", help="Public columns, tested jointly.")
    ],
    where: Where = None,
    margins: Margins = True,
    memory: opt.Memory = None,
    json: opt.Json = False,
) -> None:
    """Test whether the sensitive column depends on public ones, allowing for the randomisation."""
    with reported():
        from reconpriv.learning.independence import chi_square as run

        opened = open_with_warnings(release, memory)
        test = run(opened, opt.split_names(columns), where, margins=margins)
        if json:
            show_json(test.as_dict())
        else:
            from reconpriv.show.learning import independence_view

            show(independence_view(test))


def learn(
    release: ReleaseFolder,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="COLUMN",
            help="The column to predict; by default the sensitive one.",
        ),
    ] = None,
    features: Annotated[
        opt.Texts,
        opt.several(
            "--features",
            metavar="A,B,…",
            help="The columns to predict from; by default all others.",
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            "--test", metavar="TABLE", help="A file of records to predict, with their true values."
        ),
    ] = None,
    where: Where = None,
    alpha: Annotated[float, typer.Option("--alpha", help="Laplace smoothing, in records.")] = 1.0,
    margins: Margins = True,
    memory: opt.Memory = None,
    json: opt.Json = False,
) -> None:
    """Train naive Bayes on reconstructed distributions; --json prints the whole model."""
    with reported():
        from reconpriv.learning.extra import require_scikit_learn

        require_scikit_learn()
        from reconpriv.learning.evaluate import learn as run

        chosen = opt.listed_names("--features", features)
        opened = open_with_warnings(release, memory)
        learned = run(opened, target, chosen, where=where, alpha=alpha, test=test, margins=margins)
        if json:
            show_json(learned.as_dict())
        else:
            from reconpriv.show.learning import learned_view

            show(learned_view(learned))
