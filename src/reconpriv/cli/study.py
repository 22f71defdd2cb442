"""The researcher's command: experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reconpriv.cli import options as opt
from reconpriv.cli.output import reported, show, show_json
from reconpriv.cli.progress import counting_steps


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    example = opt.EXAMPLE + "reconpriv experiment all --fast --out study/"
    app.command(rich_help_panel=opt.MORE, epilog=example)(experiment)


def experiment(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME…", help="all, or: distribution, violations, error, dp-tables, margins."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Where to write results, figures and the page."),
    ] = Path("study"),
    fast: Annotated[
        bool,
        typer.Option("--fast", help="Use fewer keys, queries and draws, to finish in minutes."),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="Your own extract with Age, Gender, Education, Marital, Race, Workclass,"
            " Occupation (CSV or Parquet) instead of the bundled census workers.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace DIR if it is an earlier run.")
    ] = False,
    json: opt.Json = False,
) -> None:
    """Re-run the paper's empirical study: write CSV, figures and a page on which claims hold."""
    with reported():
        from reconpriv.research.run import STEPS, run_study

        wanted = STEPS if "all" in names else {n: s for n, s in STEPS.items() if n in names}
        with counting_steps(sum(wanted.values())) as step:
            study = run_study(names, out, fast=fast, data=data, overwrite=overwrite, step=step)
        if json:
            show_json(
                {
                    "out": str(study.folder),
                    "seconds": round(study.seconds, 1),
                    "findings": [
                        {"statement": f.statement, "verdict": f.verdict, "evidence": f.evidence}
                        for f in study.findings
                    ],
                    "files": [path.name for path in study.files],
                }
            )
        else:
            from reconpriv.show.study import findings_view

            show(findings_view(study))
